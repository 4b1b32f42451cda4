//! The batches that were sent, with the records in them. A batch is looked at many times, by each reader and after each
//! restart; one that is byte for byte as it was sent need not be taken apart again.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::record::{self, RecordId};

/// Where a stored batch may differ from what was sent: its offset, and its leader epoch.
const PATCHED: [Range<usize>; 2] = [0..8, 12..16];
/// The checksum in the header of a batch.
const CHECKSUM: Range<usize> = 17..21;

/// All that were sent.
#[derive(Debug, Default)]
pub struct Batches {
    by_checksum: BTreeMap<u32, Vec<(Bytes, Vec<RecordId>)>>,
}

impl Batches {
    /// A batch of these records is about to be sent.
    pub fn sent(&mut self, batch: &Bytes, ids: &[RecordId]) {
        if let Some(checksum) = checksum_of(batch) {
            let same = self.by_checksum.entry(checksum).or_default();
            same.push((batch.clone(), ids.to_vec()));
        }
    }

    /// The records of a stored batch, in their order; none if it was not sent so.
    pub fn find(&self, stored: &[u8]) -> Option<&[RecordId]> {
        let same = self.by_checksum.get(&checksum_of(stored)?)?;
        let found = same.iter().find(|(sent, _)| is_same(sent, stored));
        found.map(|(_, ids)| ids.as_slice())
    }

    /// The same; what was not sent so is taken apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn records_of(&self, stored: &[u8]) -> Result<Vec<RecordId>, String> {
        match self.find(stored) {
            Some(ids) => Ok(ids.to_vec()),
            None => Ok(record::read(stored)?.into_iter().map(|(_, id)| id).collect()),
        }
    }
}

fn checksum_of(batch: &[u8]) -> Option<u32> {
    let bytes: [u8; 4] = batch.get(CHECKSUM)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Whether they are the same but for offset and epoch.
fn is_same(sent: &[u8], stored: &[u8]) -> bool {
    let [offset, epoch] = PATCHED;
    sent.len() == stored.len()
        && sent[offset.end..epoch.start] == stored[offset.end..epoch.start]
        && sent[epoch.end..] == stored[epoch.end..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::batch::patch;

    #[test]
    fn a_batch_is_known_at_any_offset_and_no_other_byte_may_differ() {
        let (ids, mut batches) = ([5, 6], Batches::default());
        let sent = record::batch(&ids, 1_700_000_000_000, None);
        assert_eq!(batches.find(&sent), None);
        batches.sent(&sent, &ids);
        let mut stored = sent.to_vec();
        patch(&mut stored, 1 << 40, 7);
        assert_eq!(batches.find(&stored), Some(&ids[..]));
        let may_differ = |at: &usize| PATCHED.iter().any(|range| range.contains(at));
        for at in (0..stored.len()).filter(|at| !may_differ(at)) {
            stored[at] ^= 1;
            assert_eq!(batches.find(&stored), None, "byte {at}");
            stored[at] ^= 1;
        }
        assert_eq!(batches.find(&stored[..stored.len() - 1]), None);
        assert_eq!(batches.records_of(&record::batch(&[8], 0, None)), Ok(vec![8]));
    }
}
