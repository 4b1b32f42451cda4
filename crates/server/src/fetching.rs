//! The work of a Fetch: look, read, and wait if that was not enough. What it sees and reads is [`anabranch_engine::fetch`]'s.
//!
//! ```text
//!          +--> look (one short lock): resolve topics, bounds of each partition
//!          |      | nothing to read and no error: park under the same lock
//!          |      v
//!          |    read up to the high watermark: from memory; if that does not have it, all of it on a blocking thread
//!          |      | enough, an error, too late, or shutting down -> answer, once records of slices are reserved (lock)
//!          |      v
//!          +--- parked until a commit moves one of the logs, a member's part changes, or the deadline
//! ```
//!
//! A fetch is worked on only when its answer is next on its connection, and holds a permit for the bytes of its answer
//! until they are written.

use std::sync::Arc;

use anabranch_core::group::Connection;
use anabranch_core::ids::LogId;
use anabranch_core::ids::Lsn;
use anabranch_core::log::FetchBounds;
use anabranch_engine::fetch::{Fetch, FetchError, Look, Read, Reads, Source, size};
use anabranch_engine::slice_fetch::bounds_seen;
use anabranch_wire::ErrorCode;
use bytes::Bytes;
use tokio::time::Instant;

use crate::broker::Broker;
use crate::budget::Permit;
use crate::fetch_wait::Parked;
use crate::shutdown::Phase;

/// What became of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) partition: i32,
    pub(crate) bounds: Result<FetchBounds, ErrorCode>,
    pub(crate) batches: Vec<Bytes>,
}

/// All of it: one [`Found`] per [`Want`](anabranch_engine::fetch::Want), in order.
pub(crate) struct Done {
    pub(crate) found: Vec<Found>,
    /// The entry that it waits for.
    pub(crate) after: Lsn,
    pub(crate) permit: Option<Permit>,
}

/// Does it. At `deadline` it is answered with what there is.
pub(crate) async fn run(
    broker: &Arc<Broker>,
    connection: Connection,
    fetch: Fetch,
    deadline: Instant,
) -> Done {
    let fetch = Arc::new(fetch);
    loop {
        let final_look = deadline <= Instant::now() || broker.shared.shutdown.phase() >= Phase::Draining;
        let (look, ticket) = look(broker, &fetch, None, final_look);
        let wait = deadline.saturating_duration_since(Instant::now());
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        broker.slices_fetched(connection, &look, wait_ms);
        let ticket = match ticket {
            Some(ticket) => ticket,
            None => {
                let (reads, permit) = read(broker, &fetch, &look).await;
                let is_searched = Fetch::has_slices(&look) && broker.note_searches(&look, &reads);
                if final_look || fetch.is_enough(&reads) {
                    match broker.reserve(&look, &reads) {
                        Some(after) => return finish(broker, &fetch, look, reads, (after, permit)),
                        None => continue,
                    }
                }
                drop(reads);
                drop(permit);
                if is_searched {
                    continue;
                }
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
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

/// Looks at all partitions, and parks the fetch if there is no use in reading: nothing there, or (if `before` is
/// given) nothing more than before.
fn look(broker: &Arc<Broker>, fetch: &Fetch, before: Option<&Look>, is_last: bool) -> (Look, Option<Ticket>) {
    broker.with(|core| {
        let look = fetch.look(core.node());
        let is_same = before.is_some_and(|before| *before == look);
        if is_last || fetch.bytes_min == 0 || !(is_same || fetch.finds_nothing(&look)) {
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

/// Reads what was seen: from memory at once, or else on a thread that may wait for the disk.
async fn read(broker: &Arc<Broker>, fetch: &Arc<Fetch>, look: &Look) -> (Reads, Option<Permit>) {
    let Some(expected) = fetch.bytes_expected(look) else {
        return (fetch.nothing(look), None);
    };
    let permit = match broker.responses.try_take(expected) {
        Some(permit) => permit,
        None => broker.responses.take(expected).await,
    };
    let reads = match fetch.read(&broker.store, &broker.scans, look, Source::Memory) {
        Some(reads) => reads,
        None => {
            broker.shared.metrics.fetches_from_disk.inc();
            read_from_disk(broker, fetch, look).await
        }
    };
    let size = size(&reads);
    (reads, permit.shrink_to(size))
}

async fn read_from_disk(broker: &Arc<Broker>, fetch: &Arc<Fetch>, look: &Look) -> Reads {
    let count = look.len();
    let (broker, fetch, look) = (Arc::clone(broker), Arc::clone(fetch), look.clone());
    let read = move || fetch.read(&broker.store, &broker.scans, &look, Source::Disk);
    match tokio::task::spawn_blocking(read).await {
        Ok(Some(reads)) => reads,
        // The thread panicked, or the runtime ends.
        _ => (0..count)
            .map(|_| Err(FetchError::Refused(ErrorCode::KafkaStorageError)))
            .collect(),
    }
}

fn finish(
    broker: &Broker,
    fetch: &Fetch,
    look: Look,
    reads: Reads,
    (after, permit): (Lsn, Option<Permit>),
) -> Done {
    broker.shared.metrics.fetched_bytes.add(size(&reads) as u64);
    let found = look
        .into_iter()
        .zip(reads)
        .zip(fetch.wants())
        .map(|((seen, read), want)| {
            let (bounds, batches) = match (seen, read) {
                (Ok(seen), Ok(Read { batches, .. })) => {
                    (Ok(bounds_seen(&seen, want.offset, batches.is_empty())), batches)
                }
                (Ok(seen), Err(error)) => {
                    tracing::error!(log = %seen.log, offset = want.offset, %error, "cannot read");
                    (Err(error.code()), Vec::new())
                }
                (Err(error), _) => (Err(error), Vec::new()),
            };
            Found {
                partition: want.partition,
                bounds,
                batches,
            }
        });
    Done {
        found: found.collect(),
        after,
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
