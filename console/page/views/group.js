// One group: the picture of who reads what, and why.

import { get } from "../lib/api.js";
import { cli } from "../lib/cli.js";
import { attribute, h, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { drainMs, drainWords, loads as loadsOf } from "../lib/load.js";
import { Owners } from "../lib/owners.js";
import { badge, copyButton, link, panel, tiles } from "../lib/parts.js";
import { readers, unread } from "../lib/slots.js";
import { table } from "../lib/table.js";
import { orderDialog, resetDialog, setPaused } from "./actions.js";
import { decisionList } from "./decisions.js";
import { historyPanel } from "./history.js";
import { memberTable } from "./members.js";
import { partitionColumns, pictures } from "./partitions.js";

/** Partitions that have a picture; all others have a row. */
const PICTURES = 16;

export function groupView(app, name) {
  const owners = new Owners();
  const context = { owners };
  const badges = h("span", { class: "badges" });
  const about = h("p", { class: "about" });
  const buttons = actions(app, name, owners);
  const heading = h("div", { class: "heading" }, h("h1", {}, name), badges, buttons.element, about);
  const sums = tiles(["Unread", "Drain", "Out", "Members", "Partitions", "Moving"]);
  const picture = panel("Who reads what", { command: () => cli.group(name) });
  picture.body.className = "";
  const bands = pictures();
  const others = table({ caption: "Further partitions", key: (row) => `${row.topic}/${row.partition}`, columns: partitionColumns(context) });
  const rest = h("div", { class: "scroll tall" }, others.element);
  picture.body.append(bands.element, rest);
  const members = panel("Members", { command: () => cli.members(name), scroll: true });
  const memberRows = memberTable();
  members.body.append(memberRows.element);
  const past = historyPanel(name, () => draw());
  const refusals = h("input", { type: "checkbox", checked: true, on: { change: () => draw() } });
  const decided = panel("Decisions", { command: () => cli.decisions(name), actions: [h("label", {}, refusals, "refusals")], tall: true });
  decided.body.className = "tall";
  const list = decisionList({ max: 100, name: (id) => owners.name(id), ids: () => owners.ids() });
  decided.body.append(list.element);
  const plain = offsetsPanel(name);
  const columns = h("div", { class: "columns" }, h("div", { class: "stack" }, picture.element, members.element), h("div", { class: "stack" }, past.element, decided.element));
  let state = null;
  /** The group as it was seen last. */
  let last = null;

  function draw() {
    if (!state) return;
    // What was seen last of a group that is gone: whoever watched it wants to look at how it was.
    const isOver = isNobody() && last != null;
    const group = isOver ? last : state.group;
    const row = state.overview?.groups.find((one) => one.group === name);
    const wanted = refusals.checked ? state.decisions : state.decisions.filter((one) => one.outcome !== "refused");
    list.update(wanted);
    decided.note(text.count(wanted.length));
    columns.hidden = !group;
    sums.element.hidden = !group && !row;
    plain.element.hidden = Boolean(group) || !state.gone || isNobody();
    buttons.element.hidden = isNobody();
    if (!group) return rowOnly(row);
    last = group;
    owners.note(group.members);
    const loads = loadsOf(group);
    head(badges, about, group);
    buttons.show(group);
    numbers(sums, group, loads, row);
    const [shown, further] = split(group.partitions);
    bands.update(shown, group, owners, loads);
    others.update(further);
    rest.hidden = further.length === 0;
    memberRows.update(group, owners, loads);
    past.update({ now: app.now(), owners, decisions: state.decisions });
    if (isOver) over();
  }

  function over() {
    badges.dataset.words = "gone";
    badges.replaceChildren(badge("gone", "warn"));
    put(about, "The group is gone: its members have left, and it was deleted or its offsets expired. This is how it was when it was seen last.");
  }

  /** Whether there is no group of this name: not only none that the broker assigns. */
  function isNobody() {
    const { overview, gone } = state;
    return gone && overview?.groups_left_out === 0 && !overview.groups.some((one) => one.group === name);
  }

  /** A group that the broker does not assign: what is known of it all the same. */
  function rowOnly(row) {
    if (isNobody()) put(about, `There is no group "${name}": nobody is a member of it, and nothing is committed.`);
    if (!row) return;
    const kind = row.members > 0 ? "Its members assign their partitions themselves" : "It has no members";
    put(about, state.gone ? `${kind}; what it has committed is all there is to see.` : "");
    sums.set("Unread", text.count(row.unread));
    sums.set("Drain", text.drain(row.unread, row.out_rate));
    sums.set("Out", text.rate(row.out_rate));
    sums.set("Members", text.count(row.members));
    sums.set("Partitions", text.count(row.partitions));
    sums.set("Moving", "–");
    buttons.show(null);
    if (state.gone) plain.load();
  }

  return {
    title: name,
    element: [heading, sums.element, columns, plain.element],
    watch: { group: name, bands: 256 },
    group(group) {
      past.note(app.now(), split(group.partitions)[0]);
    },
    update(news) {
      state = news;
      draw();
    },
  };
}

/** Partitions with a picture: those that are divided or were counted; and the others. */
function split(partitions) {
  const pictured = partitions.filter((one) => one.bands || one.form === "divided").slice(0, PICTURES);
  const known = new Set(pictured);
  return [pictured, partitions.filter((one) => !known.has(one))];
}

function head(badges, about, group) {
  const parts = [[group.state, group.state === "Stable" ? "good" : ""], [`${group.protocol} protocol`, ""]];
  if (group.elastic.paused) parts.push(["planner paused", "warn"]);
  else if (group.elastic.eligible) parts.push([`elastic: ${group.elastic.mode}`, "accent"]);
  else parts.push(["plain", ""]);
  const words = parts.map(([one]) => one).join("|");
  if (badges.dataset.words !== words) {
    badges.dataset.words = words;
    badges.replaceChildren(...parts.map(([one, tone]) => h("span", { class: `badge ${tone}` }, one)));
  }
  put(about, group.elastic.reason ? `Its partitions stay whole: ${group.elastic.reason}.` : "");
}

function numbers(sums, group, loads, row) {
  const left = group.partitions.reduce((sum, one) => sum + unread(one), 0);
  const drain = drainMs(group.members, loads, left);
  sums.set("Unread", text.short(left), row ? `lag ${text.count(row.lag)}` : "");
  // Whose rate is not known yet works as fast as the others, as far as anybody knows.
  const guess = row?.out_rate > 0 ? (left / row.out_rate) * 1000 : null;
  sums.set("Drain", left === 0 ? "empty" : drainWords(drain ?? guess, text), drain == null && guess != null ? "at the rate of now" : "");
  sums.set("Out", text.rate(row?.out_rate));
  const idle = group.members.filter((member) => member.state === "idle").length;
  sums.set("Members", text.count(group.members.length), idle > 0 ? `${idle} idle` : "");
  const shared = group.partitions.filter((one) => readers(one) > 1).length;
  sums.set("Partitions", text.count(group.partitions.length), shared > 0 ? `${shared} shared` : "");
  const transits = group.partitions.flatMap((one) => one.transits);
  const promised = group.partitions.flatMap((one) => one.loose).filter((one) => one.to != null);
  const moving = [...transits, ...promised].reduce((sum, one) => sum + one.slots, 0);
  const longest = Math.max(0, ...transits.map((one) => one.since_ms));
  sums.set("Moving", moving === 0 ? "–" : text.plural(moving, "slot"), longest === 0 ? "" : `for ${text.duration(longest)}`);
}

function actions(app, name, owners) {
  const button = (words, click) => h("button", { class: "action", type: "button", on: { click } }, words);
  let group = null;
  const split = button("Split…", () => orderDialog(app, name, "split", group, owners));
  const merge = button("Merge…", () => orderDialog(app, name, "merge", group, owners));
  const pause = button("Pause", () => setPaused(app, name, !group.elastic.paused));
  const reset = button("Reset offsets…", () => resetDialog(app, name));
  const copy = copyButton(() => cli.explain(name));
  return {
    element: h("div", { class: "actions" }, split, merge, pause, reset, copy),
    show(now) {
      group = now;
      for (const one of [split, merge, pause]) one.hidden = !now;
      if (!now) return;
      put(pause, now.elastic.paused ? "Resume" : "Pause");
      attribute(pause, "title", now.elastic.paused ? "Let the planner go on with this group" : "Have the planner leave this group alone");
      reset.disabled = now.members.length > 0;
      attribute(reset, "title", now.members.length > 0 ? "Only of a group without members can offsets be reset" : null);
    },
  };
}

/** What a group has committed that the broker does not assign. */
function offsetsPanel(name) {
  const box = panel("Committed offsets", { command: () => cli.group(name), scroll: true });
  const rows = table({
    caption: "Committed offsets",
    key: (row) => `${row.topic}/${row.partition}`,
    columns: [
      { title: "Topic", value: (row) => row.topic, show: (row) => row.topic, href: (row) => link.topic(row.topic), hover: (row) => row.topic, className: "cut" },
      { title: "Partition", number: true, value: (row) => row.partition, show: (row) => text.count(row.partition) },
      { title: "Committed", number: true, value: (row) => row.committed, show: (row) => text.count(row.committed) },
      { title: "End", number: true, value: (row) => row.log_end, show: (row) => text.count(row.log_end) },
      { title: "Lag", number: true, value: (row) => row.lag, show: (row) => text.count(row.lag) },
    ],
  });
  box.body.append(rows.element);
  let loading = false;
  return {
    element: box.element,
    async load() {
      if (loading) return;
      loading = true;
      try {
        rows.update((await get(["groups", name, "offsets"])).places);
      } catch (error) {
        box.note(error.message);
      }
      loading = false;
    },
  };
}
