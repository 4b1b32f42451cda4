// Decisions and refusals: keeping them, telling their kinds apart, placing them on a time line. Pure.

import { withoutUuids } from "./format.js";

/** Decisions that the page keeps. */
const KEPT_MAX = 1000;

/** Takes news in. A decision that comes again (it has ended, or was refused again) takes the place of what it was. */
export function merge(known, news) {
  const by = new Map(known.map((one) => [key(one), one]));
  for (const one of news) by.set(key(one), one);
  const all = [...by.values()].sort((a, b) => a.seq - b.seq);
  return all.slice(-KEPT_MAX);
}

/** The same refusal is one entry of the broker's log, under the number of its newest time. */
function key(one) {
  // The decisions about the queues of topics are numbered for each topic.
  if (one.outcome !== "refused") return `d${one.group}\u0000${one.topic}\u0000${one.seq}`;
  return `r${[one.group, one.topic, one.partition, one.reason, one.from ?? ""].join("\u0000")}`;
}

/** The class of a mark: what became of it in one word. */
export function tone(one) {
  if (one.outcome === "refused") return "refused";
  if (one.result === "undone") return "undone";
  if (["merge", "fold", "plain", "return", "write-down", "read-down"].includes(one.kind)) return "joins";
  if (["balance", "postpone"].includes(one.kind)) return "moves";
  return "divides";
}

/** Kind and end of a decision in a few words. */
export function label(one, text) {
  if (one.outcome === "refused") return one.count > 1 ? `refused ${text.count(one.count)} times` : "refused";
  if (one.result == null) return one.partition >= 0 || one.topic === "" ? `${one.kind}, under way` : one.kind;
  const time = one.handover_ms == null ? "" : ` in ${text.duration(one.handover_ms)}`;
  return one.result === "done" ? `${one.kind}${time}` : `${one.kind}, ${one.result}`;
}

/** The sentence with the members by name: an id is long, and says little. `name(id)` gives the name; `known` are further ids. */
export function sentence(one, name, known = []) {
  const ids = new Set([...known, one.from, ...(one.to ?? []), ...(one.before ?? []).map(([id]) => id), ...(one.after ?? []).map(([id]) => id)]);
  ids.delete(null);
  ids.delete(undefined);
  // The longest first: one id may be the beginning of another.
  const ordered = [...ids].filter((id) => id.length > 3).sort((a, b) => b.length - a.length);
  return withoutUuids(ordered.reduce((words, id) => words.replaceAll(id, name(id)), one.text));
}

/** Marks for a time line of `width` from `from` to `to`; those that would cover each other are one, of the first's tone. */
export function marks(decisions, from, to, width, apart = 6) {
  const placed = [];
  for (const one of decisions) {
    if (one.time_ms < from || one.time_ms > to) continue;
    const x = ((one.time_ms - from) / Math.max(1, to - from)) * width;
    const lane = one.outcome === "refused" ? 1 : 0;
    const near = placed.findLast((mark) => mark.lane === lane);
    if (near && x - near.x < apart) near.decisions.push(one);
    else placed.push({ x, lane, tone: tone(one), decisions: [one] });
  }
  return placed;
}
