//! What must be read, or counted, to be told: it is done behind a scrape, for the next one.
//!
//! A scrape takes what is in memory, of a bounded number of partitions, and waits for no read of the log. What it lacked is looked up by one thread at a time,
//! within bounds: the timestamps of batches at committed offsets, and how the unread records of divided partitions are
//! spread over their slots.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_core::elastic::{DividedView, Reading, Snapshot};
use anabranch_core::ids::{LogId, Offset};
use anabranch_core::limits::METRIC_SERIES_MAX;
use anabranch_wire::batch::BatchHeader;
use anabranch_wire::slot::{SLOTS, Slot};
use bytes::Bytes;

use super::scrape::{Place, Scrape};
use super::trend::{Outlook, Trends, Wanted};
use crate::broker::Broker;

/// Batches that are looked up behind one scrape.
const READS_MAX: usize = 512;

/// Groups whose slots are counted behind one scrape: those with the most unread records in divided partitions.
const GROUPS_MAX: usize = 8;

/// Counts for one of them.
const COUNTS_MAX: usize = 32;

/// Of fewer unread records a share says nothing.
const RECORDS_MIN: u64 = 100;

/// What scrapes remember.
#[derive(Debug, Default)]
pub(crate) struct Insight {
    trends: Mutex<Trends>,
    is_looking: AtomicBool,
}

impl Insight {
    fn trends(&self) -> MutexGuard<'_, Trends> {
        self.trends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares a scrape with those before it, and has looked up what it lacked.
    pub(super) fn look(broker: &Arc<Broker>, scrape: &Scrape) -> Outlook {
        let left = Cell::new(METRIC_SERIES_MAX);
        let timestamp = |place: &Place| {
            left.set(left.get().checked_sub(1)?);
            let (log, from) = (place.log?, place.from());
            newest(broker.store.try_read(log, from, place.end, 1, true)?)
        };
        let now = broker.clock.now();
        let mut outlook = broker.insight.trends().look(now, scrape, timestamp);
        let mut wanted = std::mem::take(&mut outlook.wanted);
        wanted.truncate(READS_MAX);
        let divided = divided(scrape);
        let has_work = !wanted.is_empty() || !divided.is_empty();
        if has_work && !broker.insight.is_looking.swap(true, Ordering::AcqRel) {
            let broker = Arc::clone(broker);
            tokio::task::spawn_blocking(move || {
                let done = Done(&broker.insight.is_looking);
                look_up(&broker, &wanted);
                divided.iter().for_each(|group| count(&broker, group));
                drop(done);
            });
        }
        outlook
    }
}

/// Lets the next one look, however this one ends.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The groups with divided partitions, most unread records first.
fn divided(scrape: &Scrape) -> Vec<String> {
    let unread = |group: &super::scrape::Group| {
        let divided = group.places.iter().filter(|place| place.division.is_some());
        let lags: Vec<i64> = divided.map(|place| place.lag).collect();
        let sum = lags.iter().fold(0, |sum: i64, lag| sum.saturating_add(*lag));
        (!lags.is_empty()).then_some((std::cmp::Reverse(sum), group.id.clone()))
    };
    let mut groups: Vec<_> = scrape.groups.iter().filter_map(unread).collect();
    groups.sort_unstable();
    groups.truncate(GROUPS_MAX);
    groups.into_iter().map(|(_, id)| id).collect()
}

/// The newest timestamp of the first batch.
fn newest(batches: Vec<Bytes>) -> Option<i64> {
    let batch = batches.into_iter().next()?;
    let header = BatchHeader::parse(&batch).ok()?;
    (header.max_timestamp >= 0).then_some(header.max_timestamp)
}

fn look_up(broker: &Broker, wanted: &[Wanted]) {
    // Several groups may stand at one place.
    let mut found = BTreeMap::<(LogId, Offset), Option<i64>>::new();
    for one in wanted {
        let at = found.entry((one.log, one.from)).or_insert_with(|| {
            let read = broker.store.read(one.log, one.from, one.end, 1, true);
            match read {
                Ok(batches) => newest(batches),
                Err(error) => {
                    tracing::debug!(log = %one.log, %error, "the age of an unread record is not known");
                    None
                }
            }
        });
        if let Some(at) = *at {
            broker.insight.trends().learn(one, at);
        }
    }
}

/// Counts the unread records of a group's divided partitions by slot.
fn count(broker: &Broker, group: &str) {
    let mut tasks = broker.count_tasks_of(group);
    tasks.truncate(COUNTS_MAX);
    let counted = match broker.count(&tasks) {
        Ok(counted) => counted,
        Err((log, error)) => {
            tracing::debug!(%log, %error, "the hottest slot is not known");
            return;
        }
    };
    if let Some((snapshot, _)) = broker.look_at(group, &counted) {
        let shares = hottest(&snapshot);
        broker.insight.trends().learn_hottest(group, shares);
    }
}

/// The share of the slot with the most unread records in a partition, for each topic that has divided partitions the
/// largest of them.
fn hottest(snapshot: &Snapshot) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::<String, f64>::new();
    for topic in snapshot.topics.values() {
        for partition in topic.partitions.values() {
            if let Reading::Divided(divided) = &partition.reading
                && let Some(share) = hottest_of(divided)
            {
                let of_topic = shares.entry(topic.name.clone()).or_default();
                *of_topic = of_topic.max(share);
            }
        }
    }
    shares
}

/// `None` if not all of it was counted, or there is too little to tell.
fn hottest_of(divided: &DividedView) -> Option<f64> {
    let mut records = vec![0_u64; SLOTS];
    let mut add = |counts: &anabranch_core::elastic::SlotCounts| {
        for slot in (0..SLOTS as u16).filter_map(Slot::new) {
            if let Some(sum) = records.get_mut(slot.index()) {
                *sum = sum.saturating_add(counts.get(slot));
            }
        }
    };
    for share in divided.shares.values() {
        let counts = share.counts.as_ref()?;
        add(&counts.movable);
        add(&counts.handed_out);
    }
    for loose in &divided.loose {
        add(loose.counts.as_ref()?);
    }
    let total = records.iter().fold(0, |sum: u64, more| sum.saturating_add(*more));
    let most = records.iter().max().copied().unwrap_or(0);
    (total >= RECORDS_MIN).then(|| most as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::elastic::{ShareCounts, ShareView, SlotCounts};

    fn share(counts: Option<&[(u16, u64)]>) -> ShareView {
        let exact = |counts: &[(u16, u64)]| {
            SlotCounts::exact(
                counts
                    .iter()
                    .map(|(slot, records)| (Slot::new(*slot).unwrap(), *records)),
            )
        };
        ShareView {
            counts: counts.map(|counts| ShareCounts {
                movable: exact(counts),
                handed_out: exact(&counts[..1]),
            }),
            ..ShareView::default()
        }
    }

    fn divided(shares: [Option<&[(u16, u64)]>; 2]) -> DividedView {
        let shares = shares.map(share).into_iter().zip(["a", "b"]);
        DividedView {
            shares: shares.map(|(share, member)| (member.to_owned(), share)).collect(),
            ..DividedView::default()
        }
    }

    #[test]
    fn the_hottest_slot_is_the_one_with_the_most_records_handed_out_or_not() {
        let view = divided([Some(&[(1, 30), (2, 40)]), Some(&[(9, 40)])]);
        // 60 in slot 1, 40 in slot 2, 80 in slot 9.
        assert_eq!(hottest_of(&view), Some(80.0 / 180.0));
        assert_eq!(
            hottest_of(&divided([Some(&[(1, 30)]), None])),
            None,
            "half is unknown"
        );
        assert_eq!(
            hottest_of(&divided([Some(&[(1, 9)]), Some(&[(2, 9)])])),
            None,
            "too few"
        );
    }
}
