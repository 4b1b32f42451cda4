//! The building blocks of the encoding: reader, writer, and how each type lies on the wire.
//!
//! How the parts play together: a struct with `#[derive(Message)]` becomes a [`Field`] whose `read` and `write` go
//! through its fields one by one. A whole request or response is also a [`Message`]: it knows its API key, its
//! versions, and from which version on the encoding is *flexible* (compact lengths, tagged fields; KIP-482). It says so
//! to the [`Reader`] or [`Writer`], where every field inside asks for it; so nested structs need no version rules of
//! their own.
//!
//! The reader is for hostile input: it lends slices of the frame, compares every length and count with the bytes that
//! are there, and notes the name of the field, so that a [`DecodeError`] says which field is wrong, where and how.
//! The writer keeps large bytes ([`Records`]) as they are; [`crate::chunks::Chunks`] is the result.

mod error;
mod fields;
#[cfg(test)]
mod random;
mod reader;
mod records;
mod writer;

use std::ops::RangeInclusive;

pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use fields::{Field, Nullable, Struct, read_nullable, write_nullable};
#[cfg(test)]
pub(crate) use random::{Random, Rng};
pub use reader::{DECODE_MEMORY_MAX, Reader};
pub use records::Records;
pub use writer::{TagMark, Writer};

pub use anabranch_wire_derive::Message;

use crate::api::ApiKey;

/// A universally unique id in network byte order; all zero means none.
pub type Uuid = [u8; 16];

/// A whole request or response, derived with `#[kafka(key = .., versions(..), flexible(..))]`.
pub trait Message: Field + Default {
    /// The API it belongs to.
    const KEY: ApiKey;
    /// Name of the struct, as in Kafka's schema.
    const NAME: &'static str;
    /// Versions that the struct can carry; what is served is in [`crate::api`].
    const VERSIONS: RangeInclusive<i16>;
    /// First version with compact lengths and tagged fields; `i16::MAX` if there is none.
    const FLEXIBLE: i16;

    /// Reads the message at the reader's position; bytes behind it are the caller's affair ([`Reader::finish`]).
    ///
    /// # Errors
    /// [`DecodeErrorKind::Version`] outside [`Message::VERSIONS`], and as [`Field::read`]
    fn decode(r: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        r.at(Self::NAME);
        if !Self::VERSIONS.contains(&version) {
            return Err(r.error(DecodeErrorKind::Version(version)));
        }
        r.set_flexible(version >= Self::FLEXIBLE);
        Self::read(r, version)
    }

    /// Appends the message to the writer.
    ///
    /// # Errors
    /// [`EncodeErrorKind::Version`] outside [`Message::VERSIONS`], and as [`Field::write`]
    fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        w.at(Self::NAME);
        if !Self::VERSIONS.contains(&version) {
            return Err(w.error(version, EncodeErrorKind::Version));
        }
        w.set_flexible(version >= Self::FLEXIBLE);
        self.write(w, version)
    }
}

/// A request, with the type of its response.
pub trait Request: Message {
    /// What answers it, in the same version.
    type Response: Message;
}
