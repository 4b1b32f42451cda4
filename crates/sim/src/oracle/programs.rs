//! What programs do with what they are given, and may do to the oracles: whoever takes a record, or does not want it, has had
//! it.

use anabranch_core::cursor::{ChainState, Cursor};
use anabranch_wire::slot::Slot;

use super::work::Worker;
use super::{Oracles, log_offset, slice_of, watch};
use crate::message::Tp;

impl Oracles {
    /// A program takes a record, among others: what becomes of it is the program's affair from now on.
    pub fn handed(&mut self, worker: &Worker<'_>, tp: Tp, offset: i64) {
        if self.replay.is_member(worker.group, worker.member) {
            let at = log_offset(offset);
            self.delivery
                .processed(&(worker.group.to_owned(), tp), at, at + 1);
        }
    }

    /// A program does not want what it would read from `from` on, below `upto`.
    pub fn passed_over(&mut self, worker: &Worker<'_>, tp: Tp, from: i64, upto: i64) {
        let Some(records) = self.replay.truth().of(tp) else {
            return;
        };
        let slice = slice_of(from);
        let is_read =
            |(at, slot): &(i64, Slot)| slice.is_none_or(|slice| self.slices.has(tp, slice, *slot, *at));
        let passed: Vec<i64> = records
            .range(log_offset(from), log_offset(upto))
            .filter(is_read)
            .map(|(at, _)| at)
            .collect();
        passed.into_iter().for_each(|at| self.handed(worker, tp, at));
    }

    /// Whether a member that was told this position may find that it is none any more: its records were deleted, or the
    /// cursor has changed its form, or the slice is not the member's now.
    pub fn is_begun_anew(&self, group: &str, tp: Tp, member: &str, told: i64) -> bool {
        if log_offset(told) < watch::start_of(self.replay.node(), &self.log_start, tp) {
            return true;
        }
        let found = self.replay.groups().groups().get(group);
        let cursor = found.and_then(|group| group.cursors.get(&tp));
        match (slice_of(told), cursor) {
            (Some(id), Some(Cursor::Divided(divided))) => !divided
                .chain_with(id)
                .is_some_and(|(_, chain)| chain.member() == member && chain.state() == ChainState::Held),
            (None, Some(Cursor::Divided(_))) | (Some(_), _) => true,
            (None, _) => false,
        }
    }
}
