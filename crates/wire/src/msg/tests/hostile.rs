//! Damaged bytes: never a panic, never memory beyond the bound.

use std::fmt::Debug;

use bytes::Bytes;

use super::{Visit, allocation, decode, each_message, encode};
use crate::prim::{DecodeErrorKind, Message, Random, Rng};

/// Cuts valid bytes at every position.
struct Truncate(Rng);

impl Visit for Truncate {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        for version in T::VERSIONS {
            let bytes = encode(&T::random(&mut self.0, version), version);
            for end in 0..bytes.len().min(2000) {
                assert!(
                    decode::<T>(bytes.slice(..end), version).is_err(),
                    "{} v{version} cut at {end}",
                    T::NAME
                );
            }
            let longer = [&bytes[..], &[0]].concat();
            let error = decode::<T>(longer.into(), version).expect_err("a byte too many");
            assert_eq!(error.kind, DecodeErrorKind::Trailing(1), "{} v{version}", T::NAME);
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    each_message(&mut Truncate(Rng::new(3)));
}

/// Writes hostile numbers over every position of valid bytes, and random bytes over random positions. The result may be
/// valid or not; what counts is that it ends, and that what was decoded fits into the bytes.
struct Damage(Rng);

const HOSTILE: &[&[u8]] = &[
    &[0x7f, 0xff, 0xff, 0xff],       // count 2^31-1, length 32767
    &[0xff, 0xff, 0xff, 0xff],       // null; as a variable-length integer without an end
    &[0xff, 0xff, 0xff, 0xff, 0x0f], // 2^32-1
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0x80, 0x00, 0x00, 0x00], // the lowest i32
    &[0x00, 0x00],
    &[0xc3, 0x28], // not UTF-8
];

impl Visit for Damage {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        for version in T::VERSIONS {
            let bytes = encode(&T::random(&mut self.0, version), version);
            for position in 0..bytes.len().min(300) {
                for hostile in HOSTILE {
                    let mut damaged = bytes.to_vec();
                    damaged.truncate(position);
                    damaged.extend_from_slice(hostile);
                    damaged.extend_from_slice(bytes.get(position + hostile.len()..).unwrap_or_default());
                    check::<T>(damaged, version);
                }
            }
            for _ in 0..20 {
                let garbage = (0..self.0.below(100)).map(|_| self.0.next() as u8).collect();
                check::<T>(garbage, version);
            }
        }
    }
}

/// Whatever decodes must encode again, and to no more bytes than were there: nothing was made up. And whether it
/// decodes or not, it must not take much more memory than there are bytes.
fn check<T: Message + Debug + PartialEq>(bytes: Vec<u8>, version: i16) {
    let length = bytes.len();
    let (result, peak) = allocation::peak_of(|| decode::<T>(bytes.into(), version));
    // An element of one or two bytes becomes a struct of some dozens; a vector that grows is there twice.
    assert!(
        peak <= 100 * length + (16 << 10),
        "{} v{version}: {peak} bytes for {length}",
        T::NAME
    );
    if let Ok(message) = result {
        let again = encode(&message, version);
        assert!(again.len() <= length, "{} v{version}", T::NAME);
    }
}

#[test]
fn damaged_bytes_do_no_harm() {
    each_message(&mut Damage(Rng::new(5)));
}

fn error<T: Message + Debug>(bytes: &'static [u8], version: i16) -> (&'static str, DecodeErrorKind) {
    let error = decode::<T>(Bytes::from_static(bytes), version).expect_err("hostile");
    assert_eq!(error.code(), crate::ErrorCode::InvalidRequest);
    (error.field, error.kind)
}

/// The rows on the codec of our table of hostile input, each with its place.
#[test]
fn errors_say_what_and_where() {
    use DecodeErrorKind as Kind;

    use crate::msg::{ApiVersionsRequest, HeartbeatRequest, MetadataRequest, OffsetCommitRequest};

    let topics = "MetadataRequest.topics";
    let large = |left| Kind::Count {
        count: i32::MAX as u32,
        left,
    };
    assert_eq!(
        error::<MetadataRequest>(&[0x7f, 0xff, 0xff, 0xff], 0),
        (topics, large(0))
    );
    assert_eq!(
        error::<MetadataRequest>(&[0x7f, 0xff, 0xff, 0xff, 0, 0], 1),
        (topics, large(2))
    );
    assert_eq!(
        error::<MetadataRequest>(&[0xff, 0xff, 0xff, 0xff], 0),
        (topics, Kind::Null)
    );
    assert_eq!(
        error::<MetadataRequest>(&[0xff, 0xff, 0xff, 0xfe], 1),
        (topics, Kind::NegativeLength(-2))
    );
    let too_long = &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(error::<MetadataRequest>(too_long, 9), (topics, Kind::Varint));
    let count = Kind::Count {
        count: u32::MAX - 1,
        left: 0,
    };
    assert_eq!(
        error::<MetadataRequest>(&[0xff, 0xff, 0xff, 0xff, 0x0f], 9),
        (topics, count)
    );

    let group = "HeartbeatRequest.group_id";
    assert_eq!(
        error::<HeartbeatRequest>(&[0xff, 0xfe], 0),
        (group, Kind::NegativeLength(-2))
    );
    assert_eq!(error::<HeartbeatRequest>(&[0xff, 0xff], 0), (group, Kind::Null));
    assert_eq!(
        error::<HeartbeatRequest>(&[0x7f, 0xff, b'a'], 0),
        (
            group,
            Kind::End {
                needed: 32767,
                left: 1
            }
        )
    );
    assert_eq!(
        error::<HeartbeatRequest>(&[0, 2, 0xc3, 0x28], 0),
        (group, Kind::Utf8)
    );

    let version = "ApiVersionsRequest.client_software_version";
    let tags = &[1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(
        error::<ApiVersionsRequest>(tags, 3),
        (
            version,
            Kind::Count {
                count: u32::MAX,
                left: 0
            }
        )
    );
    let twice = Kind::TagOrder { tag: 4, before: 4 };
    assert_eq!(
        error::<ApiVersionsRequest>(&[1, 1, 2, 4, 0, 4, 0], 3),
        (version, twice)
    );

    // Deep inside: the second partition of the first topic.
    let commit = &[
        2, b'g', 0, 0, 0, 1, 1, 0, // group, generation, member, no instance
        2, 2, b't', 3, // one topic, two partitions
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, // the first
        0, 0, 0, 1, 0, 0,
    ];
    let error = decode::<OffsetCommitRequest>(Bytes::from_static(commit), 8).expect_err("cut off");
    assert_eq!(
        error.to_string(),
        "OffsetCommitRequestPartition.committed_offset at byte 34: needs 8 bytes, 2 are left"
    );
}
