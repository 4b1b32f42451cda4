// A topic in queue mode: which queues are written and read, what changes next, and what each group has not read of each queue.

import { cli } from "../lib/cli.js";
import { attribute, children, h, keyed, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { say } from "../lib/names.js";
import { link, panel } from "../lib/parts.js";
import { USES, columns, range, sentences, toGo, unreadIn, use } from "../lib/queues.js";
import { decisionList } from "./decisions.js";

const COLUMNS_MAX = 256;
/** Narrower columns have no room for their number. */
const NUMBERED_MAX = 32;
const TALL = 40;

/** Panels of the queues and of what was decided about them: {element, show(queues, at_ms), update(now_ms), hide()}. */
export function queuesPanels(topic) {
  const box = panel("Queues", { command: () => cli.queues(topic) });
  const words = h("p", { class: "queue-words" });
  const strip = h("div", { class: "queues" });
  const legend = h("p", { class: "legend", "aria-hidden": "true" });
  const rows = h("div");
  const nobody = h("p", { class: "quiet" }, "No group with members reads it, so the counts stay as they are.");
  box.body.append(words, strip, legend, rows, nobody);
  const shown = { queues: null, columns: [], at_ms: 0, most: 1 };
  const fill = keyed(rows, (group) => group.group, () => groupRow(shown));

  const decided = panel("Decisions about the queues", { command: () => cli.queues(topic), tall: true });
  decided.body.className = "tall";
  const list = decisionList({ withTopic: false, max: 50, name: (id) => id });
  decided.body.append(list.element);
  const element = h("div", { class: "columns", hidden: true }, h("div", { class: "stack" }, box.element), h("div", { class: "stack" }, decided.element));

  return {
    element,
    show(queues, at_ms) {
      Object.assign(shown, { queues, at_ms, columns: columns(queues, COLUMNS_MAX) });
      shown.most = Math.max(1, ...queues.groups.flatMap((group) => unreadIn(group, shown.columns)));
      element.hidden = false;
      box.note(`${text.count(queues.write)} written · ${text.count(queues.read)} read · ${text.count(queues.facade)} seen by clients`);
      drawStrip(strip, shown);
      drawLegend(legend, shown);
      fill(queues.groups);
      nobody.hidden = queues.groups.length > 0;
      list.update(queues.decisions);
      decided.note(text.count(queues.decisions.length));
      this.update(at_ms);
    },
    /** Says when things happen, seen from now. */
    update(now_ms) {
      if (!shown.queues) return;
      const said = sentences(shown.queues, Math.max(0, now_ms - shown.at_ms), text).join(" ");
      const waits = shown.queues.blocked;
      const blocked = waits ? ` Group ${waits.group} has ${text.plural(waits.records, "unread record")} in queue ${waits.queue}.` : "";
      say(words, said + blocked, waits ? [waits.group] : []);
    },
    hide() {
      element.hidden = true;
    },
  };
}

/** The queues from left to right, coloured by use. */
function drawStrip(strip, { queues, columns }) {
  strip.style.gridTemplateColumns = `repeat(${columns.length}, minmax(0, 1fr))`;
  const cells = columns.map((queue) => {
    const words = columns.length <= NUMBERED_MAX ? String(queue) : "";
    return h("span", { class: `queue-${use(queues, queue)}`, title: `queue ${queue}: ${USES[use(queues, queue)]}` }, words);
  });
  const key = cells.map((cell) => `${cell.className}${cell.textContent}`).join();
  if (strip.dataset.key === key) return;
  strip.dataset.key = key;
  children(strip, cells);
  const written = `${range(0, queues.write)} ${queues.write === 1 ? "is" : "are"} written and read`;
  const between = queues.read > queues.write ? `; ${range(queues.write, queues.read)}: ${USES[use(queues, queues.read - 1)]}` : "";
  attribute(strip, "role", "img");
  attribute(strip, "aria-label", `${written}${between}; clients see ${queues.facade}`);
}

function drawLegend(legend, { queues, columns }) {
  const there = ["written", "coming", "going", "resting"].filter((one) => columns.some((queue) => use(queues, queue) === one));
  const further = queues.facade - columns.length;
  const parts = there.map((one) => h("span", {}, h("i", { class: `queue-${one}` }), one === "resting" ? "not in use, but not read to its end" : USES[one]));
  if (further > 0) parts.push(h("span", {}, `and ${text.count(further)} more that ${further === 1 ? "is" : "are"} not in use`));
  const key = parts.map((part) => part.textContent).join("|");
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  children(legend, parts);
}

/** A group with what it has not read of each queue, as a bar below the queue. */
function groupRow(shown) {
  const name = h("a");
  const about = h("span", { class: "badge" });
  const facts = h("span", { class: "right" });
  const bars = h("path");
  const svg = h("svg", { class: "queue-bars", preserveAspectRatio: "none", role: "img" }, bars);
  const hint = h("p", { class: "hint", "aria-hidden": "true" });
  const element = h("article", { class: "queue-group" }, h("header", {}, h("h3", {}, name), about, facts), svg, hint);
  let unread = [];

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * unread.length);
    const queue = shown.columns[at];
    if (queue == null) return;
    put(hint, `queue ${queue}: ${text.count(unread[at])} unread; ${USES[use(shown.queues, queue)]}`);
  });
  svg.addEventListener("pointerleave", () => put(hint, ""));

  return {
    element,
    update(group) {
      unread = unreadIn(group, shown.columns);
      say(name, group.group, [group.group]);
      attribute(name, "href", link.group(group.group));
      put(about, `${text.plural(group.instances, "consumer")}${group.counts ? "" : ", not counted"}`);
      const going = toGo(shown.queues, group);
      put(facts, `${text.count(group.unread)} unread${going == null ? "" : `, ${text.count(going)} of them in queues that go`}`);
      attribute(svg, "viewBox", `0 0 ${unread.length} ${TALL}`);
      attribute(bars, "d", path(unread, shown.most));
      attribute(svg, "aria-label", spoken(group));
    },
  };
}

/** As high as the square root of what is unread, as in the picture of a group. */
function path(unread, most) {
  const bar = (records, at) => {
    const tall = Math.max(2, Math.sqrt(records / most) * TALL).toFixed(1);
    return records === 0 ? "" : `M${at + 0.08} ${TALL}v-${tall}h0.84v${tall}z`;
  };
  return unread.map(bar).join("");
}

function spoken(group) {
  if (group.unread === 0) return `${group.group} has read everything`;
  const some = group.unread_in.slice(0, 12).map((one) => `${text.count(one.records)} in queue ${one.queue}`);
  const further = group.unread_in.length - some.length + group.unread_left_out;
  if (further > 0) some.push(`the rest in ${text.plural(further, "further queue")}`);
  return `${group.group} has ${text.count(group.unread)} unread: ${some.join(", ")}`;
}
