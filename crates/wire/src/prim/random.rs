//! Random values of every message, for tests.

use bytes::Bytes;

use super::{Nullable, Records, Uuid};

/// A small generator (SplitMix64): the same seed gives the same values everywhere.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator for `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A value, or null in a quarter of the cases if `allowed`.
    pub(crate) fn nullable<T: Random + Nullable>(&mut self, version: i16, allowed: bool) -> Option<T> {
        let null = self.below(4) == 0;
        (!allowed || !null).then(|| T::random(self, version))
    }
}

/// Types that can make up a value for a version: fields that the version lacks have their default.
pub(crate) trait Random {
    /// A value.
    fn random(rng: &mut Rng, version: i16) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Random for $type {
            fn random(rng: &mut Rng, _version: i16) -> Self {
                match rng.below(4) {
                    0 => rng.next() as $type,
                    1 => <$type>::MAX,
                    _ => (rng.below(200) as i64 - 1) as $type,
                }
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, u16);

impl Random for f64 {
    fn random(rng: &mut Rng, _version: i16) -> Self {
        rng.below(1 << 20) as f64 / 8.0
    }
}

impl Random for bool {
    fn random(rng: &mut Rng, _version: i16) -> Self {
        rng.below(2) == 0
    }
}

impl Random for Uuid {
    fn random(rng: &mut Rng, _version: i16) -> Self {
        std::array::from_fn(|_| rng.next() as u8)
    }
}

impl Random for String {
    fn random(rng: &mut Rng, _version: i16) -> Self {
        // Sometimes longer than a one-byte compact length.
        let length = if rng.below(16) == 0 { 150 } else { rng.below(12) };
        (0..length)
            .map(|_| ['a', 'Z', '0', '.', '-', 'é', '流', '🦀'][rng.below(8)])
            .collect()
    }
}

impl Random for Bytes {
    fn random(rng: &mut Rng, _version: i16) -> Self {
        // Sometimes long enough to be shared instead of copied.
        let length = if rng.below(8) == 0 { 1000 } else { rng.below(20) };
        (0..length).map(|_| rng.next() as u8).collect()
    }
}

impl Random for Records {
    fn random(rng: &mut Rng, version: i16) -> Self {
        Self::new((0..rng.below(4)).map(|_| Bytes::random(rng, version)).collect())
    }
}

impl<T: Random> Random for Vec<T> {
    fn random(rng: &mut Rng, version: i16) -> Self {
        (0..rng.below(4)).map(|_| T::random(rng, version)).collect()
    }
}
