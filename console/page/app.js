// The page: what is known of the broker, which view shows it, and the keys that lead there.

import { get } from "./lib/api.js";
import { merge } from "./lib/decisions.js";
import { attribute, children, h, text as put } from "./lib/dom.js";
import { Live } from "./lib/live.js";
import { toast } from "./lib/parts.js";
import { decisionsView } from "./views/decisions.js";
import { groupView } from "./views/group.js";
import { help } from "./views/help.js";
import { overview } from "./views/overview.js";
import { topicView } from "./views/topic.js";

/** Values of the small lines in the overview. */
const RATES_KEPT = 120;

/** How long the typing pauses before the broker is asked, milliseconds. */
const SEARCH_PAUSE_MS = 250;

const THEMES = ["auto", "light", "dark"];

const state = { overview: null, group: null, gone: false, decisions: [], rates: [], filter: "", found: null };

/** How far the broker's clock is ahead of the browser's. */
let ahead = 0;
let view = null;
let drawing = false;
let searching = null;

const app = {
  /** The time by the broker's clock. */
  now: () => Date.now() + ahead,
  refresh: () => draw(),
};

const live = new Live({
  status(now) {
    const words = { open: "live", waiting: "connecting", lost: "no connection" }[now];
    put(status, words);
    attribute(status, "class", `live ${now === "open" ? "" : now}`);
  },
  overview(news) {
    ahead = news.time_ms - Date.now();
    state.overview = news;
    state.rates.push({ in: news.totals.in_rate ?? 0, out: news.totals.out_rate ?? 0 });
    if (state.rates.length > RATES_KEPT) state.rates.shift();
    put(version, `${news.version} · node ${news.node_id}`);
    attribute(version, "title", `cluster ${news.cluster_id}`);
    draw();
  },
  group(news) {
    if (news.group !== view?.watch?.group) return;
    state.group = news;
    state.gone = false;
    view.group(news);
    draw();
  },
  gone() {
    state.group = null;
    state.gone = true;
    draw();
  },
  decisions(news) {
    state.decisions = merge(state.decisions, news.decisions);
    draw();
  },
});

/** Draws once for all that came meanwhile. */
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    view?.update(state);
  });
}

function route() {
  const [, kind, name] = location.hash.split("/");
  const known = decodeURIComponent(name ?? "");
  if (kind === "groups" && known) return groupView(app, known);
  if (kind === "topics" && known) return topicView(app, known);
  return kind === "decisions" ? decisionsView() : overview(app);
}

function go() {
  view?.close?.();
  Object.assign(state, { group: null, gone: false, decisions: [] });
  view = route();
  children(document.getElementById("main"), view.element);
  document.title = `${view.title} · Anabranch`;
  const here = location.hash.split("/")[1] ?? "";
  for (const [hash, anchor] of links) attribute(anchor, "aria-current", hash === here ? "page" : null);
  live.watch(view.watch ?? {});
  window.scrollTo(0, 0);
  view.update(state);
}

const links = [["", "Overview"], ["decisions", "Decisions"]].map(([hash, words]) => {
  return [hash, h("a", { href: `#/${hash}` }, words)];
});
const status = h("span", { class: "live waiting", role: "status" }, "connecting");
const version = h("span", { class: "quiet version" });
/** Asks for rows that the overview leaves out, once the typing has paused. */
function searchBeyond() {
  clearTimeout(searching);
  state.found = null;
  const all = state.overview;
  if (!all || state.filter === "" || all.groups_left_out + all.topics_left_out === 0) return;
  const wanted = search.value.trim();
  searching = setTimeout(async () => {
    const found = await get(["overview"], { contains: wanted });
    if (wanted !== search.value.trim()) return;
    state.found = found;
    draw();
  }, SEARCH_PAUSE_MS);
}

const search = h("input", {
  type: "search",
  placeholder: "Search groups and topics",
  "aria-label": "Search groups and topics",
  on: {
    input: () => {
      state.filter = search.value.trim().toLowerCase();
      const local = ["", "decisions"].includes(location.hash.split("/")[1] ?? "");
      if (!local) location.hash = "#/";
      searchBeyond();
      draw();
    },
  },
});
const theme = h("button", { class: "action small", type: "button", on: { click: () => nextTheme() } });

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]);
  draw();
}

function currentTheme() {
  const kept = localStorage.getItem("anabranch-theme");
  return THEMES.includes(kept) ? kept : "auto";
}

function setTheme(name) {
  localStorage.setItem("anabranch-theme", name);
  attribute(document.documentElement, "data-theme", name === "auto" ? null : name);
  put(theme, `Theme: ${name}`);
}

const keys = {
  "/": () => search.focus(),
  o: () => (location.hash = "#/"),
  d: () => (location.hash = "#/decisions"),
  t: () => nextTheme(),
  "?": () => help(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
  if (event.key === "Escape" && event.target === search) {
    search.value = "";
    search.dispatchEvent(new Event("input"));
    return search.blur();
  }
  if (event.target.closest("input, select, textarea")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

window.addEventListener("unhandledrejection", (event) => toast(String(event.reason?.message ?? event.reason), "bad"));

document.getElementById("top").append(
  h("a", { class: "brand", href: "#/" }, h("img", { src: "/console/icon.svg", alt: "" }), "Anabranch"),
  h("nav", { "aria-label": "Pages" }, links.map(([, anchor]) => anchor)),
  h("span", { class: "search" }, search),
  h("span", { class: "space" }),
  status,
  version,
  theme,
  h("button", { class: "action small", type: "button", "aria-label": "Help", on: { click: () => help() } }, "?"),
);
setTheme(currentTheme());
window.addEventListener("hashchange", go);
go();
