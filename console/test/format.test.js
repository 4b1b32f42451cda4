import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../page/lib/format.js";

test("counts are short where there is no room", () => {
  const shown = [0, 9_999, 10_000, 48_210, 99_949, 99_950, 999_499, 999_500, 1_234_567, 2.5e9].map(text.short);
  assert.deepEqual(shown, ["0", "9,999", "10.0k", "48.2k", "99.9k", "100k", "999k", "1.00M", "1.23M", "2.50G"]);
  assert.equal(text.count(1234567), "1,234,567");
  assert.equal(text.count(null), "–");
});

test("sizes have three digits", () => {
  const shown = [0, 1023, 1024, 1536, 1024 * 1023.4, 1 << 20, 5e12].map(text.bytes);
  assert.deepEqual(shown, ["0 B", "1,023 B", "1.00 KiB", "1.50 KiB", "1023 KiB", "1.00 MiB", "4.55 TiB"]);
});

test("times are as long as they need to be", () => {
  const shown = [0, 400, 9_900, 9_960, 38_000, 99_000, 100_000, 7_200_000, 200_000_000].map(text.duration);
  assert.deepEqual(shown, ["0.0 s", "0.4 s", "9.9 s", "10 s", "38 s", "99 s", "2 min", "2.0 h", "2 d"]);
  assert.equal(text.ago(1_000, 1_500), "now");
  assert.equal(text.ago(1_000, 31_000), "30 s ago");
});

test("a rate of nothing drains nothing", () => {
  assert.equal(text.drain(0, null), "empty");
  assert.equal(text.drain(5, null), "–");
  assert.equal(text.drain(5, 0), "stalled");
  assert.equal(text.drain(1_000, 50), "empty in 20 s");
  assert.equal(text.rate(0), "0/s");
  assert.equal(text.rate(3.14), "3.1/s");
  assert.equal(text.rate(48_210), "48.2k/s");
});

test("ids keep the part that tells them apart", () => {
  assert.equal(text.brief("app-1"), "app-1");
  assert.equal(text.brief("rdkafka-0f1e2d3c-4b5a-6978"), "rdkafka-0f1…a-6978");
  assert.equal(text.brief("rdkafka-0f1e2d3c-4b5a-6978").length, 18);
  assert.equal(text.brief("app-1-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"), "app-1");
  assert.equal(text.brief("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"), "0f1e2d3c-4b…d2e1f0");
});

test("words follow the number", () => {
  assert.equal(text.plural(1, "slot"), "1 slot");
  assert.equal(text.plural(2048, "slot"), "2,048 slots");
  assert.equal(text.stamp(-1), "–");
});
