//! Whether what is missing had been there: the difference between a torn end and damage.

use std::path::PathBuf;

use super::inventory::Found;
use super::scan::{Chain, Scanner};
use super::segments::{Rebuild, Scanned};
use crate::error::OpenError;
use crate::format::BLOCK_BYTES;

impl Rebuild<'_> {
    /// Entries up to `first - 1` must be in the snapshot or in earlier segments.
    pub(super) fn check_no_gap(&self, found: &Found, first: u64, last: u64) -> Result<(), OpenError> {
        if last < first || last <= self.snapshot_lsn || first <= self.covered + 1 {
            return Ok(());
        }
        if let Some((file, what)) = &self.snapshot_damage {
            return Err(OpenError::Damaged {
                file: file.clone(),
                position: 0,
                what: what.clone(),
            });
        }
        let what = format!(
            "entries {} to {} come before it and are neither in a segment nor in a snapshot: a file is missing",
            self.covered + 1,
            first - 1
        );
        Err(found.damaged(0, what))
    }

    /// Nothing may show that an entry behind the intact groups had been durable.
    pub(super) fn check_end_is_torn(
        &self,
        found: &Found,
        later: &[Found],
        scanned: &Scanned,
        chain: Chain,
    ) -> Result<(), OpenError> {
        let missing = chain.last_lsn + 1;
        let mut proof = self.proof_in(found, scanned.end, found.file_bytes, missing)?;
        // A later segment is either in use, and then its first group tells, or prepared and holds none.
        for next in later {
            if proof.is_none() {
                proof = self.proof_in(next, BLOCK_BYTES as u64, 2 * BLOCK_BYTES as u64, missing)?;
            }
        }
        let Some(proof) = proof else { return Ok(()) };
        Err(found.damaged(
            scanned.end,
            format!("the commit group with entry {missing} is not intact, but {proof}"),
        ))
    }

    /// Looks for a group header that shows that entry `lsn` had been durable.
    fn proof_in(&self, found: &Found, from: u64, upto: u64, lsn: u64) -> Result<Option<String>, OpenError> {
        let file = found.open(self.disk, self.access)?;
        let proof = Scanner::new(&*file, upto.min(found.file_bytes), found.seed)
            .proof_of(lsn, from)
            .map_err(|error| OpenError::from_io(&found.path, "read", error))?;
        let tell = |at| {
            format!(
                "byte {at} of {} shows that it was acknowledged",
                found.path.display()
            )
        };
        Ok(proof.map(tell))
    }

    pub(super) fn check_reaches_snapshot(
        &self,
        chain: Chain,
        file: PathBuf,
        position: u64,
    ) -> Result<(), OpenError> {
        if chain.last_lsn >= self.snapshot_lsn {
            return Ok(());
        }
        let what = format!(
            "the log ends with entry {}, but the snapshot of entry {} shows that more was acknowledged",
            chain.last_lsn, self.snapshot_lsn
        );
        Err(OpenError::Damaged { file, position, what })
    }

    /// Whether the next segment starts with the group that follows.
    pub(super) fn goes_on_in(&self, later: &[Found], chain: Chain) -> Result<bool, OpenError> {
        let Some(next) = later.first() else {
            return Ok(false);
        };
        let file = next.open(self.disk, self.access)?;
        let group = Scanner::new(&*file, next.file_bytes, next.seed)
            .group(BLOCK_BYTES as u64, Some(chain))
            .map_err(|error| OpenError::from_io(&next.path, "read", error))?
            .is_some();
        Ok(group)
    }
}
