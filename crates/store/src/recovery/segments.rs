//! Goes through the segments in order: rebuilds the index, replays, and finds the end of the log.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn};

use super::Sealed;
use super::inventory::Found;
use super::replay::{Refusal, Replay, replay};
use super::scan::{Chain, Group, Scanner, run_of};
use crate::buffer::Buffer;
use crate::disk::{Access, Disk, DiskFile};
use crate::error::OpenError;
use crate::format::footer::{FooterBuilder, Summary, Trailer};
use crate::format::frame::FrameKind;
use crate::format::group::FLAG_CLEAN_CLOSE;
use crate::format::header::SegmentKind;
use crate::format::{BLOCK_BYTES, ClusterId};
use crate::index::{Index, Run};
use crate::layout::Layout;
use crate::wal::committer::write_footer;
use crate::wal::prepare::Prepared;

/// Run entries of one segment, by log.
pub(super) type Lists = Vec<(u64, Vec<(LogId, Arc<[Run]>)>)>;

/// Where the log ends.
pub(super) struct End {
    /// The segment to go on in, unless none is there.
    pub(super) active: Option<Prepared>,
    /// Where the next group goes.
    pub(super) position: Option<u64>,
    /// First entry of the active segment, if it holds one.
    pub(super) first_lsn: Option<u64>,
    pub(super) chain: Chain,
    pub(super) clean: bool,
    /// Number for a segment that has to be made.
    pub(super) next_seq: u64,
    /// The segment behind the active one, if an earlier run had prepared it.
    pub(super) prepared: Option<Prepared>,
}

/// What a scan of one segment found.
pub(super) struct Scanned {
    /// Where its intact groups end, and where the last of them starts.
    pub(super) end: u64,
    last_group: Option<(u64, u64)>,
    first_lsn: Option<u64>,
    chain: Option<Chain>,
    clean: bool,
}

/// The store in the making.
pub(super) struct Rebuild<'a> {
    pub(super) disk: &'a dyn Disk,
    layout: &'a Layout,
    cluster: ClusterId,
    pub(super) snapshot_lsn: u64,
    pub(super) access: Access,
    index: Index,
    sealed: Sealed,
    lists: Lists,
    pub(super) replayed: u64,
    pub(super) warnings: Vec<String>,
    /// A snapshot that could not be used; what is missing then is its fault.
    pub(super) snapshot_damage: Option<(PathBuf, String)>,
    /// Everything up to here is in the snapshot or was met in a segment.
    pub(super) covered: u64,
    /// The end of the segment before, and its number.
    chain: Option<(u64, Chain)>,
}

impl<'a> Rebuild<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        layout: &'a Layout,
        cluster: ClusterId,
        snapshot_lsn: u64,
        access: Access,
    ) -> Self {
        Rebuild {
            disk,
            layout,
            cluster,
            snapshot_lsn,
            access,
            index: Index::default(),
            sealed: Sealed::new(),
            lists: Lists::new(),
            replayed: 0,
            warnings: Vec::new(),
            snapshot_damage: None,
            covered: snapshot_lsn,
            chain: None,
        }
    }

    pub(super) fn finish(self) -> (Index, Sealed, Lists) {
        (self.index, self.sealed, self.lists)
    }

    /// Takes in all segments.
    pub(super) fn segments(&mut self, found: &[Found], owner: &mut dyn Replay) -> Result<End, OpenError> {
        let newest_sealed = found.iter().rposition(|found| found.footer.is_some());
        for (nth, segment) in found.iter().enumerate() {
            let later = &found[nth + 1..];
            // A footer is written whole before the next segment is used; only the newest one can be half there.
            let half_sealed = Some(nth) == newest_sealed && !segment.entries_are_intact(self.disk)?;
            match &segment.footer {
                Some((trailer, summaries)) if !half_sealed => {
                    self.take_sealed(segment, trailer, summaries, owner)?;
                    if Some(nth) == newest_sealed {
                        self.make_footer_durable(segment, trailer)?;
                    }
                }
                _ => {
                    if let Some(end) = self.take_open(segment, later, owner)? {
                        return Ok(end);
                    }
                }
            }
        }
        let next_seq = found.last().map_or(1, |found| found.header.seq + 1);
        let chain = match (self.chain, found.is_empty()) {
            (Some((_, chain)), _) => chain,
            (None, true) => Chain::START,
            (None, false) => return Err(self.nothing_follows(next_seq)),
        };
        self.check_reaches_snapshot(chain, self.layout.segment(next_seq), 0)?;
        Ok(End {
            active: None,
            position: None,
            first_lsn: None,
            chain,
            clean: true,
            next_seq,
            prepared: None,
        })
    }

    fn nothing_follows(&self, next_seq: u64) -> OpenError {
        let what = "the segment that the log ends in is missing".to_owned();
        OpenError::Damaged {
            file: self.layout.segment(next_seq),
            position: 0,
            what,
        }
    }

    /// The end of the segment before this one, if it is there.
    fn chain_before(&self, seq: u64) -> Option<Chain> {
        match self.chain {
            Some((before, chain)) if before + 1 == seq => Some(chain),
            None if seq == 1 => Some(Chain::START),
            _ => None,
        }
    }

    fn take_sealed(
        &mut self,
        found: &Found,
        trailer: &Trailer,
        summaries: &[Summary],
        owner: &mut dyn Replay,
    ) -> Result<(), OpenError> {
        let (first, last) = (trailer.first_lsn, trailer.last_lsn);
        let packed = found.header.kind == SegmentKind::Packed;
        if packed && last > self.snapshot_lsn {
            let (file, what) = self.snapshot_damage.clone().unwrap_or_else(|| {
                (
                    found.path.clone(),
                    format!("it was packed when there was a snapshot of entry {last}, which is missing"),
                )
            });
            return Err(OpenError::Damaged {
                file,
                position: 0,
                what,
            });
        }
        let before = self.chain_before(found.header.seq).filter(|_| !packed);
        if before.is_some_and(|before| before.last_lsn + 1 != first) {
            return Err(found.damaged(0, format!("it starts with entry {first}, which does not follow")));
        }
        if !packed {
            self.check_no_gap(found, first, last)?;
        }
        if !packed && last > self.snapshot_lsn {
            let scanned = self.scan(found, Some(u64::from(trailer.groups_end)), before, false, owner)?;
            if scanned.end != u64::from(trailer.groups_end) {
                return Err(found.damaged(scanned.end, "a commit group in a sealed segment is not intact"));
            }
        }
        let segment = Arc::new(found.segment(&self.cluster, (first, last)));
        for summary in summaries {
            self.index.add_span(&segment, *summary);
        }
        self.sealed.insert(segment.seq, segment);
        if !packed {
            self.covered = self.covered.max(last);
            let chain = Chain {
                group_seq: trailer.last_group_seq,
                group_crc: trailer.last_group_crc,
                last_lsn: last,
                durable_lsn: last,
            };
            self.chain = Some((found.header.seq, chain));
        }
        Ok(())
    }

    /// Reads the groups of a segment as far as they are intact, up to `limit`; replays them, and on demand adds their
    /// runs to the active index.
    fn scan(
        &mut self,
        found: &Found,
        limit: Option<u64>,
        before: Option<Chain>,
        add_runs: bool,
        owner: &mut dyn Replay,
    ) -> Result<Scanned, OpenError> {
        let file = found.open(self.disk, self.access)?;
        let mut scanner = Scanner::new(&*file, found.file_bytes, found.seed);
        let limit = limit.unwrap_or(found.file_bytes);
        let mut scanned = Scanned {
            end: BLOCK_BYTES as u64,
            last_group: None,
            first_lsn: None,
            chain: before,
            clean: false,
        };
        while scanned.end < limit {
            let group = scanner
                .group(scanned.end, scanned.chain)
                .map_err(|error| OpenError::from_io(&found.path, "read", error))?;
            let Some(group) = group else { break };
            self.take_group(found, &group, add_runs, owner)?;
            if group.header.lsn_count > 0 {
                scanned.first_lsn.get_or_insert(group.header.first_lsn);
            }
            scanned.clean = group.header.flags & FLAG_CLEAN_CLOSE != 0;
            scanned.last_group = Some((group.position, group.end()));
            scanned.chain = Some(Chain::after(&group.header, group.crc));
            scanned.end = group.end();
        }
        Ok(scanned)
    }

    fn take_group(
        &mut self,
        found: &Found,
        group: &Group<'_>,
        add_runs: bool,
        owner: &mut dyn Replay,
    ) -> Result<(), OpenError> {
        if found.header.kind == SegmentKind::Plain && group.header.next_lsn() > self.snapshot_lsn + 1 {
            let result = replay(group, self.snapshot_lsn, owner);
            self.replayed += result.map_err(|refusal| match refusal {
                Refusal::Contradiction => found.damaged(
                    group.position,
                    "a commit group's entries are not those its header tells",
                ),
                Refusal::Owner(lsn, source) => OpenError::Replay {
                    file: found.path.clone(),
                    position: group.position,
                    lsn: Lsn(lsn),
                    source,
                },
            })?;
        }
        if add_runs {
            for (at, frame) in &group.frames {
                if frame.header.kind == FrameKind::State {
                    continue;
                }
                let position = group.position + *at as u64;
                let (log, run) = run_of(frame, position).ok_or_else(|| {
                    found.damaged(position, "a frame does not hold the batches its header tells")
                })?;
                self.index.push_active(log, run);
            }
        }
        Ok(())
    }

    /// A segment without footer: the one that the log ends in, or one whose footer was damaged later. Gives the end of the
    /// log if it is here.
    fn take_open(
        &mut self,
        found: &Found,
        later: &[Found],
        owner: &mut dyn Replay,
    ) -> Result<Option<End>, OpenError> {
        if found.header.kind == SegmentKind::Packed {
            return self.take_packed_without_footer(found, owner).map(|()| None);
        }
        let before = self.chain_before(found.header.seq);
        let scanned = self.scan(found, None, before, true, owner)?;
        let Some(chain) = scanned.chain else {
            // Nothing tells where the log stood: the segment before it is never freed, so it was taken away.
            return Err(found.damaged(BLOCK_BYTES as u64, "the segment before it is missing"));
        };
        if let Some(first) = scanned.first_lsn {
            self.check_no_gap(found, first, chain.last_lsn)?;
        }
        self.covered = self.covered.max(chain.last_lsn);
        let lsns = (scanned.first_lsn.unwrap_or(chain.last_lsn + 1), chain.last_lsn);
        if self.goes_on_in(later, chain)? {
            self.warnings.push(format!(
                "the index of {} was damaged and is rebuilt",
                found.path.display()
            ));
            self.reseal(found, lsns, &scanned, chain)?;
            self.chain = Some((found.header.seq, chain));
            return Ok(None);
        }
        self.check_end_is_torn(found, later, &scanned, chain)?;
        self.check_reaches_snapshot(chain, found.path.clone(), scanned.end)?;
        self.end(found, later, &scanned, chain).map(Some)
    }

    /// The log ends in this segment.
    fn end(
        &mut self,
        found: &Found,
        later: &[Found],
        scanned: &Scanned,
        chain: Chain,
    ) -> Result<End, OpenError> {
        let file = found.open(self.disk, self.access)?;
        self.make_durable(found, &*file, scanned)?;
        let active = Prepared {
            segment: Arc::new(found.segment(&self.cluster, (1, 0))),
            file,
        };
        let prepared = match later {
            [] => None,
            [next] if next.header.seq == found.header.seq + 1 && next.header.kind == SegmentKind::Plain => {
                let segment = Arc::new(next.segment(&self.cluster, (1, 0)));
                Some(Prepared {
                    segment,
                    file: next.open(self.disk, self.access)?,
                })
            }
            [next, ..] => return Err(next.damaged(0, "it comes after the end of the log")),
        };
        Ok(End {
            active: Some(active),
            position: Some(scanned.end),
            first_lsn: scanned.first_lsn,
            chain,
            clean: scanned.clean,
            next_seq: found.header.seq + 1,
            prepared,
        })
    }

    /// What a killed process had written may be visible and not yet durable. From now on it counts as committed, so it is
    /// made durable first; the last group is written once more, in case an earlier sync of it failed.
    fn make_durable(&self, found: &Found, file: &dyn DiskFile, scanned: &Scanned) -> Result<(), OpenError> {
        let Some((start, end)) = scanned.last_group else {
            return Ok(());
        };
        let mut group = Buffer::zeroed(usize::try_from(end - start).unwrap_or(0));
        file.read_at(group.as_mut_slice(), start)
            .and_then(|()| file.write_at(group.as_slice(), start))
            .map_err(|error| OpenError::from_io(&found.path, "write", error))?;
        self.sync(file, found)
    }

    /// The same for the newest footer: when its sync failed, it can be seen and is not on the disk, and no later sync
    /// brings it there.
    fn make_footer_durable(&self, found: &Found, trailer: &Trailer) -> Result<(), OpenError> {
        let file = found.open(self.disk, self.access)?;
        let start = u64::from(trailer.entries_position);
        let start = start - start % BLOCK_BYTES as u64;
        let bytes = usize::try_from(found.file_bytes.saturating_sub(start)).unwrap_or(0);
        let mut footer = Buffer::zeroed(bytes);
        file.read_at(footer.as_mut_slice(), start)
            .and_then(|()| file.write_at(footer.as_slice(), start))
            .map_err(|error| OpenError::from_io(&found.path, "write", error))?;
        self.sync(&*file, found)
    }

    fn sync(&self, file: &dyn DiskFile, found: &Found) -> Result<(), OpenError> {
        file.sync_data()
            .map_err(|error| OpenError::from_io(&found.path, "sync", error))
    }

    /// Writes a footer again, and moves the active index into it.
    fn reseal(
        &mut self,
        found: &Found,
        lsns: (u64, u64),
        scanned: &Scanned,
        chain: Chain,
    ) -> Result<(), OpenError> {
        let mut builder = FooterBuilder::new(found.seed);
        let mut list = Vec::new();
        for (log, runs) in self.index.active_runs() {
            builder.add(log, runs);
            list.push((log, Arc::from(runs)));
        }
        let trailer = Trailer {
            epoch: found.header.epoch,
            first_lsn: lsns.0,
            last_lsn: lsns.1,
            last_group_seq: chain.group_seq,
            last_group_crc: chain.group_crc,
            groups_end: u32::try_from(scanned.end).unwrap_or(u32::MAX),
            ..Trailer::default()
        };
        let file = found.open(self.disk, self.access)?;
        let summaries = write_footer(builder, trailer, &*file, found.file_bytes)
            .map_err(|error| OpenError::from_io(&found.path, "write", error))?;
        self.sync(&*file, found)?;
        let segment = Arc::new(found.segment(&self.cluster, lsns));
        self.index.seal_active(&segment, &summaries);
        self.lists.push((segment.epoch, list));
        self.sealed.insert(segment.seq, segment);
        Ok(())
    }

    /// The footer of a packed segment was damaged: its groups tell the same.
    fn take_packed_without_footer(&mut self, found: &Found, owner: &mut dyn Replay) -> Result<(), OpenError> {
        let scanned = self.scan(found, None, Some(Chain::START), true, owner)?;
        let last = found.header.last_lsn;
        if last > self.snapshot_lsn {
            return Err(found.damaged(
                0,
                format!("there is no snapshot of entry {last}, from which it was packed"),
            ));
        }
        self.warnings.push(format!(
            "the index of {} was damaged and is rebuilt",
            found.path.display()
        ));
        self.reseal(found, (1, last), &scanned, scanned.chain.unwrap_or(Chain::START))
    }
}
