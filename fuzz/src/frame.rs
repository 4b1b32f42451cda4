//! A frame from a connection: length prefix, request header, and the body that the header names.
//!
//! Input: what a client sends, from the first byte of the length prefix.

use anabranch_wire::frame::{self, FrameError, Incoming};
use bytes::Bytes;

use crate::apis;

/// A limit that short inputs can pass and lie about.
const LENGTH_MAX: usize = 64 * 1024;

/// Reads as a server does.
pub fn run(data: &[u8]) {
    let Some((prefix, rest)) = data.split_first_chunk::<{ frame::PREFIX_LEN }>() else {
        return;
    };
    if let Ok(length) = frame::length(*prefix, LENGTH_MAX) {
        assert!(length <= LENGTH_MAX);
    }
    // The body is looked at whatever the prefix says, or nearly no input would get there.
    match Incoming::parse(Bytes::copy_from_slice(rest)) {
        Ok(incoming) => (apis::row(incoming.header.api_key).incoming)(&incoming),
        Err(FrameError::UnsupportedVersion {
            api_key, api_version, ..
        }) => {
            assert!(!api_key.api().serves(api_version));
        }
        Err(FrameError::UnknownApi { .. } | FrameError::Header(_)) => {}
    }
}
