//! The bytes inside classic group messages: what a consumer subscribes to and what it is assigned.
//!
//! Formats: Kafka's ConsumerProtocolSubscription version 0 to 3 and ConsumerProtocolAssignment version 0. A newer
//! version only appends fields, so what follows the known ones is ignored, as Kafka's consumers do.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// Why subscription bytes were not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The bytes end inside a field, or a length points beyond them.
    #[error("the subscription ends at byte {0}, inside a field")]
    Short(usize),
    /// A length, count or version is negative.
    #[error("the subscription has a negative length or version at byte {0}")]
    Negative(usize),
    /// A string is not UTF-8.
    #[error("the subscription has a string that is not UTF-8 at byte {0}")]
    Utf8(usize),
}

/// What a classic consumer subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Version of the bytes.
    pub version: i16,
    /// Topic names.
    pub topics: Vec<String>,
    /// What the assignor of the client adds for its leader.
    pub user_data: Option<Bytes>,
    /// Partitions the member still owns, by topic name (version 1 and newer; cooperative members only).
    pub owned: Vec<(String, Vec<i32>)>,
    /// Generation in which it got them (version 2), -1 if unknown.
    pub generation_id: i32,
    /// Rack (version 3).
    pub rack_id: Option<String>,
}

impl Subscription {
    /// Reads the metadata of a member. Counts are not trusted: memory grows with the bytes really there.
    ///
    /// Bytes that end where a field of a later version would begin are taken for the older version: segmentio's kafka-go
    /// says version 1 and writes version 0.
    pub fn parse(bytes: &Bytes) -> Result<Self, ProtocolError> {
        let mut r = Reader { bytes, at: 0 };
        let version = r.i16()?;
        if version < 0 {
            return Err(ProtocolError::Negative(0));
        }
        let mut subscription = Self {
            version,
            generation_id: -1,
            ..Self::default()
        };
        for _ in 0..r.count()? {
            subscription.topics.push(r.string()?);
        }
        subscription.user_data = r.nullable_bytes()?;
        if version >= 1 && !r.is_at_end() {
            for _ in 0..r.count()? {
                let topic = r.string()?;
                let mut partitions = Vec::new();
                for _ in 0..r.count()? {
                    partitions.push(r.i32()?);
                }
                subscription.owned.push((topic, partitions));
            }
        }
        if version >= 2 && !r.is_at_end() {
            subscription.generation_id = r.i32()?;
        }
        if version >= 3 && !r.is_at_end() {
            subscription.rack_id = r.nullable_string()?;
        }
        Ok(subscription)
    }
}

/// A subscription of version 0 without user data: what tools are shown for a member.
pub fn encode_subscription<'a>(topics: impl ExactSizeIterator<Item = &'a str>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(count(topics.len()));
    for topic in topics {
        put_string(&mut out, topic);
    }
    out.put_i32(-1);
    out.freeze()
}

/// An assignment of version 0 without user data. An empty one is well formed, too: some clients cannot read an
/// assignment of zero bytes.
pub fn encode_assignment(topics: &[(String, Vec<i32>)]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(count(topics.len()));
    for (topic, partitions) in topics {
        put_string(&mut out, topic);
        out.put_i32(count(partitions.len()));
        for partition in partitions {
            out.put_i32(*partition);
        }
    }
    out.put_i32(-1);
    out.freeze()
}

fn count(len: usize) -> i32 {
    i32::try_from(len).expect("subscriptions and partitions are bounded far below 2^31")
}

fn put_string(out: &mut BytesMut, value: &str) {
    let len =
        i16::try_from(value.len()).expect("topic names are at most 249 bytes, or came as a short string");
    out.put_i16(len);
    out.put_slice(value.as_bytes());
}

struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn take(&mut self, len: usize) -> Result<&[u8], ProtocolError> {
        let end = self.at.checked_add(len).ok_or(ProtocolError::Short(self.at))?;
        let taken = self
            .bytes
            .get(self.at..end)
            .ok_or(ProtocolError::Short(self.at))?;
        self.at = end;
        Ok(taken)
    }

    fn i16(&mut self) -> Result<i16, ProtocolError> {
        let mut raw = [0; 2];
        raw.copy_from_slice(self.take(2)?);
        Ok(i16::from_be_bytes(raw))
    }

    fn i32(&mut self) -> Result<i32, ProtocolError> {
        let mut raw = [0; 4];
        raw.copy_from_slice(self.take(4)?);
        Ok(i32::from_be_bytes(raw))
    }

    /// A count of values of at least two bytes each, or an error if the bytes left cannot hold them.
    fn count(&mut self) -> Result<usize, ProtocolError> {
        let at = self.at;
        let count = usize::try_from(self.i32()?).map_err(|_| ProtocolError::Negative(at))?;
        if count > (self.bytes.len() - self.at) / 2 {
            return Err(ProtocolError::Short(at));
        }
        Ok(count)
    }

    fn string(&mut self) -> Result<String, ProtocolError> {
        let at = self.at;
        self.nullable_string()?.ok_or(ProtocolError::Negative(at))
    }

    fn nullable_string(&mut self) -> Result<Option<String>, ProtocolError> {
        let at = self.at;
        let len = self.i16()?;
        if len == -1 {
            return Ok(None);
        }
        let len = usize::try_from(len).map_err(|_| ProtocolError::Negative(at))?;
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| ProtocolError::Utf8(at))?;
        Ok(Some(text.to_owned()))
    }

    fn nullable_bytes(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let at = self.at;
        let len = self.i32()?;
        if len == -1 {
            return Ok(None);
        }
        let len = usize::try_from(len).map_err(|_| ProtocolError::Negative(at))?;
        let from = self.at;
        self.take(len)?;
        Ok(Some(self.bytes.slice(from..from + len)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of a subscription as the Java client of the given version writes them.
    fn subscription_bytes(version: i16) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(version);
        out.put_i32(2);
        put_string(&mut out, "a");
        put_string(&mut out, "bc");
        out.put_i32(3);
        out.put_slice(b"xyz");
        if version >= 1 {
            out.put_i32(1);
            put_string(&mut out, "a");
            out.put_i32(2);
            out.put_i32(0);
            out.put_i32(5);
        }
        if version >= 2 {
            out.put_i32(7);
        }
        if version >= 3 {
            put_string(&mut out, "rack");
        }
        out.freeze()
    }

    #[test]
    fn all_versions_are_read() {
        for version in 0..=3 {
            let read = Subscription::parse(&subscription_bytes(version)).unwrap();
            assert_eq!(read.version, version);
            assert_eq!(read.topics, ["a", "bc"]);
            assert_eq!(read.user_data.as_deref(), Some(&b"xyz"[..]));
            assert_eq!(!read.owned.is_empty(), version >= 1);
            assert_eq!(read.generation_id, if version >= 2 { 7 } else { -1 });
            assert_eq!(
                read.rack_id.as_deref(),
                if version >= 3 { Some("rack") } else { None }
            );
        }
    }

    #[test]
    fn a_newer_version_is_read_as_the_newest_known() {
        let mut bytes = BytesMut::from(&subscription_bytes(3)[..]);
        bytes[1] = 9;
        bytes.put_slice(b"more");
        let read = Subscription::parse(&bytes.freeze()).unwrap();
        assert_eq!(read.rack_id.as_deref(), Some("rack"));
    }

    #[test]
    fn every_cut_inside_a_field_is_an_error() {
        let whole = subscription_bytes(3);
        let ends: Vec<usize> = (0..=2).map(|version| subscription_bytes(version).len()).collect();
        for len in 0..whole.len() {
            let read = Subscription::parse(&whole.slice(..len));
            assert_eq!(read.is_ok(), ends.contains(&len), "cut at {len}");
        }
    }

    /// What segmentio's kafka-go sends: it says version 1 and leaves the owned partitions out.
    #[test]
    fn fields_missing_at_the_end_are_those_of_an_older_version() {
        for said in 1..=3 {
            let mut bytes = BytesMut::from(&subscription_bytes(0)[..]);
            bytes[1] = said;
            let read = Subscription::parse(&bytes.freeze()).unwrap();
            assert_eq!(read.topics, ["a", "bc"]);
            assert!(read.owned.is_empty());
            assert_eq!((read.generation_id, read.rack_id), (-1, None));
        }
    }

    #[test]
    fn hostile_counts_cost_nothing() {
        let mut out = BytesMut::new();
        out.put_i16(1);
        out.put_i32(i32::MAX);
        assert_eq!(
            Subscription::parse(&out.clone().freeze()),
            Err(ProtocolError::Short(2))
        );
        let mut negative = BytesMut::new();
        negative.put_i16(0);
        negative.put_i32(-5);
        assert_eq!(
            Subscription::parse(&negative.freeze()),
            Err(ProtocolError::Negative(2))
        );
        let mut version = BytesMut::new();
        version.put_i16(-1);
        assert_eq!(
            Subscription::parse(&version.freeze()),
            Err(ProtocolError::Negative(0))
        );
    }

    #[test]
    fn assignments_have_the_bytes_of_version_0() {
        assert_eq!(
            &encode_assignment(&[])[..],
            [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]
        );
        let one = encode_assignment(&[("t".to_owned(), vec![0, 258])]);
        assert_eq!(
            &one[..],
            [
                0, 0, // version
                0, 0, 0, 1, // topics
                0, 1, b't', 0, 0, 0, 2, // name, partitions
                0, 0, 0, 0, 0, 0, 1, 2, // 0 and 258
                0xff, 0xff, 0xff, 0xff // no user data
            ]
        );
    }

    #[test]
    fn shown_subscriptions_can_be_read_back() {
        let read = Subscription::parse(&encode_subscription(["x", "y"].into_iter())).unwrap();
        assert_eq!(read.topics, ["x", "y"]);
        assert_eq!(read.user_data, None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Subscription::parse(&Bytes::from(bytes));
        }
    }
}
