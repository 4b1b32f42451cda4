//! Decides what of the queue makes the next commit group, and in which frames.
//!
//! Within a group the batches of a log are gathered, so that a reader of the log gets one slice per group. This changes the
//! order on disk but not the order that counts: a group is durable as a whole or not at all, each entry keeps its sequence
//! number, a replay delivers the entries of a group by ascending number, and the batches of one log stay in order.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Offset};

use super::writer::{BuiltGroup, GroupWriter};
use super::{Batch, Entry};
use crate::buffer::Pool;
use crate::format::batch;
use crate::format::frame::{FRAME_PAYLOAD_MAX, FrameHeader, FrameKind, frame_bytes};
use crate::format::group::{GROUP_HEADER_BYTES, GroupHeader};
use crate::format::whole_blocks;
use crate::index::Run;

/// A frame to be written: entries of the group, by their place in it.
struct PlannedFrame {
    kind: FrameKind,
    /// Range of [`GroupPlan::order`].
    from: usize,
    to: usize,
    payload_bytes: usize,
}

/// What the next group will hold.
pub(crate) struct GroupPlan {
    /// Number of queue entries that it takes.
    pub(crate) entries: usize,
    /// Length on disk, in whole blocks.
    pub(crate) bytes: usize,
    /// The entries' places in the queue, states first, then batches by log.
    order: Vec<u32>,
    frames: Vec<PlannedFrame>,
    /// Number of frames that hold batches, and of logs that they belong to.
    pub(crate) runs: usize,
    pub(crate) logs: usize,
}

/// What a written group adds to the index, and the new end of each log in it.
#[derive(Debug, Default)]
pub(crate) struct GroupContent {
    /// Positions are relative to the group.
    pub(crate) runs: Vec<(LogId, Run)>,
    pub(crate) tails: Vec<(LogId, Offset)>,
}

/// How many entries from the front fit into one group. At least one.
fn extent(pending: &VecDeque<Entry>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let too_far = pending.iter().position(|entry| {
        bytes += entry.bytes();
        bytes > bytes_max
    });
    too_far.unwrap_or(pending.len()).max(1)
}

impl GroupPlan {
    /// Plans a group of up to about `bytes_max` from the front of a queue that is not empty.
    pub(crate) fn new(pending: &VecDeque<Entry>, bytes_max: usize) -> GroupPlan {
        let entries = extent(pending, bytes_max);
        let log_of = |place: u32| match &pending[place as usize] {
            Entry::State(_) => None,
            Entry::Batch(batch) => Some(batch.log),
        };
        let mut order: Vec<u32> = (0..u32::try_from(entries).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&place| log_of(place));

        let mut plan = GroupPlan {
            entries,
            bytes: 0,
            order,
            frames: Vec::new(),
            runs: 0,
            logs: 0,
        };
        let mut log_before = None;
        for at in 0..plan.order.len() {
            let place = plan.order[at];
            let size = pending[place as usize].bytes();
            let log = log_of(place);
            let same_log = log.is_some() && log == log_before;
            if let Some(frame) = plan.frames.last_mut().filter(|_| same_log)
                && frame.payload_bytes + size <= FRAME_PAYLOAD_MAX
            {
                frame.to = at + 1;
                frame.payload_bytes += size;
                continue;
            }
            let kind = if log.is_some() {
                FrameKind::Batches
            } else {
                FrameKind::State
            };
            plan.frames.push(PlannedFrame {
                kind,
                from: at,
                to: at + 1,
                payload_bytes: size,
            });
            plan.runs += usize::from(log.is_some());
            plan.logs += usize::from(log.is_some() && !same_log);
            log_before = log;
        }
        let frames: usize = plan
            .frames
            .iter()
            .map(|frame| frame_bytes(frame.kind, frame.payload_bytes, frame.to - frame.from))
            .sum();
        plan.bytes = whole_blocks(GROUP_HEADER_BYTES + frames);
        plan
    }

    /// Copies the entries into a buffer. `header` lacks only what the content determines.
    pub(crate) fn build(
        &self,
        pending: &VecDeque<Entry>,
        header: GroupHeader,
        pool: &Arc<Pool>,
        seed: u32,
    ) -> (BuiltGroup, GroupContent) {
        let mut writer = GroupWriter::new(pool.take(self.bytes), seed);
        let mut content = GroupContent::default();
        for frame in &self.frames {
            let places = &self.order[frame.from..frame.to];
            match frame.kind {
                FrameKind::State => write_state(&mut writer, pending, places, header.first_lsn),
                _ => write_batches(&mut writer, &mut content, pending, places, header.first_lsn),
            }
        }
        let lsn_count = u32::try_from(self.entries).unwrap_or(u32::MAX);
        (writer.finish(GroupHeader { lsn_count, ..header }), content)
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn write_state(writer: &mut GroupWriter, pending: &VecDeque<Entry>, places: &[u32], group_lsn: u64) {
    for &place in places {
        let Entry::State(bytes) = &pending[place as usize] else {
            continue;
        };
        writer.begin_frame();
        writer.push(bytes);
        writer.end_frame(&FrameHeader {
            kind: FrameKind::State,
            log: LogId(0),
            payload_bytes: length(bytes.len()),
            entries: 1,
            first_lsn: group_lsn + u64::from(place),
            base_offset: 0,
            last_offset: 0,
        });
    }
}

fn write_batches(
    writer: &mut GroupWriter,
    content: &mut GroupContent,
    pending: &VecDeque<Entry>,
    places: &[u32],
    group_lsn: u64,
) {
    let batches = || {
        places.iter().filter_map(|&place| match &pending[place as usize] {
            Entry::Batch(batch) => Some((place, batch)),
            Entry::State(_) => None,
        })
    };
    let Some((first_place, first)) = batches().next() else {
        return;
    };
    let position = length(writer.begin_frame());
    let mut run = Run::starting_with(first, position);
    for (_, batch) in batches() {
        let copy = writer.push(&batch.bytes);
        batch::patch(copy, batch.base_offset, batch.leader_epoch);
        run.add(batch);
    }
    for (place, _) in batches() {
        writer.push(&(place - first_place).to_le_bytes());
    }
    writer.end_frame(&FrameHeader {
        kind: FrameKind::Batches,
        log: first.log,
        payload_bytes: run.payload_bytes,
        entries: run.batches,
        first_lsn: group_lsn + u64::from(first_place),
        base_offset: run.base_offset,
        last_offset: run.last_offset,
    });
    content.runs.push((first.log, run));
    let tail = (first.log, run.last_offset + 1);
    match content.tails.last_mut() {
        Some(last) if last.0 == tail.0 => *last = tail,
        _ => content.tails.push(tail),
    }
}

impl Run {
    fn starting_with(batch: &Batch, position: u32) -> Run {
        Run {
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            max_timestamp: batch.max_timestamp,
            max_timestamp_base: batch.base_offset,
            position,
            payload_bytes: 0,
            batches: 0,
        }
    }

    fn add(&mut self, batch: &Batch) {
        self.last_offset = batch.last_offset;
        self.payload_bytes += length(batch.bytes.len());
        self.batches += 1;
        if batch.max_timestamp > self.max_timestamp {
            self.max_timestamp = batch.max_timestamp;
            self.max_timestamp_base = batch.base_offset;
        }
    }
}
