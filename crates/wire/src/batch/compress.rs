//! The compressions of a batch: Kafka's four, each bounded on the way out.
//!
//! What Kafka's clients write and read, and so what we accept and produce:
//! - gzip: one or several members one after the other.
//! - snappy: raw, or in the framing of the Java library (`snappy.rs`); we write the latter.
//! - lz4: the frame format; we write independent blocks of 64 KiB without content checksum (KIP-57).
//! - zstd: one or several frames, windows up to [`ZSTD_WINDOW_LOG_MAX`].
//!
//! A compressed batch of a kilobyte can claim gigabytes. [`decompress`] therefore stops at the first byte beyond
//! [`DecompressLimits`]; it never allocates by a size that the data states.

use std::fmt;
use std::io::{self, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::error::BatchError;
use super::snappy;

/// Largest zstd window accepted, as power of two: 128 MiB, what the reference library takes unless told otherwise, and
/// what its highest level writes. Larger ones exist only in long-distance mode, which no Kafka client uses.
///
/// The decoder reserves the window a frame names, but touches only as much as it writes, which the limits bound.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Output up to this size, 1 MiB, is exempt from [`DecompressLimits::ratio_max`]: honest data can be very uniform, and
/// so little memory harms nobody.
pub const RATIO_FREE_BYTES: usize = 1 << 20;

const LZ4_FRAME_MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();

/// How the records of a batch are compressed; the numbers are Kafka's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy, framed as the Java library does or raw.
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard (KIP-110): Produce from version 7, Fetch from version 10.
    Zstd = 4,
}

impl Compression {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The compression of a number from the wire; `None` if Kafka does not define it.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The number on the wire.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The name in Kafka's `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a decompression may go. Memory stays within about three times `bytes_max` (an output that moves while it grows,
/// a zstd window) plus 20 MiB for a decoder's buffers; for output well below the limit, within three times the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressLimits {
    /// Most bytes of output.
    pub bytes_max: usize,
    /// Most bytes of output per byte of input, once the output passes [`RATIO_FREE_BYTES`].
    pub ratio_max: usize,
}

impl DecompressLimits {
    /// The output allowed for so much input.
    fn cap(&self, compressed: usize) -> usize {
        self.bytes_max
            .min(compressed.saturating_mul(self.ratio_max).max(RATIO_FREE_BYTES))
    }

    /// Which limit it was that `cap` ran into.
    fn exceeded(&self, codec: Compression, compressed: usize) -> BatchError {
        if self.cap(compressed) == self.bytes_max {
            BatchError::DecompressedTooLarge {
                codec,
                bytes_max: self.bytes_max,
            }
        } else {
            BatchError::DecompressRatio {
                codec,
                ratio_max: self.ratio_max,
                compressed,
            }
        }
    }
}

/// Why a decoder stopped.
pub(super) enum Stop {
    /// There would have been more output than allowed.
    Limit,
    /// The data is damaged.
    Damaged(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Decompresses all of `data`, which must be whole and have nothing behind it.
///
/// [`Compression::None`] copies.
///
/// # Errors
/// [`BatchError::DecompressedTooLarge`] or [`BatchError::DecompressRatio`] at a limit, else [`BatchError::Decompress`].
pub fn decompress(codec: Compression, data: &[u8], limits: &DecompressLimits) -> Result<Vec<u8>, BatchError> {
    let cap = limits.cap(data.len());
    let result = match codec {
        Compression::None if data.len() > cap => Err(Stop::Limit),
        Compression::None => Ok(data.to_vec()),
        Compression::Gzip => gunzip(data, cap),
        Compression::Snappy => snappy::decompress(data, cap),
        Compression::Lz4 => unlz4(data, cap),
        Compression::Zstd => unzstd(data, cap),
    };
    result.map_err(|stop| match stop {
        Stop::Limit => limits.exceeded(codec, data.len()),
        Stop::Damaged(reason) => BatchError::Decompress { codec, reason },
    })
}

/// Reads to the end, but never more than `cap` bytes in `out`.
fn read_bounded(from: &mut impl Read, cap: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
    // One byte more than allowed is enough to know.
    let room = (cap - out.len()) as u64 + 1;
    from.take(room).read_to_end(out)?;
    if out.len() > cap { Err(Stop::Limit) } else { Ok(()) }
}

/// A first guess at the output: enough for usual data, and no more than the cap or a fixed multiple of the input.
fn output_buffer(compressed: usize, cap: usize) -> Vec<u8> {
    Vec::with_capacity(compressed.saturating_mul(4).min(cap))
}

fn gunzip(data: &[u8], cap: usize) -> Result<Vec<u8>, Stop> {
    let mut out = output_buffer(data.len(), cap);
    read_bounded(&mut MultiGzDecoder::new(data), cap, &mut out)?;
    Ok(out)
}

fn unzstd(data: &[u8], cap: usize) -> Result<Vec<u8>, Stop> {
    let mut out = output_buffer(data.len(), cap);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(data)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    read_bounded(&mut decoder, cap, &mut out)?;
    Ok(out)
}

fn unlz4(data: &[u8], cap: usize) -> Result<Vec<u8>, Stop> {
    let mut out = output_buffer(data.len(), cap);
    let mut rest = Strict(data);
    loop {
        // The legacy format, which the decoder would take, is not Kafka's.
        if !rest.0.starts_with(&LZ4_FRAME_MAGIC) {
            return Err(Stop::Damaged("no lz4 frame where one must begin".into()));
        }
        let mut decoder = FrameDecoder::new(&mut rest);
        read_bounded(&mut decoder, cap, &mut out)?;
        if rest.0.is_empty() {
            return Ok(out);
        }
    }
}

/// A slice to read from whose end is an error: the lz4 decoder takes end of input for the end of a frame, so that a
/// cut frame would pass as a short one. Whole frames end by their end mark and never ask for more.
struct Strict<'a>(&'a [u8]);

impl Read for Strict<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() && !buf.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the frame is cut short",
            ));
        }
        self.0.read(buf)
    }
}

/// Compresses `data`. `level` is for gzip (0 to 9) and zstd (up to 22), held to that range, and ignored by the others;
/// `None` is Kafka's default (gzip 6, zstd 3).
///
/// # Errors
/// [`BatchError::Compress`] if the encoder fails.
pub fn compress(codec: Compression, level: Option<i32>, data: &[u8]) -> Result<Vec<u8>, BatchError> {
    let result = match codec {
        Compression::None => Ok(data.to_vec()),
        Compression::Gzip => gzip(level.unwrap_or(6), data),
        Compression::Snappy => snappy::compress(data),
        Compression::Lz4 => lz4(data),
        Compression::Zstd => zstd::stream::encode_all(data, level.unwrap_or(3).min(22)),
    };
    result.map_err(|error| BatchError::Compress {
        codec,
        reason: error.to_string(),
    })
}

fn gzip(level: i32, data: &[u8]) -> io::Result<Vec<u8>> {
    let level = flate2::Compression::new(level.clamp(0, 9) as u32);
    let mut encoder = GzEncoder::new(Vec::with_capacity(data.len() / 2 + 32), level);
    encoder.write_all(data)?;
    encoder.finish()
}

fn lz4(data: &[u8]) -> io::Result<Vec<u8>> {
    let info = FrameInfo::new()
        .block_mode(BlockMode::Independent)
        .block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::with_capacity(data.len() / 2 + 32));
    encoder.write_all(data)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: DecompressLimits = DecompressLimits {
        bytes_max: 4 << 20,
        ratio_max: 1000,
    };
    const CODECS: [Compression; 4] = [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    fn text(len: usize) -> Vec<u8> {
        b"the quick brown fox jumps over the lazy dog, "
            .iter()
            .copied()
            .cycle()
            .take(len)
            .collect()
    }

    #[test]
    fn round_trips_of_sizes_around_the_block_boundaries() {
        for codec in Compression::ALL {
            for len in [
                0,
                1,
                32 * 1024 - 1,
                32 * 1024,
                32 * 1024 + 1,
                64 * 1024,
                64 * 1024 + 1,
                300_000,
            ] {
                let data = text(len);
                let packed = compress(codec, None, &data).unwrap();
                assert_eq!(
                    decompress(codec, &packed, &LIMITS).unwrap(),
                    data,
                    "{codec} {len}"
                );
                if len > 1000 && codec != Compression::None {
                    assert!(packed.len() < len / 2, "{codec} must compress");
                }
            }
        }
    }

    #[test]
    fn levels_out_of_range_are_held_to_it() {
        let data = text(10_000);
        for codec in CODECS {
            for level in [i32::MIN, -5, 0, 1, 9, 22, i32::MAX] {
                let packed = compress(codec, Some(level), &data).unwrap();
                assert_eq!(
                    decompress(codec, &packed, &LIMITS).unwrap(),
                    data,
                    "{codec} {level}"
                );
            }
        }
    }

    #[test]
    fn several_members_or_frames_are_one_stream() {
        let data = text(5_000);
        for codec in CODECS {
            let packed = compress(codec, None, &data).unwrap();
            let twice = [packed.clone(), packed].concat();
            assert_eq!(
                decompress(codec, &twice, &LIMITS).unwrap(),
                [&data[..], &data].concat(),
                "{codec}"
            );
        }
    }

    #[test]
    fn a_cut_anywhere_is_an_error() {
        let data = text(3_000);
        for codec in CODECS {
            let packed = compress(codec, None, &data).unwrap();
            for cut in 0..packed.len() {
                match decompress(codec, &packed[..cut], &LIMITS) {
                    Err(BatchError::Decompress { .. }) => {}
                    // A framed snappy stream has no end mark: cut between blocks it is whole, but shorter.
                    Ok(short) if codec == Compression::Snappy => assert!(short.is_empty(), "at {cut}"),
                    other => panic!("{codec} cut at {cut}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn garbage_behind_the_data_is_an_error() {
        for codec in CODECS {
            let mut packed = compress(codec, None, b"some data").unwrap();
            packed.extend_from_slice(b"\0\x01garbage");
            let result = decompress(codec, &packed, &LIMITS);
            assert!(
                matches!(result, Err(BatchError::Decompress { .. })),
                "{codec}: {result:?}"
            );
        }
    }

    #[test]
    fn the_limits_are_exact_and_named() {
        let data = vec![0; RATIO_FREE_BYTES + 1];
        for codec in CODECS {
            let packed = compress(codec, None, &data).unwrap();
            let at =
                |bytes_max, ratio_max| decompress(codec, &packed, &DecompressLimits { bytes_max, ratio_max });
            assert_eq!(
                at(data.len(), usize::MAX).map(|out| out.len()),
                Ok(data.len()),
                "{codec}"
            );
            let bytes_max = data.len() - 1;
            assert_eq!(
                at(bytes_max, usize::MAX),
                Err(BatchError::DecompressedTooLarge { codec, bytes_max })
            );
            let compressed = packed.len();
            let error = BatchError::DecompressRatio {
                codec,
                ratio_max: 2,
                compressed,
            };
            assert_eq!(at(usize::MAX - 1, 2), Err(error), "{codec}");
        }
    }

    #[test]
    fn lz4_frames_are_what_kafkas_readers_want() {
        let packed = compress(Compression::Lz4, None, &text(200_000)).unwrap();
        assert_eq!(packed[..4], LZ4_FRAME_MAGIC);
        let flags = packed[4];
        assert_eq!(flags >> 6, 1, "version 1");
        assert_eq!(flags & 0x20, 0x20, "independent blocks");
        assert_eq!(flags & 0x04, 0, "no content checksum");
        assert_eq!(packed[5] >> 4, 4, "blocks of 64 KiB");
    }

    #[test]
    fn ids_and_names() {
        for codec in Compression::ALL {
            assert_eq!(Compression::from_id(codec.id()), Some(codec));
        }
        assert_eq!([5, 6, 7, 255].map(Compression::from_id), [None; 4]);
        assert_eq!(Compression::Zstd.to_string(), "zstd");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_round_trip(data in proptest::collection::vec(any::<u8>(), 0..5000)) {
            for codec in Compression::ALL {
                let packed = compress(codec, None, &data).unwrap();
                prop_assert_eq!(&decompress(codec, &packed, &LIMITS).unwrap(), &data);
            }
        }

        #[test]
        fn damaged_data_never_panics(len in 0usize..3000, at in any::<prop::sample::Index>(), bit in 0u8..8) {
            for codec in CODECS {
                let mut packed = compress(codec, None, &text(len)).unwrap();
                let at = at.index(packed.len());
                packed[at] ^= 1 << bit;
                let _ = decompress(codec, &packed, &LIMITS);
            }
        }

        #[test]
        fn random_data_never_panics(data in proptest::collection::vec(any::<u8>(), 0..500)) {
            for codec in CODECS {
                let _ = decompress(codec, &data, &LIMITS);
            }
        }
    }
}
