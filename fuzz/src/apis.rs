//! A table of all messages, to get from an API key to the code that reads its request and its response.

use anabranch_wire::api::ApiKey;
use anabranch_wire::frame::{self, Incoming, RequestHeader};
use anabranch_wire::msg;
use anabranch_wire::prim::{Message, Reader, Request, Writer};
use bytes::Bytes;

/// What can be done with one API.
pub struct Row {
    /// The API.
    pub key: ApiKey,
    /// Reads a request's body in a version; see [`round_trip`].
    pub request: fn(Bytes, i16),
    /// Reads a response's body in a version; see [`round_trip`].
    pub response: fn(Bytes, i16),
    /// Reads the body of a frame whose header was read.
    pub incoming: fn(&Incoming),
    /// A request of default values in the highest version: the version, and the body.
    pub default_request: fn() -> (i16, Bytes),
    /// A whole frame of a default request in this version, or `None` if the struct has no such version.
    pub default_frame: fn(i16) -> Option<Bytes>,
}

macro_rules! rows {
    ($($module:ident: $request:ident => $response:ident;)*) => {
        /// One row per API.
        pub const ROWS: &[Row] = &[$(Row {
            key: <msg::$request as Message>::KEY,
            request: round_trip::<msg::$request>,
            response: round_trip::<msg::$response>,
            incoming: incoming::<msg::$request>,
            default_request: || {
                let version = *<msg::$request as Message>::VERSIONS.end();
                (version, encode(&<msg::$request>::default(), version))
            },
            default_frame: |version| {
                let frame = frame::encode_request(7, Some("fuzz"), &<msg::$request>::default(), version);
                Some(frame.ok()?.to_bytes())
            },
        },)*];
    };
}

anabranch_wire::with_messages!(rows);

/// The row of an API.
///
/// # Panics
/// If the list of messages lacks an API of the table of APIs.
pub fn row(key: ApiKey) -> &'static Row {
    ROWS.iter()
        .find(|row| row.key == key)
        .unwrap_or_else(|| panic!("{key} is missing in the table"))
}

/// Reads a body. What can be read can be written, and what was written reads as the same again.
fn round_trip<T: Message>(body: Bytes, version: i16) {
    let Some(message) = decode::<T>(body, version) else {
        return;
    };
    let once = encode(&message, version);
    // Compared as bytes, since a number that is not one differs from itself.
    let again = decode::<T>(once.clone(), version).expect("what was just written can be read");
    assert_eq!(encode(&again, version), once, "{} version {version}", T::NAME);
}

fn incoming<T: Request>(incoming: &Incoming) {
    let RequestHeader {
        api_version,
        correlation_id,
        client_id,
        ..
    } = incoming.header.clone();
    let Ok(request) = incoming.decode::<T>() else {
        return;
    };
    let frame = frame::encode_request(correlation_id, client_id.as_deref(), &request, api_version)
        .expect("what was read can be written")
        .to_bytes();
    let again = Incoming::parse(frame.slice(frame::PREFIX_LEN..)).expect("what was written can be read");
    assert_eq!(again.header, incoming.header);
}

/// A body to its last byte, or `None`.
fn decode<T: Message>(body: Bytes, version: i16) -> Option<T> {
    let mut r = Reader::new(body);
    let message = T::decode(&mut r, version).ok()?;
    r.finish().ok()?;
    Some(message)
}

/// A body.
///
/// # Panics
/// If the message holds a value that has no place in the version.
pub fn encode<T: Message>(message: &T, version: i16) -> Bytes {
    let mut w = Writer::new();
    message
        .encode(&mut w, version)
        .unwrap_or_else(|error| panic!("{error}"));
    w.finish().to_bytes()
}
