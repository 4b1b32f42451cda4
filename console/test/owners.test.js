import assert from "node:assert/strict";
import { test } from "node:test";
import { COLOURS, Owners } from "../page/lib/owners.js";

const member = (id) => ({ member: id, client_id: `client-${id}` });

test("a member keeps its mark while others come and go", () => {
  const owners = new Owners();
  owners.note([member("a"), member("b")]);
  assert.equal(owners.letter("b"), "B");
  owners.note([member("b"), member("c")]);
  assert.equal(owners.letter("b"), "B");
  // While there are unused colours, nobody inherits the one of a member that is gone: its past is still shown.
  assert.equal(owners.letter("c"), "C");
  assert.equal(owners.name("c"), "C client-c");
});

test("colours come again with a pattern", () => {
  const owners = new Owners();
  const many = Array.from({ length: 30 }, (_, i) => member(`m${i}`));
  owners.note(many);
  const classes = new Set(many.slice(0, COLOURS).map((one) => owners.className(one.member)));
  assert.equal(classes.size, COLOURS);
  assert.equal(owners.className("m8"), "owner-0 owner-again");
  assert.equal(owners.letter("m27"), "B2");
});

test("marks of members that are gone are used when all colours are", () => {
  const owners = new Owners();
  owners.note(Array.from({ length: COLOURS }, (_, i) => member(`old${i}`)));
  owners.note([member("old1"), member("new")]);
  assert.equal(owners.mark("new"), 0);
  assert.equal(owners.mark("old1"), 1);
});

test("nobody has no mark, and strangers get one", () => {
  const owners = new Owners();
  assert.equal(owners.letter(null), "");
  assert.equal(owners.className(null), "owner-none");
  assert.equal(owners.name("gone"), "A");
});
