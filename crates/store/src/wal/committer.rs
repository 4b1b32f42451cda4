//! Writes the queue to the log, group by group. One call of [`Committer::run_once`] is one group; a thread calls it in a
//! loop, tests and simulations call it themselves.
//!
//! The order within a commit: write, sync, then index and cache, then the committed number, then the listener. So whoever
//! learns of a commit can read it, and nobody can read what is not committed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use anabranch_core::ids::Lsn;
use bytes::Bytes;

use super::Entry;
use super::plan::{GroupContent, GroupPlan};
use super::prepare::{Prepared, Wanted};
use super::writer::{BuiltGroup, GroupWriter};
use crate::buffer::Buffer;
use crate::disk::DiskFile;
use crate::error::is_out_of_space;
use crate::format::footer::{FooterBuilder, Trailer, footer_bytes};
use crate::format::group::{FLAG_CLEAN_CLOSE, GroupHeader};
use crate::format::{BLOCK_BYTES, whole_blocks};
use crate::options::Durability;
use crate::segment::Segment;
use crate::shared::{Commit, Event, Shared};

/// What one step of the committer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was queued.
    Idle,
    /// A group was committed.
    Committed,
    /// There is no room and no next segment; what is queued stays queued.
    Full,
    /// The store takes no more writes.
    Poisoned,
}

/// Where the log ends.
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where the next group goes.
    pub(crate) position: u64,
    pub(crate) first_lsn: u64,
    pub(crate) last_lsn: u64,
    /// Everything up to here is known to be on stable storage.
    pub(crate) durable_lsn: u64,
    pub(crate) group_seq: u64,
    pub(crate) group_crc: u32,
    /// The last group that is not in this segment, or was there before this start, and where it ends.
    pub(crate) counted_from: (u64, u64),
}

/// Below this mean length of groups it pays to fill the next segment with zeros ahead of time.
const SMALL_GROUP_BYTES: u64 = 256 << 10;

impl Tail {
    fn has_small_groups(&self) -> bool {
        let (groups, bytes) = (
            self.group_seq - self.counted_from.0,
            self.position - self.counted_from.1,
        );
        bytes < groups.saturating_mul(SMALL_GROUP_BYTES)
    }
}

/// The only writer of the log.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    pending: VecDeque<Entry>,
    tail: Tail,
}

/// An IO error, and what was being done.
pub(crate) struct Failure {
    action: &'static str,
    source: io::Error,
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure { action, source }
}

/// Writes a footer at the end of a file and gives the summaries with their places.
pub(crate) fn write_footer(
    builder: FooterBuilder,
    trailer: Trailer,
    file: &dyn DiskFile,
    file_bytes: u64,
) -> io::Result<Vec<crate::format::footer::Summary>> {
    let mut footer = Buffer::zeroed(builder.bytes());
    let summaries = builder.finish(trailer, file_bytes, footer.as_mut_slice());
    file.write_at(footer.as_slice(), file_bytes - footer.as_slice().len() as u64)?;
    Ok(summaries)
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, tail: Tail) -> Self {
        Committer {
            shared,
            pending: VecDeque::new(),
            tail,
        }
    }

    /// Commits one group of what is queued. `wait` says that another thread prepares segments, and that one that is needed
    /// is waited for; without it they are prepared here.
    pub(crate) fn run_once(&mut self, wait: bool) -> Step {
        if self.shared.poisoned().is_some() {
            return Step::Poisoned;
        }
        if !wait {
            self.shared.preparer.work();
        }
        self.shared.queue.take(&mut self.pending);
        if self.pending.is_empty() {
            return Step::Idle;
        }
        match self.commit(wait) {
            Ok(step) => step,
            Err(failure) => {
                let file = self.shared.layout.segment(self.tail.segment.seq);
                self.shared.poison(format!(
                    "cannot {} {}: {}",
                    failure.action,
                    file.display(),
                    failure.source
                ));
                Step::Poisoned
            }
        }
    }

    fn commit(&mut self, wait: bool) -> Result<Step, Failure> {
        let plan = GroupPlan::new(&self.pending, self.shared.options.group_bytes_max());
        if !self.make_room(&plan, wait)? {
            return Ok(Step::Full);
        }
        let header = self.next_header();
        let (group, content) = plan.build(&self.pending, header, &self.shared.pool, self.tail.segment.seed);
        self.write(&group)?;
        self.pending.drain(..plan.entries);
        self.publish(group, header.first_lsn + plan.entries as u64 - 1, content);
        Ok(Step::Committed)
    }

    fn next_header(&self) -> GroupHeader {
        GroupHeader {
            group_seq: self.tail.group_seq + 1,
            first_lsn: self.tail.last_lsn + 1,
            durable_lsn: self.tail.durable_lsn,
            previous_crc: self.tail.group_crc,
            ..GroupHeader::default()
        }
    }

    /// The group is safe when this returns.
    fn write(&mut self, group: &BuiltGroup) -> Result<(), Failure> {
        self.tail
            .file
            .write_at(group.buffer.as_slice(), self.tail.position)
            .map_err(failed("write"))?;
        if self.shared.options.durability == Durability::Durable {
            self.tail.file.sync_data().map_err(failed("sync"))?;
        }
        Ok(())
    }

    fn publish(&mut self, group: BuiltGroup, last_lsn: u64, content: GroupContent) {
        let tail = &mut self.tail;
        let position = u32::try_from(tail.position).unwrap_or(u32::MAX);
        tail.position += group.buffer.as_slice().len() as u64;
        if tail.first_lsn > tail.last_lsn {
            tail.first_lsn = tail.last_lsn + 1;
        }
        tail.last_lsn = last_lsn;
        tail.group_seq += 1;
        tail.group_crc = group.crc;
        if self.shared.options.durability == Durability::Durable {
            tail.durable_lsn = last_lsn;
        }
        let capacity = group.buffer.capacity();
        let bytes = Bytes::from_owner(group.buffer);
        {
            let mut state = self.shared.write_state();
            for (log, mut run) in content.runs {
                run.position += position;
                state.index.push_active(log, run);
            }
            state.index.committed(last_lsn);
            state.cache.insert(tail.segment.epoch, position, bytes, capacity);
        }
        self.shared.set_committed(last_lsn);
        if let Some(listener) = self.shared.commit_listener.get() {
            listener(Commit {
                upto: Lsn(last_lsn),
                tails: &content.tails,
            });
        }
    }

    /// Makes sure that the group, and after it the footer, fit into the active segment. False if there is no other.
    fn make_room(&mut self, plan: &GroupPlan, wait: bool) -> Result<bool, Failure> {
        let (runs, logs) = self.shared.read_state().index.active_size();
        let needed = |runs, logs| (plan.bytes + footer_bytes(runs + plan.runs, logs + plan.logs)) as u64;
        if self.tail.position + needed(runs, logs) <= self.tail.segment.file_bytes {
            return Ok(true);
        }
        let holds_nothing = self.tail.position == BLOCK_BYTES as u64;
        if !holds_nothing && !self.roll(wait)? {
            return Ok(false);
        }
        // A single entry larger than a segment: its segment grows to hold it.
        let end = self.tail.position + needed(0, 0);
        if end > self.tail.segment.file_bytes {
            match self.tail.file.allocate(end) {
                // Nothing was written yet: this can be tried again.
                Err(error) if is_out_of_space(&error) => return Ok(false),
                other => other.map_err(failed("enlarge"))?,
            }
            let segment = Arc::new(self.tail.segment.with(end, (1, 0)));
            self.shared.write_state().active = Arc::clone(&segment);
            self.tail.segment = segment;
        }
        Ok(true)
    }

    /// Seals the active segment and goes on in the next one. False if there is none.
    fn roll(&mut self, wait: bool) -> Result<bool, Failure> {
        let preparer = &self.shared.preparer;
        let next = if wait {
            preparer.wait()
        } else {
            preparer.try_take()
        };
        let Some(next) = next else { return Ok(false) };
        let sealed = self.seal(&next)?;
        let wanted = Wanted {
            seq: next.segment.seq + 1,
            small_groups: self.tail.has_small_groups(),
        };
        self.tail.segment = next.segment;
        self.tail.file = next.file;
        self.tail.position = BLOCK_BYTES as u64;
        self.tail.counted_from = (self.tail.group_seq, self.tail.position);
        self.tail.first_lsn = 1;
        if self.tail.last_lsn > 0 {
            self.tail.first_lsn = self.tail.last_lsn + 1;
        }
        self.shared.preparer.want(wanted);
        self.shared.emit(Event::SegmentSealed {
            seq: sealed.seq,
            last: Lsn(sealed.lsns.1),
        });
        Ok(true)
    }

    /// Writes the active segment's footer; from then on its index is on disk.
    fn seal(&mut self, next: &Prepared) -> Result<Arc<Segment>, Failure> {
        let tail = &mut self.tail;
        // A footer must not outlive the groups that it speaks of: in relaxed mode they may not be durable yet.
        if tail.durable_lsn < tail.last_lsn {
            tail.file.sync_data().map_err(failed("sync"))?;
        }
        let file_bytes = tail.segment.file_bytes;
        let lsns = (tail.first_lsn, tail.last_lsn);
        let mut builder = FooterBuilder::new(tail.segment.seed);
        let mut lists = Vec::new();
        {
            let state = self.shared.read_state();
            for (log, runs) in state.index.active_runs() {
                builder.add(log, runs);
                lists.push((log, Arc::from(runs)));
            }
        }
        let trailer = Trailer {
            epoch: tail.segment.epoch,
            first_lsn: lsns.0,
            last_lsn: lsns.1,
            last_group_seq: tail.group_seq,
            last_group_crc: tail.group_crc,
            groups_end: u32::try_from(tail.position).unwrap_or(u32::MAX),
            ..Trailer::default()
        };
        let summaries = write_footer(builder, trailer, &*tail.file, file_bytes).map_err(failed("seal"))?;
        tail.file.sync_data().map_err(failed("sync"))?;
        tail.durable_lsn = tail.last_lsn;

        let sealed = Arc::new(tail.segment.with(file_bytes, lsns));
        self.shared.files.keep_entries(sealed.epoch, lists);
        let mut state = self.shared.write_state();
        state.index.seal_active(&sealed, &summaries);
        state.sealed.insert(sealed.seq, Arc::clone(&sealed));
        state.active = Arc::clone(&next.segment);
        Ok(sealed)
    }

    /// Makes everything committed so far durable, also in relaxed mode.
    pub(crate) fn sync(&mut self) -> bool {
        if self.shared.poisoned().is_some() {
            return false;
        }
        if self.tail.durable_lsn >= self.tail.last_lsn {
            return true;
        }
        match self.tail.file.sync_data() {
            Ok(()) => {
                self.tail.durable_lsn = self.tail.last_lsn;
                true
            }
            Err(error) => {
                let file = self.shared.layout.segment(self.tail.segment.seq);
                self.shared
                    .poison(format!("cannot sync {}: {error}", file.display()));
                false
            }
        }
    }

    /// Leaves an empty group that says: closed in good order, and everything before is durable.
    pub(crate) fn mark_clean(&mut self) -> bool {
        let (runs, logs) = self.shared.read_state().index.active_size();
        let footer = footer_bytes(runs, logs) as u64;
        let len = whole_blocks(crate::format::group::GROUP_HEADER_BYTES);
        if !self.sync() {
            return false;
        }
        if self.tail.position + len as u64 + footer > self.tail.segment.file_bytes {
            return true;
        }
        let header = GroupHeader {
            flags: FLAG_CLEAN_CLOSE,
            ..self.next_header()
        };
        let group = GroupWriter::new(self.shared.pool.take(len), self.tail.segment.seed).finish(header);
        let written = self
            .tail
            .file
            .write_at(group.buffer.as_slice(), self.tail.position)
            .and_then(|()| self.tail.file.sync_data());
        match written {
            Ok(()) => {
                self.tail.position += len as u64;
                self.tail.group_seq += 1;
                self.tail.group_crc = group.crc;
                true
            }
            Err(error) => {
                let file = self.shared.layout.segment(self.tail.segment.seq);
                self.shared
                    .poison(format!("cannot close {}: {error}", file.display()));
                false
            }
        }
    }
}
