// The messages of a topic: by partition, from an offset or a time on, or those of a key.

import { get } from "../lib/api.js";
import { cli } from "../lib/cli.js";
import { h } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { field, panel, select } from "../lib/parts.js";

const FROM = [
  ["latest", "the latest"],
  ["start", "the first"],
  ["offset", "an offset"],
  ["time_ms", "a time"],
];

/** What of a value is shown before it is opened, characters. */
const SHOWN = 600;

export function messagesPanel(topic) {
  const partition = h("input", { type: "number", min: 0, value: 0, class: "small" });
  const from = select(FROM, { on: { change: kind } });
  const value = h("input", { class: "small" });
  const valueField = field("Value", value);
  const key = h("input", { placeholder: "any" });
  const limit = select([["20", "20"], ["50", "50"], ["200", "200"]]);
  limit.value = "50";
  const search = h("button", { class: "action main", type: "submit" }, "Show");
  const form = h(
    "form",
    { class: "fields", on: { submit: (event) => { event.preventDefault(); run(query()); } } },
    field("Partition", partition), field("From", from), valueField, field("Key", key), field("At most", limit), search,
  );
  const box = panel("Messages", { command: () => cli.consume(topic, last ?? query()) });
  const status = h("p", { class: "quiet", role: "status" });
  const rows = h("tbody");
  const heads = ["Offset", "Time", "Slot", "Key", "Value"].map((one) => {
    return h("th", { scope: "col", class: ["Offset", "Slot"].includes(one) ? "number" : null }, one);
  });
  const grid = h("table", { class: "messages", hidden: true }, h("caption", { class: "hidden-label" }, "Messages"), h("thead", {}, h("tr", {}, heads)), rows);
  const more = h("button", { class: "action", type: "button", hidden: true, on: { click: () => run({ ...last, offset: next, time_ms: null }, true) } }, "Go on");
  box.body.append(form, status, h("div", { class: "scroll tall" }, grid), more);
  let [last, next] = [null, null];

  function kind() {
    valueField.hidden = !["offset", "time_ms"].includes(from.value);
    value.type = from.value === "time_ms" ? "datetime-local" : "number";
    value.step = "1";
  }

  function query() {
    const wanted = { partition: Number(partition.value), limit: Number(limit.value), key: key.value === "" ? null : key.value };
    if (from.value === "start") wanted.offset = 0;
    if (from.value === "offset") wanted.offset = Number(value.value);
    if (from.value === "time_ms" && value.value !== "") wanted.time_ms = new Date(value.value).getTime();
    return wanted;
  }

  async function run(wanted, goOn = false) {
    last = wanted;
    try {
      const found = await get(["topics", topic, "messages"], wanted);
      const lines = found.messages.map(line);
      if (goOn) rows.append(...lines);
      else rows.replaceChildren(...lines);
      next = found.next;
      grid.hidden = rows.childElementCount === 0;
      more.hidden = next == null;
      status.textContent = said(found, rows.childElementCount);
    } catch (error) {
      status.textContent = error.message;
    }
  }

  kind();
  return {
    element: box.element,
    show(now) {
      partition.max = String(now.partition_count - 1);
    },
  };
}

function said(found, shown) {
  const range = `partition ${found.partition} has offsets ${text.count(found.log_start)} to ${text.count(found.log_end)}`;
  const where = found.next == null ? "to the end" : `up to offset ${text.count(found.next)}`;
  return `${text.plural(shown, "message")}, searched ${where}; ${range}.`;
}

function line(message) {
  return h(
    "tr",
    {},
    h("td", { class: "number" }, text.count(message.offset)),
    h("td", { class: "quiet" }, text.stamp(message.time_ms)),
    h("td", { class: "number quiet" }, String(message.slot)),
    h("td", { class: "mono" }, message.key ? message.key.text : h("span", { class: "quiet" }, "none")),
    h("td", { class: "text" }, content(message.value), message.headers.map(header)),
  );
}

function header(one) {
  return h("div", { class: "quiet" }, `${one.name}: ${one.value ? one.value.text : "none"}`);
}

function content(value) {
  if (!value) return h("span", { class: "quiet" }, "tombstone");
  const notes = [];
  if (value.hex) notes.push("hexadecimal");
  if (value.cut) notes.push(`the first part of ${text.bytes(value.bytes)}`);
  const note = notes.length > 0 ? h("span", { class: "quiet" }, ` (${notes.join(", ")})`) : null;
  if (value.text.length <= SHOWN) return h("span", {}, value.text, note);
  return h("details", {}, h("summary", {}, value.text.slice(0, SHOWN), "…"), value.text.slice(SHOWN), note);
}
