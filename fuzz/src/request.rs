//! The body of any request or response in any version, also in those that are not served.
//!
//! Input: API key (1 byte; plus 128 for the response), version (1 byte), body.

use anabranch_wire::api::ApiKey;
use bytes::Bytes;

use crate::apis;

/// Added to the API key to choose its response.
pub const RESPONSE: u8 = 0x80;

/// Reads the body that the first two bytes choose.
pub fn run(data: &[u8]) {
    let [key, version, body @ ..] = data else { return };
    let Some(api) = ApiKey::from_i16(i16::from(key & !RESPONSE)) else {
        return;
    };
    let row = apis::row(api);
    let read = if key & RESPONSE == 0 {
        row.request
    } else {
        row.response
    };
    read(Bytes::copy_from_slice(body), i16::from(*version));
}
