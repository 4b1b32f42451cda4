// What stands on a panel, as a command line. Pure.

/** A word of a shell command: quoted only where it must be. */
export function word(text) {
  if (/^[A-Za-z0-9_.:\/=@%+,-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function line(...words) {
  return ["anabranch", ...words.map((one) => word(String(one)))].join(" ");
}

export const cli = {
  groups: () => line("group", "list"),
  topics: () => line("topic", "list"),
  group: (group) => line("group", "describe", group),
  members: (group) => line("group", "describe", group, "--members"),
  explain: (group) => line("group", "explain", group),
  decisions: (group) => (group ? line("decisions", "--group", group) : line("decisions")),
  split: (group, topic, partition, dry) => {
    return line("group", "split", group, `${topic}:${partition}`, ...(dry ? ["--dry-run"] : []));
  },
  merge: (group, topic, partition, dry) => {
    return line("group", "merge", group, `${topic}:${partition}`, ...(dry ? ["--dry-run"] : []));
  },
  pause: (group) => line("group", "pause", group),
  resume: (group) => line("group", "resume", group),
  queues: (topic) => line("topic", "queues", topic, "--explain"),
  topic: (topic) => line("topic", "describe", topic),
  reset: (group, order) => line("group", "reset", group, "--topic", scope(order), ...target(order.to), ...execute(order)),
  consume: (topic, query) => {
    const from = place(query);
    const partition = query.partition == null ? [] : ["-p", query.partition];
    return line("consume", topic, ...partition, ...from, "-n", query.limit ?? 50, "--until-end");
  },
};

function place(query) {
  if (query.offset != null) return ["--from", query.offset];
  if (query.time_ms != null) return ["--from", `@${new Date(query.time_ms).toISOString()}`];
  return ["--from", `-${query.limit ?? 50}`];
}

function scope(order) {
  return order.partitions ? `${order.topic}:${order.partitions.join(",")}` : order.topic;
}

function target(to) {
  if (to === "earliest") return ["--to-earliest"];
  if (to === "latest") return ["--to-latest"];
  if ("offset" in to) return ["--to-offset", to.offset];
  if ("time_ms" in to) return ["--to-datetime", new Date(to.time_ms).toISOString()];
  return ["--shift-by", to.shift_by];
}

function execute(order) {
  return order.execute ? ["--execute"] : [];
}
