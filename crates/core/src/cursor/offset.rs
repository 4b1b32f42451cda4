//! Slice ids, and offsets that carry one.

use crate::ids::Offset;

/// Bits of a slice offset that are the offset in the log: 2^46 records are 22 years at 100,000 a second.
const OFFSET_BITS: u32 = 46;

/// Names one slice of one partition, `1..=131071` (17 bits), across all groups: a Fetch names no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceId(u32);

impl SliceId {
    /// The smallest id.
    pub const FIRST: Self = Self(1);
    /// The largest id that fits its 17 bits.
    pub const LAST: Self = Self((1 << 17) - 1);
    /// The largest id whose offsets are exact in a double, hence in JavaScript numbers and JSON tools.
    pub const LAST_EXACT_IN_DOUBLE: Self = Self((1 << 7) - 1);

    /// The id of this number; `None` if it is 0 or above [`Self::LAST`].
    pub fn new(number: u32) -> Option<Self> {
        (Self::FIRST.0..=Self::LAST.0)
            .contains(&number)
            .then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The next larger id; `None` behind the last.
    pub fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

/// An offset as clients see it: bit 63 is 0, then 17 bits slice id, then 46 bits offset in the log. Id 0 means the
/// plain log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceOffset {
    slice: Option<SliceId>,
    offset: Offset,
}

impl SliceOffset {
    /// The first offset that does not fit. A partition whose end comes near it must not be divided.
    pub const OFFSET_END: Offset = 1 << OFFSET_BITS;

    /// The offset in this slice, or in the plain log; `None` if it is negative or reaches [`Self::OFFSET_END`].
    pub fn new(slice: Option<SliceId>, offset: Offset) -> Option<Self> {
        (0..Self::OFFSET_END)
            .contains(&offset)
            .then_some(Self { slice, offset })
    }

    /// Reads what a client sent; `None` if it is negative (Kafka's special values). Only for partitions that have
    /// slices: elsewhere a large number is just a large number.
    pub fn from_wire(value: i64) -> Option<Self> {
        let value = u64::try_from(value).ok()?;
        let id = u32::try_from(value >> OFFSET_BITS).ok()?;
        let offset = value & (Self::OFFSET_END.cast_unsigned() - 1);
        Some(Self {
            slice: SliceId::new(id),
            offset: offset.cast_signed(),
        })
    }

    /// The number for the client.
    pub fn to_wire(self) -> i64 {
        let id = self.slice.map_or(0, SliceId::get);
        (i64::from(id) << OFFSET_BITS) | self.offset
    }

    /// The slice; `None` in the plain log.
    pub fn slice(self) -> Option<SliceId> {
        self.slice
    }

    /// The offset in the log.
    pub fn offset(self) -> Offset {
        self.offset
    }
}

/// A place in a chain of slices. Ids grow along a chain, so the order of places is the order in which its member
/// comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The slice.
    pub slice: SliceId,
    /// The offset in the log.
    pub offset: Offset,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_have_17_bits_and_are_not_0() {
        assert_eq!(SliceId::new(0), None);
        assert_eq!(SliceId::new(1), Some(SliceId::FIRST));
        assert_eq!(SliceId::new(131_071), Some(SliceId::LAST));
        assert_eq!(SliceId::new(131_072), None);
        assert_eq!(SliceId::LAST.next(), None);
    }

    #[test]
    fn the_largest_slice_offset_is_the_largest_number() {
        let last = SliceOffset::new(Some(SliceId::LAST), SliceOffset::OFFSET_END - 1).unwrap();
        assert_eq!(last.to_wire(), i64::MAX);
        let exact =
            SliceOffset::new(Some(SliceId::LAST_EXACT_IN_DOUBLE), SliceOffset::OFFSET_END - 1).unwrap();
        assert_eq!(exact.to_wire(), (1 << 53) - 1);
    }

    #[test]
    fn offsets_that_do_not_fit_are_refused() {
        assert_eq!(SliceOffset::new(None, -1), None);
        assert_eq!(SliceOffset::new(Some(SliceId::FIRST), 1 << 46), None);
        assert_eq!(SliceOffset::from_wire(-1), None);
        assert_eq!(SliceOffset::from_wire(i64::MIN), None);
    }

    proptest! {
        #[test]
        fn every_number_comes_back(value in 0..=i64::MAX) {
            let read = SliceOffset::from_wire(value).unwrap();
            prop_assert_eq!(read.to_wire(), value);
            prop_assert_eq!(SliceOffset::new(read.slice(), read.offset()), Some(read));
        }

        #[test]
        fn small_numbers_are_plain(value in 0..SliceOffset::OFFSET_END) {
            prop_assert_eq!(SliceOffset::from_wire(value), SliceOffset::new(None, value));
        }
    }
}
