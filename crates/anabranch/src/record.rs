//! Records as lines of JSON, the same for what goes in and what comes out, so that one can be piped into the other.
//!
//! ```text
//! {"topic":"t","partition":0,"offset":7,"timestamp":1769860800000,"key":"k","value":"v",
//!  "headers":[{"key":"h","value":"x"}]}
//! ```
//!
//! Bytes that are not UTF-8 stand in `key_base64` and `value_base64` instead, so nothing is lost or guessed. On the way
//! in, `topic`, `partition` and `offset` are skipped, and a value that is no string (an object, a number) is sent as
//! the JSON text that stands there.

use std::io::{self, Write};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A record to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Option<Vec<u8>>,
    /// `None` marks the key as deleted in a compacted topic.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<Header>,
    /// Milliseconds since 1970; `None`: now, which is also what librdkafka takes a zero for.
    pub(crate) timestamp_ms: Option<i64>,
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) key: String,
    pub(crate) value: Option<Vec<u8>>,
}

/// A record that was received, lent by the client library.
pub(crate) struct Received<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordIn<'a> {
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    key_base64: Option<String>,
    #[serde(default)]
    value_base64: Option<String>,
    #[serde(borrow, default)]
    headers: Option<Vec<HeaderIn<'a>>>,
    #[serde(default)]
    timestamp: Option<i64>,
    #[serde(default, rename = "topic")]
    _topic: Option<String>,
    #[serde(default, rename = "partition")]
    _partition: Option<i32>,
    #[serde(default, rename = "offset")]
    _offset: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderIn<'a> {
    key: String,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    value_base64: Option<String>,
}

/// Reads a record from a line of JSON.
pub(crate) fn from_json(line: &[u8]) -> Result<Record, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    // Without this an array would do, its elements taken for the fields in order.
    if !text.trim_start().starts_with('{') {
        return Err("expected a JSON object".to_owned());
    }
    let read: RecordIn<'_> = serde_json::from_str(text).map_err(|error| {
        let whole = error.to_string();
        let reason = whole.split(" at line 1").next().unwrap_or_default();
        let reason = match error.classify() {
            serde_json::error::Category::Data => reason.to_owned(),
            _ => format!("this is no JSON: {reason}"),
        };
        if error.column() > 0 {
            format!("{reason} (column {})", error.column())
        } else {
            reason
        }
    })?;
    let header = |header: HeaderIn<'_>| -> Result<Header, String> {
        if header.key.contains('\0') {
            return Err("a header's name contains a zero byte".to_owned());
        }
        Ok(Header {
            value: bytes("header", header.value, header.value_base64.as_deref())?,
            key: header.key,
        })
    };
    Ok(Record {
        key: bytes("key", read.key, read.key_base64.as_deref())?,
        value: bytes("value", read.value, read.value_base64.as_deref())?,
        headers: read
            .headers
            .unwrap_or_default()
            .into_iter()
            .map(header)
            .collect::<Result<_, _>>()?,
        timestamp_ms: read.timestamp.filter(|ms| *ms >= 0),
    })
}

/// The bytes that a JSON value stands for.
fn bytes(what: &str, plain: Option<&RawValue>, base64: Option<&str>) -> Result<Option<Vec<u8>>, String> {
    match (plain.map(RawValue::get), base64) {
        (Some(_), Some(_)) => Err(format!("{what} is given twice, as text and as base 64")),
        (None, Some(base64)) => decode_base64(base64)
            .map(Some)
            .ok_or_else(|| format!("{what}_base64 is not base 64")),
        (None | Some("null"), None) => Ok(None),
        (Some(text), None) if text.starts_with('"') => {
            let text: String = serde_json::from_str(text).map_err(|error| error.to_string())?;
            Ok(Some(text.into_bytes()))
        }
        (Some(text), None) => Ok(Some(text.as_bytes().to_vec())),
    }
}

/// Writes a record as a line of JSON.
pub(crate) fn write_json(out: &mut impl Write, record: &Received<'_>) -> io::Result<()> {
    out.write_all(b"{\"topic\":")?;
    serde_json::to_writer(&mut *out, record.topic)?;
    write!(
        out,
        ",\"partition\":{},\"offset\":{},\"timestamp\":",
        record.partition, record.offset
    )?;
    match record.timestamp_ms {
        Some(ms) => write!(out, "{ms}")?,
        None => out.write_all(b"null")?,
    }
    write_bytes(out, "key", record.key)?;
    write_bytes(out, "value", record.value)?;
    out.write_all(b",\"headers\":[")?;
    for (i, (key, value)) in record.headers.iter().enumerate() {
        out.write_all(if i == 0 { b"{\"key\":" } else { b",{\"key\":" })?;
        serde_json::to_writer(&mut *out, key)?;
        write_bytes(out, "value", *value)?;
        out.write_all(b"}")?;
    }
    out.write_all(b"]}\n")
}

fn write_bytes(out: &mut impl Write, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else {
        return write!(out, ",\"{name}\":null");
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            write!(out, ",\"{name}\":")?;
            serde_json::to_writer(out, text)?;
            Ok(())
        }
        Err(_) => write!(out, ",\"{name}_base64\":\"{}\"", encode_base64(bytes)),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base 64 (RFC 4648) with padding.
fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let symbol = ALPHABET[(group >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

/// The inverse of [`encode_base64`]; `None` for anything else.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let symbols = text.trim_end_matches('=');
    if text.len() - symbols.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3 + 2);
    for chunk in symbols.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for symbol in chunk {
            let value = match symbol {
                b'A'..=b'Z' => symbol - b'A',
                b'a'..=b'z' => symbol - b'a' + 26,
                b'0'..=b'9' => symbol - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            group = group << 6 | u32::from(value);
        }
        group <<= 6 * (4 - chunk.len());
        bytes.extend(group.to_be_bytes().iter().skip(1).take(chunk.len() * 6 / 8));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[test]
    fn json_records_are_read() {
        let record =
            from_json(br#"{"key":"k","value":"a\nb","headers":[{"key":"h","value":null}],"timestamp":5}"#)
                .unwrap();
        assert_eq!(record.key, some("k"));
        assert_eq!(record.value, some("a\nb"));
        assert_eq!(
            record.headers,
            [Header {
                key: "h".to_owned(),
                value: None
            }]
        );
        assert_eq!(record.timestamp_ms, Some(5));
        assert_eq!(
            from_json(br#"{"value":{"z":1, "a":[2]}}"#).unwrap().value,
            some(r#"{"z":1, "a":[2]}"#)
        );
        assert_eq!(
            from_json(br#"{"topic":"t","offset":3}"#).unwrap(),
            Record::default()
        );
    }

    #[test]
    fn wrong_json_says_where() {
        for (line, why) in [
            (r#"{"value":"#, "column 9"),
            (r#"{"valeu":"x"}"#, "unknown field `valeu`"),
            (r#"["x"]"#, "expected a JSON object"),
            (r#"{"value":"x","value_base64":"eA=="}"#, "given twice"),
            (r#"{"value_base64":"x"}"#, "not base 64"),
        ] {
            let error = from_json(line.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn base_64_is_the_standard_one() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode_base64(plain.as_bytes()), encoded);
            assert_eq!(decode_base64(encoded).unwrap(), plain.as_bytes());
        }
        for wrong in ["Zg", "Zg=", "Z===", "Zm9v!m9v", "ZÄ=="] {
            assert_eq!(decode_base64(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            key in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
            value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
            header in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9)),
            name in "\\PC*",
            timestamp_ms in proptest::option::of(0..i64::MAX),
        ) {
            let received = Received {
                topic: &name,
                partition: 3,
                offset: 9,
                timestamp_ms,
                key: key.as_deref(),
                value: value.as_deref(),
                headers: vec![(&name, header.as_deref())],
            };
            let mut line = Vec::new();
            write_json(&mut line, &received).unwrap();
            prop_assert_eq!(line.pop(), Some(b'\n'));
            prop_assert!(!line.contains(&b'\n'));
            let headers = vec![Header { key: name.clone(), value: header }];
            prop_assert_eq!(from_json(&line).unwrap(), Record { key, value, headers, timestamp_ms });
        }
    }
}
