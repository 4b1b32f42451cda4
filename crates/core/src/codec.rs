//! The binary encoding of everything the core makes durable: commands, group events and snapshots.
//!
//! Values are written with [`Encoder`] and read with [`Decoder`]; there is no other format inside the core. The
//! building blocks are few, so that `docs/format/state.md` can describe them in one table:
//!
//! | name | bytes |
//! |---|---|
//! | `u8` | one byte |
//! | `uvar` | unsigned LEB128, 1 to 10 bytes, up to 64 bits, shortest form only |
//! | `ivar` | zigzag of a signed 64-bit number, then `uvar` |
//! | `str`, `bytes` | `uvar` length in bytes, then the bytes; a `str` is UTF-8 |
//! | `id` | 16 raw bytes |
//! | `opt x` | `u8` 0, or `u8` 1 and then x |
//! | `list x` | `uvar` count, then that many x |
//!
//! Decoding trusts nothing: a length or a count is checked against the bytes that are left before anything is
//! reserved, so that a damaged file costs an error and no memory.

use std::collections::BTreeMap;
use thiserror::Error;

/// Why a durable value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    /// The bytes end inside a value.
    #[error("the entry ends at byte {at}, inside {what}")]
    Short {
        /// Position in bytes from the start of the entry.
        at: usize,
        /// The kind of value that was being read.
        what: &'static str,
    },
    /// A value is there, but it is not a valid one.
    #[error("byte {at}: {what}")]
    Invalid {
        /// Position in bytes from the start of the entry.
        at: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Bytes remain after the last value.
    #[error("{left} bytes are left after the last value of the entry")]
    Trailing {
        /// How many bytes were not read.
        left: usize,
    },
    /// The entry was written by a newer version of the program.
    #[error(
        "{what} has format version {found}, this program reads up to {known}: start a newer version of it"
    )]
    Newer {
        /// The kind of entry.
        what: &'static str,
        /// The version in the entry.
        found: u64,
        /// The highest version that this program reads.
        known: u64,
    },
    /// A tag names something this program does not know, inside a format version that it does know.
    #[error("byte {at}: {tag} is not a kind of {what}")]
    UnknownTag {
        /// Position in bytes from the start of the entry.
        at: usize,
        /// The tag that was found.
        tag: u64,
        /// What the tag was to name.
        what: &'static str,
    },
}

/// Writes values into a growing byte vector. Writing cannot fail.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// An empty encoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A boolean, as the bytes 0 and 1.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// An unsigned number in as few bytes as it needs.
    pub fn uvar(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// A signed number; small magnitudes take few bytes.
    pub fn ivar(&mut self, value: i64) {
        self.uvar(((value << 1) ^ (value >> 63)) as u64);
    }

    /// A length or a count.
    pub fn len(&mut self, value: usize) {
        self.uvar(value as u64);
    }

    /// Bytes, preceded by their length.
    pub fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.out.extend_from_slice(value);
    }

    /// A string, preceded by its length in bytes.
    pub fn str(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// A 16-byte id.
    pub fn id(&mut self, value: &[u8; 16]) {
        self.out.extend_from_slice(value);
    }

    /// Bytes as they are, for values whose length is known.
    pub fn raw(&mut self, value: &[u8]) {
        self.out.extend_from_slice(value);
    }

    /// A value that may be missing.
    pub fn opt<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    /// A list: its count, then each of its values.
    pub fn list<I>(&mut self, values: I, mut put: impl FnMut(&mut Self, I::Item))
    where
        I: IntoIterator,
        I::IntoIter: ExactSizeIterator,
    {
        let values = values.into_iter();
        self.len(values.len());
        for value in values {
            put(self, value);
        }
    }

    /// A map of strings, in key order.
    pub fn str_map(&mut self, map: &BTreeMap<String, String>) {
        self.list(map, |e, (key, value)| {
            e.str(key);
            e.str(value);
        });
    }

    /// A nested value behind its length, so that a reader can bound it.
    pub fn section(&mut self, put: impl FnOnce(&mut Self)) {
        let mut inner = Self::new();
        put(&mut inner);
        self.bytes(&inner.out);
    }
}

/// Reads values back, checking every one of them.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read: for error messages.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Fails unless everything has been read.
    pub fn finish(&self) -> Result<(), CodecError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(CodecError::Trailing { left }),
        }
    }

    /// An error about the value that starts at the present position.
    pub fn invalid(&self, what: &'static str) -> CodecError {
        CodecError::Invalid { at: self.at, what }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], CodecError> {
        let short = CodecError::Short {
            at: self.bytes.len(),
            what,
        };
        let end = self.at.checked_add(count).ok_or(short.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(short)?;
        self.at = end;
        Ok(taken)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, CodecError> {
        let taken = self.take(1, "a byte")?;
        taken.first().copied().ok_or(CodecError::Short {
            at: self.at,
            what: "a byte",
        })
    }

    /// A boolean; anything but 0 and 1 is an error.
    pub fn bool(&mut self) -> Result<bool, CodecError> {
        let at = self.at;
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CodecError::Invalid {
                at,
                what: "a flag is neither 0 nor 1",
            }),
        }
    }

    /// An unsigned number in its shortest form.
    pub fn uvar(&mut self) -> Result<u64, CodecError> {
        let at = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                if byte == 0 && shift > 0 {
                    return Err(CodecError::Invalid {
                        at,
                        what: "a number is not in its shortest form",
                    });
                }
                return Ok(value);
            }
        }
        Err(CodecError::Invalid {
            at,
            what: "a number is longer than 64 bits",
        })
    }

    /// A signed number.
    pub fn ivar(&mut self) -> Result<i64, CodecError> {
        let raw = self.uvar()?;
        Ok(((raw >> 1) as i64) ^ -((raw & 1) as i64))
    }

    /// An unsigned number that fits 32 bits.
    pub fn uvar32(&mut self) -> Result<u32, CodecError> {
        let at = self.at;
        u32::try_from(self.uvar()?).map_err(|_| CodecError::Invalid {
            at,
            what: "a number exceeds 32 bits",
        })
    }

    /// A signed number that fits 32 bits.
    pub fn ivar32(&mut self) -> Result<i32, CodecError> {
        let at = self.at;
        i32::try_from(self.ivar()?).map_err(|_| CodecError::Invalid {
            at,
            what: "a number exceeds 32 bits",
        })
    }

    /// A signed number that fits 16 bits.
    pub fn ivar16(&mut self) -> Result<i16, CodecError> {
        let at = self.at;
        i16::try_from(self.ivar()?).map_err(|_| CodecError::Invalid {
            at,
            what: "a number exceeds 16 bits",
        })
    }

    /// Bytes with their length in front.
    pub fn bytes(&mut self) -> Result<&'a [u8], CodecError> {
        let at = self.at;
        let count = usize::try_from(self.uvar()?).map_err(|_| CodecError::Invalid {
            at,
            what: "a length exceeds the address space",
        })?;
        self.take(count, "a byte string")
    }

    /// A UTF-8 string.
    pub fn str(&mut self) -> Result<&'a str, CodecError> {
        let at = self.at;
        std::str::from_utf8(self.bytes()?).map_err(|_| CodecError::Invalid {
            at,
            what: "a string is not UTF-8",
        })
    }

    /// A UTF-8 string of one's own.
    pub fn string(&mut self) -> Result<String, CodecError> {
        self.str().map(str::to_owned)
    }

    /// A 16-byte id.
    pub fn id(&mut self) -> Result<[u8; 16], CodecError> {
        let mut id = [0; 16];
        id.copy_from_slice(self.take(16, "a 16-byte id")?);
        Ok(id)
    }

    /// So many bytes as they are.
    pub fn raw<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.take(N, "bytes of known length")?);
        Ok(raw)
    }

    /// A value that may be missing.
    pub fn opt<T, E: From<CodecError>>(
        &mut self,
        get: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        if self.bool()? {
            get(self).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A list. The count is checked against the bytes left (every value takes at least one), and the memory grows
    /// with the values really read.
    pub fn list<T, E: From<CodecError>>(
        &mut self,
        mut get: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let at = self.at;
        let count = self.uvar()?;
        if count > self.remaining() as u64 {
            return Err(CodecError::Invalid {
                at,
                what: "a count exceeds the bytes that are left",
            }
            .into());
        }
        let mut values = Vec::with_capacity(count.min(64) as usize);
        for _ in 0..count {
            values.push(get(self)?);
        }
        Ok(values)
    }

    /// A map of strings; keys must ascend, so that equal maps have equal bytes.
    pub fn str_map(&mut self) -> Result<BTreeMap<String, String>, CodecError> {
        let at = self.at;
        let pairs = self.list(|d| Ok::<_, CodecError>((d.string()?, d.string()?)))?;
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(CodecError::Invalid {
                at,
                what: "the keys of a map do not ascend",
            });
        }
        Ok(pairs.into_iter().collect())
    }

    /// A nested value: a decoder over exactly its bytes. The caller calls [`Decoder::finish`] on it.
    pub fn section(&mut self) -> Result<Decoder<'a>, CodecError> {
        Ok(Decoder::new(self.bytes()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_one_form_each() {
        for (value, bytes) in [
            (0u64, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0x80, 1]),
            (300, vec![0xac, 2]),
        ] {
            let mut e = Encoder::new();
            e.uvar(value);
            assert_eq!(e.into_bytes(), bytes);
        }
        assert!(matches!(
            Decoder::new(&[0x80, 0]).uvar(),
            Err(CodecError::Invalid { .. })
        ));
        assert!(matches!(
            Decoder::new(&[0xff; 11]).uvar(),
            Err(CodecError::Invalid { .. })
        ));
        let mut ten = [0xff; 10];
        ten[9] = 1;
        assert_eq!(Decoder::new(&ten).uvar(), Ok(u64::MAX));
        ten[9] = 2;
        assert!(Decoder::new(&ten).uvar().is_err());
    }

    #[test]
    fn counts_and_lengths_are_checked_before_memory_is_taken() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(matches!(
            Decoder::new(&huge).list(Decoder::u8),
            Err(CodecError::Invalid { .. })
        ));
        assert!(matches!(
            Decoder::new(&huge).bytes(),
            Err(CodecError::Short { .. })
        ));
        assert!(matches!(
            Decoder::new(&[5, b'a']).str(),
            Err(CodecError::Short { .. })
        ));
        assert!(matches!(
            Decoder::new(&[2, 0xc3, 0x28]).str(),
            Err(CodecError::Invalid { .. })
        ));
    }

    #[test]
    fn maps_must_ascend() {
        let mut e = Encoder::new();
        e.list([("b", "1"), ("a", "2")], |e, (k, v)| {
            e.str(k);
            e.str(v);
        });
        assert!(Decoder::new(&e.into_bytes()).str_map().is_err());
    }

    proptest! {
        #[test]
        fn values_come_back(u in any::<u64>(), i in any::<i64>(), s in ".{0,40}", list in prop::collection::vec(any::<i64>(), 0..40)) {
            let mut e = Encoder::new();
            e.uvar(u);
            e.ivar(i);
            e.str(&s);
            e.list(&list, |e, v| e.ivar(*v));
            e.opt(Some(i), Encoder::ivar);
            e.opt(None, Encoder::ivar);
            e.section(|e| e.str(&s));
            let bytes = e.into_bytes();
            let mut d = Decoder::new(&bytes);
            prop_assert_eq!(d.uvar().unwrap(), u);
            prop_assert_eq!(d.ivar().unwrap(), i);
            prop_assert_eq!(d.str().unwrap(), &s);
            prop_assert_eq!(d.list(Decoder::ivar).unwrap(), list);
            prop_assert_eq!(d.opt(Decoder::ivar).unwrap(), Some(i));
            prop_assert_eq!(d.opt(Decoder::ivar).unwrap(), None);
            prop_assert_eq!(d.section().unwrap().string().unwrap(), s);
            prop_assert!(d.finish().is_ok());
        }

        #[test]
        fn garbage_is_an_error_or_a_value_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut d = Decoder::new(&bytes);
            let _ = d.list(Decoder::str);
            let _ = d.str_map();
            let _ = d.opt(Decoder::id);
            prop_assert!(d.position() <= bytes.len());
        }
    }
}
