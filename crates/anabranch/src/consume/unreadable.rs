//! Partitions that the broker refuses to read although it answers: librdkafka asks again for ever and says nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anabranch_core::cursor::SliceOffset;

use crate::client::FetchRefusal;
use crate::failure::Failure;

/// How long a partition must be refused at one offset before that counts: a broker may be busy with its start or its end.
const PATIENCE: Duration = Duration::from_secs(3);

/// A partition that does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    offset: i64,
    error: String,
    since: Instant,
}

impl Refused {
    /// After one more refusal: for how long that is so is known from the one before.
    pub(super) fn after(before: Option<&Refused>, refusal: FetchRefusal) -> Refused {
        let same = before.filter(|before| before.offset == refusal.offset && before.error == refusal.error);
        Refused {
            offset: refusal.offset,
            error: refusal.error,
            since: same.map_or_else(Instant::now, |before| before.since),
        }
    }

    /// Whether it is no passing thing.
    pub(super) fn is_lasting(&self) -> bool {
        self.since.elapsed() >= PATIENCE
    }

    /// Whether the broker cannot read its own disk, which no second try changes.
    fn is_of_the_disk(&self) -> bool {
        matches!(
            self.error.as_str(),
            "KAFKA_STORAGE_ERROR" | "INVALID_MSG" | "UNKNOWN"
        )
    }
}

/// What has been said about, by partition.
#[derive(Debug, Default)]
pub(super) struct Unreadable(BTreeMap<i32, Refused>);

impl Unreadable {
    /// Takes note of a partition; whether that is news.
    pub(super) fn add(&mut self, partition: i32, refused: Refused) -> bool {
        self.0.insert(partition, refused).is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many partitions they are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// They are not read, and that is the end. `is_member`: offsets may be those of slices.
    pub(super) fn failure(&self, topic: &str, is_member: bool) -> Failure {
        let place = |(partition, refused): (&i32, &Refused)| {
            let offset = plain(refused.offset, is_member);
            format!("{topic}:{partition} at offset {offset} ({})", refused.error)
        };
        let places: Vec<String> = self.0.iter().map(place).collect();
        let cause = if self.0.values().all(Refused::is_of_the_disk) {
            "the records there are damaged, or the broker's disk fails"
        } else {
            "the broker refuses it each time"
        };
        Failure::failed(format!("cannot read {}: {cause}", places.join(", "))).hint(format!(
            "the broker's log names the file and the damaged offsets; `anabranch consume {topic} -p PARTITION --from OFFSET` goes on behind them, and `anabranch help trouble` says what else can be done"
        ))
    }
}

/// The offset in the log: members of a divided group see others.
fn plain(offset: i64, is_member: bool) -> i64 {
    match SliceOffset::from_wire(offset) {
        Some(slice) if is_member => slice.offset(),
        _ => offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(offset: i64, error: &str) -> FetchRefusal {
        FetchRefusal {
            partition: 0,
            offset,
            error: error.to_owned(),
        }
    }

    #[test]
    fn time_counts_from_the_first_refusal_at_an_offset() {
        let early = Instant::now().checked_sub(PATIENCE).unwrap();
        let first = Refused {
            since: early,
            ..Refused::after(None, refusal(7, "KAFKA_STORAGE_ERROR"))
        };
        assert!(first.is_lasting());
        assert!(Refused::after(Some(&first), refusal(7, "KAFKA_STORAGE_ERROR")).is_lasting());
        assert!(!Refused::after(Some(&first), refusal(8, "KAFKA_STORAGE_ERROR")).is_lasting());
        assert!(!Refused::after(Some(&first), refusal(7, "LEADER_NOT_AVAILABLE")).is_lasting());
    }

    #[test]
    fn the_places_are_named_as_in_the_log() {
        let mut unreadable = Unreadable::default();
        let in_a_slice = (5 << 46) | 42;
        assert!(unreadable.add(
            1,
            Refused::after(None, refusal(in_a_slice, "KAFKA_STORAGE_ERROR"))
        ));
        assert!(!unreadable.add(
            1,
            Refused::after(None, refusal(in_a_slice, "KAFKA_STORAGE_ERROR"))
        ));
        let failure = unreadable.failure("t", true);
        assert_eq!(
            failure.message,
            "cannot read t:1 at offset 42 (KAFKA_STORAGE_ERROR): the records there are damaged, or the broker's disk fails"
        );
        assert!(failure.hint.unwrap().contains("anabranch help trouble"));
        assert!(
            unreadable
                .failure("t", false)
                .message
                .contains(&in_a_slice.to_string())
        );
        unreadable.add(2, Refused::after(None, refusal(1, "LEADER_NOT_AVAILABLE")));
        let message = unreadable.failure("t", true).message;
        assert!(
            message.ends_with("t:2 at offset 1 (LEADER_NOT_AVAILABLE): the broker refuses it each time"),
            "{message}"
        );
    }
}
