//! Decompression bombs of every kind end at the named limit, within a fixed amount of memory.
//!
//! A test binary of its own: it looks at the peak memory of the whole process, which other tests would disturb.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use anabranch_wire::batch::compress::{compress, decompress};
use anabranch_wire::batch::{BatchError, Compression, DecompressLimits};

const BYTES_MAX: usize = 16 << 20;
/// The peak may grow by twice the limit, for a buffer that moves while it grows, and a decoder's own buffers.
const PEAK_KIB_MAX: u64 = 2 * (BYTES_MAX as u64 / 1024) + 20 * 1024;

/// Peak resident memory of this process in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A zstd frame of blocks that each say "repeat this byte 128 Ki times" in 4 bytes.
fn zstd_repeats(blocks: u32, window: u8) -> Vec<u8> {
    let mut data = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    data.extend_from_slice(&[0, window]);
    for block in 1..=blocks {
        let last = u32::from(block == blocks);
        let header = (128 << 10) << 3 | 1 << 1 | last;
        data.extend_from_slice(&header.to_le_bytes()[..3]);
        data.push(b'0');
    }
    data
}

/// A window descriptor for 2^log bytes.
fn window(log: u8) -> u8 {
    (log - 10) << 3
}

/// One lz4 frame whose block of 4 MiB of zeros comes again and again.
fn lz4_repeats(blocks: usize) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;
    let info = FrameInfo::new()
        .block_mode(BlockMode::Independent)
        .block_size(BlockSize::Max4MB);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&vec![0; 4 << 20]).unwrap();
    let frame = encoder.finish().unwrap();
    let (header, rest) = frame.split_at(7);
    let (block, end) = rest.split_at(rest.len() - 4);
    [header, &block.repeat(blocks), end].concat()
}

/// A framed snappy stream whose block of zeros comes again and again.
fn snappy_repeats(blocks: usize) -> Vec<u8> {
    let one = compress(Compression::Snappy, None, &vec![0; 32 << 10]).unwrap();
    let (header, block) = one.split_at(16);
    [header, &block.repeat(blocks)].concat()
}

#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 8 << 20];
    let gzip = compress(Compression::Gzip, None, &zeros).unwrap();
    drop(zeros);
    let bombs = [
        (Compression::Gzip, "2 GiB in members", gzip.repeat(256)),
        (Compression::Snappy, "2 GiB in blocks", snappy_repeats(65_536)),
        (
            Compression::Snappy,
            "4 GiB declared by a raw stream",
            vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0],
        ),
        (Compression::Lz4, "4 GiB in blocks", lz4_repeats(1024)),
        (
            Compression::Zstd,
            "4 GiB in one frame",
            zstd_repeats(32_768, window(17)),
        ),
        (
            Compression::Zstd,
            "4 GiB behind a window of 128 MiB",
            zstd_repeats(32_768, window(27)),
        ),
        (
            Compression::Zstd,
            "4 GiB in frames",
            zstd_repeats(8, window(17)).repeat(4_096),
        ),
    ];
    let before = peak_kib();
    for (codec, what, bomb) in &bombs {
        let limits = DecompressLimits {
            bytes_max: BYTES_MAX,
            ratio_max: usize::MAX,
        };
        let expected = BatchError::DecompressedTooLarge {
            codec: *codec,
            bytes_max: BYTES_MAX,
        };
        assert_eq!(
            decompress(*codec, bomb, &limits),
            Err(expected),
            "{codec}: {what}"
        );

        let limits = DecompressLimits {
            bytes_max: BYTES_MAX,
            ratio_max: 2,
        };
        let stopped = decompress(*codec, bomb, &limits).unwrap_err();
        assert!(
            matches!(
                stopped,
                BatchError::DecompressRatio { .. } | BatchError::DecompressedTooLarge { .. }
            ),
            "{codec}: {what}: {stopped}"
        );
    }
    // One kilobyte that says gigabytes hits the ratio, not the absolute limit.
    let small = zstd_repeats(250, window(17));
    assert!(small.len() < 1_024);
    let limits = DecompressLimits {
        bytes_max: 1 << 40,
        ratio_max: 1_000,
    };
    let expected = BatchError::DecompressRatio {
        codec: Compression::Zstd,
        ratio_max: 1_000,
        compressed: small.len(),
    };
    assert_eq!(decompress(Compression::Zstd, &small, &limits), Err(expected));

    let grown = peak_kib() - before;
    assert!(
        grown < PEAK_KIB_MAX,
        "peak memory grew by {grown} KiB, more than {PEAK_KIB_MAX}"
    );
}

#[test]
fn zstd_windows_beyond_the_limit_are_refused() {
    let limits = DecompressLimits {
        bytes_max: BYTES_MAX,
        ratio_max: 1_000,
    };
    for log in [28, 31] {
        let result = decompress(Compression::Zstd, &zstd_repeats(1, window(log)), &limits);
        assert!(
            matches!(result, Err(BatchError::Decompress { .. })),
            "2^{log}: {result:?}"
        );
    }
}
