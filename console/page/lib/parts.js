// The parts that all views are made of: panels, tiles, badges, the button that copies a command.

import { h, text } from "./dom.js";

/** Says something in passing. */
export function toast(words, tone = "") {
  const box = document.getElementById("toasts");
  const element = h("div", { class: `toast ${tone}` }, words);
  box.append(element);
  while (box.childElementCount > 4) box.firstChild.remove();
  setTimeout(() => element.remove(), tone === "bad" ? 9000 : 4000);
}

async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    // Without TLS a page of another machine has no clipboard: the words are selected in a field of their own.
    const field = h("textarea", { class: "hidden-label", readonly: true });
    field.value = words;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast(`Copied: ${words}`);
}

/** A button that copies the command which `command()` gives at that moment. */
export function copyButton(command) {
  return h(
    "button",
    { class: "action small", type: "button", title: "Copy what this panel shows as a command", on: { click: () => copy(command()) } },
    "Copy as CLI",
  );
}

/** A panel: {element, note(text), body}. `command` gives its command line. */
export function panel(title, { command, actions = [], scroll = false, tall = false } = {}) {
  const note = h("span", { class: "note" });
  const id = `panel-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  const body = h("div", { class: `${scroll ? "scroll" : "body"} ${tall ? "tall" : ""}`, tabindex: tall ? 0 : null, role: tall ? "group" : null, "aria-labelledby": tall ? id : null });
  const element = h(
    "section",
    { class: "panel", "aria-labelledby": id },
    h("header", {}, h("h2", { id }, title), note, h("div", { class: "actions" }, actions, command ? copyButton(command) : null)),
    body,
  );
  return { element, body, note: (words) => text(note, words) };
}

/** Tiles with a number each: `set(name, value, small)`. */
export function tiles(names) {
  const by = new Map();
  const element = h("dl", { class: "tiles" });
  for (const name of names) {
    const value = h("span");
    const small = h("small");
    const dd = h("dd", {}, value, small);
    const tile = h("div", { class: "tile" }, h("dt", {}, name), dd);
    element.append(tile);
    by.set(name, { tile, value, small });
  }
  return {
    element,
    set(name, value, small = "") {
      const tile = by.get(name);
      text(tile.value, value);
      text(tile.small, small);
    },
    add: (name, child) => by.get(name).tile.append(child),
  };
}

/** A small line of the last values. */
export function spark(points = 120) {
  const line = h("path");
  const under = h("path", { class: "under" });
  const element = h("svg", { class: "spark", viewBox: `0 0 ${points} 20`, preserveAspectRatio: "none", "aria-hidden": "true" }, under, line);
  return {
    element,
    show(values) {
      const last = values.slice(-points);
      const most = Math.max(1, ...last);
      const at = last.map((value, i) => `${points - last.length + i} ${(19 - (value / most) * 17).toFixed(1)}`);
      if (at.length < 2) return;
      line.setAttribute("d", `M${at.join("L")}`);
      under.setAttribute("d", `M${points - last.length} 20L${at.join("L")}L${points - 1} 20z`);
    },
  };
}

export function badge(words, tone = "") {
  return h("span", { class: `badge ${tone}` }, words);
}

/** A field of a form with its label. */
export function field(label, input) {
  return h("label", { class: "field" }, label, input);
}

export function select(options, props = {}) {
  return h("select", props, options.map(([value, words]) => h("option", { value }, words)));
}

export const link = {
  group: (group) => `#/groups/${encodeURIComponent(group)}`,
  topic: (topic) => `#/topics/${encodeURIComponent(topic)}`,
};
