//! Turns bytes of files or standard input into records, without changing one of them.

use std::io::{self, BufRead, Read};

use clap::ValueEnum;

use crate::failure::{Failure, Outcome, reason};
use crate::record::{self, Record};

/// The longest line that is read: far more than a broker takes, so that it, and not memory, is the limit.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// What a line of the input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    /// The value of a record, byte for byte.
    Lines,
    /// A JSON object with key, value, headers and timestamp.
    Json,
    /// Key, separator, value.
    Kv,
}

/// How lines become records.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) input: Input,
    /// Between key and value.
    pub(crate) separator: Vec<u8>,
}

/// Reads records from one source.
pub(crate) struct Records<R> {
    reading: Reading,
    /// What the source is called in messages.
    name: String,
    source: R,
    line: Vec<u8>,
    line_number: u64,
}

impl<R: BufRead> Records<R> {
    pub(crate) fn new(reading: Reading, name: String, source: R) -> Records<R> {
        Records {
            reading,
            name,
            source,
            line: Vec::new(),
            line_number: 0,
        }
    }

    /// The next record and the number of bytes that it took from the source; `None` at the end.
    pub(crate) fn next(&mut self) -> Outcome<Option<(Record, u64)>> {
        self.line.clear();
        let read = Read::take(&mut self.source, LINE_BYTES_MAX).read_until(b'\n', &mut self.line);
        let taken = read.map_err(|error| self.cannot_read(&error))? as u64;
        if taken == 0 {
            return Ok(None);
        }
        self.line_number += 1;
        if taken == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(self.wrong("it is longer than 256 MiB"));
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(Some((self.record()?, taken)))
    }

    fn record(&self) -> Outcome<Record> {
        match self.reading.input {
            Input::Lines => Ok(Record {
                value: Some(self.line.clone()),
                ..Record::default()
            }),
            Input::Json => record::from_json(&self.line).map_err(|why| {
                self.wrong(&why)
                    .hint("a line is like {\"key\":\"k\",\"value\":\"v\",\"headers\":[{\"key\":\"h\",\"value\":\"x\"}]}; --input lines takes it as it is")
            }),
            Input::Kv => {
                let separator = self.reading.separator.as_slice();
                let Some(at) = self
                    .line
                    .windows(separator.len())
                    .position(|window| window == separator)
                else {
                    let separator = String::from_utf8_lossy(separator).escape_debug().to_string();
                    return Err(self
                        .wrong(&format!("there is no \"{separator}\" between key and value"))
                        .hint(
                            "--key-separator names another separator; --input lines takes the line as it is",
                        ));
                };
                let (key, rest) = self.line.split_at(at);
                let value = rest.get(separator.len()..).unwrap_or_default();
                Ok(Record {
                    key: Some(key.to_vec()),
                    value: Some(value.to_vec()),
                    ..Record::default()
                })
            }
        }
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::failed(format!("{}, line {}: {why}", self.name, self.line_number))
    }

    fn cannot_read(&self, error: &io::Error) -> Failure {
        Failure::failed(format!("cannot read {}: {}", self.name, reason(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(input: Input, separator: &str, bytes: &[u8]) -> Outcome<Vec<Record>> {
        let reading = Reading {
            input,
            separator: separator.as_bytes().to_vec(),
        };
        let mut records = Records::new(reading, "input".to_owned(), bytes);
        let mut all = Vec::new();
        while let Some((record, _)) = records.next()? {
            all.push(record);
        }
        Ok(all)
    }

    #[test]
    fn keys_end_at_the_first_separator() {
        let records = all(Input::Kv, "::", b"a::b::c\n::\n").unwrap();
        assert_eq!(records[0].key.as_deref(), Some(b"a".as_slice()));
        assert_eq!(records[0].value.as_deref(), Some(b"b::c".as_slice()));
        assert_eq!(
            (records[1].key.as_deref(), records[1].value.as_deref()),
            (Some(b"".as_slice()), Some(b"".as_slice()))
        );
        let failure = all(Input::Kv, "\t", b"a\tb\nc\n").unwrap_err();
        assert_eq!(
            failure.message,
            "input, line 2: there is no \"\\t\" between key and value"
        );
    }

    #[test]
    fn json_errors_name_the_line() {
        let failure = all(Input::Json, ":", b"{}\n{\n").unwrap_err();
        assert!(failure.message.starts_with("input, line 2: "), "{failure}");
    }

    proptest! {
        /// Whatever bytes come in, joining the values with newlines gives them back.
        #[test]
        fn lines_are_kept_byte_for_byte(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200)) {
            let records = all(Input::Lines, ":", &bytes).unwrap();
            let values: Vec<Vec<u8>> = records.into_iter().filter_map(|record| record.value).collect();
            let mut joined: Vec<u8> = values.join(&b'\n');
            if bytes.last() == Some(&b'\n') {
                joined.push(b'\n');
            }
            prop_assert_eq!(joined, bytes);
        }
    }
}
