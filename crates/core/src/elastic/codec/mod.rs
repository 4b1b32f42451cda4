//! The bytes of decisions and refusals, in the building blocks of [`crate::codec`]; `docs/format/state.md` has the table.
//!
//! Strings come once, in a list at the front: member ids and topic names are repeated in inputs, moves and loads. Every
//! value has one form. What is read is checked: the bytes may come from a damaged file.

mod change;
mod inputs;
mod parts;

use std::collections::{BTreeMap, BTreeSet};

use super::decision::{Decision, Refusal};
use crate::codec::{CodecError, Decoder, Encoder};

/// Format version of decisions and refusals.
const VERSION: u64 = 1;

/// What one read gives.
type Read<T> = Result<T, CodecError>;

/// Writes an entry; strings go into the table.
#[derive(Default)]
struct Writer {
    e: Encoder,
    names: Vec<String>,
    known: BTreeMap<String, u64>,
}

impl Writer {
    fn name(&mut self, name: &str) {
        let next = self.names.len() as u64;
        let number = *self.known.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.names.push(name.to_owned());
        }
        self.e.uvar(number);
    }

    /// A list; the values are written with the writer itself, so that their strings go into the same table.
    fn list<T>(&mut self, values: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.e.len(values.len());
        for value in values {
            put(self, value);
        }
    }

    fn opt<T>(&mut self, value: Option<&T>, put: impl FnOnce(&mut Self, &T)) {
        self.e.bool(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    /// Version, table and body together.
    fn finish(self) -> Vec<u8> {
        let mut all = Encoder::new();
        all.uvar(VERSION);
        all.list(&self.names, |e, name| e.str(name));
        let mut bytes = all.into_bytes();
        bytes.extend_from_slice(&self.e.into_bytes());
        bytes
    }
}

/// Reads an entry; strings come out of the table.
struct Reader<'a> {
    d: Decoder<'a>,
    names: Vec<&'a str>,
    /// How many of them have been met: they are numbered in the order in which they come.
    met: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Read<Self> {
        let mut d = Decoder::new(bytes);
        let found = d.uvar()?;
        if found != VERSION {
            return Err(match found {
                0 => d.invalid("a format version of 0"),
                _ => CodecError::Newer {
                    what: "a decision",
                    found,
                    known: VERSION,
                },
            });
        }
        let names = d.list(Decoder::str)?;
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        if distinct.len() < names.len() {
            return Err(d.invalid("a string comes twice in the table"));
        }
        Ok(Self { d, names, met: 0 })
    }

    fn name(&mut self) -> Read<String> {
        let number = usize::try_from(self.d.uvar()?).unwrap_or(usize::MAX);
        if number > self.met {
            return Err(self.d.invalid("a string is named out of turn"));
        }
        self.met = self.met.max(number + 1);
        match self.names.get(number) {
            Some(name) => Ok((*name).to_owned()),
            None => Err(self.d.invalid("a string is not in the table")),
        }
    }

    fn list<T>(&mut self, mut get: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = self.d.uvar()?;
        if count > self.d.remaining() as u64 {
            return Err(self.d.invalid("a count exceeds the bytes that are left"));
        }
        let mut values = Vec::with_capacity(count.min(64) as usize);
        for _ in 0..count {
            values.push(get(self)?);
        }
        Ok(values)
    }

    fn opt<T>(&mut self, get: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.d.bool()? {
            get(self).map(Some)
        } else {
            Ok(None)
        }
    }

    fn u32(&mut self) -> Read<u32> {
        self.d.uvar32()
    }

    fn u16(&mut self) -> Read<u16> {
        let value = self.d.uvar()?;
        u16::try_from(value).map_err(|_| self.d.invalid("a number exceeds 16 bits"))
    }

    fn unknown(&self, what: &'static str, tag: u8) -> CodecError {
        CodecError::UnknownTag {
            at: self.d.position(),
            tag: u64::from(tag),
            what,
        }
    }

    fn finish(&self) -> Read<()> {
        if self.met < self.names.len() {
            return Err(self.d.invalid("a string of the table is not used"));
        }
        self.d.finish()
    }
}

/// The words that have numbers, for tests.
#[cfg(test)]
pub(super) fn words() -> (
    &'static [super::Kind],
    &'static [super::Why],
    &'static [super::How],
) {
    (&change::KINDS, &change::WHYS, &change::HOWS)
}

/// Every reason for a refusal, with nothing in it, for tests.
#[cfg(test)]
pub(super) fn why_nots() -> Vec<super::WhyNot> {
    let of_number = |number: u8| {
        let mut w = Writer::default();
        w.name("");
        let bytes = [w.finish(), vec![number], vec![0; 16]].concat();
        let mut r = Reader::new(&bytes).ok()?;
        r.name().ok()?;
        change::get_why_not(&mut r).ok()
    };
    (0..=u8::MAX).map_while(of_number).collect()
}

impl Decision {
    /// The decision as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.e.ivar(self.at_ms);
        change::put(&mut w, &self.change);
        inputs::put(&mut w, &self.inputs);
        w.finish()
    }

    /// Reads a decision back.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut r = Reader::new(bytes)?;
        let decision = Self {
            at_ms: r.d.ivar()?,
            change: change::get(&mut r)?,
            inputs: inputs::get(&mut r)?,
        };
        r.finish()?;
        Ok(decision)
    }
}

impl Refusal {
    /// The refusal as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.e.ivar(self.at_ms);
        change::put_why_not(&mut w, &self.why_not);
        w.opt(self.about.as_ref(), |w, (of, owner)| {
            parts::put_partition(w, of);
            w.name(owner);
        });
        inputs::put(&mut w, &self.inputs);
        w.finish()
    }

    /// Reads a refusal back.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut r = Reader::new(bytes)?;
        let refusal = Self {
            at_ms: r.d.ivar()?,
            why_not: change::get_why_not(&mut r)?,
            about: r.opt(|r| Ok((parts::get_partition(r)?, r.name()?)))?,
            inputs: inputs::get(&mut r)?,
        };
        r.finish()?;
        Ok(refusal)
    }
}
