//! How a received record is printed.

use std::io::{self, Write};

use crate::record::{self, Received};

/// How a received record is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The value and a newline.
    Value,
    /// A line of JSON.
    Json,
    /// Key, separator, value and a newline.
    KeyValue(Vec<u8>),
    /// The value alone.
    Raw,
    /// Pieces of text and fields, like kcat's formats.
    Template(Vec<Piece>),
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    Field(Field),
}

/// A field of a record in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Value,
    ValueSize,
    Key,
    KeySize,
    Topic,
    Partition,
    Offset,
    Timestamp,
    Headers,
}

/// The letters of the fields; kcat's.
const FIELDS: &[(char, Field)] = &[
    ('s', Field::Value),
    ('S', Field::ValueSize),
    ('k', Field::Key),
    ('K', Field::KeySize),
    ('t', Field::Topic),
    ('p', Field::Partition),
    ('o', Field::Offset),
    ('T', Field::Timestamp),
    ('h', Field::Headers),
];

impl Layout {
    /// Reads a layout from the command line.
    pub(crate) fn parse(text: &str, separator: &str) -> Result<Layout, String> {
        match text {
            "value" => Ok(Layout::Value),
            "json" => Ok(Layout::Json),
            "raw" => Ok(Layout::Raw),
            "kv" => Ok(Layout::KeyValue(crate::produce::unescape(separator))),
            format if format.contains('%') => template(format).map(Layout::Template),
            _ => Err(format!(
                "--output {text}: expected value, json, kv, raw, or a format with fields such as %s"
            )),
        }
    }

    /// Prints a record.
    pub(crate) fn write(&self, out: &mut impl Write, record: &Received<'_>) -> io::Result<()> {
        match self {
            Layout::Json => record::write_json(out, record),
            Layout::Raw => out.write_all(record.value.unwrap_or_default()),
            Layout::Value => {
                out.write_all(record.value.unwrap_or_default())?;
                out.write_all(b"\n")
            }
            Layout::KeyValue(separator) => {
                out.write_all(record.key.unwrap_or_default())?;
                out.write_all(separator)?;
                out.write_all(record.value.unwrap_or_default())?;
                out.write_all(b"\n")
            }
            Layout::Template(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.write_all(text)?,
                        Piece::Field(field) => write_field(out, *field, record)?,
                    }
                }
                Ok(())
            }
        }
    }
}

fn write_field(out: &mut impl Write, field: Field, record: &Received<'_>) -> io::Result<()> {
    match field {
        Field::Value => out.write_all(record.value.unwrap_or_default()),
        Field::ValueSize => write_size(out, record.value),
        Field::Key => out.write_all(record.key.unwrap_or_default()),
        Field::KeySize => write_size(out, record.key),
        Field::Topic => out.write_all(record.topic.as_bytes()),
        Field::Partition => write!(out, "{}", record.partition),
        Field::Offset => write!(out, "{}", record.offset),
        Field::Timestamp => write!(out, "{}", record.timestamp_ms.unwrap_or(-1)),
        Field::Headers => {
            for (i, (name, value)) in record.headers.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(out, "{comma}{name}=")?;
                out.write_all(value.unwrap_or_default())?;
            }
            Ok(())
        }
    }
}

/// The number of bytes; -1 for null, as kcat has it.
fn write_size(out: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes {
        Some(bytes) => write!(out, "{}", bytes.len()),
        None => out.write_all(b"-1"),
    }
}

fn template(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next() {
                Some('%') => text.push(b'%'),
                Some(letter) => {
                    let field = FIELDS
                        .iter()
                        .find(|(known, _)| *known == letter)
                        .map(|(_, field)| *field);
                    let known = || {
                        FIELDS
                            .iter()
                            .map(|(letter, _)| format!("%{letter}"))
                            .collect::<Vec<_>>()
                            .join(" ")
                    };
                    let field = field.ok_or_else(|| {
                        format!("--output: there is no field %{letter}; there are {}", known())
                    })?;
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Field(field));
                }
                None => return Err("--output: a % at the end; write %% for the sign itself".to_owned()),
            },
            '\\' => text.extend(escape(&mut chars)?),
            c => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// The bytes of an escape sequence, behind its backslash.
fn escape(chars: &mut std::str::Chars<'_>) -> Result<Vec<u8>, String> {
    let wrong =
        |what: &str| format!("--output: \\{what} is no escape; there are \\n \\r \\t \\0 \\\\ and \\xNN");
    match chars.next() {
        Some('n') => Ok(vec![b'\n']),
        Some('r') => Ok(vec![b'\r']),
        Some('t') => Ok(vec![b'\t']),
        Some('0') => Ok(vec![0]),
        Some('\\') => Ok(vec![b'\\']),
        Some('x') => {
            let digits: String = chars.by_ref().take(2).collect();
            u8::from_str_radix(&digits, 16)
                .map(|byte| vec![byte])
                .map_err(|_| wrong(&format!("x{digits}")))
        }
        Some(other) => Err(wrong(&other.to_string())),
        None => Err(wrong("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(layout: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
        let record = Received {
            topic: "orders",
            partition: 2,
            offset: 40,
            timestamp_ms: Some(1000),
            key,
            value,
            headers: vec![("a", Some(b"1".as_slice())), ("b", None)],
        };
        let mut out = Vec::new();
        Layout::parse(layout, "::")
            .unwrap()
            .write(&mut out, &record)
            .unwrap();
        out
    }

    #[test]
    fn values_are_printed_byte_for_byte() {
        let value = b"caf\xe9\r".as_slice();
        assert_eq!(print("value", None, Some(value)), b"caf\xe9\r\n");
        assert_eq!(print("raw", None, Some(value)), value);
        assert_eq!(print("kv", Some(b"k"), Some(value)), b"k::caf\xe9\r\n");
        assert_eq!(print("value", None, None), b"\n");
    }

    #[test]
    fn templates_have_fields_and_escapes() {
        let line = print(
            "%t/%p@%o %T [%k:%K] %s %S %h 100%%\\t\\x41\\n",
            Some(b"key"),
            Some(b"v"),
        );
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "orders/2@40 1000 [key:3] v 1 a=1,b= 100%\tA\n"
        );
        assert_eq!(print("%K %S", None, None), b"-1 -1");
    }

    #[test]
    fn wrong_layouts_are_explained() {
        for (layout, why) in [
            ("xml", "expected value, json, kv, raw"),
            ("%q", "there is no field %q"),
            ("%s%", "a % at the end"),
            ("%s\\q", "\\q is no escape"),
            ("%s\\xg", "\\xg is no escape"),
        ] {
            let error = Layout::parse(layout, ":").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
