//! SaslAuthenticate: the SASL exchange.
//!
//! Version 1 has session lifetimes (KIP-368).

use bytes::Bytes;

use crate::prim::Message;

/// A message of the mechanism.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 36, versions(0..=2), flexible(2..))]
pub struct SaslAuthenticateRequest {
    pub auth_bytes: Bytes,
}

/// The broker's message of the mechanism.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 36, versions(0..=2), flexible(2..))]
pub struct SaslAuthenticateResponse {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub auth_bytes: Bytes,
    #[kafka(versions(1..), ignorable)]
    pub session_lifetime_ms: i64,
}
