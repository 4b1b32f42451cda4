//! What the members of the sharing group took, did and committed, and the rules that this must keep.

use super::writer::Line;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of each record, by offset.
#[derive(Clone, Copy, Default)]
struct Fate {
    line: Option<Line>,
    done: bool,
    committed: bool,
}

#[derive(Default)]
struct State {
    /// One past the highest offset that the writer was told.
    end: usize,
    fates: Vec<Fate>,
    /// Below it all is done.
    done_to: usize,
    /// The next number of each key.
    next: BTreeMap<u64, u64>,
    /// Who is at work on a key.
    at_work: BTreeMap<u64, u64>,
    slices: BTreeSet<i64>,
    /// Members that have worked on shares since the last restart.
    sharers: BTreeSet<u64>,
    divided_cycles: u32,
    repeats: u64,
    /// Moments at which shares move, or are about to.
    events: u64,
    fault: Option<String>,
}

/// The shared account. Rules are checked as things happen; the first fault is kept.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<State>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer was told that a record is stored at this offset.
    pub(crate) fn written(&self, offset: i64) {
        let mut state = self.lock();
        let end = usize::try_from(offset).map_or(0, |offset| offset + 1);
        state.end = state.end.max(end);
    }

    /// How many records are written.
    pub(crate) fn end(&self) -> u64 {
        self.lock().end as u64
    }

    /// Records that are written and not done.
    pub(crate) fn backlog(&self) -> usize {
        let state = self.lock();
        state.end.saturating_sub(state.done_to)
    }

    /// A member begins to work on a record; `slice` is 0 where it reads the whole partition.
    pub(crate) fn taken(&self, member: u64, slice: i64, offset: i64, line: Line) {
        let mut state = self.lock();
        if slice != 0 {
            state.events += u64::from(state.slices.insert(slice));
            if state.sharers.insert(member) && state.sharers.len() == 2 {
                state.divided_cycles += 1;
            }
        }
        if let Some(other) = state
            .at_work
            .insert(line.key, member)
            .filter(|other| *other != member)
        {
            state.blame(format!(
                "members {other} and {member} are at key {} at the same time",
                line.key
            ));
        }
        let next = state.next.entry(line.key).or_default();
        if line.number > *next {
            let expected = *next;
            state.blame(format!(
                "{line:?} at offset {offset} is taken where number {expected} was to come"
            ));
            return;
        }
        let is_first = line.number == *next;
        *next += u64::from(is_first);
        state.repeats += u64::from(!is_first);
        let fate = state.fate(offset);
        let (was_committed, before) = (fate.committed, fate.line.replace(line));
        if before.is_some_and(|before| before != line) {
            state.blame(format!("offset {offset} had {before:?} and has {line:?}"));
        }
        if was_committed {
            state.blame(format!(
                "{line:?} at offset {offset} comes again, and was committed"
            ));
        }
    }

    /// It has done it.
    pub(crate) fn done(&self, member: u64, offset: i64, line: Line) {
        let mut state = self.lock();
        if state.at_work.get(&line.key) == Some(&member) {
            state.at_work.remove(&line.key);
        }
        state.fate(offset).done = true;
        while state.fates.get(state.done_to).is_some_and(|fate| fate.done) {
            state.done_to += 1;
        }
    }

    /// The commit of these records was acknowledged.
    pub(crate) fn committed(&self, offsets: &[i64]) {
        let mut state = self.lock();
        for offset in offsets {
            state.fate(*offset).committed = true;
        }
    }

    /// A member comes or leaves.
    pub(crate) fn moved(&self) {
        self.lock().events += 1;
    }

    /// How many moments there were at which shares move.
    pub(crate) fn events(&self) -> u64 {
        self.lock().events
    }

    /// The broker was started again.
    pub(crate) fn restarted(&self) {
        self.lock().sharers.clear();
    }

    /// Whether two members have worked on shares since then.
    pub(crate) fn is_divided(&self) -> bool {
        self.lock().sharers.len() > 1
    }

    pub(crate) fn is_all_done(&self) -> bool {
        self.backlog() == 0
    }

    /// Outsiders saw this committed offset, at the latest now.
    pub(crate) fn check_committed(&self, committed: i64) -> Result<()> {
        let done_to = self.lock().done_to;
        if usize::try_from(committed).is_ok_and(|committed| committed > done_to) {
            bail!("{committed} is committed, and the record at offset {done_to} is not done");
        }
        Ok(())
    }

    /// What members saw at each offset.
    pub(crate) fn seen(&self) -> Vec<Option<Line>> {
        self.lock().fates.iter().map(|fate| fate.line).collect()
    }

    /// The first fault, if there was one.
    pub(crate) fn verdict(&self) -> Result<()> {
        match &self.lock().fault {
            Some(fault) => bail!("the shared partition: {fault}"),
            None => Ok(()),
        }
    }

    /// A line of counts.
    pub(crate) fn report(&self) -> String {
        let state = self.lock();
        format!(
            "shared: {} of {} records done, {} taken again, {} slices, divided in {} cycles",
            state.done_to,
            state.end,
            state.repeats,
            state.slices.len(),
            state.divided_cycles
        )
    }
}

impl State {
    fn blame(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    /// # Panics
    /// If the offset is negative: no record has such a one.
    fn fate(&mut self, offset: i64) -> &mut Fate {
        let at = usize::try_from(offset).expect("offsets of records are not negative");
        if self.fates.len() <= at {
            self.fates.resize(at + 1, Fate::default());
        }
        &mut self.fates[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of two keys in turn.
    fn line(offset: i64) -> Line {
        let at = u64::try_from(offset).unwrap();
        Line {
            key: at % 2,
            number: at / 2,
        }
    }

    fn written(records: i64) -> Ledger {
        let ledger = Ledger::default();
        ledger.written(records - 1);
        ledger
    }

    fn work(ledger: &Ledger, member: u64, offset: i64) {
        ledger.taken(member, 7, offset, line(offset));
        ledger.done(member, offset, line(offset));
    }

    fn fault(ledger: &Ledger) -> String {
        ledger.verdict().unwrap_err().to_string()
    }

    #[test]
    fn each_record_once_in_order_is_no_fault() {
        let ledger = written(4);
        for offset in [1, 0, 2, 3] {
            work(&ledger, 1, offset);
            ledger.committed(&[offset]);
        }
        assert!(ledger.is_all_done() && ledger.verdict().is_ok());
        assert!(ledger.check_committed(4).is_ok());
    }

    #[test]
    fn what_was_not_committed_may_come_again_and_what_was_may_not() {
        let ledger = written(4);
        work(&ledger, 1, 0);
        work(&ledger, 2, 0);
        ledger.verdict().unwrap();
        ledger.committed(&[0]);
        work(&ledger, 1, 0);
        assert!(fault(&ledger).contains("comes again"));
    }

    #[test]
    fn a_gap_in_a_key_is_a_fault() {
        let ledger = written(4);
        work(&ledger, 1, 2);
        assert!(fault(&ledger).contains("number 0 was to come"));
    }

    #[test]
    fn two_members_at_one_key_are_a_fault_and_at_two_keys_are_not() {
        let ledger = written(4);
        ledger.taken(1, 7, 0, line(0));
        ledger.taken(2, 8, 1, line(1));
        ledger.verdict().unwrap();
        assert!(ledger.is_divided());
        ledger.taken(2, 8, 2, line(2));
        assert!(fault(&ledger).contains("at the same time"));
    }

    #[test]
    fn nothing_is_committed_behind_what_is_not_done() {
        let ledger = written(4);
        work(&ledger, 1, 0);
        work(&ledger, 1, 2);
        assert!(ledger.check_committed(1).is_ok());
        assert!(ledger.check_committed(2).is_err(), "offset 1 is not done");
    }

    #[test]
    fn another_record_at_an_offset_is_a_fault() {
        let ledger = written(4);
        work(&ledger, 1, 0);
        ledger.taken(1, 7, 0, line(1));
        assert!(fault(&ledger).contains("had"));
    }
}
