// One topic: partitions and sizes, who reads it, configurations, and its messages.

import { get } from "../lib/api.js";
import { cli } from "../lib/cli.js";
import { h } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { badge, link, panel, tiles } from "../lib/parts.js";
import { table } from "../lib/table.js";
import { messagesPanel } from "./messages.js";
import { queuesPanels } from "./queues.js";

const EVERY_MS = 5000;

export function topicView(app, name) {
  const badges = h("span", { class: "badges" });
  const sums = tiles(["Partitions", "Records", "Size", "In", "Groups", "Created"]);
  const partitions = panel("Partitions", { command: () => cli.topic(name), scroll: true, tall: true });
  let biggest = 1;
  const partitionRows = table({
    caption: "Partitions of the topic",
    key: (row) => row.partition,
    columns: [
      { title: "Partition", number: true, value: (row) => row.partition, show: (row) => text.count(row.partition) },
      { title: "Start", number: true, value: (row) => row.log_start, show: (row) => text.count(row.log_start) },
      { title: "End", number: true, value: (row) => row.log_end, show: (row) => text.count(row.log_end) },
      { title: "Records", number: true, value: (row) => row.log_end - row.log_start, show: (row) => text.count(row.log_end - row.log_start) },
      { title: "Size", number: true, value: (row) => row.bytes, show: (row) => text.bytes(row.bytes) },
      { title: "", label: "Size beside the others", draw: (cell, row) => meter(cell, row.bytes / biggest) },
      { title: "Newest", value: (row) => row.newest_ms, show: (row) => text.stamp(row.newest_ms), className: "quiet" },
    ],
  });
  partitions.body.append(partitionRows.element);
  const readers = panel("Read by", { command: cli.groups, scroll: true });
  const readerRows = table({
    caption: "Groups that read the topic",
    key: (row) => row.group,
    sort: [1, -1],
    empty: "No group has committed offsets in it.",
    columns: [
      { title: "Group", value: (row) => row.group, show: (row) => row.group, href: (row) => link.group(row.group), hover: (row) => row.group, className: "cut" },
      { title: "Lag", number: true, value: (row) => row.lag, show: (row) => text.count(row.lag) },
      { title: "Partitions", number: true, value: (row) => row.partitions, show: (row) => text.count(row.partitions) },
    ],
  });
  readers.body.append(readerRows.element);
  const all = h("input", { type: "checkbox", on: { change: () => draw() } });
  const configs = panel("Configuration", { command: () => cli.topic(name), scroll: true, tall: true, actions: [h("label", {}, all, "defaults")] });
  const configRows = table({
    caption: "Configurations of the topic",
    key: (row) => row.name,
    empty: "Everything is at its default.",
    columns: [
      { title: "Name", value: (row) => row.name, show: (row) => row.name, className: "mono", hover: (row) => row.doc },
      { title: "Value", value: (row) => row.value, show: (row) => row.value ?? "–", className: "mono cut", hover: (row) => row.value },
      { title: "Set by", value: (row) => row.source, show: (row) => row.source, className: "quiet" },
    ],
  });
  configs.body.append(configRows.element);
  const messages = messagesPanel(name);
  const queues = queuesPanels(name);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const heading = h("div", { class: "heading" }, h("h1", {}, name), badges);
  const columns = h("div", { class: "columns" }, h("div", { class: "stack" }, partitions.element), h("div", { class: "stack" }, readers.element, configs.element));
  const parts = [sums.element, columns, messages.element];
  let topic = null;
  let inQueues = null;
  let loadedAt = 0;
  /** The latest decision about its queues that is known. */
  let decided = 0;

  async function load() {
    try {
      topic = await get(["topics", name]);
      inQueues = topic.mode === "queues" ? await get(["topics", name, "queues"]).catch(() => null) : null;
      loadedAt = app.now();
      problem.hidden = true;
      for (const part of parts) part.hidden = false;
      messages.show(topic);
      draw();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
      for (const part of parts) part.hidden = !topic;
    }
  }

  function draw() {
    if (!topic) return;
    biggest = Math.max(1, ...topic.partitions.map((one) => one.bytes));
    partitionRows.update(topic.partitions);
    partitions.note(topic.partitions_left_out > 0 ? `and ${text.count(topic.partitions_left_out)} more` : "");
    readerRows.update(topic.readers);
    configRows.update(all.checked ? topic.configs : topic.configs.filter((one) => one.source !== "default"));
    badges.replaceChildren(badge(`elastic.mode=${topic.mode}`, topic.mode === "off" ? "" : "accent"));
    const sum = (value) => topic.partitions.reduce((total, one) => total + value(one), 0);
    sums.set("Partitions", text.count(topic.partition_count), inQueues ? `${text.count(inQueues.write)} written, ${text.count(inQueues.read)} read` : "");
    if (inQueues) queues.show(inQueues, loadedAt);
    else queues.hide();
    sums.set("Records", text.short(sum((one) => one.log_end - one.log_start)));
    sums.set("Size", text.bytes(sum((one) => one.bytes)));
    sums.set("Groups", text.count(topic.readers.length + topic.readers_left_out));
    sums.set("Created", text.ago(topic.created_ms, app.now()), text.stamp(topic.created_ms).slice(0, 19));
  }

  load();
  const timer = setInterval(load, EVERY_MS);
  return {
    title: name,
    element: [heading, problem, sums.element, queues.element, columns, messages.element],
    update(state) {
      const row = state.overview?.topics.find((one) => one.topic === name);
      sums.set("In", text.rate(row?.in_rate));
      queues.update(app.now());
      const latest = state.decisions.findLast((one) => one.topic === name && one.partition < 0)?.seq ?? 0;
      if (latest > decided) {
        decided = latest;
        load();
      }
    },
    close: () => clearInterval(timer),
  };
}

function meter(cell, share) {
  if (cell.childElementCount === 0) cell.append(h("span", { class: "meter", "aria-hidden": "true" }, h("i")));
  cell.firstChild.firstChild.style.width = `${Math.round(share * 100)}%`;
}
