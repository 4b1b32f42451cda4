//! Hands the entries of a group to the owner of the state, in the order in which they were appended.

use anabranch_core::ids::{LogId, Lsn};

use super::scan::Group;
use crate::error::ReplayError;
use crate::format::batch;
use crate::format::frame::{Frame, FrameKind};

/// Takes what a store holds when it is opened: first the snapshot, if there is one, then every entry behind it in the order
/// of their numbers, without a gap.
pub trait Replay {
    /// The newest snapshot, as it was given to [`Store::write_snapshot`](crate::Store::write_snapshot).
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError>;

    /// A state entry.
    fn state(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError>;

    /// Consecutive batches of a log, with offsets and epochs as stored. `lsn` is the first one's; the others have the
    /// numbers that follow.
    fn batches(&mut self, lsn: Lsn, log: LogId, bytes: &[u8]) -> Result<(), ReplayError>;
}

/// One entry, or batches with consecutive numbers that lie behind each other in one frame.
struct Item<'a> {
    lsn: u64,
    count: u64,
    frame: usize,
    /// `None` for state.
    log: Option<LogId>,
    start: usize,
    bytes: &'a [u8],
}

/// Why a group cannot be replayed.
pub(super) enum Refusal {
    /// Its entries contradict its header.
    Contradiction,
    /// The owner of the state refused this one.
    Owner(u64, ReplayError),
}

fn items_of<'a>(number: usize, frame: &Frame<'a>, items: &mut Vec<Item<'a>>) -> Option<()> {
    let mut lsns = frame.lsns();
    if frame.header.kind == FrameKind::State {
        let lsn = lsns.next()?;
        items.push(Item {
            lsn,
            count: 1,
            frame: number,
            log: None,
            start: 0,
            bytes: frame.payload,
        });
        return Some(());
    }
    for (start, found) in batch::walk(frame.payload) {
        let bytes = frame.payload.get(start..start + found.bytes)?;
        let log = Some(frame.header.log);
        items.push(Item {
            lsn: lsns.next()?,
            count: 1,
            frame: number,
            log,
            start,
            bytes,
        });
    }
    lsns.next().is_none().then_some(())
}

/// Whether `next` continues `item`, in number and in place.
fn continues(item: &Item<'_>, next: &Item<'_>) -> bool {
    item.log.is_some()
        && item.frame == next.frame
        && item.lsn + item.count == next.lsn
        && item.start + item.bytes.len() == next.start
}

/// Replays the entries of a group that are behind `snapshot_lsn`. Gives their number.
pub(super) fn replay(group: &Group<'_>, snapshot_lsn: u64, replay: &mut dyn Replay) -> Result<u64, Refusal> {
    let mut items = Vec::new();
    for (number, (_, frame)) in group.frames.iter().enumerate() {
        items_of(number, frame, &mut items).ok_or(Refusal::Contradiction)?;
    }
    items.sort_by_key(|item| item.lsn);
    let gapless = items
        .iter()
        .zip(group.header.first_lsn..)
        .all(|(item, lsn)| item.lsn == lsn);
    if !gapless || items.len() as u64 != u64::from(group.header.lsn_count) {
        return Err(Refusal::Contradiction);
    }
    let mut replayed = 0;
    let mut items = items
        .into_iter()
        .filter(|item| item.lsn > snapshot_lsn)
        .peekable();
    while let Some(mut item) = items.next() {
        let frame = group
            .frames
            .get(item.frame)
            .map_or(&[][..], |(_, frame)| frame.payload);
        while let Some(next) = items.next_if(|next| continues(&item, next)) {
            item.bytes = &frame[item.start..next.start + next.bytes.len()];
            item.count += 1;
        }
        replayed += item.count;
        let lsn = Lsn(item.lsn);
        match item.log {
            Some(log) => replay.batches(lsn, log, item.bytes),
            None => replay.state(lsn, item.bytes),
        }
        .map_err(|error| Refusal::Owner(item.lsn, error))?;
    }
    Ok(replayed)
}
