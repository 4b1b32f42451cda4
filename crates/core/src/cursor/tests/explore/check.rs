//! What must hold in every world, and from each to the next.

use super::client::Role;
use super::model::{NAMES, Scene, Setting, slot};
use crate::cursor::{ChainState, Fault, Record};
use crate::ids::Offset;

impl Scene {
    /// For each slot the first record that somebody will still be handed, or the end of the log.
    pub(super) fn next_records(&self, setting: &Setting) -> Vec<Offset> {
        let resume = self.divided().resume(&self.live);
        let next = |number: u16| {
            let slot = slot(number);
            let from = resume.from_of(slot).unwrap_or(0);
            let mut later = setting.records(from, setting.end());
            let found = later.find(|record| record.slot == slot);
            found.map_or(setting.end(), |record| record.offset)
        };
        (0..setting.slots).map(next).collect()
    }

    /// Whether everything is processed and committed.
    pub(super) fn is_at_goal(&self, setting: &Setting, next: &[Offset]) -> bool {
        let all = (1 << setting.log.len()) - 1;
        (self.processed | self.excused) == all && next.iter().all(|next| *next == setting.end())
    }

    /// Invariants 1 to 5, and that chains do not grow without need.
    pub(super) fn check(&self, setting: &Setting, next: &[Offset]) -> Result<(), String> {
        self.divided().check()?;
        self.nothing_is_lost(setting, next)?;
        self.nobody_works_beside_another(setting)?;
        self.outsiders_see_the_lowest(next)?;
        self.no_slice_is_empty(setting)
    }

    /// Invariant 2: what counts as done was processed, or is in work.
    fn nothing_is_lost(&self, setting: &Setting, next: &[Offset]) -> Result<(), String> {
        let mut known = self.processed | self.excused;
        for client in self.clients.iter().filter(|client| client.role == Role::Member) {
            for place in &client.work {
                known |= 1 << place.offset;
            }
        }
        let is_lost = |(offset, slot): &(Offset, &u16)| {
            *offset < next[usize::from(**slot)] && known & (1 << offset) == 0
        };
        match (0..).zip(setting.log).find(is_lost) {
            Some((offset, _)) => Err(format!("I2: {offset} counts as done and nobody processed it")),
            None => Ok(()),
        }
    }

    /// Invariant 3: no two members have records of one slot.
    fn nobody_works_beside_another(&self, setting: &Setting) -> Result<(), String> {
        let mut owner = [None; 3];
        for (at, client) in self.clients.iter().enumerate() {
            if client.role != Role::Member {
                continue;
            }
            for place in client.buffer.iter().chain(&client.work) {
                let slot = usize::from(setting.log[place.offset as usize]);
                let other = *owner[slot].get_or_insert(at);
                if other != at {
                    let (one, two) = (NAMES[other], NAMES[at]);
                    return Err(format!("I3: {one} and {two} both have records of slot {slot}"));
                }
            }
        }
        Ok(())
    }

    /// Invariant 5.
    fn outsiders_see_the_lowest(&self, next: &[Offset]) -> Result<(), String> {
        let first = next.iter().copied().min().unwrap_or(0);
        let outside = self.cursor.outside_view(Some(&self.live)).offset;
        if outside > first {
            return Err(format!("I5: outsiders see {outside}, {first} is not done"));
        }
        Ok(())
    }

    /// Part F.4: of a held chain only the tail may have no record left. What was skipped is not known. Other faults
    /// than the one against this rule leave empty slices as well; they are to be found by what they break first of all.
    fn no_slice_is_empty(&self, setting: &Setting) -> Result<(), String> {
        let is_other = |fault| fault != Fault::EmptySlicesStay;
        if setting.budget.skips > 0 || setting.fault.is_some_and(is_other) {
            return Ok(());
        }
        let held = self
            .divided()
            .chains()
            .filter(|(name, chain)| chain.state() == ChainState::Held && !self.live.is_blind(*name));
        for (_, chain) in held {
            let position = chain.position();
            for slice in chain.slices() {
                let Some(to) = slice.to else { continue };
                let from = if slice.id == position.slice {
                    position.offset
                } else {
                    slice.start
                };
                let is_its = |record: Record| {
                    let first = slice.pieces.from_of(record.slot);
                    first.is_some_and(|first| first <= record.offset)
                };
                if !setting.records(from, to).any(is_its) {
                    let (id, member) = (slice.id.get(), chain.member());
                    return Err(format!("F4: slice {id} of {member} has no record left and stays"));
                }
            }
        }
        Ok(())
    }

    /// Members process the records of a slot in the order of the log.
    pub(super) fn finish(&mut self, setting: &Setting, at: usize) -> Result<(), String> {
        let work = std::mem::take(&mut self.clients[at].work);
        if self.clients[at].role != Role::Member {
            return Ok(());
        }
        for place in work {
            self.process(setting, at, place.offset)?;
        }
        Ok(())
    }

    fn process(&mut self, setting: &Setting, at: usize, offset: Offset) -> Result<(), String> {
        let (slot, name) = (setting.log[offset as usize], NAMES[at]);
        let known = self.processed | self.excused;
        let mut before = (0..offset).zip(setting.log).filter(|(_, of)| **of == slot);
        if let Some((before, _)) = before.find(|(before, _)| known & (1 << before) == 0) {
            return Err(format!("I3: {name} processes {offset} before {before}"));
        }
        if setting.is_quiet() && self.processed & (1 << offset) != 0 {
            return Err(format!("I7: {name} processes {offset} once more, for no reason"));
        }
        self.processed |= 1 << offset;
        Ok(())
    }

    /// Invariant 7: positions do not go back.
    pub(super) fn check_move(before: &[Offset], after: &[Offset]) -> Result<(), String> {
        let mut moves = before.iter().zip(after).enumerate();
        match moves.find(|(_, (before, after))| after < before) {
            Some((slot, (before, after))) => {
                Err(format!("I7: slot {slot} goes back from {before} to {after}"))
            }
            None => Ok(()),
        }
    }
}
