// The picture: each partition's slots as a band coloured by owner, as high as what is left in them; gaps are on their way.

import { attribute, children, h, keyed, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { drainMs, drainWords } from "../lib/load.js";
import { say } from "../lib/names.js";
import { badge } from "../lib/parts.js";
import * as slots from "../lib/slots.js";

const TALL = 44;
const STRIP = 5;

/** The pictures of a group's partitions: {element, update(group, owners, loads)}. */
export function pictures() {
  const defs = h("svg", { class: "unseen", width: 0, height: 0, "aria-hidden": "true" }, h("defs", {}, gap()));
  const list = h("div");
  const context = {};
  const fill = keyed(list, (one) => `${one.topic}/${one.partition}`, () => picture(context));
  return {
    element: h("div", {}, defs, list),
    update(partitions, group, owners, loads) {
      Object.assign(context, { group, owners, loads });
      fill(partitions);
    },
  };
}

/** Upright stripes: they survive being stretched. */
function gap() {
  return h("pattern", { id: "gap", width: 1, height: 4, patternUnits: "userSpaceOnUse" }, h("rect", { width: 0.45, height: 4 }));
}

function picture(context) {
  const name = h("h3");
  const form = h("span");
  const facts = h("span", { class: "right" });
  const drawing = h("g");
  const cursor = h("rect", { class: "cursor", y: 0, width: 1, height: TALL + STRIP + 2, visibility: "hidden" });
  const svg = h("svg", { class: "bands", preserveAspectRatio: "none", role: "img" }, drawing, cursor);
  const bar = h("div", { class: "shares", "aria-hidden": "true" });
  const hint = h("p", { class: "hint", "aria-hidden": "true" });
  const element = h("article", { class: "partition" }, h("header", {}, name, form, facts), svg, bar, hint);
  let now = null;

  svg.addEventListener("pointermove", (event) => {
    if (!now) return;
    const box = svg.getBoundingClientRect();
    const band = Math.floor(((event.clientX - box.left) / box.width) * now.owners.length);
    if (band < 0 || band >= now.owners.length) return;
    attribute(cursor, "x", band);
    attribute(cursor, "visibility", "visible");
    put(hint, bandWords(now, band, context.owners));
  });
  svg.addEventListener("pointerleave", () => {
    attribute(cursor, "visibility", "hidden");
    put(hint, now ? now.usual : "");
  });

  return {
    element,
    update(partition) {
      const { owners } = context;
      const unread = partition.bands?.unread ?? null;
      const bands = unread?.length ?? 256;
      const of = slots.bandOwners(partition, bands);
      say(name, `${partition.topic}:${partition.partition}`);
      describe(form, partition);
      tell(facts, partition, context);
      attribute(svg, "viewBox", `0 0 ${bands} ${TALL + STRIP + 2}`);
      attribute(svg, "aria-label", slots.sentence(partition, owners, text));
      children(drawing, draw(of, unread ?? new Array(bands).fill(0), owners));
      shareBar(bar, partition, owners);
      const usual = usualHint(partition, unread);
      if (isFree(cursor)) put(hint, usual);
      now = { owners: of, unread, usual };
    },
  };
}

/** Whether nobody points at a band. */
function isFree(cursor) {
  return cursor.getAttribute("visibility") === "hidden";
}

function describe(form, partition) {
  const readers = slots.readers(partition);
  const shared = readers > 1;
  const words = shared ? `shared by ${readers}` : readers === 0 ? "nobody reads it" : partition.form === "divided" ? "read by 1" : "whole";
  put(form, words);
  attribute(form, "class", `badge ${shared ? "accent" : readers === 0 ? "warn" : ""}`);
}

function tell(facts, partition, { group, loads }) {
  const here = new Set(partition.shares.map((share) => share.member));
  const left = slots.unread(partition);
  const drain = drainMs(group.members.filter((member) => here.has(member.member)), loads, left);
  const exact = partition.shares.every((share) => share.remaining_exact) ? "" : "about ";
  const parts = [h("b", {}, `${exact}${text.count(left)}`), " unread"];
  if (left > 0) parts.push(drain == null || drain === Infinity ? "" : ` · empty in ${drainWords(drain, text)}`);
  const words = parts.map((part) => part.textContent ?? part).join("");
  if (facts.textContent !== words) facts.replaceChildren(...parts);
}

function draw(of, unread, owners) {
  const parts = [];
  for (const run of slots.runsOf(of)) {
    const [x, width] = [run.from, run.to - run.from];
    if (run.owner === slots.MOVING) parts.push(h("rect", { class: "gap", x, y: 0, width, height: TALL + STRIP + 2 }));
  }
  const strips = new Map();
  for (const run of slots.runsOf(of)) {
    const strip = `M${run.from} ${TALL + 2}h${run.to - run.from}v${STRIP}h${run.from - run.to}z`;
    strips.set(run.owner, (strips.get(run.owner) ?? "") + strip);
  }
  for (const paths of [slots.barPaths(of, unread, TALL), strips]) {
    for (const [owner, d] of paths) {
      if (owner !== slots.MOVING || paths !== strips) parts.push(h("path", { class: classOf(owner, owners), d }));
    }
  }
  return parts;
}

function classOf(owner, owners) {
  if (owner === slots.LOOSE) return "owner-loose";
  return owner == null || owner === slots.MOVING ? "owner-none" : owners.className(owner);
}

/** Who has how much of what is left, one beside the other. */
function shareBar(bar, partition, owners) {
  const all = Math.max(1, slots.unread(partition));
  const part = (className, words, weight, title) => {
    const element = h("span", { class: className, title }, words);
    element.style.flexGrow = String(Math.max(weight / all, 0.012));
    return element;
  };
  const parts = slots.shares(partition).map((share) => {
    const title = `${owners.name(share.member)}: ${text.count(share.unread)} unread in ${text.plural(share.slots, "slot")}, ${text.count(share.handedOut)} of them handed out`;
    const weight = slots.unread(partition) === 0 ? share.slots / slots.SLOTS : share.unread;
    return part(owners.className(share.member), `${owners.letter(share.member)} ${text.short(share.unread)}`, weight, title);
  });
  for (const transit of partition.transits) {
    const to = transit.to == null ? "somebody" : owners.name(transit.to);
    parts.push(part("moving", "", transit.remaining, `${text.plural(transit.slots, "slot")} on their way from ${owners.name(transit.from)} to ${to} for ${text.duration(transit.since_ms)}`));
  }
  for (const loose of partition.loose) {
    const slotsOf = text.plural(loose.slots, "slot");
    if (loose.to == null) parts.push(part("loose", "", loose.remaining, `${slotsOf} without a holder`));
    else parts.push(part("moving", "", loose.remaining, `${slotsOf} on their way to ${owners.name(loose.to)}`));
  }
  bar.replaceChildren(...parts);
}

function usualHint(partition, unread) {
  const moving = partition.transits.map((transit) => {
    return `${text.plural(transit.slots, "slot")} on their way for ${text.duration(transit.since_ms)}`;
  });
  const hot = unread ? slots.hottest(unread) : null;
  if (hot) moving.push(`one key is hot: ${Math.round(hot.share * 100)}% of what is left is in slots ${range(hot.band, unread.length)}`);
  return moving.join("; ");
}

function range(band, bands) {
  const width = slots.SLOTS / bands;
  return `${band * width}–${(band + 1) * width - 1}`;
}

function bandWords(now, band, owners) {
  const owner = now.owners[band];
  const who =
    owner === slots.MOVING ? "on their way" : owner === slots.LOOSE || owner == null ? "nobody" : owners.name(owner);
  const left = now.unread ? `, ${text.count(now.unread[band])} unread` : "";
  return `slots ${range(band, now.owners.length)}: ${who}${left}`;
}

/** Partitions without a picture, in a row each. */
export function partitionColumns(context) {
  return [
    { title: "Partition", value: (row) => `${row.topic}:${row.partition}`, draw: (cell, row) => say(cell, `${row.topic}:${row.partition}`) },
    {
      title: "Read by",
      value: (row) => row.shares.length,
      draw(cell, row) {
        const ids = [...new Set(row.shares.map((share) => share.member))];
        const chips = ids.slice(0, 12).map((id) => chip(id, context.owners));
        cell.replaceChildren(...chips, ids.length === 0 ? badge("nobody", "warn") : "");
      },
    },
    { title: "Unread", number: true, value: slots.unread, show: (row) => text.count(slots.unread(row)) },
    { title: "Committed", number: true, value: (row) => row.committed, show: (row) => (row.committed < 0 ? "–" : text.count(row.committed)) },
    { title: "End", number: true, value: (row) => row.log_end, show: (row) => text.count(row.log_end) },
  ];
}

/** A member's letter in its colour. */
export function chip(id, owners) {
  return h("span", { class: `chip ${owners.className(id)}`, title: owners.name(id) }, owners.letter(id));
}
