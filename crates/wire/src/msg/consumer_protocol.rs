//! What consumers put into the opaque bytes of JoinGroup and SyncGroup, for protocol type "consumer".
//!
//! A version in front, then the struct, never compact. A reader takes a version above its own for its own newest and
//! leaves the bytes behind it alone, so that newer clients can add fields (as Kafka's `ConsumerProtocol` does).

use bytes::Bytes;

use crate::prim::{
    DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Field, Message, Reader, Writer,
};

/// Newest version of both structs.
pub const VERSION_MAX: i16 = 3;

/// `metadata` of a protocol in JoinGroup: what the member wants, and has.
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ConsumerProtocolSubscription {
    pub topics: Vec<String>,
    #[kafka(nullable, default = null)]
    pub user_data: Option<Bytes>,
    #[kafka(versions(1..), ignorable)]
    pub owned_partitions: Vec<TopicPartition>,
    #[kafka(versions(2..), default = -1, ignorable)]
    pub generation_id: i32,
    #[kafka(versions(3..), nullable, default = null, ignorable)]
    pub rack_id: Option<String>,
}

/// `assignment` in SyncGroup: what the member gets.
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ConsumerProtocolAssignment {
    pub assigned_partitions: Vec<TopicPartition>,
    #[kafka(nullable, default = null)]
    pub user_data: Option<Bytes>,
}

/// Element of [`ConsumerProtocolSubscription::owned_partitions`] and
/// [`ConsumerProtocolAssignment::assigned_partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicPartition {
    pub topic: String,
    pub partitions: Vec<i32>,
}

impl ConsumerProtocolSubscription {
    /// Reads version and struct; the version is the one in the bytes, which may be above [`VERSION_MAX`].
    ///
    /// # Errors
    /// [`DecodeError`]: a negative version, or bytes that are no subscription.
    pub fn parse(bytes: Bytes) -> Result<(i16, Self), DecodeError> {
        parse(bytes, "ConsumerProtocolSubscription.version")
    }

    /// Writes version and struct.
    ///
    /// # Errors
    /// [`EncodeError`] for a version outside 0 to [`VERSION_MAX`], or a topic name that is too long.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        to_bytes(self, version, "ConsumerProtocolSubscription.version")
    }
}

impl ConsumerProtocolAssignment {
    /// Reads version and struct; the version is the one in the bytes, which may be above [`VERSION_MAX`].
    ///
    /// # Errors
    /// [`DecodeError`]: a negative version, or bytes that are no assignment.
    pub fn parse(bytes: Bytes) -> Result<(i16, Self), DecodeError> {
        parse(bytes, "ConsumerProtocolAssignment.version")
    }

    /// Writes version and struct.
    ///
    /// # Errors
    /// [`EncodeError`] for a version outside 0 to [`VERSION_MAX`], or a topic name that is too long.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        to_bytes(self, version, "ConsumerProtocolAssignment.version")
    }
}

fn parse<T: Field>(bytes: Bytes, field: &'static str) -> Result<(i16, T), DecodeError> {
    let mut r = Reader::new(bytes);
    r.at(field);
    let version = i16::read(&mut r, 0)?;
    if version < 0 {
        return Err(r.error(DecodeErrorKind::Version(version)));
    }
    Ok((version, T::read(&mut r, version.min(VERSION_MAX))?))
}

fn to_bytes<T: Field>(value: &T, version: i16, field: &'static str) -> Result<Bytes, EncodeError> {
    let mut w = Writer::new();
    w.at(field);
    if !(0..=VERSION_MAX).contains(&version) {
        return Err(w.error(version, EncodeErrorKind::Version));
    }
    version.write(&mut w, version)?;
    value.write(&mut w, version)?;
    Ok(w.finish().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prim::{Random, Rng};

    #[test]
    fn comes_back_in_every_version() {
        let mut rng = Rng::new(1);
        for round in 0..200 {
            let version = round % (VERSION_MAX + 1);
            let subscription = ConsumerProtocolSubscription::random(&mut rng, version);
            let bytes = subscription.to_bytes(version).expect("representable");
            assert_eq!(
                ConsumerProtocolSubscription::parse(bytes),
                Ok((version, subscription))
            );
            let assignment = ConsumerProtocolAssignment::random(&mut rng, version);
            let bytes = assignment.to_bytes(version).expect("representable");
            assert_eq!(
                ConsumerProtocolAssignment::parse(bytes),
                Ok((version, assignment))
            );
        }
    }

    #[test]
    fn a_newer_version_is_read_as_far_as_it_is_known() {
        let subscription = ConsumerProtocolSubscription {
            topics: vec!["t".into()],
            ..Default::default()
        };
        let mut bytes = subscription.to_bytes(3).expect("representable").to_vec();
        bytes[1] = 9;
        bytes.extend([1, 2, 3]);
        assert_eq!(
            ConsumerProtocolSubscription::parse(bytes.into()),
            Ok((9, subscription))
        );
    }

    #[test]
    fn an_old_subscription_in_bytes() {
        let bytes = Bytes::from_static(&[0, 0, 0, 0, 0, 1, 0, 1, b't', 0xff, 0xff, 0xff, 0xff]);
        let expected = ConsumerProtocolSubscription {
            topics: vec!["t".into()],
            ..Default::default()
        };
        assert_eq!(ConsumerProtocolSubscription::parse(bytes), Ok((0, expected)));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let field = "ConsumerProtocolSubscription.version";
        let error = ConsumerProtocolSubscription::parse(Bytes::from_static(&[0xff, 0xff])).expect_err("-1");
        assert_eq!((error.field, error.kind), (field, DecodeErrorKind::Version(-1)));
        let error = ConsumerProtocolSubscription::parse(Bytes::new()).expect_err("nothing");
        assert_eq!(error.kind, DecodeErrorKind::End { needed: 2, left: 0 });
        assert!(ConsumerProtocolAssignment::parse(Bytes::from_static(b"\x00\x01\x7f\xff\xff\xff")).is_err());
    }
}
