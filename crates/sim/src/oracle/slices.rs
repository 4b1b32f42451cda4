//! A slice id is durable with its meaning before anybody sees it, never means two things, and grows along a member's chain;
//! and whoever reads a slice gets its records, as they were sent, and no others.

use std::collections::BTreeMap;

use anabranch_core::cursor::{
    Chain, ChainState, Cursor, CursorChange, Edit, Pieces, Position, SliceId, SliceOffset,
};
use anabranch_core::group::Coordinator;
use anabranch_wire::batch::BatchHeader;
use bytes::Bytes;

use super::commits::Key;
use super::rested::Rested;
use super::truth::Records;
use super::{Verdict, Violation};
use crate::message::{Got, Tp};
use crate::record::{self, RecordId};

/// The sentence about ids.
pub const SENTENCE: &str =
    "a slice id is durable with its meaning before it is seen, and ids grow along a member's chain";
/// The sentence about records.
pub const RECORDS: &str = "a slice is read as it is: its records, as they were sent, and no others";
/// The sentence about positions.
pub const POSITION: &str =
    "a member is told the oldest of its slices that is not done, and an acknowledged commit in a slice stays";

/// Who reads.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// For messages.
    pub who: &'a str,
    /// Its group.
    pub group: &'a str,
    /// Its member id.
    pub member: &'a str,
    /// Whether it is a member, durably. Who was expelled, and does not know it, may be taken for another one of its client id
    /// and address, which then reads for nothing.
    pub is_member: bool,
}

/// What an answer held.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Offset, as the client sees it, and number of each record at or after the position that was asked for.
    pub records: Vec<(i64, RecordId)>,
    /// Where the last batch ends, as its header says.
    pub end: i64,
}

#[derive(Clone, Debug)]
struct Meaning {
    group: String,
    member: String,
    pieces: Pieces,
    /// Of the chain.
    name: SliceId,
    /// The step at which it was durable.
    step: u64,
}

/// All ids there ever were.
#[derive(Debug, Default)]
pub struct Slices {
    meanings: BTreeMap<(Tp, SliceId), Meaning>,
    /// Those that are retired.
    pub rested: Rested,
    /// The newest id of each chain.
    newest: BTreeMap<(Tp, SliceId), SliceId>,
    /// Where each chain was from which step on.
    positions: BTreeMap<(Tp, SliceId), Vec<(u64, Position)>>,
}

fn wrong(sentence: &'static str, detail: String) -> Verdict {
    Err(Violation::new(sentence, detail))
}

impl Slices {
    /// Edits of a divided cursor are durable.
    pub fn edited(&mut self, key: &Key, edits: &[CursorChange], step: u64) -> Verdict {
        for change in edits {
            match &change.edit {
                Edit::Grant { member, slice, .. } => {
                    self.name(key, slice.id, (member, &slice.pieces, slice.id), step)?;
                    self.moved((key.1, slice.id), step, (slice.id, slice.start));
                }
                Edit::Advance {
                    chain, front, pos, ..
                } => self.moved((key.1, *chain), step, (*front, *pos)),
                Edit::Succeed { chain, slice, .. } => {
                    let Some(first) = self.meanings.get(&(key.1, *chain)) else {
                        return wrong(SENTENCE, format!("{key:?}: chain {} is not known", chain.get()));
                    };
                    let member = first.member.clone();
                    let newest = self.newest.get(&(key.1, *chain)).copied();
                    if newest.is_some_and(|newest| slice.id <= newest) {
                        let detail = format!("{key:?}: slice {} comes after {newest:?}", slice.id.get());
                        return wrong(SENTENCE, detail);
                    }
                    self.name(key, slice.id, (&member, &slice.pieces, *chain), step)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn moved(&mut self, chain: (Tp, SliceId), step: u64, (slice, offset): (SliceId, i64)) {
        let to = Position { slice, offset };
        self.positions.entry(chain).or_default().push((step, to));
    }

    fn name(
        &mut self,
        key: &Key,
        id: SliceId,
        (member, pieces, name): (&str, &Pieces, SliceId),
        step: u64,
    ) -> Verdict {
        let meaning = Meaning {
            group: key.0.clone(),
            member: member.to_owned(),
            pieces: pieces.clone(),
            name,
            step,
        };
        self.newest.insert((key.1, name), id);
        match self.meanings.insert((key.1, id), meaning) {
            None => Ok(()),
            Some(_) if self.rested.takes(key.1, id) => {
                self.positions.remove(&(key.1, id));
                Ok(())
            }
            Some(before) => wrong(
                SENTENCE,
                format!("{key:?}: slice {} of {member} was {before:?}", id.get()),
            ),
        }
    }

    /// What an id means to a member. It must mean something, and be its own.
    fn meaning(&self, reader: &Reader<'_>, tp: Tp, id: SliceId) -> Result<&Meaning, Violation> {
        let seen = |what: &str| {
            let detail = format!(
                "{} ({}) sees slice {} of {tp:?}, {what}",
                reader.who,
                reader.member,
                id.get()
            );
            Violation::new(SENTENCE, detail)
        };
        let meaning = self
            .meanings
            .get(&(tp, id))
            .ok_or_else(|| seen("which is not durable"))?;
        if reader.is_member && (meaning.group != reader.group || meaning.member != reader.member) {
            return Err(seen(&format!(
                "which is {}'s of {}",
                meaning.member, meaning.group
            )));
        }
        Ok(meaning)
    }

    /// Whether a record is in a slice.
    pub fn has(&self, tp: Tp, id: SliceId, slot: anabranch_wire::slot::Slot, offset: i64) -> bool {
        let meaning = self.meanings.get(&(tp, id));
        let from = meaning.and_then(|meaning| meaning.pieces.from_of(slot));
        from.is_some_and(|from| from <= offset)
    }

    /// A member has got these batches for a position in a slice.
    pub fn read(&self, reader: &Reader<'_>, got: &Got, records: &Records) -> Result<Found, Violation> {
        let mut found = Found::default();
        let asked = SliceOffset::from_wire(got.asked);
        let of = |what: String| {
            let detail = format!("{} reads {:?} from {asked:?}: {what}", reader.who, got.tp);
            Violation::new(RECORDS, detail)
        };
        if got.batches.is_empty() && got.high_watermark != got.asked {
            return Err(of(format!("nothing, and the end at {}", got.high_watermark)));
        }
        let mut slice = None;
        for bytes in split(&got.batches) {
            let header = BatchHeader::parse(&bytes).map_err(|error| of(error.to_string()))?;
            if header.crc != crc32c::crc32c(&bytes[21..]) {
                return Err(of("a batch with a wrong checksum".to_owned()));
            }
            let base = SliceOffset::from_wire(header.base_offset);
            let id = base.and_then(SliceOffset::slice);
            if header.leader_epoch != -1 || id.is_none() || slice.is_some_and(|slice| slice != id) {
                return Err(of(format!(
                    "a batch at {base:?} with epoch {}",
                    header.leader_epoch
                )));
            }
            slice = Some(id);
            found.end = header.next_offset();
            let read = record::read(&bytes).map_err(of)?;
            found
                .records
                .extend(read.into_iter().filter(|(offset, _)| *offset >= got.asked));
        }
        let Some(id) = slice.flatten() else {
            return Ok(found);
        };
        if asked.and_then(SliceOffset::slice).is_some_and(|asked| id < asked) {
            let detail = format!("{} asks at {asked:?} and is given slice {}", reader.who, id.get());
            return Err(Violation::new(SENTENCE, detail));
        }
        let meaning = self.meaning(reader, got.tp, id)?;
        let mut last = i64::MIN;
        for (wire, number) in &found.records {
            let at = SliceOffset::from_wire(*wire).map_or(-1, SliceOffset::offset);
            let Some((there, slot)) = records.at(at) else {
                return Err(of(format!("a record at {at}, where nothing is durable")));
            };
            let is_its = meaning.pieces.from_of(slot).is_some_and(|from| from <= at);
            if there != *number || at <= last || !is_its {
                return Err(of(format!(
                    "record {number} at {at}, of slot {}, behind {last}; the log has record {there}, the slice {:?}",
                    slot.get(),
                    meaning.pieces
                )));
            }
            last = at;
        }
        Ok(found)
    }

    /// A member was told to begin here; it asked at step `began`. `groups` is what is durable.
    pub fn told(
        &self,
        reader: &Reader<'_>,
        tp: Tp,
        at: SliceOffset,
        began: u64,
        groups: &Coordinator,
    ) -> Verdict {
        let fact = match at.slice() {
            None => self.held_since(reader, tp, began, groups),
            Some(id) => {
                let name = self.meaning(reader, tp, id)?.name;
                let told = Position {
                    slice: id,
                    offset: at.offset(),
                };
                self.beside((tp, name), told, began, groups, reader.group)
            }
        };
        let Some(fact) = fact else { return Ok(()) };
        let detail = format!(
            "{} ({}) is told {at:?} of {tp:?}, and {fact}",
            reader.who, reader.member
        );
        wrong(POSITION, detail)
    }

    /// A plain offset is no answer for somebody who held a slice before it asked, and holds it still.
    fn held_since(&self, reader: &Reader<'_>, tp: Tp, began: u64, groups: &Coordinator) -> Option<String> {
        let Cursor::Divided(divided) = cursor(groups, reader.group, tp)? else {
            return None;
        };
        let (name, chain) = divided.chain_of(reader.member)?;
        let since = self.meanings.get(&(tp, name))?.step;
        let is_so = chain.state() == ChainState::Held && since < began;
        is_so.then(|| format!("holds chain {}", name.get()))
    }

    /// A position that a chain neither had when it was asked for nor has passed since. It may have gone on since, but never
    /// less far than what is told.
    fn beside(
        &self,
        (tp, name): (Tp, SliceId),
        told: Position,
        began: u64,
        groups: &Coordinator,
        group: &str,
    ) -> Option<String> {
        let history = self.positions.get(&(tp, name)).map_or(&[][..], Vec::as_slice);
        let then = history.iter().rev().find(|(step, _)| *step < began);
        if let Some((step, then)) = then.filter(|(_, then)| told < *then) {
            return Some(format!("was at {then:?} since step {step}"));
        }
        let (_, chain) = chain_with(groups, group, tp, told.slice)?;
        let now = chain.position();
        (told > now).then(|| format!("is at {now:?}"))
    }

    /// A commit of a member is acknowledged. `groups` is what is durable.
    pub fn committed(&self, key: &Key, member: &str, at: SliceOffset, groups: &Coordinator) -> Verdict {
        let Some(id) = at.slice() else { return Ok(()) };
        let Some((_, chain)) = chain_with(groups, &key.0, key.1, id) else {
            return Ok(());
        };
        if chain.member() != member || chain.state() != ChainState::Held {
            return Ok(());
        }
        let slice = chain.slices().iter().find(|slice| slice.id == id);
        let position = chain.position();
        let to = slice.and_then(|slice| slice.to).unwrap_or(i64::MAX);
        if (position.slice, position.offset) >= (id, at.offset().min(to)) {
            return Ok(());
        }
        let detail = format!("{key:?}: {member} committed {at:?}, and is at {position:?}");
        wrong(POSITION, detail)
    }

    /// The step from which on a slice was there.
    pub fn since(&self, tp: Tp, id: SliceId) -> Option<u64> {
        self.meanings.get(&(tp, id)).map(|meaning| meaning.step)
    }

    /// The chain that an id is in, by its first id; for messages.
    pub fn chain_of(&self, tp: Tp, id: SliceId) -> Option<SliceId> {
        self.meanings.get(&(tp, id)).map(|meaning| meaning.name)
    }
}

/// The batches of an answer, one by one. Header and records of a batch need not lie in one piece.
fn split(pieces: &[Bytes]) -> Vec<Bytes> {
    let mut batches = Vec::new();
    let mut rest = Bytes::from(pieces.concat());
    while !rest.is_empty() {
        let size = BatchHeader::parse(&rest).map_or(rest.len(), |header| header.size());
        batches.push(rest.split_to(size.min(rest.len())));
    }
    batches
}

fn cursor<'a>(groups: &'a Coordinator, group: &str, tp: Tp) -> Option<&'a Cursor> {
    groups.groups().get(group)?.cursors.get(&tp)
}

fn chain_with<'a>(groups: &'a Coordinator, group: &str, tp: Tp, id: SliceId) -> Option<(SliceId, &'a Chain)> {
    match cursor(groups, group, tp)? {
        Cursor::Divided(divided) => divided.chain_with(id),
        Cursor::Plain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::truth::Truth;
    use anabranch_core::cursor::Slice;
    use anabranch_core::slots::SlotSet;
    use anabranch_wire::ErrorCode;
    use anabranch_wire::batch::patch;

    fn slice(id: u32, slots: &SlotSet) -> Slice {
        Slice {
            id: SliceId::new(id).unwrap(),
            start: 0,
            pieces: Pieces::of(0, slots),
            to: None,
            ceiling: None,
        }
    }

    fn granted(id: u32, slots: &SlotSet) -> CursorChange {
        CursorChange {
            version: 1,
            edit: Edit::Grant {
                member: "m".to_owned(),
                epoch: 1,
                slice: slice(id, slots),
            },
        }
    }

    fn answer(id: u32, batch: &Bytes) -> Got {
        let at = |offset| SliceOffset::new(SliceId::new(id), offset).unwrap().to_wire();
        let mut bytes = batch.to_vec();
        patch(&mut bytes, at(0), -1);
        Got {
            tp: Tp::default(),
            asked: at(0),
            error: ErrorCode::None,
            start: at(0),
            high_watermark: at(1),
            batches: vec![bytes.into()],
        }
    }

    #[test]
    fn an_id_means_one_thing_for_ever_and_grows_along_a_chain() {
        let (key, mut oracle) = (("g".to_owned(), Tp::default()), Slices::default());
        let all = SlotSet::all();
        oracle.edited(&key, &[granted(5, &all)], 1).unwrap();
        assert!(oracle.edited(&key, &[granted(5, &all)], 2).is_err(), "twice");
        let next = |id| CursorChange {
            version: 2,
            edit: Edit::Succeed {
                chain: SliceId::new(5).unwrap(),
                to: 1,
                slice: slice(id, &all),
                transit: Pieces::new(),
            },
        };
        oracle.edited(&key, &[next(7)], 3).unwrap();
        assert!(oracle.edited(&key, &[next(6)], 4).is_err(), "smaller");
    }

    #[test]
    fn a_position_that_was_passed_before_it_was_asked_for_is_not_told() {
        let (key, mut oracle) = (("g".to_owned(), Tp::default()), Slices::default());
        oracle.edited(&key, &[granted(5, &SlotSet::all())], 10).unwrap();
        let id = SliceId::new(5).unwrap();
        let advanced = |pos| CursorChange {
            version: 2,
            edit: Edit::Advance {
                chain: id,
                front: id,
                pos,
                closed: Vec::new(),
                opened: SlotSet::empty(),
                note: None,
            },
        };
        oracle.edited(&key, &[advanced(4)], 20).unwrap();
        oracle.edited(&key, &[advanced(9)], 30).unwrap();
        let groups = Coordinator::default();
        let reader = Reader {
            who: "a member",
            group: "g",
            member: "m",
            is_member: true,
        };
        let told = |at, began| {
            let at = SliceOffset::new(Some(id), at).unwrap();
            oracle.told(&reader, key.1, at, began, &groups)
        };
        told(0, 20).unwrap();
        assert!(told(3, 25).is_err());
        told(4, 30).unwrap();
        assert!(told(4, 31).is_err());
        told(9, 31).unwrap();
    }

    #[test]
    fn what_is_read_must_be_the_slices_own_and_its_id_durable() {
        let (key, mut oracle, mut truth) = (
            ("g".to_owned(), Tp::default()),
            Slices::default(),
            Truth::default(),
        );
        truth.add(key.1, 0, &[1]);
        let records = truth.of(key.1).unwrap();
        let own: SlotSet = std::iter::once(records.at(0).unwrap().1).collect();
        oracle.edited(&key, &[granted(5, &own)], 1).unwrap();
        let others = SlotSet::all().difference(&own);
        oracle.edited(&key, &[granted(6, &others)], 1).unwrap();
        let reader = |member| Reader {
            who: "a member",
            group: "g",
            member,
            is_member: true,
        };
        let batch = record::batch(&[1], 0, None);
        let found = oracle.read(&reader("m"), &answer(5, &batch), records).unwrap();
        assert_eq!(found.records.len(), 1);
        let read = |member, id, batch| oracle.read(&reader(member), &answer(id, batch), records);
        assert!(read("m", 6, &batch).is_err(), "a record of another slice");
        assert!(read("m", 7, &batch).is_err(), "not durable");
        assert!(read("n", 5, &batch).is_err(), "somebody else's");
        let expelled = Reader {
            is_member: false,
            ..reader("n")
        };
        oracle.read(&expelled, &answer(5, &batch), records).unwrap();
        assert!(oracle.read(&expelled, &answer(7, &batch), records).is_err());
        assert!(
            read("m", 5, &record::batch(&[4], 0, None)).is_err(),
            "another record"
        );
    }
}
