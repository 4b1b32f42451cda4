import assert from "node:assert/strict";
import { test } from "node:test";
import { cli, word } from "../page/lib/cli.js";

test("words are quoted where the shell would read them", () => {
  assert.equal(word("orders"), "orders");
  assert.equal(word("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(word(""), "''");
});

test("commands are those of the program", () => {
  assert.equal(cli.split("bill ing", "orders", 3, true), "anabranch group split 'bill ing' orders:3 --dry-run");
  assert.equal(cli.decisions(null), "anabranch decisions");
  assert.equal(cli.decisions("g"), "anabranch decisions --group g");
  assert.equal(
    cli.reset("g", { topic: "t", partitions: [0, 2], to: { shift_by: -5 }, execute: true }),
    "anabranch group reset g --topic t:0,2 --shift-by -5 --execute",
  );
  assert.equal(
    cli.reset("g", { topic: "t", to: { time_ms: 0 } }),
    "anabranch group reset g --topic t --to-datetime 1970-01-01T00:00:00.000Z",
  );
  assert.equal(cli.consume("t", { partition: 1, offset: 7, limit: 20 }), "anabranch consume t -p 1 --from 7 -n 20 --until-end");
  assert.equal(cli.consume("t", { partition: 0, limit: 50 }), "anabranch consume t -p 0 --from -50 -n 50 --until-end");
});
