//! Kafka bytes to types and back, for hostile input.
//!
//! The contract: nothing here panics on input, no allocation is sized by a count from the wire, records are never
//! copied.

pub mod batch;
pub mod error_code;
pub mod slot;

pub use error_code::ErrorCode;
