//! What the clients were told: the only truth that the broker is held against.

use crate::killer::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A partition by topic and number.
pub(crate) type Place = (&'static str, i32);

/// One record as its producer knows it: producer, and number within that producer and partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) producer: u64,
    pub(crate) idempotent: bool,
    pub(crate) number: u64,
}

impl Record {
    /// The value sent: readable, and long enough to fill segments.
    pub(crate) fn value(&self) -> String {
        let kind = if self.idempotent { 'i' } else { 'p' };
        format!(
            "{kind} {} {} {}",
            self.producer,
            self.number,
            "x".repeat(200 + usize::from(self.number.is_multiple_of(7)) * 3000)
        )
    }

    /// The record that a value was made from; `None` for a value that no producer of this run sent.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let mut parts = text.split(' ');
        let idempotent = parts.next()? == "i";
        let record = Self {
            idempotent,
            producer: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        (record.value() == text).then_some(record)
    }
}

/// All that was promised, by partition.
#[derive(Default)]
pub(crate) struct Promises {
    /// Acknowledged records and the offset that was told.
    pub(crate) acknowledged: BTreeMap<Place, BTreeMap<Record, i64>>,
    /// Records handed to the client, acknowledged or not: one past the largest number, by producer.
    pub(crate) sent: BTreeMap<(Place, u64), u64>,
    /// The largest offset whose commit was acknowledged.
    pub(crate) committed: BTreeMap<Place, i64>,
    /// Topics whose creation was acknowledged and whose deletion was not asked for.
    pub(crate) topics: BTreeSet<String>,
    /// Topics whose deletion was acknowledged.
    pub(crate) deleted: BTreeSet<String>,
    kills: BTreeMap<Moment, u32>,
}

/// The promises, shared by the client threads.
#[derive(Default)]
pub(crate) struct Journal(Mutex<Promises>);

impl Journal {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Promises> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sent(&self, place: Place, record: Record) {
        self.lock()
            .sent
            .insert((place, record.producer), record.number + 1);
    }

    pub(crate) fn acknowledged(&self, place: Place, record: Record, offset: i64) {
        self.lock()
            .acknowledged
            .entry(place)
            .or_default()
            .insert(record, offset);
    }

    pub(crate) fn committed(&self, place: Place, offset: i64) {
        let mut promises = self.lock();
        let known = promises.committed.entry(place).or_insert(offset);
        *known = offset.max(*known);
    }

    pub(crate) fn killed(&self, moment: Moment) {
        *self.lock().kills.entry(moment).or_default() += 1;
    }

    pub(crate) fn kills(&self) -> String {
        let kills = &self.lock().kills;
        kills
            .iter()
            .map(|(moment, count)| format!("{moment:?} {count}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_gives_back_its_record_and_a_changed_one_none() {
        let record = Record {
            producer: 12,
            idempotent: true,
            number: 7,
        };
        let mut value = record.value().into_bytes();
        assert_eq!(Record::parse(&value), Some(record));
        *value.last_mut().unwrap() = b'y';
        assert_eq!(Record::parse(&value), None);
    }
}
