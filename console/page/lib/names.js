// Names that are too long for where they stand. The page shows their beginning and their end; the text itself, for copies,
// searches and readers, stays whole.

import { attribute, h } from "./dom.js";

/** Longer names are shortened; kept ones have room in every panel. */
const LONG = 36;

/** So much of the end is always shown: what tells names of one kind apart stands there, as a rule. */
const TAIL = 10;

/** Text in pieces, in order: {words, long}. Long are the given names where they occur, and any word that is as long. Pure. */
export function pieces(text, names = []) {
  const known = [...new Set(names)].filter((name) => name && name.length > LONG).sort((a, b) => b.length - a.length);
  const found = new RegExp([...known.map(escaped), `\\S{${LONG + 1},}`].join("|"), "g");
  const all = [];
  let at = 0;
  for (const match of text.matchAll(found)) {
    if (match.index > at) all.push({ words: text.slice(at, match.index), long: false });
    all.push({ words: match[0], long: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) all.push({ words: text.slice(at), long: false });
  return all;
}

function escaped(name) {
  return name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Has an element say this, long names with an ellipsis in their middle. An element with a role of its own keeps its whole name. */
export function say(element, text, names = []) {
  if (element.dataset.said === text) return;
  element.dataset.said = text;
  const parts = pieces(text, names);
  const isLong = parts.some((one) => one.long);
  if (element.tagName === "A") attribute(element, "aria-label", isLong ? text : null);
  element.replaceChildren(...parts.map((one) => (one.long ? shortened(one.words) : one.words)));
}

function shortened(name) {
  return h("span", { class: "long", title: name }, h("span", { class: "head" }, name.slice(0, -TAIL)), name.slice(-TAIL));
}
