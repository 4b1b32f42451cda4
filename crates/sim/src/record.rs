//! What is in the records: each has a number that no other has, and everything else in it follows from the number.
//! So whoever reads a record can tell whether it is one that was sent, whole, and to this partition.

use anabranch_core::ids::TopicId;
use anabranch_wire::batch::{BatchBuilder, Compression, DecompressLimits, records};
use bytes::Bytes;

use crate::rng::Rng;

/// The number of a record, unique in the run.
pub type RecordId = u64;

/// Bounds for reading batches back; the model clients send far less.
const LIMITS: DecompressLimits = DecompressLimits {
    bytes_max: 1 << 20,
    ratio_max: 1_000,
};

/// Who sent a record, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The producer session: a client's life with one producer id and epoch. Not reused.
    pub session: u64,
    /// Whether it is idempotent.
    pub idempotent: bool,
    /// Topic name.
    pub topic: String,
    /// Topic id, if the producer named the topic by its id.
    pub id: Option<TopicId>,
    /// Partition.
    pub partition: i32,
    /// Counts the records of the session to this partition from 0.
    pub ordinal: u64,
    /// The step of the first attempt.
    pub step: u64,
    /// The moment of the first attempt, milliseconds since the start of the run.
    pub sent_ms: u64,
    /// Whether the wall clock was right then, and the timestamp with it.
    pub dated: bool,
    /// What became of it.
    pub fate: Fate,
}

/// What a producer was told about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing yet, or nothing ever: it may be there or not.
    Unknown,
    /// It is there.
    Acked,
    /// It is not there, and never will be.
    Failed,
}

/// The value of a record.
pub fn value(id: RecordId) -> Vec<u8> {
    let mut rng = Rng::new(id);
    let length = if rng.percent(5) {
        rng.between(500, 6_000)
    } else {
        rng.between(0, 120)
    };
    let mut value = id.to_be_bytes().to_vec();
    value.extend((0..length).map(|at| (at as u8).wrapping_mul(31) ^ (id as u8)));
    value
}

/// The key of a record, if it has one.
pub fn key(id: RecordId) -> Option<Vec<u8>> {
    if id.is_multiple_of(3) {
        None
    } else {
        Some(format!("key-{}", key_number(Rng::new(id).bits())).into_bytes())
    }
}

/// Half of the records have few keys, others more; some keys are seldom used.
fn key_number(drawn: u64) -> u64 {
    let (which, rest) = (drawn % 10, drawn / 10);
    match which {
        0..5 => rest % 4,
        5..8 => 4 + rest % 16,
        _ => 20 + rest % 60,
    }
}

/// A batch of records as a producer sends it. `producer` is id, epoch and first sequence number.
pub fn batch(ids: &[RecordId], timestamp_ms: i64, producer: Option<(i64, i16, i32)>) -> Bytes {
    let mut builder = BatchBuilder::new();
    if let Some((id, epoch, sequence)) = producer {
        builder.producer(id, epoch, sequence);
    }
    // Gzip is dear, and its batches are handled as the others are.
    let compression = match ids.first().map_or(0, |id| id % 56) {
        1..9 => Compression::Lz4,
        9..17 => Compression::Snappy,
        17 => Compression::Gzip,
        _ => Compression::None,
    };
    builder.compression(compression, None);
    for id in ids {
        builder.append(timestamp_ms, key(*id).as_deref(), Some(&value(*id)), &[]);
    }
    builder.finish().expect("a few small records make a batch")
}

/// Reads the records of a stored batch: offset and number of each, or what is wrong with it.
pub fn read(batch: &[u8]) -> Result<Vec<(i64, RecordId)>, String> {
    let set = records(batch, &LIMITS).map_err(|error| format!("the batch cannot be read: {error}"))?;
    let mut found = Vec::new();
    for record in &set {
        let record = record.map_err(|error| format!("a record cannot be read: {error}"))?;
        let offset = set.offset_of(&record);
        let bytes = record.value.unwrap_or_default();
        let id = bytes.first_chunk::<8>().map(|raw| u64::from_be_bytes(*raw));
        let Some(id) = id.filter(|id| bytes == value(*id) && record.key == key(*id).as_deref()) else {
            return Err(format!(
                "the record at offset {offset} has content that nobody sent"
            ));
        };
        found.push((offset, id));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_a_changed_byte_is_noticed() {
        for first in [3, 8, 9, 10, 100] {
            let ids = [first, first + 1, first + 2];
            let bytes = batch(&ids, 1_700_000_000_000, Some((5, 0, 0)));
            let found = read(&bytes).unwrap();
            assert_eq!(found, [(0, first), (1, first + 1), (2, first + 2)]);
        }
        let mut bytes = batch(&[4], 1_700_000_000_000, None).to_vec();
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        assert!(read(&bytes).is_err());
    }
}
