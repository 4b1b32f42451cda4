//! Kafka bytes to types and back, for hostile input.
//!
//! The contract: nothing here panics on input, no allocation is sized by a count from the wire, records are never
//! copied.
//!
//! How the parts play together: [`frame`] takes the bytes of a connection apart into header and body, by the rules of
//! [`api`], the table of what is served. The bodies are the structs in [`msg`], one file per API; they say with
//! attributes how they lie on the wire, and [`prim`] does the reading and writing. What is to be sent comes out as
//! [`chunks`]. Record batches are bytes to all of these; [`batch`] knows what is in them, and [`slot`] to which slot
//! a record's key belongs.

pub mod api;
pub mod batch;
pub mod chunks;
pub mod error_code;
pub mod frame;
pub mod msg;
pub mod prim;
pub mod slot;

pub use error_code::ErrorCode;
