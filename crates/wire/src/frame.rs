//! Frames: the length prefix, and the headers in front of requests and responses.
//!
//! A server reads four bytes, asks [`length`] whether it wants so much, reads the frame, and gives it to
//! [`Incoming::parse`]. That yields the header with a reader that stands at the body, or says why not, with as much
//! as an answer needs. After [`Incoming::decode`] into a request struct comes a response, and [`encode_response`] makes
//! the frame to send. The other direction ([`encode_request`], [`decode_response`]) is for clients: tests, benchmarks.

use bytes::Bytes;

use crate::api::ApiKey;
use crate::chunks::Chunks;
use crate::prim::{
    DecodeError, EncodeError, EncodeErrorKind, Field, Message, Nullable, Reader, Request, Writer,
};

/// Bytes of the length prefix.
pub const PREFIX_LEN: usize = 4;

/// Bytes of the shortest request: API key, version, correlation id.
const REQUEST_LEN_MIN: usize = 8;

/// A length prefix that is not accepted; the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// Larger than the limit, in bytes.
    #[error("frame too large: {length} > {limit} bytes")]
    TooLarge {
        /// The prefix.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// Negative, or too short for a request header.
    #[error("frame length {0} is impossible")]
    Impossible(i32),
}

/// The length of the frame behind a prefix, at most `limit` bytes.
///
/// # Errors
/// [`LengthError`]: negative, shorter than any request, or above the limit.
pub fn length(prefix: [u8; PREFIX_LEN], limit: usize) -> Result<usize, LengthError> {
    let claimed = i32::from_be_bytes(prefix);
    match usize::try_from(claimed) {
        Ok(length) if length > limit => Err(LengthError::TooLarge { length, limit }),
        Ok(length) if length >= REQUEST_LEN_MIN => Ok(length),
        _ => Err(LengthError::Impossible(claimed)),
    }
}

/// What precedes the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API.
    pub api_key: ApiKey,
    /// The version of the API.
    pub api_version: i16,
    /// Comes back in the response.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<String>,
}

/// A request whose header is read and whose body is not.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The header.
    pub header: RequestHeader,
    body: Reader,
}

/// Why a frame is no request that can be answered in the regular way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No such API here: close the connection, as Kafka does.
    #[error("unknown API key {api_key} (version {api_version})")]
    UnknownApi {
        /// The number from the frame.
        api_key: i16,
        /// The version from the frame.
        api_version: i16,
    },
    /// The API is known, but not served in this version. For ApiVersions: answer in version 0 with error 35 and the
    /// list (KIP-511); for others: close.
    #[error("{api_key} is not served in version {api_version}")]
    UnsupportedVersion {
        /// The API.
        api_key: ApiKey,
        /// The version from the frame.
        api_version: i16,
        /// For the answer.
        correlation_id: i32,
    },
    /// The header is damaged: close.
    #[error("request header: {0}")]
    Header(#[from] DecodeError),
}

impl Incoming {
    /// Reads the header of a frame (without its length prefix), and checks that the API is served in this version.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn parse(frame: Bytes) -> Result<Self, FrameError> {
        let mut r = Reader::new(frame);
        r.at("RequestHeader.request_api_key");
        let number = i16::read(&mut r, 0)?;
        r.at("RequestHeader.request_api_version");
        let api_version = i16::read(&mut r, 0)?;
        r.at("RequestHeader.correlation_id");
        let correlation_id = i32::read(&mut r, 0)?;
        let Some(api_key) = ApiKey::from_i16(number) else {
            return Err(FrameError::UnknownApi {
                api_key: number,
                api_version,
            });
        };
        if !api_key.api().serves(api_version) {
            return Err(FrameError::UnsupportedVersion {
                api_key,
                api_version,
                correlation_id,
            });
        }
        r.at("RequestHeader.client_id");
        // Not compact in any version, so that a broker can read it before it knows the rest.
        let client_id = String::read_or_null(&mut r, 0)?;
        r.at("RequestHeader.tagged_fields");
        r.set_flexible(api_key.api().request_header_version(api_version) >= 2);
        r.skip_tags()?;
        Ok(Self {
            header: RequestHeader {
                api_key,
                api_version,
                correlation_id,
                client_id,
            },
            body: r,
        })
    }

    /// Reads the body.
    ///
    /// Bytes behind it are ignored, as Apache Kafka does: librdkafka (seen with 2.12.1) ends a Metadata request for all
    /// topics in the flexible versions with three bytes too many.
    ///
    /// # Errors
    /// [`DecodeError`]; its code is the answer, where the response has a place for one.
    pub fn decode<T: Request>(&self) -> Result<T, DecodeError> {
        debug_assert_eq!(
            self.header.api_key,
            T::KEY,
            "the caller chose the type by the key"
        );
        let mut r = self.body.clone();
        T::decode(&mut r, self.header.api_version)
    }
}

/// The frame of a response, with its length prefix. Records in it are not copied.
///
/// # Errors
/// [`EncodeError`] if a value has no place in the version, or the frame would be longer than `i32::MAX` bytes.
pub fn encode_response<T: Message>(
    correlation_id: i32,
    response: &T,
    version: i16,
) -> Result<Chunks, EncodeError> {
    let mut w = Writer::new();
    w.put(&[0; PREFIX_LEN]);
    w.put(&correlation_id.to_be_bytes());
    w.set_flexible(T::KEY.api().response_header_version(version) >= 1);
    w.no_tags();
    response.encode(&mut w, version)?;
    finish::<T>(w, version)
}

/// The frame of a request, with its length prefix, as a client sends it.
///
/// # Errors
/// As [`encode_response`]
pub fn encode_request<T: Request>(
    correlation_id: i32,
    client_id: Option<&str>,
    request: &T,
    version: i16,
) -> Result<Chunks, EncodeError> {
    let mut w = Writer::new();
    w.put(&[0; PREFIX_LEN]);
    w.at("RequestHeader");
    w.put(&T::KEY.number().to_be_bytes());
    w.put(&version.to_be_bytes());
    w.put(&correlation_id.to_be_bytes());
    String::write_or_null(client_id.map(str::to_owned).as_ref(), &mut w, version)?;
    w.set_flexible(T::KEY.api().request_header_version(version) >= 2);
    w.no_tags();
    request.encode(&mut w, version)?;
    finish::<T>(w, version)
}

/// Puts the length in front.
fn finish<T: Message>(mut w: Writer, version: i16) -> Result<Chunks, EncodeError> {
    let length = w.length() - PREFIX_LEN;
    w.at(T::NAME);
    let prefix = i32::try_from(length)
        .map_err(|_| w.error(version, EncodeErrorKind::TooLong(length)))?
        .to_be_bytes();
    w.patch(0, prefix);
    Ok(w.finish())
}

/// Reads the frame of a response (without its length prefix), as a client does: correlation id and body.
///
/// # Errors
/// [`DecodeError`]
pub fn decode_response<T: Message>(frame: Bytes, version: i16) -> Result<(i32, T), DecodeError> {
    let mut r = Reader::new(frame);
    r.at("ResponseHeader.correlation_id");
    let correlation_id = i32::read(&mut r, 0)?;
    r.set_flexible(T::KEY.api().response_header_version(version) >= 1);
    r.skip_tags()?;
    let body = T::decode(&mut r, version)?;
    r.finish()?;
    Ok((correlation_id, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::{
        ApiVersionsRequest, ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse, MetadataRequest,
    };

    #[test]
    fn length_prefixes() {
        assert_eq!(length([0, 0, 0, 8], 100), Ok(8));
        assert_eq!(length([0, 0, 0, 100], 100), Ok(100));
        assert_eq!(
            length([0, 0, 0, 101], 100),
            Err(LengthError::TooLarge {
                length: 101,
                limit: 100
            })
        );
        assert_eq!(length([0, 0, 0, 0], 100), Err(LengthError::Impossible(0)));
        assert_eq!(length([0, 0, 0, 7], 100), Err(LengthError::Impossible(7)));
        assert_eq!(length([0xff; 4], 100), Err(LengthError::Impossible(-1)));
        let error = length(*b"GET ", 1 << 20).expect_err("HTTP");
        assert_eq!(error.to_string(), "frame too large: 1195725856 > 1048576 bytes");
    }

    fn request(version: i16) -> Bytes {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            member_id: "m".into(),
            ..Default::default()
        };
        encode_request(7, Some("me"), &request, version)
            .expect("representable")
            .to_bytes()
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        for version in 0..=4 {
            let bytes = request(version);
            assert_eq!(
                length([bytes[0], bytes[1], bytes[2], bytes[3]], 1000),
                Ok(bytes.len() - PREFIX_LEN)
            );
            let incoming = Incoming::parse(bytes.slice(PREFIX_LEN..)).expect("a whole header");
            let header = &incoming.header;
            assert_eq!((header.api_key, header.api_version), (ApiKey::Heartbeat, version));
            assert_eq!(
                (header.correlation_id, header.client_id.as_deref()),
                (7, Some("me"))
            );
            let body: HeartbeatRequest = incoming.decode().expect("a whole body");
            assert_eq!((body.group_id.as_str(), body.member_id.as_str()), ("g", "m"));
        }
    }

    #[test]
    fn every_truncation_is_an_error_and_a_byte_too_many_is_not() {
        for version in 0..=4 {
            let frame = request(version).slice(PREFIX_LEN..);
            for end in 0..frame.len() {
                let error = Incoming::parse(frame.slice(..end))
                    .and_then(|incoming| Ok(incoming.decode::<HeartbeatRequest>()?))
                    .expect_err("cut off");
                assert!(matches!(error, FrameError::Header(_)), "{error}");
            }
            let mut longer = frame.to_vec();
            longer.push(0);
            let incoming = Incoming::parse(longer.into()).expect("a whole header");
            incoming.decode::<HeartbeatRequest>().expect("a whole body");
        }
    }

    /// What librdkafka 2.12.1 sends to list all topics: the array's place is four bytes, its flexible form takes one.
    #[test]
    fn metadata_for_all_topics_as_librdkafka_sends_it() {
        let frame = b"\0\x03\0\x0d\0\0\0\x03\0\x09anabranch\0\0\0\0\0\0\0\0";
        let incoming = Incoming::parse(Bytes::from_static(frame)).expect("a whole header");
        let body: MetadataRequest = incoming.decode().expect("a whole body");
        assert_eq!((body.topics, body.allow_auto_topic_creation), (None, false));
    }

    #[test]
    fn unknown_apis_and_versions_are_told_apart() {
        let error = Incoming::parse(Bytes::from_static(&[0, 99, 0, 1, 0, 0, 0, 5])).expect_err("no API 99");
        assert_eq!(
            error,
            FrameError::UnknownApi {
                api_key: 99,
                api_version: 1
            }
        );
        // The version decides before the rest of the header is looked at: its form is unknown.
        let error =
            Incoming::parse(Bytes::from_static(&[0, 18, 0, 9, 0, 0, 0, 5])).expect_err("no version 9");
        let expected = FrameError::UnsupportedVersion {
            api_key: ApiKey::ApiVersions,
            api_version: 9,
            correlation_id: 5,
        };
        assert_eq!(error, expected);
    }

    #[test]
    fn responses_have_the_header_of_their_version() {
        let response = HeartbeatResponse {
            error_code: 27,
            ..Default::default()
        };
        let old = encode_response(7, &response, 0)
            .expect("representable")
            .to_bytes();
        assert_eq!(old[..], [0, 0, 0, 6, 0, 0, 0, 7, 0, 27]);
        let flexible = encode_response(7, &response, 4)
            .expect("representable")
            .to_bytes();
        assert_eq!(flexible[..], [0, 0, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 27, 0]);
        let (id, back) =
            decode_response::<HeartbeatResponse>(flexible.slice(PREFIX_LEN..), 4).expect("a whole response");
        assert_eq!((id, back), (7, response));
        // No tagged fields in the header of this one, in any version.
        let response = encode_response(7, &ApiVersionsResponse::default(), 3)
            .expect("representable")
            .to_bytes();
        assert_eq!(response[..], [0, 0, 0, 12, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_flexible_header_skips_unknown_tags() {
        let mut frame = vec![0, 18, 0, 3, 0, 0, 0, 5, 0, 1, b'c', 1, 9, 2, 1, 1];
        frame.extend([2, b'n', 2, b'v', 0]);
        let incoming = Incoming::parse(frame.into()).expect("a whole header");
        let body: ApiVersionsRequest = incoming.decode().expect("a whole body");
        assert_eq!(
            (
                body.client_software_name.as_str(),
                body.client_software_version.as_str()
            ),
            ("n", "v")
        );
    }
}
