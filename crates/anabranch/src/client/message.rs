//! A received message as the record that is printed.

#![expect(
    unsafe_code,
    reason = "the rdkafka crate panics on header names that are not UTF-8, so they are read here"
)]

use std::ffi::CStr;

use rdkafka::bindings as sys;
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Headers, Message};

use crate::record::Received;

/// The parts of a message, lent by it.
pub(crate) fn received<'a>(message: &'a BorrowedMessage<'_>) -> Received<'a> {
    Received {
        topic: message.topic(),
        partition: message.partition(),
        offset: message.offset(),
        timestamp_ms: message.timestamp().to_millis(),
        key: message.key(),
        value: message.payload(),
        headers: message.headers().map(headers).unwrap_or_default(),
    }
}

/// The headers in order. A name that is not UTF-8, which no client library for Kafka writes, is shown as a sign.
fn headers(headers: &BorrowedHeaders) -> Vec<(&str, Option<&[u8]>)> {
    (0..headers.count()).filter_map(|i| header(headers, i)).collect()
}

fn header(headers: &BorrowedHeaders, index: usize) -> Option<(&str, Option<&[u8]>)> {
    let native = std::ptr::from_ref(headers).cast::<sys::rd_kafka_headers_t>();
    let (mut name, mut value, mut size) = (std::ptr::null(), std::ptr::null(), 0);
    // SAFETY: a `BorrowedHeaders` has no contents of its own: its address is that of librdkafka's header list (the
    // test below holds that against a list that the crate made). The list only lends name and value, which live as
    // long as it does.
    unsafe {
        let code = sys::rd_kafka_header_get_all(native, index, &mut name, &mut value, &mut size) as i32;
        if code != 0 || name.is_null() {
            return None;
        }
        let name = CStr::from_ptr(name).to_str().unwrap_or("\u{fffd}");
        let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), size));
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::{Header, OwnedHeaders};

    #[test]
    fn headers_are_read_in_order_with_null_and_empty_values() {
        let owned = OwnedHeaders::new()
            .insert(Header {
                key: "a",
                value: Some("1"),
            })
            .insert(Header {
                key: "a",
                value: Some(""),
            })
            .insert(Header {
                key: "b",
                value: None::<&str>,
            });
        let read = headers(owned.as_borrowed());
        assert_eq!(
            read,
            [
                ("a", Some(b"1".as_slice())),
                ("a", Some(b"".as_slice())),
                ("b", None)
            ]
        );
        assert_eq!(header(owned.as_borrowed(), 3), None);
    }
}
