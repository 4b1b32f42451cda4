// What each member of a group has to do, and how long that will take. Pure.

/** By member: {unread, handedOut, slots, partitions, exact}. */
export function loads(group) {
  const by = new Map(group.members.map((member) => [member.member, nothing()]));
  for (const partition of group.partitions) {
    for (const share of partition.shares) {
      const load = by.get(share.member) ?? nothing();
      by.set(share.member, load);
      load.unread += share.remaining;
      load.handedOut += share.handed_out;
      load.exact &&= share.remaining_exact;
      if (share.end == null) {
        load.partitions += 1;
        load.slots += share.slots;
      }
    }
  }
  return by;
}

function nothing() {
  return { unread: 0, handedOut: 0, slots: 0, partitions: 0, exact: true };
}

/**
 * When the slowest of these members is done, milliseconds; null if that cannot be told, Infinity if never. If there is more
 * `left` than they have, somebody is to get it first: it cannot be told either once they are done.
 */
export function drainMs(members, loads, left = 0) {
  let longest = 0;
  for (const member of members) {
    const unread = loads.get(member.member)?.unread ?? 0;
    if (unread === 0) continue;
    if (member.rate == null) return null;
    longest = Math.max(longest, member.rate < 0.05 ? Infinity : (unread / member.rate) * 1000);
  }
  return longest === 0 && left > 0 ? null : longest;
}

/** The same in words. */
export function drainWords(ms, text) {
  if (ms === 0) return "empty";
  if (ms == null) return "–";
  return ms === Infinity ? "stalled" : text.duration(ms);
}
