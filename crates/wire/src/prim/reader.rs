//! Reading, with every bound checked.

use bytes::Bytes;

use super::{DecodeError, DecodeErrorKind, Field};

/// Memory that the decoded elements of one message may take (strings and records aside, whose bytes lie in the
/// frame): 32 MiB. Without it, one-byte elements in a frame of 100 MiB would become gigabytes of structs. A fetch for
/// 10,000 partitions takes about 1 MiB.
pub const DECODE_MEMORY_MAX: usize = 32 << 20;

/// Bytes reserved at once for an array, whatever its count says; behind that, the vector grows as elements arrive.
const RESERVE_MAX: usize = 4096;

/// Reads a message from a frame. Bytes and records are slices of the frame, not copies.
///
/// Allocation follows the bytes that are there, never a number that is claimed: counts are compared with the bytes
/// left, and the sum of all elements has a limit ([`DECODE_MEMORY_MAX`]).
#[derive(Clone, Debug)]
pub struct Reader {
    frame: Bytes,
    position: usize,
    /// Where reading stops: the end of the frame, or of the tagged field that is being read.
    end: usize,
    flexible: bool,
    /// `Struct.field`, for errors.
    field: &'static str,
    memory_left: usize,
}

impl Reader {
    /// Reads from the start of `frame`, whose length prefix is already gone.
    pub fn new(frame: Bytes) -> Self {
        let end = frame.len();
        Self {
            frame,
            position: 0,
            end,
            flexible: false,
            field: "frame",
            memory_left: DECODE_MEMORY_MAX,
        }
    }

    /// Bytes that were read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.end - self.position
    }

    /// Whether strings and arrays are compact and structs end with tagged fields.
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Sets the encoding for what follows; a whole message does so from its version.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// Notes what is read next (`Struct.field`), for errors.
    pub fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    /// An error at the current place.
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            field: self.field,
            position: self.position,
            kind,
        }
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Trailing`]
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.error(DecodeErrorKind::Trailing(left))),
        }
    }

    fn advance(&mut self, length: usize) -> Result<usize, DecodeError> {
        let left = self.left();
        if length > left {
            return Err(self.error(DecodeErrorKind::End { needed: length, left }));
        }
        let start = self.position;
        self.position += length;
        Ok(start)
    }

    /// The next `length` bytes, shared with the frame.
    ///
    /// # Errors
    /// [`DecodeErrorKind::End`]
    pub fn bytes(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        let start = self.advance(length)?;
        Ok(self.frame.slice(start..self.position))
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeErrorKind::End`]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.advance(N)?;
        let mut array = [0; N];
        array.copy_from_slice(&self.frame[start..self.position]);
        Ok(array)
    }

    /// The next `length` bytes as text.
    ///
    /// # Errors
    /// [`DecodeErrorKind::End`], [`DecodeErrorKind::Utf8`]
    pub fn text(&mut self, length: usize) -> Result<String, DecodeError> {
        let start = self.advance(length)?;
        match std::str::from_utf8(&self.frame[start..self.position]) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.error(DecodeErrorKind::Utf8)),
        }
    }

    /// An unsigned integer of 1 to 5 bytes, seven bits in each, lowest first.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Varint`] beyond 32 bits, [`DecodeErrorKind::End`]
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array::<1>()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| self.error(DecodeErrorKind::Varint));
            }
        }
        Err(self.error(DecodeErrorKind::Varint))
    }

    /// A length or count in the current encoding: compact, or as big-endian `i16` (`short`) or `i32`. `None` is null.
    ///
    /// # Errors
    /// [`DecodeErrorKind::NegativeLength`], [`DecodeErrorKind::Varint`], [`DecodeErrorKind::End`]
    pub fn length(&mut self, short: bool) -> Result<Option<u32>, DecodeError> {
        if self.flexible {
            return Ok(self.unsigned_varint()?.checked_sub(1));
        }
        let length = if short {
            i16::from_be_bytes(self.array()?).into()
        } else {
            i32::from_be_bytes(self.array()?)
        };
        match u32::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(self.error(DecodeErrorKind::NegativeLength(length))),
        }
    }

    /// An array; `None` is null.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Count`], [`DecodeErrorKind::Memory`], those of [`Reader::length`] and of the elements
    pub fn elements<T: Field>(&mut self, version: i16) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.length(false)? else {
            return Ok(None);
        };
        // Every element takes a byte at least, so more elements than bytes cannot be true.
        let left = self.left();
        if count as usize > left {
            return Err(self.error(DecodeErrorKind::Count { count, left }));
        }
        let each = size_of::<T>().max(1);
        let Some(memory_left) = self.memory_left.checked_sub(count as usize * each) else {
            return Err(self.error(DecodeErrorKind::Memory(DECODE_MEMORY_MAX)));
        };
        self.memory_left = memory_left;
        let mut elements = Vec::with_capacity((count as usize).min(RESERVE_MAX / each + 1));
        for _ in 0..count {
            elements.push(T::read(self, version)?);
        }
        Ok(Some(elements))
    }

    /// The tagged fields at the end of a struct: calls `known` for each, which reads the value and returns true, or
    /// returns false to have it skipped. Nothing outside flexible versions.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TagOrder`] for a tag that does not ascend (and so for one that comes twice),
    /// [`DecodeErrorKind::TagSize`], [`DecodeErrorKind::Count`], those of the values
    pub fn tags(
        &mut self,
        known: &mut dyn FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        let outer = self.end;
        let count = self.unsigned_varint()?;
        if count as usize > self.left() / 2 {
            return Err(self.error(DecodeErrorKind::Count {
                count,
                left: self.left(),
            }));
        }
        let mut before = None;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if let Some(before) = before.filter(|before| *before >= tag) {
                return Err(self.error(DecodeErrorKind::TagOrder { tag, before }));
            }
            before = Some(tag);
            let size = self.unsigned_varint()? as usize;
            if size > self.left() {
                return Err(self.error(DecodeErrorKind::End {
                    needed: size,
                    left: self.left(),
                }));
            }
            self.end = self.position + size;
            if !known(self, tag)? {
                self.position = self.end;
            }
            if self.left() > 0 {
                return Err(self.error(DecodeErrorKind::TagSize {
                    tag,
                    left: self.left(),
                }));
            }
            self.end = outer;
        }
        Ok(())
    }

    /// Skips the tagged fields of a struct that knows none.
    ///
    /// # Errors
    /// As [`Reader::tags`]
    pub fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(&mut |_, _| Ok(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &'static [u8]) -> Reader {
        Reader::new(Bytes::from_static(bytes))
    }

    #[test]
    fn varints_end_at_32_bits() {
        let read = |bytes| reader(bytes).unsigned_varint().map_err(|error| error.kind);
        assert_eq!(read(&[0x7f]), Ok(127));
        assert_eq!(read(&[0x80, 0x01]), Ok(128));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0x1f]),
            Err(DecodeErrorKind::Varint)
        );
        assert_eq!(
            read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),
            Err(DecodeErrorKind::Varint)
        );
        assert_eq!(read(&[0x80]), Err(DecodeErrorKind::End { needed: 1, left: 0 }));
    }

    #[test]
    fn tags_ascend_and_fill_their_size() {
        let read = |bytes| {
            let mut r = reader(bytes);
            r.set_flexible(true);
            let mut seen = Vec::new();
            let result = r.tags(&mut |r, tag| {
                seen.push(tag);
                if tag == 1 {
                    i16::read(r, 0).map(|_| true)
                } else {
                    Ok(false)
                }
            });
            result
                .and_then(|()| r.finish())
                .map(|()| seen)
                .map_err(|error| error.kind)
        };
        assert_eq!(read(&[2, 1, 2, 9, 9, 5, 3, 0, 0, 0]), Ok(vec![1, 5]));
        assert_eq!(
            read(&[2, 5, 0, 5, 0]),
            Err(DecodeErrorKind::TagOrder { tag: 5, before: 5 })
        );
        assert_eq!(
            read(&[2, 5, 0, 1, 2, 9, 9]),
            Err(DecodeErrorKind::TagOrder { tag: 1, before: 5 })
        );
        assert_eq!(
            read(&[1, 1, 3, 9, 9, 9]),
            Err(DecodeErrorKind::TagSize { tag: 1, left: 1 })
        );
        assert_eq!(
            read(&[1, 1, 1, 9, 9]),
            Err(DecodeErrorKind::End { needed: 2, left: 1 })
        );
        assert_eq!(
            read(&[1, 7, 9, 9]),
            Err(DecodeErrorKind::End { needed: 9, left: 1 })
        );
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0]),
            Err(DecodeErrorKind::Count {
                count: u32::MAX,
                left: 2
            })
        );
    }

    #[test]
    fn bytes_are_slices_of_the_frame() {
        let frame = Bytes::from(vec![7u8; 64]);
        let mut r = Reader::new(frame.clone());
        r.bytes(10).expect("10 of 64");
        assert_eq!(r.bytes(20).expect("20 of 54").as_ptr(), frame[10..].as_ptr());
    }

    #[test]
    fn counts_are_bounded_by_bytes_and_by_memory() {
        let mut r = reader(&[0x7f, 0xff, 0xff, 0xff, 0, 0]);
        let error = r
            .elements::<i32>(0)
            .expect_err("two bytes cannot hold 2^31-1 elements");
        assert_eq!(
            error.kind,
            DecodeErrorKind::Count {
                count: i32::MAX as u32,
                left: 2
            }
        );
        let count = DECODE_MEMORY_MAX / size_of::<String>() + 1;
        let mut bytes = (count as i32).to_be_bytes().to_vec();
        bytes.resize(4 + 2 * count, 0);
        let error = Reader::new(bytes.into())
            .elements::<String>(0)
            .expect_err("too many empty strings");
        assert_eq!(error.kind, DecodeErrorKind::Memory(DECODE_MEMORY_MAX));
    }
}
