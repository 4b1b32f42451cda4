//! The few fields of a record batch (format v2) that the store looks at, at their fixed places. Everything else in a batch
//! is opaque here and was checked when it was received.

use anabranch_core::ids::Offset;

/// Length of a batch's fixed part.
pub(crate) const BATCH_HEADER_BYTES: usize = 61;

/// What the store needs to know of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchView {
    pub(crate) base_offset: Offset,
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: i64,
    pub(crate) bytes: usize,
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The batch at the start of `bytes`; `None` if no whole batch is there.
pub(crate) fn view(bytes: &[u8]) -> Option<BatchView> {
    let base_offset = i64_at(bytes, 0)?;
    let size = usize::try_from(i32_at(bytes, 8)?).ok()?.checked_add(12)?;
    if size < BATCH_HEADER_BYTES || size > bytes.len() {
        return None;
    }
    let delta = i32_at(bytes, 23)?;
    Some(BatchView {
        base_offset,
        last_offset: base_offset.checked_add(i64::from(delta))?,
        max_timestamp: i64_at(bytes, 35)?,
        bytes: size,
    })
}

/// Walks consecutive batches, giving each one's position; ends early if the bytes stop being batches.
pub(crate) fn walk(bytes: &[u8]) -> impl Iterator<Item = (usize, BatchView)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let batch = view(bytes.get(at..)?)?;
        let position = at;
        at += batch.bytes;
        Some((position, batch))
    })
}

/// Sets the base offset and the partition leader epoch; both lie before the part that the batch's CRC covers.
pub(crate) fn patch(batch: &mut [u8], base_offset: Offset, leader_epoch: i32) {
    if let Some(field) = batch.get_mut(0..8) {
        field.copy_from_slice(&base_offset.to_be_bytes());
    }
    if let Some(field) = batch.get_mut(12..16) {
        field.copy_from_slice(&leader_epoch.to_be_bytes());
    }
}

#[cfg(test)]
pub(crate) fn test_batch(base_offset: Offset, records: i32, max_timestamp: i64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; BATCH_HEADER_BYTES];
    bytes[0..8].copy_from_slice(&base_offset.to_be_bytes());
    let length = i32::try_from(BATCH_HEADER_BYTES - 12 + body.len()).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(records - 1).to_be_bytes());
    bytes[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
    bytes[57..61].copy_from_slice(&records.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_batches_are_walked_to_the_end() {
        let mut bytes = test_batch(10, 3, 77, b"abc");
        bytes.extend(test_batch(13, 1, 78, b""));
        let found: Vec<_> = walk(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            (
                0,
                BatchView {
                    base_offset: 10,
                    last_offset: 12,
                    max_timestamp: 77,
                    bytes: 64
                }
            )
        );
        assert_eq!(found[1].0, 64);
        assert_eq!(found[1].1.last_offset, 13);
    }

    #[test]
    fn what_is_no_batch_ends_the_walk() {
        assert_eq!(walk(&[0xff; 100]).count(), 0);
        assert_eq!(walk(&test_batch(0, 1, 0, b"")[..60]).count(), 0);
        let mut negative = test_batch(0, 1, 0, b"");
        negative[8..12].copy_from_slice(&(-1i32).to_be_bytes());
        assert_eq!(walk(&negative).count(), 0);
    }

    #[test]
    fn patching_changes_offset_and_epoch_only() {
        let mut bytes = test_batch(0, 2, 5, b"body");
        let before = bytes.clone();
        patch(&mut bytes, 1 << 40, 9);
        assert_eq!(view(&bytes).unwrap().base_offset, 1 << 40);
        assert_eq!(bytes[12..16], 9i32.to_be_bytes());
        assert_eq!(bytes[8..12], before[8..12]);
        assert_eq!(bytes[16..], before[16..]);
    }
}
