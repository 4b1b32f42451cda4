//! The check, record by record: nothing lost, each key in order, one worker per key at a time.
//!
//! Pure: it knows neither brokers nor clients, only what was written and what members say they did. Any run that writes
//! down [`Delivery`]s can be checked.
//!
//! | rule | meaning |
//! |---|---|
//! | loss | every record was delivered at least once |
//! | order | first deliveries of a key rise one by one; a replay starts at or before where the key was, runs forward one by one, and never begins below what was committed |
//! | one worker | the work on one key by two members does not overlap in time, unless one of them had been expelled before |

use std::collections::BTreeMap;

use serde::Serialize;

/// Most examples that are kept of each kind of fault.
const EXAMPLES_MAX: usize = 5;

/// What a record is: its key, and its place among the records of that key, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: u32,
    pub(crate) seq: u32,
}

/// One delivery of a record to a member, and the member's work on it. Times are microseconds on one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) member: u32,
    /// Position in the list of what was written.
    pub(crate) record: u32,
    pub(crate) start_us: u64,
    pub(crate) done_us: u64,
    /// When the group learned that a commit covers it; `None` if none does.
    pub(crate) committed_us: Option<u64>,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// Records that were written.
    pub(crate) written: u64,
    /// Of these, delivered at least once.
    pub(crate) delivered: u64,
    /// Never delivered.
    pub(crate) lost: u64,
    /// Deliveries beyond the first of each record.
    pub(crate) duplicated: u64,
    /// Records that a commit covers, as a member learned.
    pub(crate) committed: u64,
    /// Deliveries of records that nobody wrote.
    pub(crate) unknown: u64,
    /// Keys that records were delivered of.
    pub(crate) keys: u64,
    /// Keys with a delivery out of order, or again though it was committed.
    pub(crate) keys_out_of_order: u64,
    /// Keys that two members worked on at the same time.
    pub(crate) keys_overlapping: u64,
    /// Not delivered yet when the run was interrupted.
    pub(crate) remaining: u64,
    /// A few of the lost records, as sentences.
    pub(crate) missing: Vec<String>,
    /// A few of the other faults, as sentences.
    pub(crate) examples: Vec<String>,
}

impl Verdict {
    /// Whether every rule held.
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0 && self.in_order()
    }

    /// The verdict on a run that did not come to its end: what was not delivered may still have come.
    pub(crate) fn interrupted(mut self) -> Verdict {
        self.remaining = std::mem::take(&mut self.lost);
        self.missing.clear();
        self
    }

    /// Whether every rule held for what was delivered; some may not have been yet.
    pub(crate) fn in_order(&self) -> bool {
        self.unknown == 0 && self.keys_out_of_order == 0 && self.keys_overlapping == 0
    }
}

/// Checks a run. `deliveries` has those of each member in the order in which it got them; `expelled` says when a member
/// was thrown out of the group while it may have been working.
pub(crate) fn check(written: &[Written], deliveries: &[Delivery], expelled: &BTreeMap<u32, u64>) -> Verdict {
    let mut verdict = Verdict {
        written: written.len() as u64,
        ..Verdict::default()
    };
    let mut times = vec![0_u64; written.len()];
    let mut committed = vec![false; written.len()];
    let mut of_key: BTreeMap<u32, Vec<(u32, Delivery)>> = BTreeMap::new();
    for delivery in deliveries {
        let at = delivery.record as usize;
        let (Some(record), Some(times)) = (written.get(at), times.get_mut(at)) else {
            verdict.unknown += 1;
            continue;
        };
        *times += 1;
        if let Some(committed) = committed.get_mut(at) {
            *committed |= delivery.committed_us.is_some();
        }
        of_key
            .entry(record.key)
            .or_default()
            .push((record.seq, *delivery));
    }
    verdict.delivered = times.iter().filter(|times| **times > 0).count() as u64;
    verdict.lost = verdict.written - verdict.delivered;
    verdict.duplicated = times.iter().map(|times| times.saturating_sub(1)).sum();
    verdict.committed = committed.iter().filter(|committed| **committed).count() as u64;
    verdict.keys = of_key.len() as u64;
    let mut faults = Faults::default();
    for (key, mut deliveries) in of_key {
        // Stable: what one member got in one go stays in its order.
        deliveries.sort_by_key(|(_, delivery)| delivery.start_us);
        if let Some(fault) = disorder(&deliveries) {
            verdict.keys_out_of_order += 1;
            faults.order.push((key, fault));
        }
        if let Some(fault) = overlap(&deliveries, expelled) {
            verdict.keys_overlapping += 1;
            faults.overlap.push((key, fault));
        }
    }
    verdict.missing = missing(written, &times);
    verdict.examples = faults.examples();
    verdict
}

/// The first fault in the order of one key's deliveries.
fn disorder(deliveries: &[(u32, Delivery)]) -> Option<String> {
    let mut due = 0;
    // When each of the key's records counts as committed.
    let mut committed: BTreeMap<u32, u64> = BTreeMap::new();
    for (seq, delivery) in deliveries {
        let member = delivery.member;
        if *seq > due {
            return Some(format!("member {member} got no. {seq} when no. {due} was due"));
        }
        if let Some(at) = committed.get(seq).filter(|at| **at < delivery.start_us) {
            let after = delivery.start_us - at;
            return Some(format!(
                "member {member} got no. {seq} again {after} us after its commit"
            ));
        }
        due = seq + 1;
        if let Some(at) = delivery.committed_us {
            committed
                .entry(*seq)
                .and_modify(|first| *first = (*first).min(at))
                .or_insert(at);
        }
    }
    None
}

/// The first time that two members worked on one key at once.
fn overlap(deliveries: &[(u32, Delivery)], expelled: &BTreeMap<u32, u64>) -> Option<String> {
    // Of each member, the work that ended last.
    let mut latest: BTreeMap<u32, (u32, Delivery)> = BTreeMap::new();
    for (seq, delivery) in deliveries {
        for (other_seq, other) in latest.values() {
            let zombie = |one: &Delivery| expelled.get(&one.member).is_some_and(|at| *at < one.done_us);
            let at_once = other.member != delivery.member && delivery.start_us < other.done_us;
            if at_once && !zombie(other) && !zombie(delivery) {
                return Some(format!(
                    "member {} began no. {seq} while member {} worked on no. {other_seq}",
                    delivery.member, other.member
                ));
            }
        }
        let last = latest.entry(delivery.member).or_insert((*seq, *delivery));
        if last.1.done_us <= delivery.done_us {
            *last = (*seq, *delivery);
        }
    }
    None
}

/// A few of the records that were never delivered.
fn missing(written: &[Written], times: &[u64]) -> Vec<String> {
    let lost = written.iter().zip(times).filter(|(_, times)| **times == 0);
    lost.take(EXAMPLES_MAX)
        .map(|(record, _)| format!("key {}: no. {} was not delivered", record.key, record.seq))
        .collect()
}

/// Faults by key.
#[derive(Default)]
struct Faults {
    order: Vec<(u32, String)>,
    overlap: Vec<(u32, String)>,
}

impl Faults {
    /// A few sentences of each kind.
    fn examples(&self) -> Vec<String> {
        let of_key = |(key, fault): &(u32, String)| format!("key {key}: {fault}");
        let order = self.order.iter().map(of_key);
        let overlap = self.overlap.iter().map(of_key);
        order
            .take(EXAMPLES_MAX)
            .chain(overlap.take(EXAMPLES_MAX))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `keys` keys in turn.
    fn written(records: u32, keys: u32) -> Vec<Written> {
        (0..records)
            .map(|i| Written {
                key: i % keys,
                seq: i / keys,
            })
            .collect()
    }

    fn delivery(member: u32, record: u32, start_us: u64) -> Delivery {
        Delivery {
            member,
            record,
            start_us,
            done_us: start_us + 10,
            committed_us: None,
        }
    }

    fn judge(records: u32, keys: u32, deliveries: &[Delivery]) -> Verdict {
        check(&written(records, keys), deliveries, &BTreeMap::new())
    }

    #[test]
    fn two_members_with_keys_of_their_own_are_fine() {
        let deliveries = [
            delivery(1, 0, 0),
            delivery(1, 2, 10),
            delivery(2, 1, 0),
            delivery(2, 3, 5),
        ];
        let verdict = judge(4, 2, &deliveries);
        assert!(verdict.holds(), "{verdict:?}");
        assert_eq!((verdict.delivered, verdict.duplicated, verdict.keys), (4, 0, 2));
    }

    #[test]
    fn a_lost_record_is_found() {
        let verdict = judge(3, 3, &[delivery(1, 0, 0), delivery(1, 2, 10)]);
        assert_eq!((verdict.lost, verdict.delivered), (1, 2));
        assert!(!verdict.holds() && verdict.in_order());
        assert_eq!(verdict.missing, ["key 1: no. 0 was not delivered"]);
        let interrupted = verdict.interrupted();
        assert_eq!((interrupted.lost, interrupted.remaining), (0, 1));
        assert!(interrupted.missing.is_empty(), "nobody knows yet");
    }

    #[test]
    fn a_record_that_nobody_wrote_is_found() {
        let verdict = judge(1, 1, &[delivery(1, 0, 0), delivery(1, 1, 10)]);
        assert_eq!(verdict.unknown, 1);
        assert!(!verdict.holds());
    }

    /// A record that comes late is a fault even if all come in the end.
    #[test]
    fn a_skipped_record_is_found() {
        let verdict = judge(3, 1, &[delivery(1, 0, 0), delivery(1, 2, 10), delivery(1, 1, 20)]);
        assert_eq!((verdict.lost, verdict.keys_out_of_order), (0, 1));
        assert_eq!(verdict.examples, ["key 0: member 1 got no. 2 when no. 1 was due"]);
    }

    /// What one member got in one go has one start; its order still counts.
    #[test]
    fn order_within_one_start_counts() {
        let both = |first, second| [delivery(1, first, 0), delivery(1, second, 0)];
        assert!(judge(2, 1, &both(0, 1)).holds());
        assert_eq!(judge(2, 1, &both(1, 0)).keys_out_of_order, 1);
    }

    #[test]
    fn a_replay_runs_forward_from_where_it_starts() {
        let first = [delivery(1, 0, 0), delivery(1, 1, 10), delivery(1, 2, 20)];
        let with = |more: &[Delivery]| judge(4, 1, &[&first, more].concat());
        let fine = with(&[delivery(2, 1, 30), delivery(2, 2, 40), delivery(2, 3, 50)]);
        assert!(fine.holds(), "{fine:?}");
        assert_eq!(fine.duplicated, 2);
        let skipping = with(&[delivery(2, 1, 30), delivery(2, 3, 50)]);
        assert_eq!(skipping.keys_out_of_order, 1, "{skipping:?}");
    }

    #[test]
    fn what_is_committed_does_not_come_again() {
        let mut first = delivery(1, 0, 0);
        first.committed_us = Some(100);
        assert!(
            judge(1, 1, &[first, delivery(2, 0, 50)]).holds(),
            "it came before the commit was known"
        );
        let verdict = judge(1, 1, &[first, delivery(2, 0, 101)]);
        assert_eq!(
            verdict.examples,
            ["key 0: member 2 got no. 0 again 1 us after its commit"]
        );
    }

    #[test]
    fn two_members_in_one_key_at_once_are_found() {
        let verdict = judge(2, 1, &[delivery(1, 0, 0), delivery(2, 1, 9)]);
        assert_eq!((verdict.keys_overlapping, verdict.keys_out_of_order), (1, 0));
        assert!(judge(2, 1, &[delivery(1, 0, 0), delivery(2, 1, 10)]).holds());
        // The work that ends last need not be the work that began last.
        let mut long = delivery(1, 0, 0);
        long.done_us = 100;
        let verdict = judge(3, 1, &[long, delivery(1, 1, 20), delivery(2, 2, 50)]);
        assert_eq!(verdict.keys_overlapping, 1, "{verdict:?}");
    }

    #[test]
    fn a_member_that_was_expelled_may_still_be_at_work() {
        let deliveries = [delivery(1, 0, 0), delivery(2, 0, 5)];
        assert_eq!(judge(1, 1, &deliveries).keys_overlapping, 1);
        let excused = check(&written(1, 1), &deliveries, &BTreeMap::from([(1, 4)]));
        assert!(excused.holds(), "{excused:?}");
        let later = check(&written(1, 1), &deliveries, &BTreeMap::from([(1, 11)]));
        assert_eq!(
            later.keys_overlapping, 1,
            "its work was over when it was expelled"
        );
    }

    proptest! {
        /// Members that take turns, each replaying some records of the one before, pass; exchanging two neighbours of
        /// one key, or leaving one record out, does not.
        #[test]
        fn honest_runs_pass_and_tampered_ones_do_not(
            records in 20_u32..200,
            keys in 1_u32..10,
            turns in prop::collection::vec((1_u32..40, 0_u32..10), 1..8),
            at in 0_usize..1000,
        ) {
            let mut deliveries = Vec::new();
            let mut next = 0;
            let mut now = 0;
            for (member, (take, back)) in turns.iter().chain(&[(records, 0)]).enumerate() {
                next -= (*back).min(next);
                for record in next..(next + take).min(records) {
                    deliveries.push(delivery(member as u32, record, now));
                    now += 10;
                }
                next = (next + take).min(records);
            }
            let verdict = judge(records, keys, &deliveries);
            prop_assert!(verdict.holds(), "{:?}", verdict);
            prop_assert_eq!(verdict.duplicated, (deliveries.len() - records as usize) as u64);

            let without = deliveries[at % deliveries.len()].record;
            let fewer: Vec<Delivery> = deliveries.iter().copied().filter(|one| one.record != without).collect();
            prop_assert_eq!(judge(records, keys, &fewer).lost, 1);

            // Exchange the first deliveries of a record and of the next one of its key.
            let first = |record: u32| deliveries.iter().position(|one| one.record == record).unwrap();
            let early = (at as u32) % (records - keys.min(records - 1));
            if early + keys < records {
                let (a, b) = (first(early), first(early + keys));
                let mut swapped = deliveries.clone();
                (swapped[a].record, swapped[b].record) = (early + keys, early);
                prop_assert!(!judge(records, keys, &swapped).holds());
            }
        }
    }
}
