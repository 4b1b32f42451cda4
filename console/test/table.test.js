import assert from "node:assert/strict";
import { test } from "node:test";
import { sorted } from "../page/lib/table.js";

test("what has no value comes last either way", () => {
  const rows = [{ v: 2 }, { v: null }, { v: 10 }];
  const values = (direction) => sorted(rows, (row) => row.v, direction).map((row) => row.v);
  assert.deepEqual(values(1), [2, 10, null]);
  assert.deepEqual(values(-1), [10, 2, null]);
});

test("numbers in names count as numbers", () => {
  const rows = ["app-10", "app-9", "App-1"].map((v) => ({ v }));
  assert.deepEqual(sorted(rows, (row) => row.v, 1).map((row) => row.v), ["App-1", "app-9", "app-10"]);
});
