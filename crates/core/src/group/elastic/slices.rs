//! Requests of members that read slices: fetch, commit, and the offset fetch that tells them where to begin.

use anabranch_wire::ErrorCode;

use super::{Key, Promises};
use crate::cursor::{
    ChainState, Committed, Cursor, Found, IdUse, Note, Plain, ReadPlan, Recall, Record, Refusal, Reserved,
    SliceId, SliceOffset,
};
use crate::group::coordinator::{Coordinator, Effects, Step};
use crate::group::topics::Topics;
use crate::ids::{Now, Offset};

/// What a fetch of a slice offset is to do.
#[derive(Clone, Debug)]
pub enum SliceFetch {
    /// The offset is out of range: its slice id never named anything here, or did so too long ago.
    Unknown,
    /// No data, and no error: wait as for a log without new records. The high watermark is the offset asked for.
    Silent,
    /// Read this, for this group.
    Read {
        /// The group whose cursor it is.
        group: String,
        /// Where, and which records.
        plan: Box<ReadPlan>,
        /// Most records in one answer: about what the member does in a second, since what it was handed cannot move to
        /// another.
        records_max: usize,
    },
}

/// Records in one answer to a member whose rate is not known yet.
const RECORDS_UNMEASURED: usize = 1_000;

/// Records that one answer may have however slow the member is.
const RECORDS_MIN: usize = 100;

/// The member has no part of the partition yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::group) struct NotYet;

/// A range that must be read again after a restart.
#[derive(Clone, Debug)]
pub struct SliceRecall {
    /// The group.
    pub group: String,
    /// The topic and partition.
    pub key: Key,
    /// What to read.
    pub recall: Recall,
}

impl Coordinator {
    /// Where a fetch of a slice offset reads. Changes nothing.
    pub fn locate_slice(&self, key: Key, at: SliceOffset) -> SliceFetch {
        let (Some(id), Some(pool)) = (at.slice(), self.slice_ids.get(&key)) else {
            return SliceFetch::Unknown;
        };
        let group = match pool.get(id) {
            None => return SliceFetch::Unknown,
            Some(IdUse::Retired { .. }) => return SliceFetch::Silent,
            Some(IdUse::Taken { group }) => group,
        };
        let Some(cursor) = self.cursor(group, key) else {
            return SliceFetch::Silent;
        };
        match self.with_live(group, key, |live| cursor.locate(live, id, at.offset())) {
            Found::Unknown | Found::Silent => SliceFetch::Silent,
            Found::Read(plan) => SliceFetch::Read {
                records_max: self.records_max(group, cursor, plan.chain),
                group: group.clone(),
                plan: Box::new(plan),
            },
        }
    }

    fn records_max(&self, group: &str, cursor: &Cursor, chain: SliceId) -> usize {
        let Cursor::Divided(divided) = cursor else {
            return RECORDS_UNMEASURED;
        };
        let member = divided.chain(chain).map_or("", |chain| chain.member());
        let activities = self.elastic.group(group).map(|group| &group.activities);
        let rate = activities.and_then(|activities| activities.get(member)?.rate);
        rate.map_or(RECORDS_UNMEASURED, |rate| {
            usize::try_from(rate).unwrap_or(usize::MAX)
        })
        .max(RECORDS_MIN)
    }

    /// Reserves what was read for a fetch, before it leaves; see [`crate::cursor::Step::reserve`].
    pub fn reserve_slice(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        key: Key,
        plan: &ReadPlan,
        (records, end): (&[Record], Offset),
    ) -> (Result<Reserved, Refusal>, Effects) {
        let mut step = Step::new(now, topics);
        let reserved = self.edit_cursor(&mut step, group, key, |edit| edit.reserve(plan, records, end));
        // Nobody reads other records than before because of a raised mark.
        step.effects.moved.clear();
        if let Some(Ok(reserved)) = &reserved {
            let handed = records.partition_point(|record| record.offset < reserved.end);
            self.was_handed(&step, group, key, plan.chain, handed);
        }
        (reserved.unwrap_or(Err(Refusal::Stale)), step.effects)
    }

    /// A search found nothing of a slice up to `to`; the next need not repeat it.
    pub fn note_searched(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        key: Key,
        plan: &ReadPlan,
        to: Offset,
    ) {
        let mut step = Step::new(now, topics);
        self.edit_cursor(&mut step, group, key, |edit| edit.memo(plan, to));
        debug_assert!(step.effects.changes.is_empty(), "what was searched is volatile");
    }

    /// After a restart: the ranges that must be read again before anything moves.
    pub fn recalls_wanted(&self) -> Vec<SliceRecall> {
        let mut wanted = Vec::new();
        for (group, key, division) in self.elastic.divisions() {
            if let Some(Cursor::Divided(divided)) = self.cursor(group, key) {
                let recalls = divided.recall_wanted(&division.live);
                wanted.extend(recalls.into_iter().map(|recall| SliceRecall {
                    group: group.to_owned(),
                    key,
                    recall,
                }));
            }
        }
        wanted
    }

    /// The records of such a range, all of them, in order.
    pub fn recall_slice(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        wanted: &SliceRecall,
        records: &[Record],
    ) -> Effects {
        let mut step = Step::new(now, topics);
        let (group, key) = (wanted.group.as_str(), wanted.key);
        // A cursor that has changed meanwhile has no use for it.
        self.edit_cursor(&mut step, group, key, |edit| {
            edit.recall(&wanted.recall, records).ok()
        });
        self.keep_promises(&mut step, group, key);
        step.effects
    }

    /// A commit to a partition whose cursor is divided, or with an offset that carries a slice id. `None` if it is a
    /// plain commit to a plain cursor.
    ///
    /// A member's commit always succeeds, whatever it says: an error would make clients rejoin or stop. Others may commit
    /// only while nobody is a member, and only a plain offset, which ends the division.
    pub(in crate::group) fn commit_slice(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        (member_id, epoch): (&str, i32),
        key: Key,
        plain: &Plain,
    ) -> Option<ErrorCode> {
        let Some(at) = SliceOffset::from_wire(plain.offset) else {
            // "None" and everything else that is negative.
            let is_divided = matches!(self.cursor(group, key), Some(Cursor::Divided(_)));
            return (is_divided && !member_id.is_empty()).then_some(ErrorCode::None);
        };
        let is_divided = matches!(self.cursor(group, key), Some(Cursor::Divided(_)));
        if member_id.is_empty() || !self.has_members(group) {
            return match (at.slice(), is_divided) {
                (Some(_), _) => Some(ErrorCode::InvalidRequest),
                (None, false) => None,
                (None, true) => {
                    self.reset_divided(step, group, key, plain.clone());
                    Some(ErrorCode::None)
                }
            };
        }
        match at.slice() {
            None => is_divided.then_some(ErrorCode::None),
            Some(id) => {
                let note = Note {
                    metadata: plain.metadata.clone(),
                    commit_ms: plain.commit_ms,
                    expires_ms: plain.expires_ms,
                };
                let done = self.edit_cursor(step, group, key, |edit| {
                    edit.commit(member_id, epoch, id, at.offset(), note)
                });
                if done == Some(Committed::Moved) {
                    self.activity(step, group, member_id).committed(step.now.mono_ms);
                    self.keep_promises(step, group, key);
                }
                Some(ErrorCode::None)
            }
        }
    }

    fn was_handed(&mut self, step: &Step<'_>, group: &str, key: Key, chain: SliceId, records: usize) {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return;
        };
        if let Some(member) = divided.chain(chain).map(|chain| chain.member().to_owned()) {
            self.activity(step, group, &member)
                .was_handed(step.now.mono_ms, records);
        }
    }

    /// Ends a division at an offset that somebody named.
    pub(in crate::group) fn reset_divided(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        key: Key,
        plain: Plain,
    ) {
        let text = format!(
            "the division of partition {} ends: its offset was set to {}",
            key.1, plain.offset
        );
        self.edit_cursor(step, group, key, |edit| edit.collapse(plain));
        self.elastic.edit_promises(group, key, Promises::clear);
        step.notice(group, text);
    }

    /// The offset at which a member that holds a partition begins to read its part. `None` if the partition is not
    /// divided.
    pub(in crate::group) fn slice_position(
        &self,
        group: &str,
        key: Key,
        member_id: &str,
    ) -> Option<Result<i64, NotYet>> {
        let Some(cursor @ Cursor::Divided(divided)) = self.cursor(group, key) else {
            return None;
        };
        let is_mine = divided
            .chain_of(member_id)
            .is_some_and(|(_, chain)| chain.state() == ChainState::Held);
        if !is_mine {
            return Some(Err(NotYet));
        }
        let position = self.with_live(group, key, |live| cursor.offset_fetch(live, member_id))?;
        let at = SliceOffset::new(Some(position.slice), position.offset)?;
        Some(Ok(at.to_wire()))
    }
}
