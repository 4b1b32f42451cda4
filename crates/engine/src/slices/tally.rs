//! Records per slot along a log, counted ahead of the question.
//!
//! A tally covers `start..end` of one log as blocks, each with a count per slot. Work in the background moves the end
//! towards the high watermark and the start behind the slowest reader; a decision then adds up blocks. Only the blocks
//! that a reader stands in, and what came in since, are surveyed.
//!
//! Memory is bounded: when there are too many blocks, neighbours are merged, and blocks are twice as long from then on.

use std::collections::VecDeque;

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::sieve::Sieve;
use anabranch_wire::batch::BatchIter;
use anabranch_wire::slot::{SLOTS, Slot};

use super::scan_cache::{Cost, Opened, ScanCache};
use super::source::{Source, SourceError};
use super::survey::{Part, SlotCounts, records_of, survey_part};

/// Records of a block before any were merged.
const BLOCK_RECORDS: u64 = 4096;
/// Fewest blocks that merging leaves room for.
const BLOCKS_MIN: usize = 4;

/// The tally of one log.
#[derive(Debug)]
pub struct Tally {
    log: LogId,
    /// In order, each beginning where the one before ends.
    blocks: VecDeque<Block>,
    end: Offset,
    /// Records of a full block.
    block_records: u64,
    blocks_max: usize,
}

#[derive(Debug)]
struct Block {
    first: Offset,
    next: Offset,
    records: u64,
    counts: Box<[u32; SLOTS]>,
}

impl Block {
    fn new(first: Offset) -> Self {
        Self {
            first,
            next: first,
            records: 0,
            counts: Box::new([0; SLOTS]),
        }
    }

    fn absorb(&mut self, later: &Self) {
        self.next = later.next;
        self.records += later.records;
        for (count, more) in self.counts.iter_mut().zip(later.counts.iter()) {
            *count = count.saturating_add(*more);
        }
    }
}

impl Tally {
    /// A tally that begins at `start` with nothing counted. It takes at most `bytes_max` bytes, but room for four blocks of
    /// 16 KiB; see [`TALLY_BYTES_MAX`](anabranch_core::limits::TALLY_BYTES_MAX).
    pub fn new(log: LogId, start: Offset, bytes_max: usize) -> Self {
        Self {
            log,
            blocks: VecDeque::new(),
            end: start,
            block_records: BLOCK_RECORDS,
            blocks_max: (bytes_max / size_of::<[u32; SLOTS]>()).max(BLOCKS_MIN),
        }
    }

    /// The first offset that is covered.
    pub fn start(&self) -> Offset {
        self.blocks.front().map_or(self.end, |block| block.first)
    }

    /// The offset up to which everything is counted.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.len() * size_of::<[u32; SLOTS]>()
    }

    /// Counts on towards the high watermark, reading about `bytes_max` bytes. The work of a background thread; it is done
    /// when [`Self::end`] has reached the high watermark.
    ///
    /// # Errors
    /// Those of the source. What was counted stays.
    pub fn advance(
        &mut self,
        source: &dyn Source,
        high_watermark: Offset,
        bytes_max: usize,
    ) -> Result<Cost, SourceError> {
        let mut cost = Cost::default();
        if self.end >= high_watermark {
            return Ok(cost);
        }
        for slice in source.read(self.log, self.end, high_watermark, bytes_max)? {
            cost.read += slice.len() as u64;
            for (at, header) in BatchIter::new(&slice).flatten() {
                let batch = Opened::new(header, slice.slice(at..at + header.size()));
                cost.opened += batch.body_bytes() as u64;
                self.count(&batch);
            }
        }
        Ok(cost)
    }

    /// Forgets blocks that lie wholly below the lowest offset anybody will ask for. If that is ahead of what was counted,
    /// counting goes on from there.
    pub fn trim(&mut self, below: Offset) {
        while self.blocks.front().is_some_and(|block| block.next <= below) {
            self.blocks.pop_front();
        }
        if self.blocks.is_empty() {
            self.end = self.end.max(below);
            self.block_records = BLOCK_RECORDS;
        }
    }

    fn count(&mut self, batch: &Opened) {
        let from = self.end;
        if self
            .blocks
            .back()
            .is_none_or(|block| block.records >= self.block_records)
        {
            self.make_room();
            self.blocks.push_back(Block::new(from));
        }
        let Some(block) = self.blocks.back_mut() else {
            return;
        };
        for (_, slot) in records_of(batch).filter(|(offset, _)| *offset >= from) {
            block.counts[slot.index()] = block.counts[slot.index()].saturating_add(1);
            block.records += 1;
        }
        self.end = self.end.max(batch.header.next_offset());
        block.next = self.end;
    }

    fn make_room(&mut self) {
        if self.blocks.len() < self.blocks_max {
            return;
        }
        let mut merged = VecDeque::with_capacity(self.blocks.len());
        while let Some(mut block) = self.blocks.pop_front() {
            if let Some(later) = self.blocks.pop_front() {
                block.absorb(&later);
            }
            merged.push_back(block);
        }
        self.blocks = merged;
        self.block_records = self.block_records.saturating_mul(2);
    }

    /// The records that a sieve keeps below the high watermark, per slot.
    ///
    /// Whole blocks are exact. Blocks that a start of the sieve or its end cuts, and what lies outside of what is covered, are
    /// surveyed with `bytes_max` bytes altogether; a cut block for which the source would have to wait is interpolated instead,
    /// and the result says how far it may be off.
    ///
    /// # Errors
    /// Those of the source, for what the tally does not cover.
    pub fn remaining(
        &self,
        source: &dyn Source,
        cache: &ScanCache,
        sieve: &Sieve,
        high_watermark: Offset,
        bytes_max: usize,
    ) -> Result<SlotCounts, SourceError> {
        let upto = high_watermark.min(sieve.to());
        let starts = starts(sieve);
        let mut counts = SlotCounts::default();
        let mut cut = Vec::new();
        for block in &self.blocks {
            let is_cut = |offset| block.first < offset && offset < block.next;
            if is_cut(upto) || starts.iter().any(|start| is_cut(*start)) {
                cut.push(block);
            } else if block.next <= upto {
                add_whole(block, sieve, &mut counts);
            }
        }
        let outside = [
            (starts.first().copied().unwrap_or(upto), self.start().min(upto)),
            (self.end.max(starts.first().copied().unwrap_or(upto)), upto),
        ];
        let outside: Vec<_> = outside.into_iter().filter(|(from, to)| from < to).collect();
        let bytes_each = bytes_max / (cut.len() + outside.len()).max(1);
        let part = |from, to| Part {
            log: self.log,
            sieve,
            from,
            upto: to,
            high_watermark,
        };
        for (from, to) in outside {
            counts.merge(&survey_part(source, cache, &part(from, to), bytes_each)?);
        }
        for block in cut {
            let to = block.next.min(upto);
            match survey_part(source, cache, &part(block.first, to), bytes_each) {
                Ok(surveyed) => counts.merge(&surveyed),
                Err(SourceError::NeedsDisk) => interpolate(block, sieve, to, &mut counts),
                Err(error) => return Err(error),
            }
        }
        Ok(counts)
    }
}

/// The distinct starts of a sieve's slots, ascending.
fn starts(sieve: &Sieve) -> Vec<Offset> {
    let mut starts: Vec<_> = slots()
        .map(|slot| sieve.from_of(slot))
        .filter(|from| *from < sieve.to())
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn slots() -> impl Iterator<Item = Slot> {
    (0..SLOTS as u16).filter_map(Slot::new)
}

fn add_whole(block: &Block, sieve: &Sieve, counts: &mut SlotCounts) {
    for slot in slots().filter(|slot| sieve.from_of(*slot) <= block.first) {
        counts.add(slot.index(), f64::from(block.counts[slot.index()]));
    }
}

/// Takes the records of each slot to lie evenly along the block.
fn interpolate(block: &Block, sieve: &Sieve, upto: Offset, counts: &mut SlotCounts) {
    let length = (block.next - block.first).max(1) as f64;
    for slot in slots() {
        let all = f64::from(block.counts[slot.index()]);
        let wanted = upto.saturating_sub(block.first.max(sieve.from_of(slot))).max(0) as f64;
        if wanted >= length {
            counts.add(slot.index(), all);
        } else if wanted > 0.0 {
            counts.add_between(slot.index(), all * wanted / length, all);
        }
    }
}

#[cfg(test)]
#[path = "tally_test.rs"]
mod tests;
