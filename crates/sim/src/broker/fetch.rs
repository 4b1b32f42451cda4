//! Fetch and ListOffsets: what is visible, from memory or disk.

use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::node::TopicRef;
use anabranch_engine::fetch::{Fetch, FetchError, Place, Read, Seen, Source, Want, WantTopic};
use anabranch_wire::ErrorCode;

use super::Process;
use crate::message::{Answer, Edge, Got, Tp};
use crate::run::Ctx;
use crate::sights::Sight;

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
        fetch: &Fetch,
        until_ms: u64,
    ) -> Option<(Vec<Got>, Lsn)> {
        let now = ctx.world.now();
        let is_due = now.mono_ms >= until_ms;
        let (look, reads) = loop {
            let look = fetch.look(self.node());
            let reads = match fetch.read(self.store(), &self.scans, &look, Source::Memory) {
                Some(reads) => reads,
                None => {
                    ctx.saw(Sight::ReadFromDisk);
                    let read = fetch.read(self.store(), &self.scans, &look, Source::Disk);
                    read.unwrap_or_default()
                }
            };
            let is_searched = self.engine.note_searches(now, &look, &reads);
            if is_due || fetch.is_enough(&reads) {
                break (look, reads);
            }
            if !is_searched {
                return None;
            }
        };
        let after = match Fetch::has_slices(&look) {
            true => {
                let outcome = self.engine.reserve(now, &look, &reads)?;
                self.pass_on(outcome)
            }
            false => Lsn(0),
        };
        let found = fetch.topics.iter().zip(look).zip(reads);
        let got = found.map(|((topic, seen), read)| self.got(ctx, topic, seen, read));
        Some((got.collect(), after))
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
        let tp = (*id, want.partition);
        let bounds = seen.bounds;
        ctx.oracle.bounds(tp, bounds.start, bounds.high_watermark);
        match read {
            Ok(Read { batches, .. }) => Got {
                tp,
                asked: want.offset,
                error: ErrorCode::None,
                start: bounds.start,
                high_watermark: bounds.high_watermark,
                batches,
            },
            Err(error) => {
                // Only a process that has just ended may fail to read.
                if self.disk.ended().is_none() {
                    let detail = format!("{tp:?} from {} to {bounds:?}: {error}", want.offset);
                    let violation = crate::oracle::Violation::new("what is visible can be read", detail);
                    ctx.oracle.judge(Err(violation));
                }
                refused(topic, error.code())
            }
        }
    }

    pub(super) fn list_offsets(&self, ctx: &mut Ctx<'_>, tp: Tp, edge: Edge) -> Answer {
        let log = match self.log_of(tp) {
            Ok(log) => log,
            Err(error) => return Answer::Refused(error),
        };
        let Some(log) = self.node().log(log) else {
            return Answer::Refused(ErrorCode::UnknownTopicOrPartition);
        };
        ctx.oracle.bounds(tp, log.start(), log.high_watermark());
        let offset = match edge {
            Edge::Earliest => log.start(),
            Edge::Latest => log.high_watermark(),
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
