//! Fixed inputs: the same seeded, half-random payloads for every broker and round.

/// Distinct payloads of `size` bytes: half of each random, half a repeated letter.
pub(crate) fn payloads(count: usize, size: usize) -> Vec<Vec<u8>> {
    let mut state = 0x5eed_u64;
    (0..count)
        .map(|_| {
            let mut payload = vec![b'a'; size];
            for byte in &mut payload[..size / 2] {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            payload
        })
        .collect()
}
