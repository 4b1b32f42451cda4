//! How many records of each slot a range of a log has: what a cut of a backlog is computed from.
//!
//! A small range is counted. Of a large one, chunks are read at evenly spaced offsets and each stands for the offsets
//! up to halfway to its neighbours; the cost is that of the chunks, whatever the range. Points come in the order 1/2,
//! 1/4, 3/4, 1/8 ..., so that wherever the budget ends, those visited are spread evenly.
//!
//! The error of a sample is estimated from the differences of neighbouring chunks, which contains both chance and the
//! way in which keys come in bursts or change along the log. For slots that were hardly seen it is what chance alone would
//! make of so few records, times how much more than chance all slots together vary.

use std::ops::ControlFlow;

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::sieve::Sieve;
use anabranch_core::slots::SlotSet;
use anabranch_wire::batch::BatchIter;
use anabranch_wire::slot::{SLOTS, Slot};
use bytes::Bytes;

use super::read::unit;
use super::scan_cache::{Content, Cost, Opened, ScanCache};
use super::source::{Source, SourceError};
use super::walk::{Halt, Way, walk};

/// Chunks of a sample, if the budget holds that long.
const CHUNKS: u32 = 32;
/// A range is counted if it has at most this share of the budget as it is stored: compressed batches grow.
const EXACT_SHARE: u64 = 2;

/// Records per slot.
#[derive(Clone, Debug)]
pub struct SlotCounts {
    counts: Box<[f64; SLOTS]>,
    /// Squared standard errors of a sample.
    variance: Box<[f64; SLOTS]>,
    /// Bounds of what was interpolated.
    slack: Box<[f64; SLOTS]>,
    exact: bool,
    /// What it cost.
    pub cost: Cost,
}

impl Default for SlotCounts {
    fn default() -> Self {
        Self {
            counts: Box::new([0.0; SLOTS]),
            variance: Box::new([0.0; SLOTS]),
            slack: Box::new([0.0; SLOTS]),
            exact: true,
            cost: Cost::default(),
        }
    }
}

impl SlotCounts {
    /// Whether every record was counted.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Records of a slot, rounded if estimated.
    pub fn of(&self, slot: Slot) -> u64 {
        self.counts[slot.index()].round() as u64
    }

    /// Records of each slot.
    pub fn to_table(&self) -> Box<[u64; SLOTS]> {
        let mut table = Box::new([0; SLOTS]);
        for (out, count) in table.iter_mut().zip(self.counts.iter()) {
            *out = count.round() as u64;
        }
        table
    }

    /// Records of all slots of a set together.
    pub fn sum(&self, slots: &SlotSet) -> u64 {
        slots
            .iter()
            .map(|slot| self.counts[slot.index()])
            .sum::<f64>()
            .round() as u64
    }

    /// How far [`Self::sum`] may be off: two standard errors (95 of 100 cases) of what was sampled, plus a hard bound of what
    /// was interpolated; 0 if exact.
    pub fn error(&self, slots: &SlotSet) -> u64 {
        let (mut variance, mut slack) = (0.0, 0.0);
        for slot in slots.iter() {
            variance += self.variance[slot.index()];
            slack += self.slack[slot.index()];
        }
        (2.0 * variance.sqrt() + slack).ceil() as u64
    }

    pub(super) fn add(&mut self, slot: usize, count: f64) {
        self.counts[slot] += count;
    }

    /// Adds what lies between 0 and `most`, taken to be `count`.
    pub(super) fn add_between(&mut self, slot: usize, count: f64, most: f64) {
        self.counts[slot] += count;
        self.slack[slot] += count.max(most - count);
        self.exact &= most == 0.0;
    }

    /// Adds the counts of another range.
    pub(super) fn merge(&mut self, other: &Self) {
        for slot in 0..SLOTS {
            self.counts[slot] += other.counts[slot];
            self.variance[slot] += other.variance[slot];
            self.slack[slot] += other.slack[slot];
        }
        self.exact &= other.exact;
        self.cost += other.cost;
    }
}

/// The part of a log that is counted: the records of a sieve in `from..upto`, `upto` at most the high watermark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) log: LogId,
    pub(super) sieve: &'a Sieve,
    pub(super) from: Offset,
    pub(super) upto: Offset,
    pub(super) high_watermark: Offset,
}

/// Counts the records that a sieve keeps below `upto`, the high watermark, per slot: all of them if that takes at most
/// `bytes_max` bytes (usually [`SURVEY_BYTES_MAX`](anabranch_core::limits::SURVEY_BYTES_MAX)), else from a sample of about
/// so many. `log_start` is where the log begins.
///
/// # Errors
/// Those of the source.
pub fn survey(
    source: &dyn Source,
    cache: &ScanCache,
    log: LogId,
    sieve: &Sieve,
    log_start: Offset,
    upto: Offset,
    bytes_max: usize,
) -> Result<SlotCounts, SourceError> {
    let part = Part {
        log,
        sieve,
        from: sieve.start().max(log_start),
        upto: upto.min(sieve.to()),
        high_watermark: upto,
    };
    survey_part(source, cache, &part, bytes_max)
}

pub(super) fn survey_part(
    source: &dyn Source,
    cache: &ScanCache,
    part: &Part<'_>,
    bytes_max: usize,
) -> Result<SlotCounts, SourceError> {
    let mut counts = SlotCounts::default();
    let mut part = *part;
    if part.from < part.upto
        && source.bytes_between(part.log, part.from, part.upto) <= bytes_max as u64 / EXACT_SHARE
    {
        match count(source, cache, &part, bytes_max, &mut counts)? {
            (_, Halt::End | Halt::Enough) => return Ok(counts),
            (_, Halt::NeedsDisk) => return Err(SourceError::NeedsDisk),
            // Compressed more than was thought: the rest is sampled.
            (at, Halt::Budget) => part.from = at,
        }
    }
    if part.from < part.upto {
        let mut spent = Cost::default();
        let sample = Sample::take(source, &part, bytes_max, &mut spent);
        cache.note(spent);
        counts.cost += spent;
        sample?.estimate(&part, &mut counts);
    }
    Ok(counts)
}

/// Offset and slot of each record of a batch.
pub(super) fn records_of(batch: &Opened) -> impl Iterator<Item = (Offset, Slot)> + '_ {
    let index = match &batch.content {
        Content::Records(index) => Some(index.iter()),
        Content::Control | Content::Unreadable(_) => None,
    };
    let alone = matches!(batch.content, Content::Unreadable(_)).then(|| unit(batch));
    index.into_iter().flatten().chain(alone)
}

fn count(
    source: &dyn Source,
    cache: &ScanCache,
    part: &Part<'_>,
    bytes_max: usize,
    counts: &mut SlotCounts,
) -> Result<(Offset, Halt), SourceError> {
    let way = Way {
        log: part.log,
        from: part.from,
        end: part.upto,
        upto: part.high_watermark,
        scan_bytes_max: bytes_max,
    };
    let mut cost = Cost::default();
    let walked = walk(source, cache, way, &mut cost, |batch| {
        for (offset, slot) in records_of(batch) {
            if offset >= part.from && offset < part.upto && part.sieve.keeps(slot, offset) {
                counts.add(slot.index(), 1.0);
            }
        }
        ControlFlow::Continue(())
    });
    counts.cost += cost;
    walked
}

/// What some chunks of a range hold.
struct Sample {
    chunks: Vec<Chunk>,
}

/// All records of `first..next`, per slot, whatever the sieve.
struct Chunk {
    first: Offset,
    next: Offset,
    slots: Vec<(u16, u32)>,
}

impl Chunk {
    fn span(&self) -> f64 {
        (self.next - self.first) as f64
    }
}

impl Sample {
    fn take(
        source: &dyn Source,
        part: &Part<'_>,
        bytes_max: usize,
        cost: &mut Cost,
    ) -> Result<Self, SourceError> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let bytes_each = (bytes_max / CHUNKS as usize).max(1);
        let mut spent = Cost::default();
        for number in 0..CHUNKS {
            if spent.read.max(spent.opened) >= bytes_max as u64 {
                break;
            }
            let at = point(number, part.from, part.upto);
            if chunks.iter().any(|chunk| (chunk.first..chunk.next).contains(&at)) {
                continue;
            }
            let slices = source.read(part.log, at, part.high_watermark, bytes_each)?;
            spent.read += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
            let opened = open(&slices, bytes_each);
            spent.opened += opened.iter().map(|batch| batch.body_bytes() as u64).sum::<u64>();
            chunks.extend(chunk(&opened));
        }
        chunks.sort_unstable_by_key(|chunk| chunk.first);
        *cost += spent;
        Ok(Self { chunks })
    }

    /// What each chunk stands for: up to halfway to its neighbours.
    fn stands_for(&self, part: &Part<'_>) -> Vec<(Offset, Offset)> {
        let middles = self
            .chunks
            .windows(2)
            .map(|pair| pair[0].next.midpoint(pair[1].first));
        let mut edges = vec![part.from];
        edges.extend(middles);
        edges.push(part.upto);
        edges.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn estimate(&self, part: &Part<'_>, counts: &mut SlotCounts) {
        counts.exact = false;
        let ranges = self.stands_for(part);
        let seen: f64 = self.chunks.iter().map(Chunk::span).sum();
        // Rates of the chunk before, and the sum of squared differences.
        let mut before = vec![0.0; SLOTS];
        let mut differences = vec![0.0; SLOTS];
        let mut records = vec![0.0; SLOTS];
        for (number, (chunk, (from, to))) in self.chunks.iter().zip(&ranges).enumerate() {
            let mut rates = vec![0.0; SLOTS];
            for (slot, count) in &chunk.slots {
                let slot = usize::from(*slot);
                records[slot] += f64::from(*count);
                rates[slot] = f64::from(*count) / chunk.span();
                counts.counts[slot] += rates[slot] * offsets(part, slot, *from, *to);
            }
            if number > 0 {
                for slot in 0..SLOTS {
                    differences[slot] += (rates[slot] - before[slot]).powi(2);
                }
            }
            before = rates;
        }
        let of_mean: Vec<f64> = differences
            .iter()
            .map(|sum| self.variance_of_mean(*sum))
            .collect();
        let by_chance: Vec<f64> = records
            .iter()
            .map(|records| records.max(1.0) / (seen * seen).max(1.0))
            .collect();
        // Keys that come in bursts are seen less often than their records say, those that were not seen at all included.
        let clustering = (of_mean.iter().sum::<f64>() / by_chance.iter().sum::<f64>()).max(1.0);
        for slot in 0..SLOTS {
            let length = offsets(part, slot, part.from, part.upto);
            counts.variance[slot] += length * length * of_mean[slot].max(clustering * by_chance[slot]);
        }
    }

    /// The squared standard error of a mean over all chunks, from the sum of squared differences of neighbours.
    fn variance_of_mean(&self, squared_differences: f64) -> f64 {
        let chunks = self.chunks.len().max(2) as f64;
        squared_differences / (2.0 * (chunks - 1.0)) / chunks
    }
}

/// How many offsets of `from..to` a slot has.
fn offsets(part: &Part<'_>, slot: usize, from: Offset, to: Offset) -> f64 {
    let floor = u16::try_from(slot)
        .ok()
        .and_then(Slot::new)
        .map_or(Offset::MAX, |slot| part.sieve.from_of(slot));
    to.saturating_sub(from.max(floor)).max(0) as f64
}

/// Opens batches until they have so many bytes, decompressed; at least one.
fn open(slices: &[Bytes], bytes_max: usize) -> Vec<Opened> {
    let batches = slices.iter().flat_map(|slice| {
        BatchIter::new(slice)
            .flatten()
            .map(|(at, header)| (header, slice.slice(at..at + header.size())))
    });
    let mut opened = Vec::new();
    let mut bytes = 0;
    for (header, stored) in batches {
        let batch = Opened::new(header, stored);
        bytes += batch.body_bytes();
        opened.push(batch);
        if bytes >= bytes_max {
            break;
        }
    }
    opened
}

fn chunk(opened: &[Opened]) -> Option<Chunk> {
    let first = opened.first()?.header.base_offset;
    let next = opened.last()?.header.next_offset();
    let mut slots = std::collections::BTreeMap::new();
    for (_, slot) in opened.iter().flat_map(records_of) {
        *slots.entry(slot.get()).or_default() += 1;
    }
    (first < next).then(|| Chunk {
        first,
        next,
        slots: slots.into_iter().collect(),
    })
}

/// The point with this number, of 1/2, 1/4, 3/4, 1/8, 5/8 ... of a range: van der Corput's sequence in base 2.
fn point(number: u32, from: Offset, upto: Offset) -> Offset {
    let share = u128::from((number + 1).reverse_bits());
    let length = upto.saturating_sub(from).max(0).unsigned_abs();
    from.saturating_add_unsigned(((u128::from(length) * share) >> 32) as u64)
}

#[cfg(test)]
#[path = "survey_test.rs"]
mod tests;
