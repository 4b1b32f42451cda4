import assert from "node:assert/strict";
import { test } from "node:test";
import { BANDS, SPAN_MS, Seen, at, history, streams, tally } from "../page/lib/history.js";
import { MOVING } from "../page/lib/slots.js";

const plain = (member) => ({ shares: [{ member, end: null, slot_runs: [[0, 4095]] }], transits: [], loose: [] });
const halves = (a, b) => ({
  shares: [
    { member: a, end: null, slot_runs: [[0, 2047]] },
    { member: b, end: null, slot_runs: [[2048, 4095]] },
  ],
  transits: [],
  loose: [],
});
const split = (more) => ({
  seq: 1,
  time_ms: 5_000,
  outcome: "decided",
  result: "done",
  handover_ms: 1_000,
  moves: [
    { topic: "t", partition: 0, from: "a", to: "a", slot_runs: [[0, 2047]] },
    { topic: "t", partition: 0, from: "a", to: "b", slot_runs: [[2048, 4095]] },
  ],
  ...more,
});
const shares = (picture) => Object.fromEntries(tally(picture.owners));

test("only changes are kept, and no more than the span", () => {
  const seen = new Seen();
  for (let second = 0; second < 10; second++) seen.note(second * 1000, plain("a"));
  assert.equal(seen.pictures.length, 1);
  seen.note(10_000, halves("a", "b"));
  seen.note(SPAN_MS + 5_000, plain("a"));
  assert.equal(seen.pictures.length, 3, "the first still holds at the edge");
  seen.note(SPAN_MS + 20_000, halves("a", "b"));
  assert.equal(seen.pictures.length, 3);
  assert.equal(seen.pictures[0].at, 10_000);
});

test("what was before follows from the decisions", () => {
  const seen = new Seen();
  seen.note(20_000, halves("a", "b"));
  const pictures = history(seen.pictures, [split()], "t", 0);
  assert.deepEqual(shares(at(pictures, 1_000)), { a: 1 });
  assert.deepEqual(shares(at(pictures, 5_500)), { a: 0.5, [MOVING]: 0.5 });
  assert.deepEqual(shares(at(pictures, 6_500)), { a: 0.5, b: 0.5 });
  assert.deepEqual(shares(at(pictures, 30_000)), { a: 0.5, b: 0.5 });
  assert.equal(pictures[0].owners.length, BANDS);
  assert.deepEqual(pictures.map((one) => Boolean(one.assumed)), [true, false, false, false]);
});

test("other partitions, refusals and what was undone change nothing", () => {
  const seen = new Seen();
  seen.note(20_000, halves("a", "b"));
  for (const decision of [split({ outcome: "refused" }), split({ moves: undefined })]) {
    assert.deepEqual(shares(history(seen.pictures, [decision], "t", 0)[0]), { a: 0.5, b: 0.5 });
  }
  assert.deepEqual(shares(history(seen.pictures, [split()], "t", 1)[0]), { a: 0.5, b: 0.5 });
});

test("hand-overs that overlap stay in order", () => {
  const seen = new Seen();
  seen.note(20_000, halves("a", "b"));
  const later = split({ seq: 2, time_ms: 5_200, handover_ms: 100 });
  const times = history(seen.pictures, [split({ handover_ms: 9_000 }), later], "t", 0).map((one) => one.at);
  assert.deepEqual(times, [...times].sort((a, b) => a - b));
});

test("nothing seen, nothing shown", () => {
  assert.deepEqual(history([], [split()], "t", 0), []);
  assert.equal(at([], 5), null);
});

test("the streams of a river keep their order", () => {
  const owners = ["b", MOVING, "a", null, "b", "b"];
  const order = streams(owners, (id) => ({ a: 0, b: 1 })[id]).map(([owner]) => owner);
  assert.deepEqual(order, ["a", "b", MOVING, null]);
});
