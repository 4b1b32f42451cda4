// A browser with a page that watches itself: anything that it should not do is a fault of the test.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** What keeps Chromium from asking its maker's servers, and lets it run as root. */
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 820, height: 1100 } };

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: QUIET });
}

/** A page at that address: {page, faults}. `faults` has errors, refused loads, and requests to anybody else. */
export async function open(browser, url, theme = "light", size = "wide") {
  const context = await browser.newContext({ viewport: SIZES[size], colorScheme: theme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`asked elsewhere: ${request.url()}`);
  });
  if (process.env.PAGE_FROM_FOLDER) await fromFolder(page);
  await page.goto(url);
  return { page, faults, close: () => context.close() };
}

/** The page's files as they are in the folder, not as they are in the program: for whoever works on them. */
async function fromFolder(page) {
  const folder = new URL("../page/", import.meta.url).pathname;
  await page.route(/\/console\//, (route) => {
    return route.fulfill({ path: join(folder, new URL(route.request().url()).pathname.slice("/console/".length)) });
  });
}

/** A picture of the page in both themes and sizes, if SHOTS names a folder for them. */
export async function shots(page, name) {
  const folder = process.env.SHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  for (const theme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize(viewport);
      await page.waitForTimeout(400);
      await page.screenshot({ path: join(folder, `${name}-${theme}-${size}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(SIZES.wide);
}

/** Controls and pictures that nobody can name. */
export function nameless(page) {
  return page.evaluate(() => {
    const named = (element) => {
      const label = element.labels?.[0]?.textContent ?? "";
      return (element.getAttribute("aria-label") ?? label) || element.textContent.trim() || element.title;
    };
    const all = [...document.querySelectorAll("button, a, input, select, [role=img]")];
    return all.filter((element) => !named(element)).map((element) => element.outerHTML.slice(0, 120));
  });
}
