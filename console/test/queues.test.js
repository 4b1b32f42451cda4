import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../page/lib/format.js";
import { columns, range, sentences, toGo, unreadIn, use } from "../page/lib/queues.js";

const topic = (more = {}) => ({
  facade: 16,
  write: 3,
  read: 3,
  goal: 3,
  wish: null,
  phase: "idle",
  next_in_ms: null,
  fewer_for_ms: null,
  groups: [],
  settings: { shrink_grace_ms: 60_000 },
  ...more,
});

const said = (queues, passed_ms = 0) => sentences(queues, passed_ms, text).join(" ");

test("what a queue is used for follows from the counts and the phase", () => {
  const growing = topic({ read: 5, phase: "reading-ahead" });
  assert.deepEqual([2, 3, 4, 5].map((queue) => use(growing, queue)), ["written", "coming", "coming", "resting"]);
  const shrinking = topic({ read: 5, phase: "postponed" });
  assert.deepEqual([2, 3, 5].map((queue) => use(shrinking, queue)), ["written", "going", "resting"]);
});

test("the sentences say what changes, and when, seen from now", () => {
  assert.equal(said(topic()), "No change is under way.");
  const growing = topic({ read: 5, goal: 5, phase: "reading-ahead", next_in_ms: 8_000 });
  assert.equal(said(growing, 3_000), "Consumers have queues 3 to 4 already; producers write to them in 5.0 s. 5 queues are wanted.");
  const shrinking = topic({ write: 2, goal: 2, phase: "draining", next_in_ms: 240_000 });
  assert.equal(said(shrinking), "Nothing is written to queue 2 any more; it goes in 4 min if every group has read it.");
  const waiting = topic({ write: 1, read: 3, goal: 1, phase: "postponed", next_in_ms: 30_000 });
  assert.match(said(waiting), /^Nothing is written to queues 1 to 2 any more; they go when every group has read them\. That is looked at again in 30 s\.$/);
  const fewer = topic({ fewer_for_ms: 10_000, wish: 3 });
  assert.equal(
    said(fewer, 2_000),
    "There have been fewer consumers than queues for 12 s; after 60 s queues go. An operator wants 3, whatever the number of consumers.",
  );
  assert.equal(said(topic({ read: 5, goal: 5, phase: "reading-ahead", next_in_ms: 1_000 }), 5_000).includes("-"), false, "time that is over is 0");
});

test("queues in use have a column, and others where something is unread", () => {
  const groups = [
    { unread_in: [{ queue: 0, records: 7 }, { queue: 9, records: 2 }] },
    { unread_in: [{ queue: 5, records: 1 }] },
  ];
  const queues = topic({ groups });
  assert.deepEqual(columns(queues, 256), [0, 1, 2, 5, 9]);
  assert.deepEqual(columns(queues, 4), [0, 1, 2, 5]);
  assert.deepEqual(unreadIn(groups[0], [0, 1, 2, 5, 9]), [7, 0, 0, 0, 2]);
  assert.equal(range(3, 4), "queue 3");
});

test("what is unread in queues that go is known only while some go", () => {
  const group = { unread_in: [{ queue: 0, records: 7 }, { queue: 3, records: 2 }, { queue: 9, records: 5 }] };
  assert.equal(toGo(topic(), group), null);
  assert.equal(toGo(topic({ read: 5, phase: "draining" }), group), 2);
  assert.equal(toGo(topic({ read: 5, phase: "reading-ahead" }), group), null);
});
