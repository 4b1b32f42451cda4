//! Backlogs with keys: the same records, in the same order, for every broker.
//!
//! A value begins with the number of its key and how often the key came before, so that whoever reads it can check the
//! order without being told anything.

use crate::drive::admin::Admin;
use crate::drive::bytes::Produce;
use crate::drive::now_ms;
use anabranch_wire::batch::BatchBuilder;
use anabranch_wire::slot::slot_of_key;
use anyhow::{Context, Result, ensure};

/// How often each key occurs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    /// All equally often.
    Uniform,
    /// The key of rank r with a weight of 1 / r.
    Zipf,
}

/// Distinct keys.
const KEYS: u32 = 10_000;

/// Length of a value; a record in a batch has about 20 bytes more.
const VALUE_BYTES: usize = 200;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    pub(crate) records: u32,
    pub(crate) keys: Keys,
    /// Partitions, by Kafka's rule for keys.
    pub(crate) partitions: u16,
    pub(crate) records_per_batch: usize,
}

impl Backlog {
    /// In one partition, in batches as a busy producer makes them.
    pub(crate) fn new(records: u32, keys: Keys) -> Self {
        Self {
            records,
            keys,
            partitions: 1,
            records_per_batch: 500,
        }
    }

    /// Writes it to a topic that is there; returns how many records each key has.
    pub(crate) fn write(self, address: &str, topic: &str) -> Result<Vec<u32>> {
        let mut admin = Admin::connect(address)?;
        self.each_batch(|partition, batch| send(&mut admin, topic, partition, batch))
    }

    fn each_batch(self, mut send: impl FnMut(u16, BatchBuilder) -> Result<()>) -> Result<Vec<u32>> {
        let mut written = vec![0; KEYS as usize];
        let mut draw = Draw::new(self.keys);
        let mut open: Vec<Option<BatchBuilder>> = (0..self.partitions).map(|_| None).collect();
        for _ in 0..self.records {
            let key = draw.next();
            let name = key_name(key);
            let seq = &mut written[key as usize];
            let mut value = [b'x'; VALUE_BYTES];
            value[..4].copy_from_slice(&key.to_be_bytes());
            value[4..8].copy_from_slice(&u32::to_be_bytes(*seq));
            *seq += 1;
            // Kafka's partitioner: the same hash as for slots, and 4096 is a multiple of any power of two below it.
            let partition = slot_of_key(&name).get() % self.partitions;
            let place = &mut open[usize::from(partition)];
            let builder = place.get_or_insert_with(BatchBuilder::new);
            builder.append(now_ms(), Some(&name), Some(&value), &[]);
            if builder.len() >= self.records_per_batch
                && let Some(full) = place.take()
            {
                send(partition, full)?;
            }
        }
        for (partition, rest) in (0..).zip(open) {
            rest.map_or(Ok(()), |rest| send(partition, rest))?;
        }
        Ok(written)
    }
}

fn send(admin: &mut Admin, topic: &str, partition: u16, batch: BatchBuilder) -> Result<()> {
    let mut request = Produce::new(topic, &batch.finish()?, -1);
    request.set_partition(i32::from(partition));
    let answer = admin.call(request.frame)?;
    // One topic with one partition: its error stands behind count, name, count and number.
    let at = 4 + 2 + topic.len() + 4 + 4;
    let error = answer.get(at..at + 2).context("the answer is too short")?;
    ensure!(error == [0, 0], "writing the backlog failed: error {error:?}");
    Ok(())
}

/// The key with a number, as it stands in records.
pub(crate) fn key_name(key: u32) -> Vec<u8> {
    format!("key-{key:05}").into_bytes()
}

/// Which record a value is: its key, and how many of that key came before.
pub(crate) fn identity(value: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let (key, seq) = (number(0)?, number(4)?);
    (key < KEYS).then_some((key, seq))
}

/// A seeded draw of keys.
struct Draw {
    state: u64,
    /// Sums of weights; empty for uniform keys.
    cumulated: Vec<f64>,
}

impl Draw {
    fn new(keys: Keys) -> Self {
        let mut sum = 0.0;
        let cumulated = match keys {
            Keys::Uniform => Vec::new(),
            Keys::Zipf => (1..=KEYS)
                .map(|rank| {
                    sum += 1.0 / f64::from(rank);
                    sum
                })
                .collect(),
        };
        Self {
            state: 0x5eed,
            cumulated,
        }
    }

    fn next(&mut self) -> u32 {
        let unit = self.bits() as f64 / 2f64.powi(53);
        match self.cumulated.last() {
            None => (unit * f64::from(KEYS)) as u32,
            Some(sum) => self.cumulated.partition_point(|up_to| *up_to <= unit * sum) as u32,
        }
        .min(KEYS - 1)
    }

    /// 53 bits (splitmix64).
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_first(keys: Keys) -> f64 {
        let mut draw = Draw::new(keys);
        let first = (0..100_000).filter(|_| draw.next() == 0).count();
        first as f64 / 100_000.0
    }

    #[test]
    fn the_first_key_of_ten_thousand_has_a_tenth_under_zipf() {
        // The harmonic number of 10,000 is 9.79.
        assert!((share_of_first(Keys::Zipf) - 1.0 / 9.79).abs() < 0.005);
        assert!(share_of_first(Keys::Uniform) < 0.001);
    }

    #[test]
    fn records_are_of_the_present_time_and_none_is_missing() {
        let backlog = Backlog {
            partitions: 2,
            ..Backlog::new(1_001, Keys::Uniform)
        };
        let (mut records, before) = (0, now_ms());
        let written = backlog.each_batch(|_, batch| {
            records += batch.len();
            let made = batch.finish()?;
            let timestamp = i64::from_be_bytes(made[27..35].try_into()?);
            // Older ones would be deleted by retention while they are read.
            assert!((before..=now_ms()).contains(&timestamp), "{timestamp}");
            Ok(())
        });
        assert_eq!((records, written.unwrap().iter().sum()), (1_001, 1_001_u32));
    }

    #[test]
    fn a_value_says_which_record_it_is() {
        let mut value = [0; VALUE_BYTES];
        value[3] = 9;
        value[7] = 5;
        assert_eq!(identity(&value), Some((9, 5)));
        value[0] = 255;
        assert_eq!(identity(&value), None);
    }
}
