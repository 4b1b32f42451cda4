import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../page/lib/format.js";
import { drainMs, drainWords, loads } from "../page/lib/load.js";

const share = (member, remaining, more = {}) => ({
  member, end: null, slots: 10, remaining, remaining_exact: true, handed_out: 0, ...more,
});
const group = (rates, shares) => ({
  members: Object.entries(rates).map(([member, rate]) => ({ member, rate })),
  partitions: [{ shares }],
});

test("a member's load is that of all its slices", () => {
  const by = loads(group({ a: 1, b: 1 }, [share("a", 5), share("a", 7, { end: 9, handed_out: 7 })]));
  assert.deepEqual(by.get("a"), { unread: 12, handedOut: 7, slots: 10, partitions: 1, exact: true });
  assert.equal(by.get("b").unread, 0);
});

test("a group is done when its slowest member is", () => {
  const drain = (rates, shares) => drainMs(group(rates, shares).members, loads(group(rates, shares)));
  assert.equal(drain({ a: 10, b: 1 }, [share("a", 100), share("b", 30)]), 30_000);
  assert.equal(drain({ a: 10, b: null }, [share("a", 100)]), 10_000, "who has nothing needs no rate");
  assert.equal(drain({ a: 10, b: null }, [share("a", 100), share("b", 1)]), null);
  assert.equal(drain({ a: 0 }, [share("a", 1)]), Infinity);
  assert.equal(drain({ a: null }, []), 0);
  const idle = group({ a: 10 }, []);
  assert.equal(drainMs(idle.members, loads(idle), 1600), null, "what is on its way is nobody's yet");
});

test("it is said in words", () => {
  assert.deepEqual([0, null, Infinity, 38_000].map((ms) => drainWords(ms, text)), ["empty", "–", "stalled", "38 s"]);
});
