//! SaslHandshake: choosing a SASL mechanism.
//!
//! Version 1 wraps the exchange that follows into SaslAuthenticate (KIP-152).

use crate::prim::Message;

/// The mechanism that the client wants.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 17, versions(0..=1))]
pub struct SaslHandshakeRequest {
    pub mechanism: String,
}

/// Whether it is available, and which are.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 17, versions(0..=1))]
pub struct SaslHandshakeResponse {
    pub error_code: i16,
    pub mechanisms: Vec<String>,
}
