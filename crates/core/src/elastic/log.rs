//! The decision log of one group: the newest decisions and refusals, within a bound of number and bytes.
//!
//! A refusal that is repeated is counted, not kept again: an idle member is told no every second, for days. It is the same
//! while reason, partition, owner and the members without work are the same, whatever the numbers are; the entry then has
//! the newest ones.

use std::collections::{BTreeSet, VecDeque};

use super::decision::{Decision, Refusal};
use super::inputs::{DivideInputs, Inputs};
use crate::codec::{CodecError, Decoder, Encoder};

/// Format version of a log in a snapshot; the first did not say what became of decisions.
const VERSION: u64 = 2;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Something was decided.
    Decided(Decision),
    /// Something was refused, once or repeatedly.
    Refused {
        /// The newest refusal.
        refusal: Refusal,
        /// When the first of them was made, wall clock, milliseconds since 1970 UTC.
        first_ms: i64,
        /// How many there were.
        times: u64,
    },
}

/// How a decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// All who were to get slots have them.
    Done,
    /// Some slots did not become free in time, and went back to where they came from.
    Undone,
    /// Some slots went elsewhere: a member left, the broker was started anew, or something else was decided about them.
    Overtaken,
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// How it ended.
    pub ended: Ended,
    /// How long that took from the decision on, milliseconds.
    pub handover_ms: u64,
}

impl Ended {
    /// All ends.
    pub const ALL: [Self; 3] = [Self::Done, Self::Undone, Self::Overtaken];

    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Undone => "undone",
            Self::Overtaken => "overtaken",
        }
    }
}

impl Settled {
    pub(crate) fn put(self, e: &mut Encoder) {
        e.u8(match self.ended {
            Ended::Done => 0,
            Ended::Undone => 1,
            Ended::Overtaken => 2,
        });
        e.uvar(self.handover_ms);
    }

    pub(crate) fn get(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        let ended = match d.u8()? {
            0 => Ended::Done,
            1 => Ended::Undone,
            2 => Ended::Overtaken,
            tag => {
                return Err(CodecError::UnknownTag {
                    at: d.position(),
                    tag: u64::from(tag),
                    what: "the end of a decision",
                });
            }
        };
        Ok(Self {
            ended,
            handover_ms: d.uvar()?,
        })
    }
}

/// The newest entries of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionLog {
    /// Oldest first.
    entries: VecDeque<Kept>,
    next: u64,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

/// An entry with its number and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    number: u64,
    size: usize,
    entry: Entry,
    settled: Option<Settled>,
}

/// What [`DecisionLog::refuse`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// There is a new entry of this number.
    New(u64),
    /// The entry of this number was counted up.
    Repeated(u64),
}

impl DecisionLog {
    /// An empty log that keeps at most so many entries and bytes, but always the newest.
    pub fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            next: 0,
            bytes: 0,
            entries_max,
            bytes_max,
        }
    }

    /// Adds a decision; its number grows by one with each entry.
    pub fn decide(&mut self, decision: Decision) -> u64 {
        let size = decision.encode().len();
        self.push(size, Entry::Decided(decision))
    }

    /// Adds a refusal, or counts it if it is among those since the last decision. Only the first of a kind need be durable.
    pub fn refuse(&mut self, refusal: Refusal) -> Noted {
        let mut recent = self
            .entries
            .iter_mut()
            .rev()
            .take_while(|kept| matches!(kept.entry, Entry::Refused { .. }));
        let repeated = recent.find(|kept| match &kept.entry {
            Entry::Refused { refusal: old, .. } => is_same(old, &refusal),
            Entry::Decided(_) => false,
        });
        let size = refusal.encode().len();
        if let Some(kept) = repeated
            && let Entry::Refused {
                refusal: old, times, ..
            } = &mut kept.entry
        {
            *old = refusal;
            *times = times.saturating_add(1);
            self.bytes = self.bytes - kept.size + size;
            kept.size = size;
            let number = kept.number;
            self.forget();
            return Noted::Repeated(number);
        }
        let first_ms = refusal.at_ms;
        let entry = Entry::Refused {
            refusal,
            first_ms,
            times: 1,
        };
        Noted::New(self.push(size, entry))
    }

    /// The entry that [`DecisionLog::refuse`] would count up for this refusal.
    pub fn repeated(&self, refusal: &Refusal) -> Option<u64> {
        let recent = self.entries.iter().rev();
        let mut recent = recent.take_while(|kept| matches!(kept.entry, Entry::Refused { .. }));
        let repeated = recent.find(|kept| match &kept.entry {
            Entry::Refused { refusal: old, .. } => is_same(old, refusal),
            Entry::Decided(_) => false,
        });
        repeated.map(|kept| kept.number)
    }

    /// The entries, oldest first, with their numbers.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|kept| (kept.number, &kept.entry))
    }

    /// The entry of this number, unless it is forgotten.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        self.kept(number).map(|kept| &kept.entry)
    }

    /// Notes what became of a decision; nothing if it is forgotten already.
    pub fn settle(&mut self, number: u64, settled: Settled) {
        let at = self.entries.partition_point(|kept| kept.number < number);
        if let Some(kept) = self.entries.get_mut(at).filter(|kept| kept.number == number) {
            kept.settled = Some(settled);
        }
    }

    /// What became of a decision; none: it is on its way, or is none.
    pub fn settled(&self, number: u64) -> Option<Settled> {
        self.kept(number)?.settled
    }

    fn kept(&self, number: u64) -> Option<&Kept> {
        let at = self.entries.partition_point(|kept| kept.number < number);
        self.entries.get(at).filter(|kept| kept.number == number)
    }

    /// The number that the next entry will have.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, size: usize, entry: Entry) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += size;
        self.entries.push_back(Kept {
            number,
            size,
            entry,
            settled: None,
        });
        self.forget();
        number
    }

    fn forget(&mut self) {
        while self.entries.len() > 1 && (self.entries.len() > self.entries_max || self.bytes > self.bytes_max)
        {
            if let Some(kept) = self.entries.pop_front() {
                self.bytes -= kept.size;
            }
        }
    }

    /// Writes the log into a snapshot.
    pub fn put(&self, e: &mut Encoder) {
        e.uvar(VERSION);
        e.uvar(self.next);
        e.list(&self.entries, |e, kept| {
            e.uvar(kept.number);
            match &kept.entry {
                Entry::Decided(decision) => {
                    e.u8(1);
                    e.bytes(&decision.encode());
                    e.opt(kept.settled.as_ref(), |e, settled| settled.put(e));
                }
                Entry::Refused {
                    refusal,
                    first_ms,
                    times,
                } => {
                    e.u8(2);
                    e.ivar(*first_ms);
                    e.uvar(*times);
                    e.bytes(&refusal.encode());
                }
            }
        });
    }

    /// Reads a log back; the bounds are those of now, not those it was written with.
    pub fn get(d: &mut Decoder<'_>, entries_max: usize, bytes_max: usize) -> Result<Self, CodecError> {
        let found = d.uvar()?;
        match found {
            1..=VERSION => {}
            0 => return Err(d.invalid("a format version of 0")),
            _ => {
                return Err(CodecError::Newer {
                    what: "a decision log",
                    found,
                    known: VERSION,
                });
            }
        }
        let next = d.uvar()?;
        let mut log = Self::new(entries_max, bytes_max);
        let entries = d.list(|d| Ok::<_, CodecError>((d.uvar()?, get_entry(d, found)?)))?;
        for (number, (size, entry, settled)) in entries {
            if number < log.next || number >= next {
                return Err(d.invalid("the entries of a decision log are not in order"));
            }
            log.next = number;
            log.push(size, entry);
            if let Some(settled) = settled {
                log.settle(number, settled);
            }
        }
        log.next = next;
        Ok(log)
    }
}

fn get_entry(d: &mut Decoder<'_>, version: u64) -> Result<(usize, Entry, Option<Settled>), CodecError> {
    match d.u8()? {
        1 => {
            let bytes = d.bytes()?;
            let entry = Entry::Decided(Decision::decode(bytes)?);
            let settled = match version {
                1 => None,
                _ => d.opt(Settled::get)?,
            };
            Ok((bytes.len(), entry, settled))
        }
        2 => {
            let (first_ms, times) = (d.ivar()?, d.uvar()?);
            let bytes = d.bytes()?;
            let refusal = Refusal::decode(bytes)?;
            let entry = Entry::Refused {
                refusal,
                first_ms,
                times,
            };
            Ok((bytes.len(), entry, None))
        }
        tag => Err(CodecError::UnknownTag {
            at: d.position(),
            tag: u64::from(tag),
            what: "an entry of a decision log",
        }),
    }
}

/// Whether it says the same, but for numbers and times.
fn is_same(old: &Refusal, new: &Refusal) -> bool {
    old.why_not.code() == new.why_not.code()
        && old.about == new.about
        && same_askers(&old.inputs, &new.inputs)
}

fn same_askers(old: &Inputs, new: &Inputs) -> bool {
    match (old, new) {
        (Inputs::Divide(old), Inputs::Divide(new)) => askers(old) == askers(new),
        (Inputs::Grant(old), Inputs::Grant(new)) => old.of == new.of && old.slots == new.slots,
        _ => false,
    }
}

fn askers(inputs: &DivideInputs) -> BTreeSet<&str> {
    inputs.needy.iter().map(|needy| needy.id.as_str()).collect()
}
