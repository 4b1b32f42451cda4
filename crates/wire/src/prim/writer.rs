//! Writing, without copying what is large.

use bytes::{BufMut, Bytes, BytesMut};

use super::{EncodeError, EncodeErrorKind};
use crate::chunks::Chunks;

/// Shared bytes up to this length are copied: below it, a copy costs less than one more entry in a vectored write.
const COPY_MAX: usize = 512;

/// Writes a message. What it encodes itself goes into one buffer; record batches and other large bytes are kept as
/// they are and lie between slices of that buffer in the end ([`Writer::finish`]).
#[derive(Debug, Default)]
pub struct Writer {
    own: BytesMut,
    /// Foreign bytes, each with the position in `own` before which they belong; ascending.
    foreign: Vec<(usize, Bytes)>,
    foreign_length: usize,
    flexible: bool,
    /// `Struct.field`, for errors.
    field: &'static str,
}

/// Where the value of a tagged field began.
#[derive(Clone, Copy, Debug)]
pub struct TagMark {
    own: usize,
    foreign: usize,
    length: usize,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Self {
            own: BytesMut::with_capacity(256),
            field: "frame",
            ..Self::default()
        }
    }

    /// Bytes written so far.
    pub fn length(&self) -> usize {
        self.own.len() + self.foreign_length
    }

    /// Whether strings and arrays are compact and structs end with tagged fields.
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Sets the encoding for what follows; a whole message does so from its version.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// Notes what is written next (`Struct.field`), for errors.
    pub fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    /// An error at the current field.
    pub fn error(&self, version: i16, kind: EncodeErrorKind) -> EncodeError {
        EncodeError {
            field: self.field,
            version,
            kind,
        }
    }

    /// The error for a value that the version has no place for.
    pub fn not_in_version(&self, version: i16) -> EncodeError {
        self.error(version, EncodeErrorKind::NotInVersion)
    }

    /// Appends a copy of `bytes`.
    pub fn put(&mut self, bytes: &[u8]) {
        self.own.put_slice(bytes);
    }

    /// Appends `bytes`, shared unless they are short.
    pub fn share(&mut self, bytes: &Bytes) {
        if bytes.len() <= COPY_MAX {
            return self.put(bytes);
        }
        self.foreign_length += bytes.len();
        self.foreign.push((self.own.len(), bytes.clone()));
    }

    /// Overwrites the four bytes at `position` of the writer's own bytes, before which nothing may be shared.
    pub(crate) fn patch(&mut self, position: usize, bytes: [u8; 4]) {
        self.own[position..position + 4].copy_from_slice(&bytes);
    }

    /// Appends an unsigned integer of 1 to 5 bytes.
    pub fn unsigned_varint(&mut self, value: u32) {
        let (bytes, length) = unsigned_varint(value);
        self.put(&bytes[..length]);
    }

    /// Appends a length or count in the current encoding: compact, or as `i16` (`short`) or `i32`. `None` is null.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`]
    pub fn put_length(
        &mut self,
        length: Option<usize>,
        short: bool,
        version: i16,
    ) -> Result<(), EncodeError> {
        let too_long = |w: &Self, length| w.error(version, EncodeErrorKind::TooLong(length));
        let Some(length) = length else {
            match (self.flexible, short) {
                (true, _) => self.put(&[0]),
                (false, true) => self.put(&(-1i16).to_be_bytes()),
                (false, false) => self.put(&(-1i32).to_be_bytes()),
            }
            return Ok(());
        };
        if short {
            // Compact strings have the same limit, although their length field could say more.
            let length = i16::try_from(length).map_err(|_| too_long(self, length))?;
            if !self.flexible {
                self.put(&length.to_be_bytes());
                return Ok(());
            }
        }
        let length = i32::try_from(length).map_err(|_| too_long(self, length))?;
        if self.flexible {
            self.unsigned_varint(length.unsigned_abs() + 1);
        } else {
            self.put(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Ends a struct that has no tagged fields.
    pub fn no_tags(&mut self) {
        if self.flexible {
            self.put(&[0]);
        }
    }

    /// Begins the tagged fields of a struct: how many of them are present.
    pub fn tag_count(&mut self, present: &[bool]) {
        let count = present.iter().filter(|present| **present).count();
        self.unsigned_varint(count as u32);
    }

    /// Begins tagged field `tag`; its value follows, then [`Writer::end_tag`].
    pub fn begin_tag(&mut self, tag: u32) -> TagMark {
        self.unsigned_varint(tag);
        TagMark {
            own: self.own.len(),
            foreign: self.foreign.len(),
            length: self.length(),
        }
    }

    /// Ends a tagged field: its size is put before its value.
    pub fn end_tag(&mut self, mark: TagMark) {
        let TagMark { own, foreign, length } = mark;
        let (size, size_length) = unsigned_varint((self.length() - length) as u32);
        let end = self.own.len();
        self.put(&size[..size_length]);
        self.own.copy_within(own..end, own + size_length);
        self.own[own..own + size_length].copy_from_slice(&size[..size_length]);
        for (position, _) in &mut self.foreign[foreign..] {
            *position += size_length;
        }
    }

    /// Everything that was written, in order.
    pub fn finish(self) -> Chunks {
        let mut own = self.own.freeze();
        let mut chunks = Chunks::default();
        let mut position = 0;
        for (before, bytes) in self.foreign {
            chunks.push(own.split_to(before - position));
            position = before;
            chunks.push(bytes);
        }
        chunks.push(own);
        chunks
    }
}

/// The bytes of an unsigned variable-length integer, and how many of them count.
fn unsigned_varint(mut value: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut length = 0;
    for byte in &mut bytes {
        length += 1;
        *byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bytes_are_shared_and_short_ones_copied() {
        let long = Bytes::from(vec![1; COPY_MAX + 1]);
        let short = Bytes::from(vec![2; COPY_MAX]);
        let mut w = Writer::new();
        w.put(&[9]);
        w.share(&long);
        w.share(&short);
        assert_eq!(w.length(), 2 + 2 * COPY_MAX);
        let chunks = w.finish();
        let slices: Vec<&Bytes> = chunks.iter().collect();
        assert_eq!(slices.len(), 3);
        assert_eq!(slices[1].as_ptr(), long.as_ptr());
        assert_eq!(slices[2], &short);
    }

    #[test]
    fn a_tagged_value_gets_its_size_in_front() {
        let long = Bytes::from(vec![1; 600]);
        let mut w = Writer::new();
        w.put(&[9]);
        let mark = w.begin_tag(3);
        w.put(&[7]);
        w.share(&long);
        w.put(&[8]);
        w.end_tag(mark);
        let bytes = w.finish().to_bytes();
        assert_eq!(bytes[..5], [9, 3, 0xda, 0x04, 7], "602 bytes follow the size");
        assert_eq!(bytes[5..605], long[..]);
        assert_eq!(bytes[605..], [8]);
    }

    #[test]
    fn varints_are_as_short_as_can_be() {
        let write = |value| {
            let (bytes, length) = unsigned_varint(value);
            bytes[..length].to_vec()
        };
        assert_eq!(write(0), [0]);
        assert_eq!(write(127), [127]);
        assert_eq!(write(128), [0x80, 1]);
        assert_eq!(write(u32::MAX), [0xff, 0xff, 0xff, 0xff, 0x0f]);
    }

    #[test]
    fn a_length_that_does_not_fit_is_refused() {
        for flexible in [false, true] {
            let mut w = Writer::new();
            w.set_flexible(flexible);
            assert!(w.put_length(Some(32767), true, 0).is_ok());
            let error = w
                .put_length(Some(32768), true, 0)
                .expect_err("longer than an i16 says");
            assert_eq!(error.kind, EncodeErrorKind::TooLong(32768));
        }
    }
}
