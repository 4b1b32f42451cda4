//! What members and outsiders tell the oracles of groups whose members may share partitions.

use anabranch_core::cursor::SliceOffset;

use super::commits::Key;
use super::{Oracles, Violation, log_offset, outside, progress, slice_of, slices, truth, watch, work};
use crate::message::{Got, Tp};

impl Oracles {
    /// What is known of a partition.
    fn facts<'a>(&'a self, records: &'a truth::Records, tp: Tp) -> progress::Facts<'a> {
        progress::Facts {
            records,
            delivery: &self.delivery,
            start: watch::start_of(self.replay.node(), &self.log_start, tp),
        }
    }

    /// A member takes a record in hand: that is its delivery.
    pub fn begins(&mut self, worker: &work::Worker<'_>, tp: Tp, offset: i64) {
        let key = (worker.group.to_owned(), tp);
        let at = log_offset(offset);
        let slot = self.replay.truth().of(tp).and_then(|records| records.at(at));
        self.story.add(self.step, Some(&key), || {
            let slot = slot.map_or(-1, |(_, slot)| i32::from(slot.get()));
            format!(
                "client {} ({}) begins the record at {at}, of slot {slot}",
                worker.client, worker.member
            )
        });
        let since = slice_of(offset).and_then(|id| self.slices.since(tp, id));
        let mut works = std::mem::take(&mut self.work);
        let replay = &self.replay;
        let is_member = |member: &str| replay.is_member(worker.group, member);
        let records = replay.truth().of(tp);
        let verdict = match records.and_then(|records| Some((records, records.at(at)?.1))) {
            Some((records, slot)) => works.begins(
                worker,
                &key,
                (at, slot, since),
                is_member,
                &self.facts(records, tp),
            ),
            None => Err(Violation::new(
                work::ORDER,
                format!("{key:?}: a record at {at}, where nothing is durable"),
            )),
        };
        let counts = is_member(worker.member);
        self.work = works;
        self.judge(verdict.map_err(|violation| violation.about(&key)));
        if counts {
            self.delivery.processed(&key, at, at + 1);
        }
    }

    /// A member has got an answer to its fetch. Returns the records at or behind the position that it asked for.
    pub fn read_as_member(&mut self, reader: &slices::Reader<'_>, got: &Got) -> slices::Found {
        let key = (reader.group.to_owned(), got.tp);
        if slice_of(got.asked).is_none() {
            let records = self.read(reader.who, got.tp, got.asked, got.high_watermark, &got.batches);
            let end = records.last().map_or(got.asked, |(offset, _)| offset + 1);
            return slices::Found { records, end };
        }
        let none = truth::Records::default();
        let records = self.replay.truth().of(got.tp).unwrap_or(&none);
        match self.slices.read(reader, got, records) {
            Ok(found) => {
                if let Some((last, _)) = found.records.last() {
                    self.story.add(self.step, Some(&key), || {
                        let (asked, last) =
                            (SliceOffset::from_wire(got.asked), SliceOffset::from_wire(*last));
                        let count = found.records.len();
                        format!(
                            "{} asks at {asked:?} and gets {count} records up to {last:?}",
                            reader.who
                        )
                    });
                }
                for (offset, id) in &found.records {
                    let at = log_offset(*offset);
                    let verdict = self.agreement.observe(got.tp, at, *id, reader.who);
                    self.judge(verdict);
                }
                found
            }
            Err(violation) => {
                self.judge(Err(violation.about(&key)));
                slices::Found::default()
            }
        }
    }

    /// Somebody asked at step `began` for a group's committed offset: this member of it, or an outsider.
    pub fn found(&mut self, key: &Key, member: Option<&str>, offset: i64, began: u64) {
        let at = SliceOffset::from_wire(offset);
        self.story.add(self.step, Some(key), || {
            format!("{} is told to begin at {at:?}", member.unwrap_or("an outsider"))
        });
        let is_slice = at.is_some_and(|at| at.slice().is_some());
        let was_divided = self.progress.was_divided(key);
        let mut verdict = Ok(());
        if let (Some(member), Some(at), true) = (member, at, was_divided || is_slice) {
            let reader = slices::Reader {
                who: "a member",
                group: &key.0,
                member,
                is_member: self.replay.is_member(&key.0, member),
            };
            verdict = self.slices.told(&reader, key.1, at, began, self.replay.groups());
        }
        if !is_slice && !was_divided {
            verdict = self.commits.read(key, offset, began);
        } else if !is_slice {
            let records = self.replay.truth().of(key.1);
            let facts = records.map(|records| self.facts(records, key.1));
            let read = self
                .outside
                .read(key, offset, began, &self.progress, facts.as_ref());
            verdict = verdict.and(read);
        } else if member.is_none() {
            let detail = format!("{key:?}: an outsider is told {at:?}");
            verdict = Err(Violation::new(outside::SENTENCE, detail));
        }
        self.judge(verdict.map_err(|violation| violation.about(key)));
    }

    /// A commit of a member is acknowledged.
    pub fn committed_by(&mut self, key: &Key, member: &str, offset: i64) {
        if let Some(at) = SliceOffset::from_wire(offset) {
            self.story
                .add(self.step, Some(key), || format!("{member} has committed {at:?}"));
            let verdict = self.slices.committed(key, member, at, self.replay.groups());
            self.judge(verdict.map_err(|violation| violation.about(key)));
        }
    }
}
