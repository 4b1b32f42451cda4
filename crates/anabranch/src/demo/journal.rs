//! What members write down while they work: the material of the check, and of the picture.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_wire::slot::Slot;

use super::oracle::Delivery;

/// How many parts the slots are looked at in.
pub(crate) const CELLS: usize = 32;

/// Slots of one part.
const SLOTS_PER_CELL: usize = anabranch_wire::slot::SLOTS / CELLS;

/// Bits of an offset that are the offset in the log; above them stands the slice, 0 in a plain partition.
const LOG_OFFSET_BITS: u32 = 46;

/// One clock for all members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Microseconds since the start; never 0, which stands for "not yet".
    pub(crate) fn us(self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.0).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX).max(1)
    }

    pub(crate) fn now_us(self) -> u64 {
        self.us(Instant::now())
    }
}

/// Which records of the list were delivered by anyone.
#[derive(Debug)]
pub(crate) struct Delivered {
    seen: Vec<AtomicBool>,
    count: AtomicU64,
}

impl Delivered {
    pub(crate) fn new(records: u32) -> Delivered {
        Delivered {
            seen: (0..records).map(|_| AtomicBool::new(false)).collect(),
            count: AtomicU64::new(0),
        }
    }

    fn mark(&self, record: u32) {
        let first = self
            .seen
            .get(record as usize)
            .is_some_and(|seen| !seen.swap(true, Ordering::Relaxed));
        if first {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many, each counted once.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A record that was worked off, with where it stood for the client.
#[derive(Debug, Clone, Copy)]
struct Entry {
    delivery: Delivery,
    offset: i64,
    /// Counts the member's assignments.
    assignment: u32,
}

/// The journal of one member.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Mutex<Entries>,
    done: AtomicU64,
    last_done_us: AtomicU64,
    first_done_us: AtomicU64,
    /// When a record of each part of the slots was last worked off.
    cells: [AtomicU64; CELLS],
}

#[derive(Debug, Default)]
struct Entries {
    all: Vec<Entry>,
    /// Positions of those that no commit covers yet.
    open: BTreeSet<usize>,
    assignment: u32,
}

/// A record as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) record: u32,
    pub(crate) offset: i64,
    pub(crate) slot: Slot,
}

impl Journal {
    pub(crate) fn new() -> Journal {
        Journal {
            entries: Mutex::default(),
            done: AtomicU64::new(0),
            last_done_us: AtomicU64::new(0),
            first_done_us: AtomicU64::new(0),
            cells: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records were worked off between two times. Each counts as in work for the whole of it, which can only make the
    /// check stricter.
    pub(crate) fn worked(
        &self,
        member: u32,
        came: &[Came],
        start_us: u64,
        done_us: u64,
        delivered: &Delivered,
    ) {
        let mut entries = self.entries();
        for one in came {
            let delivery = Delivery {
                member,
                record: one.record,
                start_us,
                done_us,
                committed_us: None,
            };
            let at = entries.all.len();
            let assignment = entries.assignment;
            entries.open.insert(at);
            entries.all.push(Entry {
                delivery,
                offset: one.offset,
                assignment,
            });
            delivered.mark(one.record);
            if let Some(cell) = self.cells.get(one.slot.index() / SLOTS_PER_CELL) {
                cell.store(done_us, Ordering::Relaxed);
            }
        }
        self.done.fetch_add(came.len() as u64, Ordering::Relaxed);
        self.last_done_us.store(done_us, Ordering::Relaxed);
        let _ = self
            .first_done_us
            .compare_exchange(0, done_us, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The member was assigned something else, or gave something up.
    pub(crate) fn reassigned(&self) {
        self.entries().assignment += 1;
    }

    /// The group has taken a commit of everything before `offset`. Within one assignment the slices of a member follow
    /// each other and their ids grow, so that it covers those before, too; of another assignment it only says something
    /// about the slice that it names.
    pub(crate) fn committed(&self, offset: i64, now_us: u64) {
        let mut entries = self.entries();
        let Entries {
            all,
            open,
            assignment,
        } = &mut *entries;
        let slice = offset >> LOG_OFFSET_BITS;
        open.retain(|at| {
            let Some(entry) = all.get_mut(*at) else {
                return false;
            };
            let spoken_of = entry.assignment == *assignment || entry.offset >> LOG_OFFSET_BITS == slice;
            let covered = spoken_of && entry.offset < offset;
            if covered {
                entry.delivery.committed_us = Some(now_us);
            }
            !covered
        });
    }

    /// All deliveries so far, in their order.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.entries().all.iter().map(|entry| entry.delivery).collect()
    }

    /// How many records were done between two times.
    pub(crate) fn done_between(&self, from_us: u64, to_us: u64) -> u64 {
        let within = |entry: &&Entry| (from_us..to_us).contains(&entry.delivery.done_us);
        self.entries()
            .all
            .iter()
            .rev()
            .take_while(|entry| entry.delivery.done_us >= from_us)
            .filter(within)
            .count() as u64
    }

    /// When its first record was done.
    pub(crate) fn first_done_us(&self) -> Option<u64> {
        Some(self.first_done_us.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// When its latest record was done.
    pub(crate) fn last_done_us(&self) -> Option<u64> {
        Some(self.last_done_us.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// How many records were done.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// When records of each part of the slots were last done; 0 for never.
    pub(crate) fn cells(&self) -> [u64; CELLS] {
        std::array::from_fn(|i| self.cells.get(i).map_or(0, |cell| cell.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(record: u32, slice: i64, offset: i64) -> Came {
        Came {
            record,
            offset: (slice << LOG_OFFSET_BITS) + offset,
            slot: Slot::new((record * 64) as u16).unwrap(),
        }
    }

    fn committed(journal: &Journal) -> Vec<bool> {
        journal
            .deliveries()
            .iter()
            .map(|one| one.committed_us.is_some())
            .collect()
    }

    #[test]
    fn a_commit_covers_what_lies_before_it() {
        let (journal, delivered) = (Journal::new(), Delivered::new(4));
        journal.worked(1, &[came(0, 0, 10), came(1, 0, 11)], 5, 9, &delivered);
        journal.worked(1, &[came(2, 3, 12), came(2, 3, 12)], 9, 19, &delivered);
        journal.committed(11, 20);
        assert_eq!(committed(&journal), [true, false, false, false]);
        // A position in a later slice of the same chain covers the slices before.
        journal.committed((3 << LOG_OFFSET_BITS) + 13, 21);
        assert_eq!(committed(&journal), [true; 4]);
        assert_eq!(delivered.count(), 3);
        assert_eq!(
            (journal.done(), journal.first_done_us(), journal.last_done_us()),
            (4, Some(9), Some(19))
        );
        assert_eq!(
            (journal.done_between(9, 19), journal.done_between(10, 20)),
            (2, 2)
        );
        assert_eq!(journal.cells()[..2], [9, 19]);
    }

    /// What a member did in an earlier assignment and could not commit is another member's to do again.
    #[test]
    fn a_commit_says_nothing_about_other_slices_of_an_earlier_assignment() {
        let (journal, delivered) = (Journal::new(), Delivered::new(4));
        journal.worked(1, &[came(0, 0, 10), came(1, 4, 11)], 5, 9, &delivered);
        journal.reassigned();
        journal.worked(1, &[came(2, 4, 12)], 9, 19, &delivered);
        journal.committed((4 << LOG_OFFSET_BITS) + 13, 20);
        assert_eq!(committed(&journal), [false, true, true]);
    }
}
