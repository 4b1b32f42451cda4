import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces } from "../page/lib/names.js";

const long = "a".repeat(200) + "." + "b".repeat(48);

test("a short sentence is one piece", () => {
  assert.deepEqual(pieces("3 queues are read after 1", ["g"]), [{ words: "3 queues are read after 1", long: false }]);
  assert.deepEqual(pieces("", []), []);
});

test("long names stand alone, and all pieces together are the text", () => {
  const spaced = "a group whose name has spaces and is long (very)";
  const text = `the largest group, ${spaced}, reads ${long}:0 with 3 instances`;
  const all = pieces(text, [spaced]);
  assert.equal(all.map((one) => one.words).join(""), text);
  assert.deepEqual(all.filter((one) => one.long).map((one) => one.words), [spaced, `${long}:0`]);
});

test("of names that begin alike the longer one is found", () => {
  const [one, two] = ["name with a blank and of some length ", "name with a blank and of some length 12"];
  assert.deepEqual(pieces(`${two}!`, [one, two])[0], { words: two, long: true });
});
