//! Proof of the messages, in one loop over all of them each.
//!
//! [`golden`]: bytes from Kafka's own codec come out the same. [`differential`]: a second codec agrees on random
//! values. [`round_trip`]: random values in every version come back. [`hostile`]: damaged bytes are errors at
//! bounded cost, which [`allocation`] measures.

mod allocation;
mod differential;
mod golden;
mod hostile;
mod round_trip;

use std::fmt::Debug;

use bytes::Bytes;

use crate::prim::{DecodeError, Message, Random, Reader, Writer};

/// What to do with each message type.
trait Visit {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self);
}

macro_rules! visit {
    ($($module:ident: $request:ident => $response:ident;)*) => {
        /// Goes through all requests and responses.
        fn each_message(visit: &mut impl Visit) {
            $(visit.message::<super::$request>(); visit.message::<super::$response>();)*
        }
    };
}

with_messages!(visit);

/// The body alone.
fn encode<T: Message>(message: &T, version: i16) -> Bytes {
    let mut w = Writer::new();
    message
        .encode(&mut w, version)
        .unwrap_or_else(|error| panic!("{error}"));
    w.finish().to_bytes()
}

/// The body alone, to its last byte.
fn decode<T: Message>(bytes: Bytes, version: i16) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes);
    let message = T::decode(&mut r, version)?;
    r.finish()?;
    Ok(message)
}
