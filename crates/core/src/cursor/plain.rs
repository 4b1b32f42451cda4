//! The ways back to one offset.

use anabranch_wire::slot::SLOTS;

use super::change::Edit;
use super::divided::ChainState;
use super::fault::Fault;
use super::live::{Live, Record};
use super::pieces::Pieces;
use super::step::{Refusal, Step};
use super::{Divided, Plain};
use crate::ids::Offset;
use crate::sieve::Sieve;

/// Finds out whether one plain offset means the same for all slots. Feed it the records of the plain log in
/// `[from, to)`, in order; [`PlainProbe::finish`] gives the offset, if there is one.
#[derive(Clone, Debug)]
pub struct PlainProbe {
    version: u64,
    range: (Offset, Offset),
    resume: Sieve,
    /// The first record that is not done.
    first: Option<Offset>,
    /// Whether a record behind it is done: it would be processed again.
    mixed: bool,
    highest: bool,
    lowest: bool,
}

impl PlainProbe {
    /// The range to read: from the lowest to the highest resume point. Empty if all slots resume at one offset.
    pub fn range(&self) -> (Offset, Offset) {
        self.range
    }

    /// Whether the answer needs no record: all slots resume at one offset, or the rule is broken on purpose.
    pub fn needs_no_record(&self) -> bool {
        self.range.0 == self.range.1 || self.highest || self.lowest
    }

    /// The next record of the log.
    pub fn feed(&mut self, record: Record) {
        let done = record.offset < self.resume.from_of(record.slot);
        match self.first {
            None if !done => self.first = Some(record.offset),
            Some(_) if done => self.mixed = true,
            None | Some(_) => {}
        }
    }

    /// The offset, if it is exact: every record below is done, every one from it on is not.
    pub fn finish(&self) -> Option<Offset> {
        if self.highest || self.lowest {
            return Some(if self.highest { self.range.1 } else { self.range.0 });
        }
        (!self.mixed).then_some(self.first.unwrap_or(self.range.1))
    }
}

impl Divided {
    /// Begins the question whether the cursor can be plain again.
    pub fn plain_probe(&self, live: &Live) -> PlainProbe {
        let resume: Pieces = self.resume(live);
        debug_assert_eq!(resume.slots().len(), SLOTS);
        let range = (
            resume.lowest().unwrap_or(self.kept.offset),
            resume.highest().unwrap_or(self.kept.offset),
        );
        PlainProbe {
            version: self.version,
            range,
            resume: resume.sieve(None),
            first: None,
            mixed: false,
            highest: live.is_broken(Fault::PlainAtHighest),
            lowest: live.is_broken(Fault::PlainAtLowest),
        }
    }
}

impl Step<'_> {
    /// Makes the cursor plain at an exact offset. Only inside a grant by assignment, when no chain is held: `probe`
    /// was begun on the cursor as it is, and fed.
    ///
    /// Returns the offset.
    pub fn back_to_plain(&mut self, probe: &PlainProbe) -> Result<Offset, Refusal> {
        let divided = self.divided()?;
        if divided
            .chains()
            .any(|(_, chain)| chain.state() == ChainState::Held)
        {
            return Err(Refusal::StillHeld);
        }
        if divided.version != probe.version {
            return Err(Refusal::Stale);
        }
        let offset = probe.finish().ok_or(Refusal::NotExact)?;
        let plain = Plain {
            offset,
            leader_epoch: -1,
            metadata: String::new(),
            ..divided.kept.clone()
        };
        self.make(Edit::Plain { plain });
        Ok(offset)
    }

    /// Makes the cursor plain wherever it is: a named reset (an operator's, or to the lowest resume point because a
    /// member joined that cannot read slices). Records may be processed again, or skipped if `plain` lies ahead.
    /// All chains end, and their ids with them.
    pub fn collapse(&mut self, plain: Plain) {
        self.make(Edit::Plain { plain });
    }
}
