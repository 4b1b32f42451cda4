//! Snappy as Kafka's clients write it: raw, or in blocks behind the header of the Java library ("xerial").
//!
//! ```text
//! header:  82 'S' 'N' 'A' 'P' 'P' 'Y' 00, version int32, lowest compatible version int32
//! block:   length int32, one raw snappy stream of that length
//! ```
//! Integers are big-endian. A stream may contain the header again where a block could begin (streams appended to each
//! other); no block length collides with it, since its first byte makes it negative. There is no end mark.

use std::io;

use super::compress::Stop;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER_LEN: usize = 16;
const VERSION: i32 = 1;

/// Bytes per block on writing: the Java library's default.
const BLOCK_BYTES: usize = 32 * 1024;

/// No snappy element makes more than this many bytes out of one byte of input: a copy of 64 bytes takes 3. A stream
/// that declares more is refused before its size is reserved.
const EXPANSION_MAX: usize = 22;

pub(super) fn decompress(data: &[u8], cap: usize) -> Result<Vec<u8>, Stop> {
    let mut out = Vec::new();
    if !data.starts_with(&MAGIC) {
        block(data, cap, &mut out)?;
        return Ok(out);
    }
    let mut rest = data;
    while !rest.is_empty() {
        if rest.starts_with(&MAGIC) {
            rest = rest
                .get(HEADER_LEN..)
                .ok_or_else(|| damaged("the stream header is cut short"))?;
            continue;
        }
        let (length, tail) = rest
            .split_first_chunk::<4>()
            .ok_or_else(|| damaged("a block length is cut short"))?;
        let length = usize::try_from(i32::from_be_bytes(*length))
            .map_err(|_| damaged("a block length is negative"))?;
        let (bytes, tail) = tail
            .split_at_checked(length)
            .ok_or_else(|| damaged("a block passes the end of the data"))?;
        block(bytes, cap, &mut out)?;
        rest = tail;
    }
    Ok(out)
}

/// Appends one raw snappy stream.
fn block(data: &[u8], cap: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
    if data.is_empty() {
        return Err(damaged("a block is empty"));
    }
    let declared = snap::raw::decompress_len(data).map_err(|error| Stop::Damaged(error.to_string()))?;
    let start = out.len();
    if declared > cap - start {
        return Err(Stop::Limit);
    }
    if declared > data.len().saturating_mul(EXPANSION_MAX) {
        return Err(damaged("a block declares more than it can hold"));
    }
    out.resize(start + declared, 0);
    let room = out.get_mut(start..).unwrap_or_default();
    let written = snap::raw::Decoder::new()
        .decompress(data, room)
        .map_err(|error| Stop::Damaged(error.to_string()))?;
    out.truncate(start + written);
    Ok(())
}

fn damaged(reason: &str) -> Stop {
    Stop::Damaged(reason.into())
}

pub(super) fn compress(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEADER_LEN + data.len() / 2 + 32);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&VERSION.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for chunk in data.chunks(BLOCK_BYTES) {
        let block = encoder.compress_vec(chunk).map_err(io::Error::other)?;
        // A block of 32 KiB cannot grow beyond an int32.
        out.extend_from_slice(&(block.len() as i32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(data: &[u8], cap: usize) -> String {
        match decompress(data, cap) {
            Err(Stop::Damaged(reason)) => reason,
            Err(Stop::Limit) => "limit".into(),
            Ok(out) => panic!("accepted: {} bytes", out.len()),
        }
    }

    fn framed(length: i32, block: &[u8]) -> Vec<u8> {
        let mut data = compress(&[]).unwrap();
        data.extend_from_slice(&length.to_be_bytes());
        data.extend_from_slice(block);
        data
    }

    #[test]
    fn raw_streams_are_accepted() {
        let raw = snap::raw::Encoder::new()
            .compress_vec(b"hello hello hello hello")
            .unwrap();
        assert!(matches!(decompress(&raw, 100), Ok(out) if out == b"hello hello hello hello"));
    }

    #[test]
    fn a_header_may_come_again() {
        let one = compress(b"one").unwrap();
        let both = [one, compress(b"two").unwrap()].concat();
        assert!(matches!(decompress(&both, 100), Ok(out) if out == b"onetwo"));
    }

    #[test]
    fn block_lengths_are_checked() {
        assert_eq!(reason(&framed(-1, b"abc"), 100), "a block length is negative");
        assert_eq!(
            reason(&framed(i32::MAX, b"abc"), 100),
            "a block passes the end of the data"
        );
        assert_eq!(reason(&framed(0, b""), 100), "a block is empty");
        assert_eq!(reason(&framed(0, b"")[..18], 100), "a block length is cut short");
        assert_eq!(reason(&MAGIC, 100), "the stream header is cut short");
        assert_eq!(reason(&[], 100), "a block is empty");
    }

    #[test]
    fn declared_sizes_are_not_believed() {
        // 2^32 - 1 bytes, declared by 5 bytes of varint.
        let huge = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
        assert_eq!(reason(&huge, 1 << 20), "limit");
        assert_eq!(
            reason(&huge, usize::MAX),
            "a block declares more than it can hold"
        );
        assert_eq!(reason(&framed(6, &huge), 1 << 20), "limit");
    }

    #[test]
    fn the_most_compressible_data_stays_below_the_expansion_limit() {
        let zeros = vec![0; 60_000];
        let raw = snap::raw::Encoder::new().compress_vec(&zeros).unwrap();
        assert!(matches!(decompress(&raw, 60_000), Ok(out) if out == zeros));
    }
}
