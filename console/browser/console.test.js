// The console in a real browser, before a broker with real members: what it shows, what it does, and what it must not do.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Broker, until } from "./broker.js";
import { launch, nameless, open, shots } from "./page.js";

const PROGRAM = process.env.ANABRANCH;
const RECORDS = 20_000;

let broker;
let browser;

before(async () => {
  assert.ok(PROGRAM, "ANABRANCH names the program to test");
  [broker, browser] = await Promise.all([Broker.start(PROGRAM), launch()]);
});

after(async () => {
  await browser?.close();
  await broker?.stop();
});

function records(count) {
  const lines = Array.from({ length: count }, (_, n) => `k${n % 997}:${n} ${"x".repeat(80)}`);
  return `${lines.join("\n")}\n`;
}

/** The group's picture, read out. */
async function picture(page) {
  const all = await page.getByRole("img", { name: / unread\. / }).all();
  return Promise.all(all.map((one) => one.getAttribute("aria-label")));
}

async function says(page, words, patienceMs = 30_000) {
  await until(async () => (await picture(page)).some((one) => words.test(one)), `a picture that says ${words}`, patienceMs);
}

test("a backlog divides itself on the screen while members join", { timeout: 120_000 }, async () => {
  const demo = broker.background(["demo", "-b", broker.bootstrap, "--members", "4", "--zipf", "0.9", "--records", "60000", "--cost-us", "1500"]);
  const ended = new Promise((resolve) => demo.on("exit", resolve));
  const { page, faults, close } = await open(browser, `${broker.url}/`);
  await page.getByRole("table", { name: /^Groups/ }).getByRole("link", { name: /anabranch-demo/ }).click();
  await says(page, /([A-D] member-\d has [\d,]+ slots with [\d,]+ unread.*){2}/);
  await says(page, /(member-\d has .*){4}/, 60_000);
  await page.getByText("shared by 4").waitFor();
  assert.equal(await page.getByRole("table", { name: "Members of the group" }).getByRole("row").count(), 5);
  await page.getByText(/records of . member-\d in .* are divided/).first().waitFor();
  assert.match(await page.getByRole("img", { name: /^Time line/ }).getAttribute("aria-label"), /[1-9]\d* decisions?/);
  await shots(page, "group");
  // Back to when nobody shared anything: worked out from the decisions, or seen.
  await page.getByRole("slider", { name: "Time" }).focus();
  await page.keyboard.press("Home");
  await page.getByRole("img", { name: /^Owners of the slots .* 100%$/ }).waitFor();
  await page.getByRole("button", { name: "Now" }).click();
  assert.deepEqual(await nameless(page), []);
  assert.equal(await ended, 0, "the demo checks order and loss, watched or not");
  // The demo leaves nothing; whoever watched it still has the picture, and nothing to press that would lead nowhere.
  await page.getByText("The group is gone").waitFor();
  await page.getByText(/records of . member-\d in .* are divided/).first().waitFor();
  await shots(page, "gone");
  assert.equal(await page.getByRole("region", { name: "Who reads what" }).isVisible(), true);
  assert.equal(await page.getByRole("button", { name: "Split…" }).isVisible(), false);
  await close();
  assert.deepEqual(faults, []);
});

test("an operator pauses, splits after a rehearsal, and sees it", { timeout: 120_000 }, async () => {
  const quiet = ["-c", "elastic.split.min.remaining=1000000"];
  await broker.run(["topic", "create", "orders", "-p", "1", ...quiet]);
  await broker.run(["produce", "orders", "--input", "kv"], records(RECORDS));
  const members = [broker.member("orders", "billing", 40_000)];
  const { page, faults, close } = await open(browser, `${broker.url}/#/groups/billing`);
  await says(page, /orders partition 0: .* has 4,096 slots/);
  members.push(broker.member("orders", "billing", 40_000));
  await page.getByText("idle", { exact: false }).first().waitFor();

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("planner paused").waitFor();
  assert.equal((await broker.api("groups/billing")).elastic.paused, true);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("elastic: slices").waitFor();

  // Who has just joined is not known well enough at once.
  await until(async () => {
    await page.getByRole("button", { name: "Split…" }).click();
    await page.getByRole("dialog").getByText(/Asking/).waitFor({ state: "detached" });
    if (await page.getByRole("button", { name: "Split", exact: true }).isEnabled()) return true;
    await page.getByRole("button", { name: "Cancel" }).click();
    return false;
  }, "a split that is possible");
  await page.getByRole("dialog").getByText(/records of .* are divided/).waitFor();
  await page.getByRole("dialog").getByText("anabranch group split billing orders:0").waitFor();
  assert.equal((await broker.api("groups/billing")).partitions[0].form, "plain", "a rehearsal changes nothing");
  await shots(page, "split");
  await page.getByRole("button", { name: "Split", exact: true }).click();
  await page.getByText("shared by 2").waitFor();
  await says(page, /(has [\d,]+ slots.*){2}/);
  await Promise.all(members.map((member) => member.leave()));
  await close();
  assert.deepEqual(faults, []);
});

test("offsets are reset after it was shown what that does", { timeout: 60_000 }, async () => {
  await until(async () => (await broker.api("groups/billing/offsets")).members === 0, "the members to be gone");
  const { page, faults, close } = await open(browser, `${broker.url}/#/groups/billing`);
  await page.getByRole("button", { name: "Reset offsets…" }).click();
  const act = page.getByRole("button", { name: /^Reset( 1 partition)?$/ });
  assert.equal(await act.isDisabled(), true);
  await page.getByRole("button", { name: "Show what would happen" }).click();
  await page.getByRole("table", { name: "What the reset does" }).waitFor();
  assert.notEqual((await broker.api("groups/billing/offsets")).places[0].committed, 0);
  await page.getByText("anabranch group reset billing --topic orders --to-earliest").waitFor();
  await act.click();
  await page.getByText("Offsets of 1 partition of orders were reset for billing.").waitFor();
  assert.equal((await broker.api("groups/billing/offsets")).places[0].committed, 0);
  await close();
  assert.deepEqual(faults, []);
});

test("a topic in queue mode says which queues are written and read, what comes next, and who has not read what", { timeout: 120_000 }, async () => {
  const long = "the-group-of-" + "a-service-with-a-very-long-name-".repeat(8).slice(0, 236);
  assert.equal(long.length, 249, "the longest that Kafka takes for a topic");
  const quick = ["-c", "elastic.queues.write.delay.ms=4000", "-c", "elastic.queues.shrink.grace.ms=300"];
  await broker.run(["topic", "create", "tasks", "-p", "16", "-c", "elastic.mode=queues", ...quick]);
  const { page, faults, close } = await open(browser, `${broker.url}/#/topics/tasks`);
  const queues = page.getByRole("region", { name: "Queues", exact: true });
  await queues.getByText("No group with members reads it").waitFor();
  await queues.getByRole("img", { name: /^queue 0 is written and read; clients see 16$/ }).waitFor();
  await queues.getByText("1 written · 1 read · 16 seen by clients").waitFor();

  const members = [1, 2, 3].map(() => broker.member("tasks", long, 4_000));
  await queues.getByText(/Consumers have queues 1 to 2 already; producers write to them in \d/).waitFor();
  await queues.getByText("3 written · 3 read · 16 seen by clients").waitFor();
  await queues.getByText("3 consumers").waitFor();
  members.push(broker.member("tasks", "slow", 1));
  await broker.run(["produce", "tasks", "--input", "kv"], records(RECORDS));
  await queues.getByRole("img", { name: /^the-group-of-.* has [\d,]+ unread: [\d,]+ in queue 0, [\d,]+ in queue 1, [\d,]+ in queue 2$/ }).waitFor();
  await Promise.all(members.splice(0, 2).map((member) => member.leave()));
  await queues.getByText(/Nothing is written to queues 1 to 2 any more; they go in \d+ min if every group has read them/).waitFor();
  await queues.getByText(/[1-9][\d,]* of them in queues that go/).first().waitFor();
  await queues.getByText(/Group .* has [\d,]+ unread records in queue 1\./).waitFor();
  await queues.getByRole("img", { name: /queues 1 to 2: not written any more/ }).waitFor();
  assert.match(await page.getByRole("term").filter({ hasText: "Partitions" }).locator("..").textContent(), /16.*1 written, 3 read/);

  // Names of that length leave room for what is said of them; whole they are in the text.
  const decided = page.getByRole("region", { name: "Decisions about the queues" });
  const sentence = decided.locator(".words", { hasText: `since the largest group, ${long}, has 3 instances` });
  await sentence.first().waitFor();
  const { height } = await sentence.first().boundingBox();
  assert.ok(height < 70, `a decision takes ${height} pixels`);
  await queues.getByRole("link", { name: long, exact: true }).waitFor();
  assert.deepEqual(await nameless(page), []);
  await shots(page, "queues");
  await page.goto(`${broker.url}/#/decisions`);
  await page.locator(".decisions li", { hasText: `largest group, ${long}` }).first().waitFor();
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(widths[0] <= widths[1], `the page is ${widths[0]} wide in a window of ${widths[1]}`);
  await shots(page, "decisions");
  await Promise.all(members.map((member) => member.leave()));
  await broker.run(["topic", "delete", "tasks"]);
  await broker.run(["group", "delete", long, "slow"]);
  await close();
  assert.deepEqual(faults, []);
});

test("what is not there is said, with nothing beside it to press", { timeout: 60_000 }, async () => {
  const { page, faults, close } = await open(browser, `${broker.url}/#/groups/nobody`);
  await page.getByText('There is no group "nobody"').waitFor();
  assert.equal(await page.locator("main button:visible").count(), 0);
  assert.equal(await page.getByText("Who reads what").isVisible(), false);
  await page.goto(`${broker.url}/#/topics/nothing`);
  await page.getByText('there is no topic "nothing"').waitFor();
  await until(async () => (await page.locator("main button:visible").count()) === 0, "an empty page");
  await close();
  assert.deepEqual(faults.filter((one) => !one.includes("404")), []);
});

/** Long names give way: what the numbers are is seen without scrolling. */
test("no column of the overview is cut off", { timeout: 60_000 }, async () => {
  const long = "a-topic-whose-name-is-as-long-as-those-of-programs-are";
  await broker.run(["topic", "create", long]);
  const { page, faults, close } = await open(browser, `${broker.url}/`);
  await page.getByRole("link", { name: long }).waitFor();
  for (const column of ["In", "Topics"]) {
    const head = page.locator("main th", { hasText: new RegExp(`^${column}$`) });
    const [right, edge] = await head.evaluate((th) => {
      return [th.getBoundingClientRect().right, th.closest(".panel").getBoundingClientRect().right];
    });
    assert.ok(right <= edge + 1, `${column}: ${right} of ${edge}`);
  }
  await broker.run(["topic", "delete", long]);
  await close();
  assert.deepEqual(faults, []);
});

test("messages are found by key and offset", { timeout: 60_000 }, async () => {
  const { page, faults, close } = await open(browser, `${broker.url}/#/topics/orders`);
  const table = page.getByRole("table", { name: "Messages" });
  await page.getByLabel("Key").fill("k42");
  await page.getByLabel("From").selectOption("start");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText(/^21 messages, searched to the end/).waitFor();
  assert.equal(await table.getByRole("row").count(), 22);
  await page.getByLabel("Key").fill("");
  await page.getByLabel("From").selectOption("offset");
  await page.getByLabel("Value").fill("100");
  await page.getByLabel("At most").selectOption("20");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText(/^20 messages, searched up to offset 120/).waitFor();
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText(/^40 messages/).waitFor();
  await page.getByRole("cell", { name: "elastic.split.min.remaining" }).waitFor();
  await shots(page, "topic");
  assert.deepEqual(await nameless(page), []);
  await close();
  assert.deepEqual(faults, []);
});

test("two hundred groups and a thousand partitions do not hold the page up", { timeout: 180_000 }, async () => {
  const topics = Array.from({ length: 20 }, (_, n) => `wide-${n}`);
  await broker.run(["topic", "create", ...topics, "-p", "50"]);
  const reset = (n) => broker.run(["group", "reset", `team-${n}`, "--topic", `wide-${n % 20}`, "--to-latest", "--execute"]);
  for (let n = 0; n < 200; n += 10) await Promise.all(Array.from({ length: 10 }, (_, i) => reset(n + i)));
  const { page, faults, close } = await open(browser, `${broker.url}/`);
  const groups = page.getByRole("table", { name: /^Groups/ });
  await until(async () => (await groups.getByRole("row").count()) > 200, "all groups");
  const slow = await page.evaluate(async () => {
    const tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({ type: "longtask" });
    await new Promise((resolve) => setTimeout(resolve, 5000));
    return Math.max(0, ...tasks.map((task) => task.duration));
  });
  console.log(`longest task in five seconds of 200 groups and 1,000 partitions: ${Math.round(slow)} ms`);
  assert.ok(slow < 250, `${slow} ms`);
  await page.keyboard.press("/");
  await page.keyboard.type("team-17");
  await until(async () => (await groups.getByRole("row").count()) === 12, "the groups that match");
  await page.keyboard.press("Escape");
  await groups.getByRole("button", { name: "Group" }).click();
  await page.getByRole("columnheader", { name: "Group" }).waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "Group" }).getAttribute("aria-sort"), "ascending");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Reading the picture" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await shots(page, "overview");
  // Beyond a thousand rows the broker is asked.
  await broker.run(["topic", "create", ...Array.from({ length: 1000 }, (_, n) => `many-${n}`), "-p", "1"]);
  const shown = page.getByRole("table", { name: /^Topics/ });
  await page.getByText(/and 21 not shown/).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("wide-19");
  await shown.getByRole("link", { name: "wide-19" }).waitFor();
  assert.deepEqual(await nameless(page), []);
  await close();
  assert.deepEqual(faults, []);
});

test("a page that lost its broker says so, and finds it again", { timeout: 60_000 }, async () => {
  const { page, close } = await open(browser, `${broker.url}/`);
  await page.getByText("live", { exact: true }).waitFor();
  await page.context().setOffline(true);
  await page.route("**/api/**", (route) => route.abort());
  await page.evaluate(() => (location.hash = "#/decisions"));
  await page.getByText(/no connection|connecting/).waitFor();
  await page.unroute("**/api/**");
  await page.context().setOffline(false);
  await page.getByText("live", { exact: true }).waitFor();
  await close();
});
