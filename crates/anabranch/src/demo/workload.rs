//! What is written: records with keys, drawn at random or read from a file, the same ones in every run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use regex::bytes::Regex;

use super::oracle::Written;
use crate::failure::{Failure, Outcome, reason};
use crate::output::plural;

/// Where the draw begins; any number would do.
const SEED: u64 = 0x0A7A_B4A7;

/// Longest line of an input file that is taken, bytes: what a broker takes by default.
const LINE_BYTES_MAX: usize = 1_000_000;

/// Records in the order in which they are written.
pub(crate) struct Workload {
    /// What the check is told.
    pub(crate) written: Vec<Written>,
    /// The keys by their number.
    keys: Vec<Vec<u8>>,
    /// The values; empty for drawn records, whose values are made on the way.
    values: Vec<Vec<u8>>,
}

impl Workload {
    /// `records` records of `keys` keys; the key of rank r is drawn with a weight of `1 / r^zipf`.
    pub(crate) fn drawn(records: u32, keys: u32, zipf: f64) -> Workload {
        let mut sum = 0.0;
        let cumulated: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += f64::from(rank).powf(-zipf);
                sum
            })
            .collect();
        let mut random = SplitMix(SEED);
        let mut builder = Builder::default();
        for _ in 0..records {
            let at = random.unit() * sum;
            let rank = cumulated
                .partition_point(|sum| *sum <= at)
                .min(cumulated.len() - 1);
            builder.add(format!("customer-{rank:05}").as_bytes());
        }
        builder.finish(Vec::new())
    }

    /// One record for each line of a file, at most `records_max`.
    ///
    /// # Errors
    /// The file cannot be read, has no lines, or a line has no key.
    pub(crate) fn of_file(path: &Path, key: &KeyOf, records_max: u32) -> Outcome<Workload> {
        let name = path.display();
        let cannot =
            |error: std::io::Error| Failure::failed(format!("cannot read {name}: {}", reason(&error)));
        let mut reader = BufReader::with_capacity(1 << 18, File::open(path).map_err(cannot)?);
        let mut builder = Builder::default();
        let mut values = Vec::new();
        let mut line = Vec::new();
        while values.len() < records_max as usize {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(cannot)? == 0 {
                break;
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let number = values.len() + 1;
            if line.len() > LINE_BYTES_MAX {
                return Err(Failure::failed(format!(
                    "{name}, line {number}: it is longer than {LINE_BYTES_MAX} bytes"
                )));
            }
            let key = key
                .find(&line)
                .map_err(|why| Failure::failed(format!("{name}, line {number}: {why}")))?;
            builder.add(key);
            values.push(line.clone());
        }
        if values.is_empty() {
            return Err(Failure::failed(format!("{name} has no lines")));
        }
        Ok(builder.finish(values))
    }

    /// How many records.
    pub(crate) fn len(&self) -> u32 {
        self.written.len() as u32
    }

    /// How many keys occur.
    pub(crate) fn key_count(&self) -> u32 {
        self.keys.len() as u32
    }

    /// The key of a record.
    pub(crate) fn key(&self, record: u32) -> &[u8] {
        let key = self
            .written
            .get(record as usize)
            .map(|written| written.key as usize);
        key.and_then(|key| self.keys.get(key)).map_or(&[], Vec::as_slice)
    }

    /// The value of a record.
    pub(crate) fn value(&self, record: u32) -> Vec<u8> {
        if let Some(value) = self.values.get(record as usize) {
            return value.clone();
        }
        let key = String::from_utf8_lossy(self.key(record)).into_owned();
        let seq = self.written.get(record as usize).map_or(0, |written| written.seq);
        let amount = u64::from(record).wrapping_mul(7919) % 10_000;
        format!("{{\"customer\":\"{key}\",\"order\":{seq},\"amount_cents\":{amount},\"currency\":\"EUR\"}}")
            .into_bytes()
    }
}

/// Numbers keys in the order of their first record, and the records of each key.
#[derive(Default)]
struct Builder {
    numbers: BTreeMap<Vec<u8>, u32>,
    seqs: Vec<u32>,
    written: Vec<Written>,
}

impl Builder {
    fn add(&mut self, key: &[u8]) {
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => {
                let number = self.seqs.len() as u32;
                self.numbers.insert(key.to_vec(), number);
                self.seqs.push(0);
                number
            }
        };
        if let Some(next) = self.seqs.get_mut(number as usize) {
            self.written.push(Written {
                key: number,
                seq: *next,
            });
            *next += 1;
        }
    }

    fn finish(self, values: Vec<Vec<u8>>) -> Workload {
        let mut keys = vec![Vec::new(); self.seqs.len()];
        for (key, number) in self.numbers {
            if let Some(slot) = keys.get_mut(number as usize) {
                *slot = key;
            }
        }
        Workload {
            written: self.written,
            keys,
            values,
        }
    }
}

/// Where the key of a line is.
pub(crate) enum KeyOf {
    /// Column, counted from 1, and what separates columns.
    Column(usize, Vec<u8>),
    /// The first group of a regular expression, or all of what it matches.
    Regex(Regex),
    /// The whole line.
    Line,
}

impl KeyOf {
    fn find<'a>(&self, line: &'a [u8]) -> Result<&'a [u8], String> {
        match self {
            KeyOf::Line => Ok(line),
            KeyOf::Column(number, delimiter) => {
                let mut rest = line;
                for passed in 1..*number {
                    let at = rest
                        .windows(delimiter.len())
                        .position(|window| window == delimiter.as_slice());
                    let Some(at) = at else {
                        return Err(format!("it has only {}", plural(passed as u64, "column")));
                    };
                    rest = &rest[at + delimiter.len()..];
                }
                let end = rest
                    .windows(delimiter.len())
                    .position(|window| window == delimiter.as_slice());
                Ok(&rest[..end.unwrap_or(rest.len())])
            }
            KeyOf::Regex(regex) => {
                let found = regex
                    .captures(line)
                    .ok_or("the regular expression does not match it")?;
                let group = found.get(1).or_else(|| found.get(0));
                Ok(group.map_or(&[], |group| group.as_bytes()))
            }
        }
    }
}

/// A small generator of random numbers, the same ones everywhere (Steele, Lea and Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(workload: &Workload) -> Vec<f64> {
        let mut counts = BTreeMap::new();
        for written in &workload.written {
            *counts.entry(written.key).or_insert(0.0) += 1.0;
        }
        let mut shares: Vec<f64> = counts
            .values()
            .map(|count| count / f64::from(workload.len()))
            .collect();
        shares.sort_by(|a: &f64, b| b.total_cmp(a));
        shares
    }

    /// With exponent 1 the first of 10,000 keys has 1/H(10,000) of the records, about a tenth.
    #[test]
    fn skew_is_as_asked_for() {
        let even = Workload::drawn(50_000, 50, 0.0);
        assert_eq!(even.key_count(), 50);
        assert!(shares(&even)[0] < 0.025, "{:?}", shares(&even));
        let skewed = Workload::drawn(50_000, 10_000, 1.0);
        let first = shares(&skewed)[0];
        assert!((first - 0.102).abs() < 0.01, "{first}");
    }

    #[test]
    fn records_of_a_key_are_numbered() {
        let workload = Workload::drawn(1_000, 7, 0.5);
        let mut next = BTreeMap::new();
        for written in &workload.written {
            let due = next.entry(written.key).or_insert(0);
            assert_eq!(written.seq, *due);
            *due += 1;
        }
        assert_eq!(
            Workload::drawn(1_000, 7, 0.5).written,
            workload.written,
            "the same in every run"
        );
        let value: serde_json::Value = serde_json::from_slice(&workload.value(3)).unwrap();
        assert_eq!(value["customer"].as_str().unwrap().as_bytes(), workload.key(3));
    }

    #[test]
    fn keys_are_found_in_lines() {
        let column = |number| KeyOf::Column(number, b"::".to_vec());
        let line = b"a::b::::d".as_slice();
        for (number, key) in [(1, b"a".as_slice()), (2, b"b"), (3, b""), (4, b"d")] {
            assert_eq!(column(number).find(line), Ok(key));
        }
        assert_eq!(column(5).find(line), Err("it has only 4 columns".to_owned()));
        let regex = KeyOf::Regex(Regex::new("user=(\\w+)").unwrap());
        assert_eq!(regex.find(b"GET user=ann x"), Ok(b"ann".as_slice()));
        assert!(regex.find(b"GET").is_err());
        let whole = KeyOf::Regex(Regex::new("[0-9]+").unwrap());
        assert_eq!(whole.find(b"ab 12"), Ok(b"12".as_slice()));
    }

    #[test]
    fn a_file_is_taken_line_by_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a,1\r\nb,\xff\na,3").unwrap();
        let workload = Workload::of_file(file.path(), &KeyOf::Column(1, b",".to_vec()), 10).unwrap();
        let values: Vec<Vec<u8>> = (0..3).map(|i| workload.value(i)).collect();
        assert_eq!(values, [b"a,1\r".to_vec(), b"b,\xff".to_vec(), b"a,3".to_vec()]);
        assert_eq!(
            (workload.key(2), workload.written[2]),
            (b"a".as_slice(), Written { key: 0, seq: 1 })
        );
        let two = Workload::of_file(file.path(), &KeyOf::Line, 2).unwrap();
        assert_eq!(two.len(), 2);
        let failure = Workload::of_file(file.path(), &KeyOf::Column(3, b",".to_vec()), 10)
            .err()
            .unwrap();
        assert!(
            failure.message.ends_with("line 1: it has only 2 columns"),
            "{failure}"
        );
    }
}
