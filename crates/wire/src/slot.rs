//! Slots: the unit in which a partition is shared out among the members of a group.
//!
//! A record's slot is a hash of its key, so all records of one key lie in one slot. The hash is Kafka's own murmur2,
//! the one with which the Java client picks a partition (`DefaultPartitioner`, `BuiltInPartitioner`): what our slots
//! say about a key can be recomputed by any Kafka client. The client takes the hash modulo the number of partitions,
//! which for a power of two are its lowest bits; a slot is its highest bits, so that the keys of one partition still
//! fall into all slots (ADR 0006).

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

/// Bits of a hash below those that make the slot: 31 bits are left of it without its sign.
const SHIFT: u32 = 31 - SLOTS.ilog2();

/// The slot of a record key: murmur2, its sign bit dropped as Kafka's `toPositive` does, and of the rest the highest
/// bits.
#[inline]
pub fn slot_of_key(key: &[u8]) -> Slot {
    let positive = murmur2(key).cast_unsigned() & 0x7fff_ffff;
    Slot((positive >> SHIFT) as u16)
}

/// The slot of all records without a key of the batch that begins at `base_offset`.
///
/// Such records have no order to keep among batches; the hash spreads them, whatever the size of the batches.
#[inline]
pub fn slot_of_batch(base_offset: i64) -> Slot {
    slot_of_key(&base_offset.to_be_bytes())
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
            u32::from(slot_of_key(b"foobar").get()),
            (-790_332_482i32).cast_unsigned() % (1 << 31) / (1 << 19)
        );
    }

    #[test]
    fn the_keys_of_one_of_256_partitions_reach_all_slots() {
        let mut seen = vec![false; SLOTS];
        let keys = (0u32..10_000_000).map(u32::to_be_bytes);
        for key in keys.filter(|key| murmur2(key) & 0xff == 7) {
            seen[slot_of_key(&key).index()] = true;
        }
        let hit = seen.iter().filter(|hit| **hit).count();
        assert!(hit > SLOTS * 99 / 100, "{hit} of {SLOTS}");
    }

    #[test]
    fn batches_of_any_steady_size_spread() {
        for size in [1, 100, 4096, 1 << 20] {
            let slots: std::collections::BTreeSet<u16> =
                (0..4096).map(|n| slot_of_batch(n * size).get()).collect();
            assert!(slots.len() > 2_000, "batches of {size}: {} slots", slots.len());
        }
    }

    #[test]
    fn a_slot_number_is_bounded() {
        assert_eq!(Slot::new(4095).map(Slot::get), Some(4095));
        assert_eq!(Slot::new(4096), None);
    }
}
