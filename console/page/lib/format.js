// Numbers, sizes and times as people read them. Pure: what depends on the clock is handed over.

const NONE = "–";
const whole = new Intl.NumberFormat("en-US");

/** 1234567 -> "1,234,567". */
export function count(value) {
  return value == null ? NONE : whole.format(Math.round(value));
}

/** Short for tight places: 48210 -> "48.2k". Exact below 10,000. */
export function short(value) {
  if (value == null) return NONE;
  if (Math.abs(value) < 10_000) return count(value);
  for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    // What would be rounded up to a thousand of a unit is one of the next.
    if (Math.abs(value) >= size * 0.9995) return `${digits(value / size)}${unit}`;
  }
  return count(value);
}

/** Three digits that count. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** Records per second. */
export function rate(value) {
  if (value == null) return NONE;
  if (value === 0) return "0/s";
  return value < 10 ? `${value.toFixed(1)}/s` : `${short(Math.round(value))}/s`;
}

export function bytes(value) {
  if (value == null) return NONE;
  if (value < 1024) return `${count(value)} B`;
  let [size, unit] = [value, 0];
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  while (size >= 1023.5 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${digits(size)} ${units[unit]}`;
}

/** A length of time: "0.4 s", "38 s", "12 min", "3.5 h", "9 d". */
export function duration(ms) {
  if (ms == null) return NONE;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${seconds.toFixed(0)} s`;
  if (seconds < 99.5 * 60) return `${(seconds / 60).toFixed(0)} min`;
  if (seconds < 48 * 3600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86_400).toFixed(0)} d`;
}

/** How long it takes to read what is left at that rate, in words. */
export function drain(unread, perSecond) {
  if (unread === 0) return "empty";
  if (perSecond == null) return NONE;
  if (perSecond < 0.05) return "stalled";
  return `empty in ${duration((unread / perSecond) * 1000)}`;
}

/** The time of day, with seconds. */
export function clock(ms) {
  const at = new Date(ms);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Date and time to the millisecond, of a record. */
export function stamp(ms) {
  if (ms == null || ms < 0) return NONE;
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return String(ms);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${clock(ms)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** How long ago, roughly; "now" within a second. */
export function ago(ms, now) {
  const passed = now - ms;
  return passed < 1000 ? "now" : `${duration(passed)} ago`;
}

/** "1 member", "2 members". */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/** Ids of members in a text without what was added to the client's name to make them unique. */
export function withoutUuids(words) {
  return words.replaceAll(new RegExp(`(\\S)-${UUID}\\b`, "g"), "$1");
}

/** What tells an id from others in little room: the client's name, if it begins with one. */
export function brief(whole, length = 18) {
  const id = withoutUuids(whole);
  if (id.length <= length) return id;
  return `${id.slice(0, length - 7)}…${id.slice(-6)}`;
}
