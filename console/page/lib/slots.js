// The slots of a partition as a picture: who has which, what is left in each band, and what is on its way. Pure.

export const SLOTS = 4096;

/** Slots on their way, and slots that nobody has, as owners of bands. */
export const MOVING = "\u0000moving";
export const LOOSE = "\u0000loose";

/** How many slots the runs have. */
export function size(runs) {
  return runs.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** The owner of most slots of each band: the id of a member, MOVING, LOOSE, or null. */
export function bandOwners(partition, bands) {
  const width = SLOTS / bands;
  const votes = Array.from({ length: bands }, () => new Map());
  const vote = (runs, owner) => {
    for (const [first, last] of runs) {
      for (let band = Math.floor(first / width); band <= Math.floor(last / width) && band < bands; band++) {
        const from = Math.max(first, band * width);
        const to = Math.min(last + 1, (band + 1) * width);
        votes[band].set(owner, (votes[band].get(owner) ?? 0) + to - from);
      }
    }
  };
  for (const share of partition.shares) {
    // A slice with an end is worked off by its member and takes no new records: its slots may be others' by now.
    if (share.end == null) vote(share.slot_runs, share.member);
  }
  for (const transit of partition.transits) vote(transit.slot_runs, MOVING);
  // What waits for a member that is to get it is as good as on its way.
  for (const loose of partition.loose) vote(loose.slot_runs, loose.to == null ? LOOSE : MOVING);
  return votes.map((of) => {
    let [owner, most] = [null, 0];
    for (const [candidate, slots] of of) if (slots > most) [owner, most] = [candidate, slots];
    return owner;
  });
}

/** Neighbouring bands of one owner as runs: {owner, from, to} with `to` not included. */
export function runsOf(owners) {
  const runs = [];
  owners.forEach((owner, band) => {
    const last = runs.at(-1);
    if (last && last.owner === owner) last.to = band + 1;
    else runs.push({ owner, from: band, to: band + 1 });
  });
  return runs;
}

/** Height of a bar, 0 to 1: by the square root, so that a hot key does not make all others vanish. */
export function height(unread, most) {
  return most <= 0 ? 0 : Math.sqrt(unread / most);
}

/** One SVG path per owner with a bar for each of its bands, in a box of `bands` x `tall`. */
export function barPaths(owners, unread, tall) {
  const most = Math.max(1, ...unread);
  const paths = new Map();
  unread.forEach((records, band) => {
    if (records === 0) return;
    const high = Math.max(height(records, most) * tall, 0.6);
    const bar = `M${band} ${tall}v${-round(high)}h1v${round(high)}z`;
    const owner = owners[band];
    paths.set(owner, (paths.get(owner) ?? "") + bar);
  });
  return paths;
}

function round(value) {
  return Math.round(value * 100) / 100;
}

/** What each member has of a partition, most unread first: {member, slots, unread, exact}. */
export function shares(partition) {
  const by = new Map();
  for (const share of partition.shares) {
    const of = by.get(share.member) ?? { member: share.member, slots: 0, unread: 0, handedOut: 0, exact: true };
    if (share.end == null) of.slots += share.slots;
    of.unread += share.remaining;
    of.handedOut += share.handed_out;
    of.exact &&= share.remaining_exact;
    by.set(share.member, of);
  }
  return [...by.values()].sort((a, b) => b.unread - a.unread || b.slots - a.slots);
}

/** All records of a partition that are not done. */
export function unread(partition) {
  const sum = (parts) => parts.reduce((all, part) => all + part.remaining, 0);
  const known = sum(partition.shares) + sum(partition.transits) + sum(partition.loose);
  return partition.form === "divided" || partition.shares.length > 0 ? known : partition.lag;
}

/** The band with by far the most records: one key, as a rule. Null if nothing stands out. */
export function hottest(bands) {
  const all = bands.reduce((sum, records) => sum + records, 0);
  const most = Math.max(...bands);
  if (all < 1000 || bands.length < 16) return null;
  const share = most / all;
  return share > Math.max(0.05, 8 / bands.length) ? { band: bands.indexOf(most), share } : null;
}

/** How many members read the partition. */
export function readers(partition) {
  return new Set(partition.shares.map((share) => share.member)).size;
}

/** The picture in one sentence, for those who do not see it. */
export function sentence(partition, owners, text) {
  const name = `${partition.topic} partition ${partition.partition}`;
  const parts = shares(partition).map((of) => {
    return `${owners.name(of.member)} has ${text.plural(of.slots, "slot")} with ${text.count(of.unread)} unread`;
  });
  for (const transit of partition.transits) {
    const to = transit.to == null ? "" : ` to ${owners.name(transit.to)}`;
    parts.push(`${text.plural(transit.slots, "slot")} on their way from ${owners.name(transit.from)}${to}`);
  }
  for (const loose of partition.loose) {
    const where = loose.to == null ? "without a holder" : `on their way to ${owners.name(loose.to)}`;
    parts.push(`${text.plural(loose.slots, "slot")} ${where}`);
  }
  if (parts.length === 0) parts.push("nobody reads it");
  return `${name}: ${text.count(unread(partition))} unread. ${parts.join("; ")}.`;
}
