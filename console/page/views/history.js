// Who had which slots over the last minutes, with the decisions above on the same time line, and a slider to go back.

import { marks } from "../lib/decisions.js";
import { attribute, children, h, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { at, history, Seen, SPAN_MS, streams, tally } from "../lib/history.js";
import { COLOURS } from "../lib/owners.js";
import { cli } from "../lib/cli.js";
import { panel, select } from "../lib/parts.js";
import { LOOSE, MOVING } from "../lib/slots.js";
import { chip } from "./partitions.js";

const STEPS = 600;
const SPANS = [["60000", "1 minute"], ["180000", "3 minutes"], [String(SPAN_MS), "10 minutes"]];

/** The panel: {element, note(time, group), update(...), time}. `moved(time)` is told where the slider is; null is now. */
export function historyPanel(group, moved) {
  const seen = new Map();
  const place = h("select", { "aria-label": "Partition", on: { change: () => draw() } });
  const span = select(SPANS, { "aria-label": "Time shown", on: { change: () => chooseSpan() } });
  span.value = "180000";
  let isSpanChosen = false;
  const now = h("button", { class: "action small", type: "button", on: { click: () => go(STEPS) } }, "Now");
  const box = panel("History", { command: () => cli.explain(group), actions: [place, span, now] });
  const lane = h("svg", { class: "marks", role: "img" });
  const canvas = h("canvas", { role: "img" });
  const slider = h("input", { type: "range", min: 0, max: STEPS, value: STEPS, "aria-label": "Time", on: { input: () => go(Number(slider.value)) } });
  const [from, to] = [h("span"), h("span")];
  const then = h("p", { class: "then", "aria-live": "polite" });
  box.body.append(h("div", { class: "history" }, h("span", { class: "probe", hidden: true }), lane, canvas, slider, h("div", { class: "axis" }, from, to), then));
  let state = null;

  function chooseSpan() {
    isSpanChosen = true;
    draw();
  }

  /** As long as all that is known has happened within a minute, a minute is shown: else it would be a stripe at the edge. */
  function fitSpan(pictures, decisions) {
    if (isSpanChosen) return;
    const known = [...pictures.filter((one) => !one.assumed).map((one) => one.at), ...decisions.map((one) => one.time_ms)];
    span.value = known.length > 0 && state.now - Math.min(...known) < 60_000 ? "60000" : "180000";
  }

  function go(step) {
    slider.value = String(step);
    draw();
    moved(chosen());
  }

  function chosen() {
    const step = Number(slider.value);
    return !state || step >= STEPS ? null : state.now - Number(span.value) * (1 - step / STEPS);
  }

  function draw() {
    if (!state) return;
    const { owners, decisions } = state;
    const [topic, partition] = place.value ? JSON.parse(place.value) : [null, null];
    const pictures = topic == null ? [] : history(seen.get(place.value)?.pictures ?? [], decisions, topic, partition);
    fitSpan(pictures, decisions);
    const [begin, end] = [state.now - Number(span.value), state.now];
    const time = chosen();
    paint(canvas, pictures, [begin, end], owners, time);
    showMarks(lane, decisions, [begin, end], time);
    put(from, text.clock(begin));
    put(to, `${text.clock(end)} now`);
    attribute(slider, "aria-valuetext", time == null ? "now" : text.clock(time));
    const picture = at(pictures, time ?? end);
    const words = picture ? tally(picture.owners) : [];
    sayThen(then, time, words, owners, picture?.assumed);
    attribute(canvas, "aria-label", `Owners of the slots of ${topic}:${partition} at ${text.clock(time ?? end)}: ${words.map(([owner, share]) => `${ownerName(owner, owners)} ${Math.round(share * 100)}%`).join(", ")}`);
  }

  new ResizeObserver(() => draw()).observe(canvas);

  return {
    element: box.element,
    /** Takes note of a picture of the group. */
    note(time, partitions) {
      for (const partition of partitions) {
        const key = JSON.stringify([partition.topic, partition.partition]);
        if (!seen.has(key)) seen.set(key, new Seen());
        seen.get(key).note(time, partition);
      }
      choices(place, partitions);
    },
    update(news) {
      state = news;
      draw();
    },
  };
}

function choices(place, partitions) {
  const keys = partitions.map((one) => JSON.stringify([one.topic, one.partition]));
  const known = [...place.options].map((option) => option.value);
  if (keys.join() === known.join()) return;
  const before = place.value;
  children(place, keys.map((key) => h("option", { value: key }, JSON.parse(key).join(":"))));
  place.value = keys.includes(before) ? before : (keys[0] ?? "");
}

function ownerName(owner, owners) {
  if (owner === MOVING) return "on their way";
  return owner == null || owner === LOOSE ? "nobody" : owners.name(owner);
}

/** A river from left to right: each owner's stream is as wide as its share of the slots; it forks and joins. */
function paint(canvas, pictures, [begin, end], owners, time) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width === 0) return;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  const colour = colours(canvas);
  const x = (at) => Math.max(0, ((at - begin) / (end - begin)) * width);
  pictures.forEach((picture, i) => {
    const [left, right] = [x(picture.at), x(pictures[i + 1]?.at ?? end)];
    if (right <= left) return;
    let top = 0;
    for (const [owner, share] of streams(picture.owners, (id) => owners.mark(id))) {
      const tall = share * height;
      paintStream(pen, { left, right, top, tall, colour: colour(owner, owners), moving: owner === MOVING, assumed: picture.assumed });
      top += tall;
    }
  });
  if (time != null) {
    pen.globalAlpha = 1;
    pen.fillStyle = getComputedStyle(canvas).color;
    pen.fillRect(x(time) - 0.75, 0, 1.5, height);
  }
}

function paintStream(pen, { left, right, top, tall, colour, moving, assumed }) {
  if (!colour) return;
  pen.fillStyle = colour;
  pen.globalAlpha = assumed ? 0.25 : moving ? 0.5 : 0.92;
  if (!moving) return pen.fillRect(left, top, right - left + 0.5, Math.max(tall - 1, 0.5));
  for (let at = Math.ceil(left / 4) * 4; at < right; at += 4) pen.fillRect(at, top, 2, tall);
}

/** The colours of the theme in force: a style that depends on the theme has to be asked of an element. */
function colours(canvas) {
  const known = new Map();
  const probe = canvas.parentElement.querySelector(".probe");
  return (owner, owners) => {
    if (owner == null || owner === LOOSE) return null;
    const name = owner === MOVING ? "owner-none" : `owner-${owners.mark(owner) % COLOURS}`;
    if (!known.has(name)) {
      probe.className = `probe ${name}`;
      known.set(name, getComputedStyle(probe).backgroundColor);
    }
    return known.get(name);
  };
}

function showMarks(lane, decisions, [begin, end], time) {
  const width = lane.clientWidth || 600;
  attribute(lane, "viewBox", `0 0 ${width} 26`);
  const placed = marks(decisions, begin, end, width);
  const dots = placed.map((mark) => {
    const shown = mark.decisions.map((one) => `${text.clock(one.time_ms)} ${one.text}`).join("\n");
    const circle = h("circle", { cx: mark.x.toFixed(1), cy: mark.lane === 0 ? 7 : 19, r: mark.lane === 0 ? 5 : 3.5, class: `tone-${mark.tone} ${mark.tone}` }, h("title", {}, shown));
    return circle;
  });
  const line = time == null ? [] : [h("line", { x1: ((time - begin) / (end - begin)) * width, x2: ((time - begin) / (end - begin)) * width, y1: 0, y2: 26 })];
  children(lane, [...line, ...dots]);
  const decided = decisions.filter((one) => one.outcome === "decided" && one.time_ms >= begin).length;
  const refused = decisions.filter((one) => one.outcome === "refused" && one.time_ms >= begin).length;
  attribute(lane, "aria-label", `Time line: ${text.plural(decided, "decision")}, ${text.plural(refused, "refusal")}`);
}

function sayThen(then, time, words, owners, assumed) {
  const parts = [h("span", { class: "quiet" }, time == null ? "now" : text.clock(time))];
  for (const [owner, share] of words.slice(0, 12)) {
    const mark = typeof owner === "string" && owner !== MOVING && owner !== LOOSE ? chip(owner, owners) : ownerName(owner, owners);
    parts.push(h("span", {}, mark, ` ${Math.round(share * 100)}%`));
  }
  if (assumed) parts.push(h("span", { class: "quiet" }, "assumed: the oldest that is known"));
  const key = parts.map((part) => part.textContent).join("|");
  if (then.dataset.key !== key) {
    then.dataset.key = key;
    then.replaceChildren(...parts);
  }
}
