// What the picture means, and the keys.

import { h } from "../lib/dom.js";

const KEYS = [
  ["/", "search"],
  ["o", "overview"],
  ["d", "decisions"],
  ["t", "theme: as the system has it, light, dark"],
  ["?", "this help"],
  ["Esc", "close a dialog, clear the search"],
];

const WORDS = [
  ["Slots", "Every key of a partition falls into one of 4,096 slots. Members of a group may share a partition by its slots; each key stays with one member at a time."],
  ["Bars", "What is left to read in a band of slots, in the colour of the member that has it; heights go by the square root. The line below says who has the band, also where nothing is left."],
  ["Stripes", "Slots on their way from one member to another: who had them works off what it was handed first."],
  ["History", "Who had which slots. What lies before this page was opened is worked out from the decisions."],
  ["Circles", "Decisions: blue ones divide, green ones join, violet ones move whole partitions, red ones were undone. Small empty ones are refusals."],
];

export function help() {
  const list = (rows, wrap) => h("dl", { class: "keys" }, rows.flatMap(([name, words]) => [h("dt", {}, wrap(name)), h("dd", {}, words)]));
  const close = h("button", { class: "action main", type: "submit" }, "Close");
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "help-title" }, "Reading the picture"),
    list(WORDS, (name) => h("b", {}, name)),
    h("h2", {}, "Keys"),
    list(KEYS, (name) => h("kbd", {}, name)),
    h("div", { class: "buttons" }, close),
  );
  const dialog = h("dialog", { "aria-labelledby": "help-title", on: { close: () => dialog.remove() } }, form);
  document.body.append(dialog);
  dialog.showModal();
}
