//! Fetch and ListOffsets: what is visible, from memory or disk.

use anabranch_core::ids::LogId;
use anabranch_wire::ErrorCode;

use super::Process;
use crate::message::{Answer, Edge, Got, Tp, Want};
use crate::run::Ctx;
use crate::sights::Sight;

impl Process {
    /// The log of a partition.
    pub(super) fn log_of(&self, tp: Tp) -> Result<LogId, ErrorCode> {
        let topic = self.node.topic_by_id(tp.0).ok_or(ErrorCode::UnknownTopicId)?;
        topic.log(tp.1).ok_or(ErrorCode::UnknownTopicOrPartition)
    }

    /// Looks and reads; `None` if there is nothing and the fetch may wait.
    pub(super) fn fetch(
        &self,
        ctx: &mut Ctx<'_>,
        wants: &[Want],
        until_ms: u64,
        bytes_max: usize,
    ) -> Option<Vec<Got>> {
        let mut left = bytes_max;
        let mut is_first = true;
        let mut all = Vec::with_capacity(wants.len());
        for want in wants {
            let got = self.fetch_one(ctx, want, left, is_first);
            let size: usize = got.batches.iter().map(bytes::Bytes::len).sum();
            is_first &= size == 0;
            left = left.saturating_sub(size);
            all.push(got);
        }
        let is_due = ctx.world.now().mono_ms >= until_ms;
        let has_news = all
            .iter()
            .any(|got| !got.error.is_ok() || !got.batches.is_empty());
        (is_due || has_news).then_some(all)
    }

    fn fetch_one(&self, ctx: &mut Ctx<'_>, want: &Want, bytes_max: usize, at_least_one: bool) -> Got {
        let Want { tp, offset: asked } = *want;
        let refused = |error| Got {
            tp,
            asked,
            error,
            start: -1,
            high_watermark: -1,
            batches: Vec::new(),
        };
        let bounds = self
            .log_of(tp)
            .and_then(|log| Ok((log, self.node.fetch_bounds(log, asked)?)));
        let (log, bounds) = match bounds {
            Ok(found) => found,
            Err(error) => return refused(error),
        };
        let (start, high_watermark) = (bounds.start, bounds.high_watermark);
        ctx.oracle.bounds(tp, start, high_watermark);
        let mut batches = Vec::new();
        if asked < high_watermark && (at_least_one || bytes_max > 0) {
            let read = match self
                .store
                .try_read(log, asked, high_watermark, bytes_max, at_least_one)
            {
                Some(read) => Ok(read),
                None => {
                    ctx.saw(Sight::ReadFromDisk);
                    self.store
                        .read(log, asked, high_watermark, bytes_max, at_least_one)
                }
            };
            match read {
                Ok(read) => batches = read,
                // Only a process that has just ended may fail to read.
                Err(error) if self.disk.ended().is_none() => {
                    let detail = format!("{tp:?} from {asked} to {high_watermark}: {error}");
                    ctx.oracle.judge(Err(crate::oracle::Violation::new(
                        "what is visible can be read",
                        detail,
                    )));
                    return refused(ErrorCode::KafkaStorageError);
                }
                Err(_) => return refused(ErrorCode::KafkaStorageError),
            }
        }
        Got {
            tp,
            asked,
            error: ErrorCode::None,
            start,
            high_watermark,
            batches,
        }
    }

    pub(super) fn list_offsets(&self, ctx: &mut Ctx<'_>, tp: Tp, edge: Edge) -> Answer {
        let log = match self.log_of(tp) {
            Ok(log) => log,
            Err(error) => return Answer::Refused(error),
        };
        let Some(log) = self.node.log(log) else {
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
        for log in self.node.logs() {
            let (tp, start, high_watermark) =
                ((log.topic(), log.partition()), log.start(), log.high_watermark());
            let mut batches = Vec::new();
            let mut next = start;
            while next < high_watermark {
                let read = match self.store.read(log.id(), next, high_watermark, 1 << 20, true) {
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
