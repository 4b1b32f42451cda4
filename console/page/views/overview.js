// Everything at one look: what comes in, what is done, what waits; groups and topics.

import { cli } from "../lib/cli.js";
import { h } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { link, panel, spark, tiles } from "../lib/parts.js";
import { table } from "../lib/table.js";
import { decisionList } from "./decisions.js";

const DECISIONS = 12;

export function overview(app) {
  const sums = tiles(["In", "Out", "Unread", "Members", "Groups", "Topics", "Partitions", "Stored"]);
  const [cameIn, wentOut] = [spark(), spark()];
  sums.add("In", cameIn.element);
  sums.add("Out", wentOut.element);

  const groups = panel("Groups", { command: cli.groups, scroll: true, tall: true });
  const groupTable = groupsTable();
  groups.body.append(groupTable.element);
  const topics = panel("Topics", { command: cli.topics, scroll: true, tall: true });
  const topicTable = topicsTable();
  topics.body.append(topicTable.element);
  const latest = panel("Latest decisions", { command: () => cli.decisions(null) });
  latest.body.className = "";
  const list = decisionList({ withGroup: true, max: DECISIONS });
  latest.body.append(list.element);

  const columns = h("div", { class: "columns" }, h("div", { class: "stack" }, groups.element), h("div", { class: "stack" }, topics.element));
  const element = [h("h1", { class: "hidden-label" }, "Overview"), sums.element, columns, latest.element];

  return {
    title: "Overview",
    element,
    update(state) {
      const all = state.overview;
      if (!all) return;
      const { totals } = all;
      sums.set("In", text.rate(totals.in_rate));
      sums.set("Out", text.rate(totals.out_rate));
      cameIn.show(state.rates.map((one) => one.in));
      wentOut.show(state.rates.map((one) => one.out));
      // Whose rate is not known yet has not stalled.
      const isKnown = all.groups.every((group) => group.unread === 0 || group.out_rate != null);
      const drain = isKnown ? text.drain(totals.unread, totals.out_rate) : "–";
      sums.set("Unread", text.short(totals.unread), drain === "–" ? "" : drain);
      const idle = all.groups.reduce((sum, group) => sum + (group.idle ?? 0), 0);
      sums.set("Members", text.count(totals.members), idle > 0 ? `${text.count(idle)} idle` : "");
      const shared = all.groups.filter((group) => group.divided > 0).length;
      sums.set("Groups", text.count(totals.groups), shared > 0 ? `${text.count(shared)} sharing` : "");
      sums.set("Topics", text.count(totals.topics));
      sums.set("Partitions", text.count(totals.partitions));
      sums.set("Stored", text.bytes(totals.bytes));
      // What the broker found beyond the first thousand, or what is here.
      const from = state.found ?? all;
      show(groupTable, groups, from.groups, (row) => row.group, from.groups_left_out, state.filter);
      show(topicTable, topics, from.topics, (row) => row.topic, from.topics_left_out, state.filter);
      list.update(state.decisions, app.now());
    },
  };
}

function show(grid, box, rows, name, leftOut, filter) {
  const wanted = filter === "" ? rows : rows.filter((row) => name(row).toLowerCase().includes(filter));
  grid.update(wanted);
  const notes = [text.count(wanted.length)];
  if (filter !== "") notes.push(`of ${text.count(rows.length)}`);
  if (leftOut > 0) notes.push(`and ${text.count(leftOut)} not shown: search for them`);
  box.note(notes.join(" "));
}

function groupsTable() {
  return table({
    caption: "Groups with what they have not read",
    key: (row) => row.group,
    sort: [3, -1],
    empty: "No group has committed anything yet.",
    columns: [
      { title: "Group", value: (row) => row.group, show: (row) => row.group, href: (row) => link.group(row.group), hover: (row) => row.group, className: "name" },
      { title: "State", value: (row) => row.state, show: (row) => (row.paused ? `${row.state}, planner paused` : row.state), className: "quiet" },
      { title: "Members", number: true, value: (row) => row.members, show: (row) => (row.idle ? `${text.count(row.members)} (${row.idle} idle)` : text.count(row.members)) },
      { title: "Unread", number: true, value: (row) => row.unread, show: (row) => text.count(row.unread), hover: (row) => `lag ${text.count(row.lag)} behind the committed offsets` },
      { title: "Out", number: true, value: (row) => row.out_rate, show: (row) => text.rate(row.out_rate) },
      { title: "Drain", number: true, value: (row) => drainSeconds(row), show: (row) => text.drain(row.unread, row.out_rate) },
      { title: "Shared", number: true, value: (row) => row.divided, show: (row) => shared(row), hover: () => "partitions that members share by slices" },
      { title: "Topics", value: (row) => row.topics.join(), show: (row) => row.topics.join(", "), hover: (row) => row.topics.join(", "), className: "name quiet" },
    ],
  });
}

function drainSeconds(row) {
  if (row.unread === 0) return 0;
  return row.out_rate == null ? null : row.unread / Math.max(row.out_rate, 1e-9);
}

function shared(row) {
  if (row.divided === 0) return "–";
  const moving = row.moving_slots > 0 ? `, ${text.plural(row.moving_slots, "slot")} moving` : "";
  return `${row.divided} of ${row.partitions}${moving}`;
}

function topicsTable() {
  return table({
    caption: "Topics with their size",
    key: (row) => row.topic,
    sort: [0, 1],
    empty: "No topic yet.",
    columns: [
      { title: "Topic", value: (row) => row.topic, show: (row) => row.topic, href: (row) => link.topic(row.topic), hover: (row) => row.topic, className: "name" },
      { title: "Mode", value: (row) => row.mode, show: (row) => row.mode, className: "quiet" },
      { title: "Partitions", number: true, value: (row) => row.partitions, show: (row) => text.count(row.partitions) },
      { title: "Records", number: true, value: (row) => row.records, show: (row) => text.short(row.records), hover: (row) => text.count(row.records) },
      { title: "Size", number: true, value: (row) => row.bytes, show: (row) => text.bytes(row.bytes) },
      { title: "In", number: true, value: (row) => row.in_rate, show: (row) => text.rate(row.in_rate) },
    ],
  });
}
