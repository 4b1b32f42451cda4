//! Fetch and ListOffsets: what is visible, from memory or disk.

use anabranch_core::cursor::Fault;
use anabranch_core::group::{Caller, Connection};
use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::node::TopicRef;
use anabranch_engine::fetch::{Fetch, FetchError, Look, Place, Read, Reads, Seen, Source, Want, WantTopic};
use anabranch_engine::slice_fetch::bounds_seen;
use anabranch_wire::ErrorCode;

use super::Process;
use crate::message::{Answer, Edge, Got, Tp};
use crate::run::Ctx;
use crate::sights::Sight;
use crate::world::{Chore, Event};

/// A fetch under way.
#[derive(Debug)]
pub(super) struct Fetching {
    fetch: Fetch,
    connection: Connection,
    /// When it is answered with what there is, monotonic milliseconds.
    pub(super) until_ms: u64,
    pub(super) is_parked: bool,
    /// What was read and has not been reserved: the server reads without its lock, so that anything may happen in between.
    held: Option<(Look, Reads)>,
    held_until_ms: u64,
    /// How often such fetches had been woken when it looked last, if it has looked.
    looked: Option<u64>,
}

/// A fetch that looks again so often without waiting looks for ever.
const LOOKS_MAX: usize = 10_000;
/// How many reads of slices of a hundred take their time.
const HELD_PERCENT: u64 = 8;
/// How long they take, at most, milliseconds.
const HELD_MS_MAX: u64 = 40;

impl Fetching {
    pub(super) fn new(fetch: Fetch, connection: Connection, until_ms: u64) -> Self {
        Self {
            fetch,
            connection,
            until_ms,
            is_parked: false,
            held: None,
            held_until_ms: 0,
            looked: None,
        }
    }

    /// Whether it looks now: for the first time, since it was woken like all that wait, or since its time has come. As in the
    /// server, nobody looks without a reason.
    pub(super) fn looks(&self, ctx: &Ctx<'_>, wakes: u64) -> bool {
        let now_ms = ctx.world.now().mono_ms;
        self.looked != Some(wakes) || now_ms >= self.until_ms || self.held.is_some()
    }

    /// Whether what was just read is to be looked at again only later. Once for each fetch at most.
    fn holds(&mut self, ctx: &mut Ctx<'_>, life: u64) -> bool {
        if self.held_until_ms > 0 || !ctx.world.rng.percent(HELD_PERCENT) {
            return false;
        }
        self.held_until_ms = ctx.world.now().mono_ms + ctx.world.rng.between(1, HELD_MS_MAX);
        ctx.world
            .at_mono_ms(self.held_until_ms, Event::Broker(life, Chore::Fetches));
        true
    }
}

/// A fetch as the engine takes it: of each partition on its own, without limits but the one of the whole.
pub(super) fn understood(wants: &[crate::message::Want], bytes_max: usize) -> Fetch {
    let topic = |want: &crate::message::Want| WantTopic {
        place: Place::Id(want.tp.0),
        partitions: vec![Want {
            partition: want.tp.1,
            leader_epoch: -1,
            offset: want.offset,
            bytes_max: usize::MAX,
        }],
    };
    Fetch {
        bytes_min: 1,
        bytes_max,
        topics: wants.iter().map(topic).collect(),
    }
}

fn refused(topic: &WantTopic, error: ErrorCode) -> Got {
    let want = topic.partitions.first();
    Got {
        tp: match topic.place {
            Place::Id(id) => (id, want.map_or(-1, |want| want.partition)),
            Place::Name(_) => Tp::default(),
        },
        asked: want.map_or(-1, |want| want.offset),
        error,
        start: -1,
        high_watermark: -1,
        batches: Vec::new(),
    }
}

impl Process {
    /// The log of a partition.
    pub(super) fn log_of(&self, tp: Tp) -> Result<LogId, ErrorCode> {
        let topic = self.node().find_topic(TopicRef::Id(tp.0))?;
        topic.log(tp.1).ok_or(ErrorCode::UnknownTopicOrPartition)
    }

    /// Looks and reads, with the entry that the answer waits for; `None` if there is nothing and the fetch may wait.
    pub(super) fn fetch(
        &mut self,
        ctx: &mut Ctx<'_>,
        life: u64,
        fetching: &mut Fetching,
    ) -> Option<(Vec<Got>, Lsn)> {
        let now = ctx.world.now();
        fetching.looked = Some(self.wakes);
        let is_due = now.mono_ms >= fetching.until_ms;
        if now.mono_ms < fetching.held_until_ms {
            return None;
        }
        for _ in 0..LOOKS_MAX {
            let (look, reads) = match fetching.held.take() {
                Some(held) => held,
                None => self.look_and_read(ctx, fetching),
            };
            let is_searched = self.engine.note_searches(now, &look, &reads);
            if is_due || fetching.fetch.is_enough(&reads) {
                if Fetch::has_slices(&look) && fetching.holds(ctx, life) {
                    fetching.held = Some((look, reads));
                    return None;
                }
                let after = match self.engine.reserve(now, &look, &reads) {
                    Some(outcome) if Fetch::has_slices(&look) => self.pass_on(outcome),
                    Some(_) => Lsn(0),
                    None if self.fault == Some(Fault::ReadUnchecked) => Lsn(0),
                    None => {
                        ctx.saw(Sight::ReadOvertaken);
                        continue;
                    }
                };
                let found = fetching.fetch.topics.iter().zip(look).zip(reads);
                let got = found.map(|((topic, seen), read)| self.got(ctx, topic, seen, read));
                return Some((got.collect(), after));
            }
            if !is_searched {
                return None;
            }
        }
        let detail = format!("{LOOKS_MAX} looks have not brought {fetching:?} to its end");
        ctx.oracle.judge(Err(crate::oracle::Violation::new(
            "a fetch comes to an end",
            detail,
        )));
        None
    }

    fn look_and_read(&mut self, ctx: &mut Ctx<'_>, fetching: &Fetching) -> (Look, Reads) {
        let fetch = &fetching.fetch;
        let look = fetch.look(self.node());
        for (seen, topic) in look.iter().zip(&fetch.topics) {
            if let (Ok(seen), Place::Id(id), Some(want)) = (seen, &topic.place, topic.partitions.first()) {
                let bounds = seen.bounds;
                ctx.oracle
                    .bounds((*id, want.partition), bounds.start, bounds.high_watermark);
            }
        }
        let now = ctx.world.now();
        let wait_ms = fetching.until_ms.saturating_sub(now.mono_ms);
        self.engine
            .slices_fetched(now, fetching.connection, &look, wait_ms);
        let reads = match fetch.read(self.store(), &self.scans, &look, Source::Memory) {
            Some(reads) => reads,
            None => {
                ctx.saw(Sight::ReadFromDisk);
                let read = fetch.read(self.store(), &self.scans, &look, Source::Disk);
                read.unwrap_or_default()
            }
        };
        (look, reads)
    }

    fn got(
        &self,
        ctx: &mut Ctx<'_>,
        topic: &WantTopic,
        seen: Result<Seen, ErrorCode>,
        read: Result<Read, FetchError>,
    ) -> Got {
        let (Place::Id(id), [want]) = (&topic.place, topic.partitions.as_slice()) else {
            return refused(topic, ErrorCode::InvalidRequest);
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return refused(topic, error),
        };
        match read {
            Ok(Read { batches, .. }) => {
                let bounds = bounds_seen(&seen, want.offset, batches.is_empty());
                Got {
                    tp: (*id, want.partition),
                    asked: want.offset,
                    error: ErrorCode::None,
                    start: bounds.start,
                    high_watermark: bounds.high_watermark,
                    batches,
                }
            }
            Err(error) => {
                // Only a process that has just ended may fail to read.
                if self.disk.ended().is_none() {
                    let detail = format!(
                        "partition {} of {id:?} from {}: {error}",
                        want.partition, want.offset
                    );
                    let violation = crate::oracle::Violation::new("what is visible can be read", detail);
                    ctx.oracle.judge(Err(violation));
                }
                refused(topic, error.code())
            }
        }
    }

    pub(super) fn list_offsets(&self, ctx: &mut Ctx<'_>, caller: &Caller, tp: Tp, edge: Edge) -> Answer {
        let log = match self.log_of(tp) {
            Ok(log) => log,
            Err(error) => return Answer::Refused(error),
        };
        let Some(log) = self.node().log(log) else {
            return Answer::Refused(ErrorCode::UnknownTopicOrPartition);
        };
        ctx.oracle.bounds(tp, log.start(), log.high_watermark());
        let numbering = match self.node().groups().numbering(caller, tp) {
            Ok(numbering) => numbering,
            Err(error) => return Answer::Refused(error),
        };
        let offset = match edge {
            Edge::Earliest => numbering.first(log.start()),
            Edge::Latest => numbering.last(log.high_watermark()),
        };
        Answer::Offset { offset }
    }

    /// Everything that every partition holds, for the oracles.
    pub(super) fn audit(&self, ctx: &mut Ctx<'_>) {
        for log in self.node().logs() {
            let (tp, start, high_watermark) =
                ((log.topic(), log.partition()), log.start(), log.high_watermark());
            let mut batches = Vec::new();
            let mut next = start;
            while next < high_watermark {
                let read = match self.store().read(log.id(), next, high_watermark, 1 << 20, true) {
                    Ok(read) if !read.is_empty() => read,
                    other => {
                        let detail = format!("{tp:?} from {next} to {high_watermark}: {other:?}");
                        let violation = crate::oracle::Violation::new("what is visible can be read", detail);
                        ctx.oracle.judge(Err(violation));
                        return;
                    }
                };
                for run in &read {
                    let headers = anabranch_wire::batch::BatchIter::new(run).flatten();
                    next = headers
                        .map(|(_, header)| header.next_offset())
                        .fold(next, i64::max);
                }
                batches.extend(read);
            }
            ctx.oracle.audit(tp, start, high_watermark, &batches);
        }
    }
}
