import assert from "node:assert/strict";
import { test } from "node:test";
import { label, marks, merge, sentence, tone } from "../page/lib/decisions.js";
import * as text from "../page/lib/format.js";

const one = (seq, more = {}) => ({
  seq,
  time_ms: seq * 1000,
  group: "g",
  topic: "t",
  partition: 0,
  kind: "split",
  outcome: "decided",
  reason: "member-idle",
  from: "a",
  result: "done",
  handover_ms: 400,
  count: 1,
  ...more,
});

test("what comes again takes the place of what it was", () => {
  const known = merge([], [one(1, { result: null, handover_ms: null }), one(2)]);
  const news = merge(known, [one(1)]);
  assert.equal(news.length, 2);
  assert.equal(news[0].result, "done");
});

test("a refusal that is repeated stays one", () => {
  const refusal = (seq, count) => one(seq, { outcome: "refused", kind: "none", reason: "cooldown", count });
  const known = merge(merge([], [refusal(1, 1)]), [refusal(5, 4), one(3)]);
  assert.deepEqual(known.map((entry) => [entry.seq, entry.count]), [[3, 1], [5, 4]]);
  assert.equal(label(known[1], text), "refused 4 times");
});

test("a label says what became of it", () => {
  assert.equal(label(one(1), text), "split in 0.4 s");
  assert.equal(label(one(1, { result: null }), text), "split, under way");
  assert.equal(label(one(1, { result: "undone" }), text), "split, undone");
  assert.equal(label(one(1, { result: null, partition: -1, kind: "read-up" }), text), "read-up");
  assert.equal(tone(one(1, { kind: "merge" })), "joins");
  assert.equal(tone(one(1, { result: "undone" })), "undone");
});

test("marks that would cover each other are one", () => {
  const all = [one(1), one(2), one(50), one(51, { outcome: "refused" }), one(500)];
  const placed = marks(all, 0, 100_000, 200);
  assert.deepEqual(placed.map((mark) => [mark.x, mark.lane, mark.decisions.length]), [[2, 0, 2], [100, 0, 1], [102, 1, 1]]);
});

test("the oldest are forgotten", () => {
  const many = Array.from({ length: 1200 }, (_, i) => one(i));
  assert.equal(merge([], many).length, 1000);
  assert.equal(merge([], many)[0].seq, 200);
});

test("sentences name members as people do", () => {
  const decision = one(1, {
    text: "the records of app-1-aaaa in t-0 are divided: 5 for app-1-aaaa and 5 for app-1-aaaa-b",
    from: "app-1-aaaa",
    to: ["app-1-aaaa-b"],
    before: [["app-1-aaaa", 10]],
  });
  const names = { "app-1-aaaa": "A app-1", "app-1-aaaa-b": "B app-2" };
  assert.equal(sentence(decision, (id) => names[id]), "the records of A app-1 in t-0 are divided: 5 for A app-1 and 5 for B app-2");
  assert.equal(sentence(one(1, { text: "nothing", from: null }), () => "x"), "nothing");
});
