//! The work of a Fetch: look, read, and wait if that was not enough.
//!
//! ```text
//!          +--> look (one short lock): resolve topics, bounds of each partition
//!          |      | nothing to read and no error: park under the same lock
//!          |      v
//!          |    read up to the high watermark: from memory; if that does not have it, all of it on a blocking thread
//!          |      | enough, an error, too late, or shutting down -> answer
//!          |      v
//!          +--- parked until a commit moves one of the logs, or the deadline
//! ```
//!
//! The first batch of the first partition that has one is read whole, however large (KIP-74); what follows obeys
//! `max_bytes` and each partition's own limit. A fetch is worked on only when its answer is next on its connection,
//! and holds a permit for the bytes of its answer until they are written.

use std::sync::Arc;

use anabranch_core::ids::{LogId, Offset, TopicId};
use anabranch_core::log::FetchBounds;
use anabranch_wire::ErrorCode;
use bytes::Bytes;
use tokio::time::Instant;

use crate::api::list_offsets::check_leader_epoch;
use crate::broker::{Broker, Core};
use crate::budget::Permit;
use crate::fetch_wait::Parked;
use crate::shutdown::Phase;

/// A fetch, as its handler understood it.
pub(crate) struct Fetch {
    /// When it is answered with what there is.
    pub(crate) deadline: Instant,
    /// It waits until there is this much.
    pub(crate) bytes_min: usize,
    /// It gets no more than this, but for the first batch.
    pub(crate) bytes_max: usize,
    pub(crate) topics: Vec<WantTopic>,
}

/// Partitions of one topic that are asked for.
pub(crate) struct WantTopic {
    pub(crate) place: Place,
    pub(crate) partitions: Vec<Want>,
}

impl Fetch {
    /// All partitions in order.
    fn wants(&self) -> impl Iterator<Item = &Want> {
        self.topics.iter().flat_map(|topic| &topic.partitions)
    }
}

/// A topic as the client names it.
#[derive(Debug)]
pub(crate) enum Place {
    Name(String),
    Id(TopicId),
}

/// One partition that is asked for.
#[derive(Debug)]
pub(crate) struct Want {
    pub(crate) partition: i32,
    /// The client's idea of the leader epoch, -1 if it has none.
    pub(crate) leader_epoch: i32,
    pub(crate) offset: Offset,
    pub(crate) bytes_max: usize,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) partition: i32,
    pub(crate) bounds: Result<FetchBounds, ErrorCode>,
    pub(crate) batches: Vec<Bytes>,
}

/// All of it: one [`Found`] per [`Want`], in order.
pub(crate) struct Done {
    pub(crate) found: Vec<Found>,
    pub(crate) permit: Option<Permit>,
}

/// One look at a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    log: LogId,
    bounds: FetchBounds,
}

type Look = Vec<Result<Seen, ErrorCode>>;

/// Does it.
pub(crate) async fn run(broker: &Arc<Broker>, fetch: Fetch) -> Done {
    let fetch = Arc::new(fetch);
    loop {
        let final_look = is_last(broker, &fetch);
        let (look, ticket) = look(broker, &fetch, None, final_look);
        let ticket = match ticket {
            Some(ticket) => ticket,
            None => {
                let (batches, permit) = read(broker, &fetch, &look).await;
                if final_look || is_enough(&fetch, &look, &batches) {
                    return finish(broker, &fetch, look, batches, permit);
                }
                drop(batches);
                drop(permit);
                // Parks only if nothing has moved since; else there is something to read.
                match self::look(broker, &fetch, Some(&look), false).1 {
                    Some(ticket) => ticket,
                    None => continue,
                }
            }
        };
        broker.shared.metrics.fetches_parked.inc();
        tokio::select! {
            () = ticket.parked.woken() => {}
            () = tokio::time::sleep_until(fetch.deadline) => {}
        }
    }
}

fn is_last(broker: &Broker, fetch: &Fetch) -> bool {
    fetch.deadline <= Instant::now() || broker.shared.shutdown.phase() >= Phase::Draining
}

/// Looks at all partitions, and parks the fetch if there is no use in reading: nothing there, or (if `before` is
/// given) nothing more than before.
fn look(broker: &Arc<Broker>, fetch: &Fetch, before: Option<&Look>, is_last: bool) -> (Look, Option<Ticket>) {
    broker.with(|core| {
        let look: Look = fetch.topics.iter().flat_map(|topic| see(core, topic)).collect();
        let is_same = before.is_some_and(|before| *before == look);
        let is_empty = !look.is_empty() && look.iter().zip(fetch.wants()).all(is_at_end);
        if is_last || fetch.bytes_min == 0 || !(is_same || is_empty) {
            return (look, None);
        }
        let logs: Vec<LogId> = look.iter().flatten().map(|seen| seen.log).collect();
        let parked = core.waits.park(&logs);
        (
            look,
            Some(Ticket {
                broker: Arc::clone(broker),
                parked,
                logs,
            }),
        )
    })
}

fn is_at_end((seen, want): (&Result<Seen, ErrorCode>, &Want)) -> bool {
    seen.is_ok_and(|seen| want.offset >= seen.bounds.high_watermark)
}

/// Resolves and checks the partitions of one topic.
fn see<'a>(core: &'a Core, wanted: &'a WantTopic) -> impl Iterator<Item = Result<Seen, ErrorCode>> + 'a {
    let topic = match &wanted.place {
        Place::Name(name) => core
            .node
            .topic_by_name(name)
            .ok_or(ErrorCode::UnknownTopicOrPartition),
        Place::Id(id) => core.node.topic_by_id(*id).ok_or(ErrorCode::UnknownTopicId),
    };
    wanted.partitions.iter().map(move |want| {
        let log = topic?.log(want.partition).and_then(|log| core.node.log(log));
        let log = log.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        check_leader_epoch(log, want.leader_epoch)?;
        Ok(Seen {
            log: log.id(),
            bounds: log.fetch_bounds(want.offset)?,
        })
    })
}

/// Bytes read, per want.
type Batches = Vec<Result<Vec<Bytes>, ErrorCode>>;

/// Reads what was seen: from memory at once, or else on a thread that may wait for the disk.
async fn read(broker: &Arc<Broker>, fetch: &Arc<Fetch>, look: &Look) -> (Batches, Option<Permit>) {
    let expected: usize = look
        .iter()
        .zip(fetch.wants())
        .filter(|pair| !is_at_end(*pair))
        .map(|(_, want)| want.bytes_max)
        .fold(0, usize::saturating_add)
        .min(fetch.bytes_max);
    if expected == 0
        && look
            .iter()
            .zip(fetch.wants())
            .all(|pair| pair.0.is_err() || is_at_end(pair))
    {
        return (look.iter().map(|seen| seen.map(|_| Vec::new())).collect(), None);
    }
    let permit = match broker.responses.try_take(expected) {
        Some(permit) => permit,
        None => broker.responses.take(expected).await,
    };
    let batches = match read_all(broker, fetch, look, Source::Memory) {
        Some(batches) => batches,
        None => {
            broker.shared.metrics.fetches_from_disk.inc();
            read_from_disk(broker, fetch, look).await
        }
    };
    let size = size(&batches);
    (batches, permit.shrink_to(size))
}

async fn read_from_disk(broker: &Arc<Broker>, fetch: &Arc<Fetch>, look: &Look) -> Batches {
    let count = look.len();
    let (broker, fetch, look) = (Arc::clone(broker), Arc::clone(fetch), look.clone());
    let read = tokio::task::spawn_blocking(move || read_all(&broker, &fetch, &look, Source::Disk));
    match read.await {
        Ok(Some(batches)) => batches,
        // The thread panicked, or the runtime ends.
        _ => (0..count).map(|_| Err(ErrorCode::KafkaStorageError)).collect(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory,
    Disk,
}

/// Reads all partitions within the limits; `None` if the disk is needed and must not be used.
fn read_all(broker: &Broker, fetch: &Fetch, look: &Look, source: Source) -> Option<Batches> {
    let mut left = fetch.bytes_max;
    let mut is_first = true;
    let mut all = Vec::with_capacity(look.len());
    for (seen, want) in look.iter().zip(fetch.wants()) {
        let batches = match seen {
            Err(error) => Err(*error),
            Ok(seen) if want.offset >= seen.bounds.high_watermark => Ok(Vec::new()),
            Ok(_) if !is_first && left.min(want.bytes_max) == 0 => Ok(Vec::new()),
            Ok(seen) => read_one(broker, seen, want, left.min(want.bytes_max), is_first, source)?,
        };
        if let Ok(batches) = &batches {
            let read: usize = batches.iter().map(Bytes::len).sum();
            left = left.saturating_sub(read);
            is_first &= read == 0;
        }
        all.push(batches);
    }
    Some(all)
}

fn read_one(
    broker: &Broker,
    seen: &Seen,
    want: &Want,
    bytes_max: usize,
    at_least_one: bool,
    source: Source,
) -> Option<Result<Vec<Bytes>, ErrorCode>> {
    let upto = seen.bounds.high_watermark;
    if let Some(batches) = broker
        .store
        .try_read(seen.log, want.offset, upto, bytes_max, at_least_one)
    {
        return Some(Ok(batches));
    }
    if source == Source::Memory {
        return None;
    }
    Some(
        broker
            .store
            .read(seen.log, want.offset, upto, bytes_max, at_least_one)
            .map_err(|error| {
                tracing::error!(log = %seen.log, offset = want.offset, %error, "cannot read");
                ErrorCode::KafkaStorageError
            }),
    )
}

fn size(batches: &Batches) -> usize {
    batches.iter().flatten().flatten().map(Bytes::len).sum()
}

/// An error is answered at once, so that the client can act on it.
fn is_enough(fetch: &Fetch, look: &Look, batches: &Batches) -> bool {
    look.is_empty()
        || batches.iter().any(Result::is_err)
        || size(batches) >= fetch.bytes_min.min(fetch.bytes_max.max(1))
}

fn finish(broker: &Broker, fetch: &Fetch, look: Look, batches: Batches, permit: Option<Permit>) -> Done {
    broker.shared.metrics.fetched_bytes.add(size(&batches) as u64);
    let found = look
        .into_iter()
        .zip(batches)
        .zip(fetch.wants())
        .map(|((seen, batches), want)| {
            let (bounds, batches) = match (seen, batches) {
                (Ok(seen), Ok(batches)) => (Ok(seen.bounds), batches),
                (Err(error), _) | (_, Err(error)) => (Err(error), Vec::new()),
            };
            Found {
                partition: want.partition,
                bounds,
                batches,
            }
        });
    Done {
        found: found.collect(),
        permit,
    }
}

/// A place among the parked; given back when dropped.
struct Ticket {
    broker: Arc<Broker>,
    parked: Arc<Parked>,
    logs: Vec<LogId>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.broker
            .with(|core| core.waits.leave(&self.parked, &self.logs));
    }
}
