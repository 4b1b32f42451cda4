//! Requests of members that read slices: fetch, commit, and the offset fetch that tells them where to begin.

use std::collections::BTreeMap;

use anabranch_wire::ErrorCode;

use super::activity::Activity;
use super::flow::{Flow, Pace};
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
    Read(Box<SliceRead>),
    /// Nothing now: the member has as much as it may have until it commits. It waits as for a log without new records.
    Full(Box<SliceRead>),
}

/// What is to be read for a fetch of a slice offset.
#[derive(Clone, Debug)]
pub struct SliceRead {
    /// The group whose cursor it is.
    pub group: String,
    /// Where, and which records.
    pub plan: ReadPlan,
    /// Most records in one answer: what the member may be handed besides what it has, since that cannot move to another.
    pub records_max: usize,
}

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
            Found::Read(plan) => {
                let records_max = self.room(group, key, cursor, &plan);
                let read = Box::new(SliceRead {
                    group: group.to_owned(),
                    plan,
                    records_max: usize::try_from(records_max).unwrap_or(usize::MAX),
                });
                match records_max {
                    0 => SliceFetch::Full(read),
                    _ => SliceFetch::Read(read),
                }
            }
        }
    }

    /// How many records a fetch may be answered with. What the member had already it gets again, however much it is: the
    /// answer was lost, or the client went back.
    fn room(&self, group: &str, key: Key, cursor: &Cursor, plan: &ReadPlan) -> u64 {
        let Cursor::Divided(divided) = cursor else {
            return 0;
        };
        let (outstanding, is_repeated) = self.with_live(group, key, |live| {
            (
                divided.outstanding(live, plan.chain),
                divided.is_repeated(live, plan),
            )
        });
        let member = divided.chain(plan.chain).map_or("", |chain| chain.member());
        let counted = if is_repeated { 0 } else { outstanding };
        match self
            .elastic
            .division(group, key)
            .and_then(|division| division.flows.get(member))
        {
            Some(flow) => flow.room(counted),
            None => Flow::new(0, self.expected_pace(group, key, member)).room(counted),
        }
    }

    /// The pace of a member that has committed nothing of the partition yet: its own before the division, else that of the
    /// others, who do the same work.
    fn expected_pace(&self, group: &str, key: Key, member: &str) -> Pace {
        let Some(memory) = self.elastic.group(group) else {
            return Pace::default();
        };
        let known = |activity: &Activity| Pace {
            rate: activity.rate.map(|rate| rate.saturating_mul(1_000)),
            interval_ms: activity.commits.interval_ms,
        };
        let own = memory.activities.get(member).map(known).unwrap_or_default();
        let flows = self
            .elastic
            .division(group, key)
            .into_iter()
            .flat_map(|division| &division.flows);
        let here: Vec<Pace> = flows.map(|(_, flow)| flow.pace()).collect();
        let others: Vec<Pace> = memory.activities.values().map(known).collect();
        let of = |pace: fn(&Pace) -> Option<u64>| {
            let means = [mean(&here, pace), mean(&others, pace)];
            pace(&own).or_else(|| means.into_iter().flatten().next())
        };
        Pace {
            rate: of(|pace| pace.rate),
            interval_ms: of(|pace| pace.interval_ms),
        }
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
        let before = self.outstanding(group, key, plan.chain);
        let reserved = self.edit_cursor(&mut step, group, key, |edit| edit.reserve(plan, records, end));
        // Nobody reads other records than before because of a raised mark.
        step.effects.moved.clear();
        if let Some(Ok(reserved)) = &reserved {
            let handed = records.partition_point(|record| record.offset < reserved.end);
            self.was_handed(&step, group, key, plan.chain, (handed, before));
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
                let before = self.outstanding_of(group, key, member_id);
                let done = self.edit_cursor(step, group, key, |edit| {
                    edit.commit(member_id, epoch, id, at.offset(), note)
                });
                if done == Some(Committed::Moved) {
                    let after = self.outstanding_of(group, key, member_id);
                    let records = before.saturating_sub(after);
                    self.activity(step, group, member_id)
                        .committed(step.now.mono_ms, records);
                    self.flow(step, group, key, member_id)
                        .committed(step.now.mono_ms, before, after);
                    self.keep_promises(step, group, key);
                }
                Some(ErrorCode::None)
            }
        }
    }

    fn was_handed(
        &mut self,
        step: &Step<'_>,
        group: &str,
        key: Key,
        chain: SliceId,
        (records, before): (usize, u64),
    ) {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return;
        };
        if let Some(member) = divided.chain(chain).map(|chain| chain.member().to_owned()) {
            self.activity(step, group, &member)
                .was_handed(step.now.mono_ms, records);
            self.flow(step, group, key, &member)
                .handed(step.now.mono_ms, before);
        }
    }

    /// How many records of a chain were handed out and are not committed.
    fn outstanding(&self, group: &str, key: Key, chain: SliceId) -> u64 {
        match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => {
                self.with_live(group, key, |live| divided.outstanding(live, chain))
            }
            Some(Cursor::Plain(_)) | None => 0,
        }
    }

    fn outstanding_of(&self, group: &str, key: Key, member: &str) -> u64 {
        let chain = match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => divided.chain_of(member).map(|(name, _)| name),
            Some(Cursor::Plain(_)) | None => None,
        };
        chain.map_or(0, |chain| self.outstanding(group, key, chain))
    }

    fn flow(&mut self, step: &Step<'_>, group: &str, key: Key, member: &str) -> &mut Flow {
        let division = self.elastic.division(group, key);
        let is_new = division.is_none_or(|division| !division.flows.contains_key(member));
        let pace = match is_new {
            true => self.expected_pace(group, key, member),
            false => Pace::default(),
        };
        let flows = &mut self.elastic.division_mut(group, key).flows;
        flows
            .entry(member.to_owned())
            .or_insert_with(|| Flow::new(step.now.mono_ms, pace))
    }

    /// Looks at the members that have taken all they might of divided partitions: whoever may have more now is woken. Forgets
    /// those who have no part any more.
    pub(super) fn look_at_flows(&mut self, step: &mut Step<'_>, group: &str) {
        let keys: Vec<Key> = self.elastic.divided_keys(group).collect();
        for key in keys {
            let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
                continue;
            };
            let chains = divided.chains();
            let held = chains.filter(|(_, chain)| chain.state() == ChainState::Held);
            let outstanding: BTreeMap<String, u64> = self.with_live(group, key, |live| {
                held.map(|(name, chain)| (chain.member().to_owned(), divided.outstanding(live, name)))
                    .collect()
            });
            // After a restart a member may have taken all it might before anything is seen of it.
            for (member, _) in outstanding.iter().filter(|(_, records)| **records > 0) {
                self.flow(step, group, key, member);
            }
            let division = self.elastic.division_mut(group, key);
            division
                .flows
                .retain(|member, _| outstanding.contains_key(member));
            division
                .returned_ms
                .retain(|member, _| outstanding.contains_key(member));
            for (member, flow) in &mut division.flows {
                let outstanding = outstanding.get(member).copied().unwrap_or(0);
                if flow.look(step.now.mono_ms, outstanding) {
                    step.effects.moved.insert(key);
                }
            }
        }
    }

    /// A member committed an offset of a partition that it reads whole.
    pub(in crate::group) fn note_plain_commit(
        &mut self,
        step: &Step<'_>,
        group: &str,
        key: Key,
        (member, offset): (&str, Offset),
    ) {
        let before = match self.cursor(group, key) {
            Some(Cursor::Plain(plain)) => Some(plain.offset),
            None => None,
            Some(Cursor::Divided(_)) => return,
        };
        let Some(activity) = self.elastic.known_activity(group, member) else {
            return;
        };
        match before.map(|before| offset.saturating_sub(before)) {
            None => activity.began(step.now.mono_ms),
            Some(records @ 1..) => activity.committed(step.now.mono_ms, records.unsigned_abs()),
            Some(_) => {}
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

fn mean(paces: &[Pace], of: fn(&Pace) -> Option<u64>) -> Option<u64> {
    let known: Vec<u64> = paces.iter().filter_map(of).collect();
    let sum = known.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
    sum.checked_div(known.len() as u64)
}
