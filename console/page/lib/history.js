// Who had which slots at which time, over the last minutes. What the page has seen is kept as it was; what lies before is
// worked out from the decisions, by taking back one after the other from the first picture on. Pure.

import { SLOTS, bandOwners, LOOSE, MOVING } from "./slots.js";

/** How far back it goes, milliseconds. */
export const SPAN_MS = 10 * 60_000;

/** Bands of the history: coarser than the picture, there are many times it. */
export const BANDS = 128;

/** Pictures that are kept; one a second fills the span. */
const KEPT_MAX = 700;

/** What was seen of one partition: [{at, owners}], oldest first. Only changes are kept. */
export class Seen {
  #pictures = [];

  note(at, partition) {
    const owners = bandOwners(partition, BANDS);
    const last = this.#pictures.at(-1);
    if (last && same(last.owners, owners)) return;
    this.#pictures.push({ at, owners });
    const edge = at - SPAN_MS;
    // One stays from before the edge: it holds up to the next.
    while (this.#pictures.length > KEPT_MAX || (this.#pictures.length > 1 && this.#pictures[1].at < edge)) {
      this.#pictures.shift();
    }
  }

  get pictures() {
    return this.#pictures;
  }
}

function same(a, b) {
  return a.length === b.length && a.every((owner, band) => owner === b[band]);
}

/** The slots that a move changes hands of, as bands: those of which it has at least half. */
function bandsOf(runs) {
  const width = SLOTS / BANDS;
  const slots = new Array(BANDS).fill(0);
  for (const [first, last] of runs) {
    for (let band = Math.floor(first / width); band <= Math.floor(last / width); band++) {
      slots[band] += Math.min(last + 1, (band + 1) * width) - Math.max(first, band * width);
    }
  }
  return slots.flatMap((many, band) => (many * 2 >= width ? [band] : []));
}

/**
 * The whole history of a partition: what was seen, and before it what follows from the decisions.
 * Returns [{at, owners}], oldest first; each holds until the next. The oldest is `assumed`: since when it was so is not known.
 */
export function history(seen, decisions, topic, partition) {
  const first = seen[0];
  if (!first) return [];
  const past = [];
  let owners = first.owners;
  const earlier = decisions.filter((one) => one.outcome === "decided" && one.time_ms < first.at);
  for (const decision of earlier.sort((a, b) => b.seq - a.seq)) {
    const moves = (decision.moves ?? []).filter((move) => {
      return move.topic === topic && move.partition === partition && move.from !== move.to;
    });
    if (moves.length === 0) continue;
    // What did not come about changed nothing.
    if (decision.result !== "undone") {
      const settled = decision.time_ms + (decision.handover_ms ?? 0);
      if (settled < first.at) past.push({ at: settled, owners });
      const between = [...owners];
      for (const move of moves) for (const band of bandsOf(move.slot_runs)) between[band] = MOVING;
      past.push({ at: decision.time_ms, owners: between });
    }
    owners = [...owners];
    for (const move of moves) for (const band of bandsOf(move.slot_runs)) owners[band] = move.from;
  }
  past.push({ at: first.at - SPAN_MS, owners, assumed: true });
  past.reverse();
  // Hand-overs may overlap: a picture never ends before it began.
  for (let i = 1; i < past.length; i++) past[i].at = Math.max(past[i].at, past[i - 1].at);
  return [...past, ...seen];
}

/** The picture that held at a time. */
export function at(pictures, time) {
  let found = pictures[0] ?? null;
  for (const picture of pictures) {
    if (picture.at > time) break;
    found = picture;
  }
  return found;
}

/** The owners with their shares from top to bottom: in the order of their marks, what moves and what nobody has last. */
export function streams(owners, mark) {
  const place = ([owner]) => (owner === MOVING ? 1e6 : owner == null || owner === LOOSE ? 2e6 : mark(owner));
  return tally(owners).sort((a, b) => place(a) - place(b));
}

/** How many bands each owner has, most first: [[owner, share]]. */
export function tally(owners) {
  const by = new Map();
  for (const owner of owners) by.set(owner, (by.get(owner) ?? 0) + 1 / owners.length);
  return [...by].sort((a, b) => b[1] - a[1]);
}
