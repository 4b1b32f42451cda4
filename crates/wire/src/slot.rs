//! Slots: the unit in which a partition is shared out among the members of a group.
//!
//! A record's slot is a hash of its key, so all records of one key lie in one slot. The hash is Kafka's own murmur2,
//! the one with which the Java client picks a partition (`DefaultPartitioner`, `BuiltInPartitioner`): what our slots
//! say about a key can be recomputed by any Kafka client.

/// How many slots a partition has. Fixed for all time: slots are stored in cursors.
pub const SLOTS: usize = 4096;

/// A slot of a partition, `0..SLOTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// The slot of this number; `None` from [`SLOTS`] on.
    pub fn new(number: u16) -> Option<Self> {
        (usize::from(number) < SLOTS).then_some(Self(number))
    }

    /// The number, `0..SLOTS`.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The number, to index a table of [`SLOTS`] entries.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The slot of a record key: murmur2, its sign bit dropped as Kafka's `toPositive` does, modulo [`SLOTS`].
#[inline]
pub fn slot_of_key(key: &[u8]) -> Slot {
    let positive = murmur2(key) & 0x7fff_ffff;
    Slot((positive as usize % SLOTS) as u16)
}

/// Kafka's murmur2: 32 bit, little-endian words, seed `0x9747b28c`.
#[inline]
pub fn murmur2(data: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Java's length is an int; a key longer than that cannot exist in a batch.
    let mut h = SEED ^ data.len() as u32;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    (h ^ (h >> 15)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_is_kafkas() {
        // Vectors from the Java client.
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("abc", 479_470_107),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
        }
    }

    #[test]
    fn slots_stay_in_range_and_use_the_whole_range() {
        let mut seen = vec![false; SLOTS];
        for n in 0u32..100_000 {
            seen[slot_of_key(&n.to_be_bytes()).index()] = true;
        }
        assert!(seen.iter().all(|hit| *hit), "100,000 keys must reach all slots");
        assert_eq!(
            slot_of_key(b"foobar").get(),
            ((-790_332_482i32 & 0x7fff_ffff) % 4096) as u16
        );
    }

    #[test]
    fn a_slot_number_is_bounded() {
        assert_eq!(Slot::new(4095).map(Slot::get), Some(4095));
        assert_eq!(Slot::new(4096), None);
    }
}
