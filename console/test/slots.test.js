import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../page/lib/format.js";
import { Owners } from "../page/lib/owners.js";
import * as slots from "../page/lib/slots.js";

const share = (member, runs, more = {}) => ({
  member,
  end: null,
  slots: slots.size(runs),
  slot_runs: runs,
  remaining: 0,
  remaining_exact: true,
  handed_out: 0,
  ...more,
});

const partition = (more) => ({
  topic: "t",
  partition: 0,
  form: "divided",
  lag: 0,
  shares: [],
  transits: [],
  loose: [],
  ...more,
});

test("a band belongs to whoever has most of its slots", () => {
  const divided = partition({
    shares: [share("a", [[0, 1023], [2048, 2057]]), share("b", [[1024, 2047]])],
    transits: [{ from: "a", to: "b", slot_runs: [[2058, 3071]] }],
    loose: [{ to: null, slot_runs: [[3072, 3583]] }],
  });
  const owners = slots.bandOwners(divided, 8);
  assert.deepEqual(owners, ["a", "a", "b", "b", slots.MOVING, slots.MOVING, slots.LOOSE, null]);
  const runs = slots.runsOf(owners);
  assert.deepEqual(runs[0], { owner: "a", from: 0, to: 2 });
  assert.equal(runs.length, 5);
});

test("a slice that is being worked off owns no slots any more", () => {
  const divided = partition({ shares: [share("a", [[0, 4095]], { end: 10 }), share("b", [[0, 4095]])] });
  assert.deepEqual(slots.bandOwners(divided, 2), ["b", "b"]);
});

test("all 4,096 slots one by one are painted in time", () => {
  const odd = Array.from({ length: 2048 }, (_, i) => [2 * i, 2 * i]);
  const even = Array.from({ length: 2048 }, (_, i) => [2 * i + 1, 2 * i + 1]);
  const divided = partition({ shares: [share("a", odd), share("b", even)] });
  const began = performance.now();
  for (let i = 0; i < 50; i++) slots.bandOwners(divided, 256);
  assert.ok(performance.now() - began < 1000);
});

test("there is one path for each owner", () => {
  const paths = slots.barPaths(["a", "b", "a"], [100, 0, 25], 10);
  assert.equal(paths.get("a"), "M0 10v-10h1v10zM2 10v-5h1v5z");
  assert.equal(paths.has("b"), false, "nothing left, nothing painted");
});

test("shares add up by member, what is worked off included", () => {
  const divided = partition({
    shares: [
      share("a", [[0, 2047]], { end: 5, remaining: 3, handed_out: 3 }),
      share("a", [[0, 1023]], { remaining: 7 }),
      share("b", [[1024, 4095]], { remaining: 20, remaining_exact: false }),
    ],
    transits: [{ from: "a", to: "b", slots: 0, remaining: 2, slot_runs: [] }],
  });
  assert.deepEqual(slots.shares(divided), [
    { member: "b", slots: 3072, unread: 20, handedOut: 0, exact: false },
    { member: "a", slots: 1024, unread: 10, handedOut: 3, exact: true },
  ]);
  assert.equal(slots.unread(divided), 32);
  assert.equal(slots.unread(partition({ form: "plain", lag: 9 })), 9, "a plain one that nobody holds");
});

test("one hot band stands out, many warm ones do not", () => {
  const even = new Array(256).fill(100);
  assert.equal(slots.hottest(even), null);
  even[17] = 10_000;
  assert.equal(slots.hottest(even).band, 17);
  assert.equal(slots.hottest(new Array(256).fill(0)), null);
});

test("the picture can be read out", () => {
  const owners = new Owners();
  owners.note([{ member: "m1", client_id: "app-1" }, { member: "m2", client_id: "app-2" }]);
  const divided = partition({
    shares: [share("m1", [[0, 2047]], { remaining: 1200 })],
    transits: [{ from: "m1", to: "m2", slots: 128, remaining: 5, slot_runs: [] }],
    loose: [{ slots: 1, remaining: 0, to: null, slot_runs: [] }, { slots: 9, remaining: 0, to: "m2", slot_runs: [] }],
  });
  assert.equal(
    slots.sentence(divided, owners, text),
    "t partition 0: 1,205 unread. A app-1 has 2,048 slots with 1,200 unread; " +
      "128 slots on their way from A app-1 to B app-2; 1 slot without a holder; 9 slots on their way to B app-2.",
  );
});
