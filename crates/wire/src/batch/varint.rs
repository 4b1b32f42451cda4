//! The zigzag varints inside records, and a reader that cannot run over its slice.
//!
//! Kept apart from the codec of messages: that one reads unsigned varints from shared buffers, this one is the inner
//! loop of the record walk over a plain slice.

/// What is left of a slice; each `take_*` shortens it, or gives `None` and the caller gives up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn take_u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// `len` bytes; `None` if `len` is negative or more than there is.
    #[inline]
    pub(super) fn take(&mut self, len: i32) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// A zigzag varint of at most 5 bytes and 32 bits.
    #[inline]
    pub(super) fn take_i32(&mut self) -> Option<i32> {
        // Lengths and deltas are nearly always below 64: one byte.
        let first = u32::from(self.take_u8()?);
        let value = if first < 0x80 {
            first
        } else {
            self.more_u32(first & 0x7f)?
        };
        Some((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    fn more_u32(&mut self, mut value: u32) -> Option<u32> {
        for shift in [7, 14, 21] {
            let byte = u32::from(self.take_u8()?);
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        let last = u32::from(self.take_u8()?);
        (last < 0x10).then_some(value | last << 28)
    }

    /// A zigzag varint of at most 10 bytes and 64 bits.
    #[inline]
    pub(super) fn take_i64(&mut self) -> Option<i64> {
        let first = u64::from(self.take_u8()?);
        let value = if first < 0x80 {
            first
        } else {
            self.more_u64(first & 0x7f)?
        };
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn more_u64(&mut self, mut value: u64) -> Option<u64> {
        for shift in (7..63).step_by(7) {
            let byte = u64::from(self.take_u8()?);
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        let last = u64::from(self.take_u8()?);
        (last < 2).then_some(value | last << 63)
    }
}

/// Appends a zigzag varint. A 32-bit value takes the same bytes when it is widened first.
pub(super) fn put(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes [`put`] appends.
pub(super) fn len(value: i64) -> usize {
    let zigzag = (value << 1 ^ value >> 63) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, value);
        out
    }

    #[test]
    fn known_encodings() {
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(-1), [1]);
        assert_eq!(bytes(63), [126]);
        assert_eq!(bytes(64), [0x80, 1]);
        assert_eq!(bytes(i64::from(i32::MAX)), [0xfe, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(bytes(i64::from(i32::MIN)), [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(
            bytes(i64::MIN),
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    #[test]
    fn overlong_and_cut_varints_are_refused() {
        let long32: &[u8] = &[0x80, 0x80, 0x80, 0x80, 0x10];
        assert_eq!(Cursor { rest: long32 }.take_i32(), None, "33 bits");
        let five: &[u8] = &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(Cursor { rest: five }.take_i32(), None, "six bytes");
        let long64: &[u8] = &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert_eq!(Cursor { rest: long64 }.take_i64(), None, "65 bits");
        assert_eq!(Cursor { rest: &long64[..9] }.take_i64(), None, "cut");
        assert_eq!(Cursor { rest: b"abc" }.take(-1), None);
        assert_eq!(Cursor { rest: b"abc" }.take(4), None);
    }

    proptest! {
        #[test]
        fn round_trip_64(value: i64) {
            let encoded = bytes(value);
            prop_assert_eq!(encoded.len(), len(value));
            let mut cursor = Cursor { rest: &encoded };
            prop_assert_eq!(cursor.take_i64(), Some(value));
            prop_assert!(cursor.rest.is_empty());
        }

        #[test]
        fn round_trip_32(value: i32) {
            let encoded = bytes(i64::from(value));
            let mut cursor = Cursor { rest: &encoded };
            prop_assert_eq!(cursor.take_i32(), Some(value));
            prop_assert!(cursor.rest.is_empty());
        }
    }
}
