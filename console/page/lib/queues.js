// A topic in queue mode in words: which queues are written and read, what changes next, and what waits for whom. Pure.

/** What a queue is to clients now: `written`, `going` (read only, on its way out), `coming` (read only, on its way in) or `resting`. */
export function use(queues, queue) {
  if (queue < queues.write) return "written";
  if (queue >= queues.read) return "resting";
  return queues.phase === "reading-ahead" ? "coming" : "going";
}

/** The use of a queue in words. */
export const USES = {
  written: "written and read",
  coming: "read already, written soon",
  going: "not written any more; goes when it has been read",
  resting: "not in use",
};

/** "queue 3", "queues 3 to 5". */
export function range(from, upto) {
  return upto - from === 1 ? `queue ${from}` : `queues ${from} to ${upto - 1}`;
}

/** How things stand, as sentences. `passed_ms` is how long ago the broker said so. */
export function sentences(queues, passed_ms, text) {
  const { write, read, goal, phase, next_in_ms, fewer_for_ms } = queues;
  const due = next_in_ms == null ? "" : ` in ${text.duration(Math.max(0, next_in_ms - passed_ms))}`;
  const said = [];
  if (phase === "idle") said.push(fewer_for_ms == null ? "No change is under way." : fewer(queues, passed_ms, text));
  if (phase === "reading-ahead") {
    said.push(`Consumers have ${range(write, read)} already; producers write to ${read - write === 1 ? "it" : "them"}${due || " soon"}.`);
  }
  if (phase === "draining" || phase === "postponed") {
    const many = read - write > 1;
    const when = phase === "draining" ? `${due || " soon"} if every group has read ${many ? "them" : "it"}` : ` when every group has read ${many ? "them" : "it"}`;
    said.push(`Nothing is written to ${range(write, read)} any more; ${many ? "they go" : "it goes"}${when}.`);
    if (phase === "postponed" && due) said.push(`That is looked at again${due}.`);
    if (fewer_for_ms != null) said.push(fewer(queues, passed_ms, text));
  }
  if (goal !== write) said.push(`${text.plural(goal, "queue")} ${goal === 1 ? "is" : "are"} wanted.`);
  if (queues.wish != null) said.push(`An operator wants ${text.count(queues.wish)}, whatever the number of consumers.`);
  return said;
}

function fewer({ fewer_for_ms, settings }, passed_ms, text) {
  const so_far = text.duration(fewer_for_ms + passed_ms);
  return `There have been fewer consumers than queues for ${so_far}; after ${text.duration(settings.shrink_grace_ms)} queues go.`;
}

/** Queues that are worth a column: all that are read, and further ones that some group has not read; of those at most `most`. */
export function columns(queues, most) {
  const further = new Set();
  for (const group of queues.groups) {
    for (const one of group.unread_in) if (one.queue >= queues.read) further.add(one.queue);
  }
  const inUse = Array.from({ length: queues.read }, (_, queue) => queue);
  return [...inUse, ...[...further].sort((a, b) => a - b)].slice(0, most);
}

/** What a group has not read of each of these queues. */
export function unreadIn(group, columns) {
  const by = new Map(group.unread_in.map((one) => [one.queue, one.records]));
  return columns.map((queue) => by.get(queue) ?? 0);
}

/** What a group has not read of the queues that are to go; `null` if none is to. */
export function toGo(queues, group) {
  const going = group.unread_in.filter((one) => use(queues, one.queue) === "going");
  if (use(queues, queues.read - 1) !== "going") return null;
  return going.reduce((sum, one) => sum + one.records, 0);
}
