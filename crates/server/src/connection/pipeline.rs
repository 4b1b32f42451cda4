//! Requests whose answers are not yet written, in the order in which they came.
//!
//! An answer is ready, or comes later (a parked fetch, a join that waits for others). Either way it leaves only after
//! the log entry that it depends on is durable, and after all answers before it. What comes later is driven only when
//! it has got to the front: a client that pipelines a hundred fetches gets one of them worked on at a time, so that
//! one answer at most is held in memory.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use anabranch_core::ids::Lsn;
use anabranch_wire::chunks::Chunks;

use super::{Close, Shared};
use crate::budget::Permit;
use crate::config::Limits;
use crate::durable::Gate;

/// An answer as it goes to the wire.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Length prefix, header and body; empty if the client wants no answer.
    pub(crate) chunks: Chunks,
    /// The log entry that must be durable before it leaves.
    pub(crate) after: Lsn,
    /// Memory that is held until it has left.
    pub(crate) permit: Option<Permit>,
}

/// An answer that takes its time. `Err`: the connection is to be closed.
pub(crate) type Later = Pin<Box<dyn Future<Output = Result<Reply, Close>> + Send>>;

/// Where an answer comes from.
pub(crate) enum Pending {
    /// It is there.
    Ready(Reply),
    /// It will come.
    Later(Later),
}

/// A request, as far as the queue cares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    bytes: usize,
    /// Number of the API; -1 if the request is too short to say.
    api: i16,
    /// When it was complete.
    at: Instant,
}

impl Asked {
    /// What has been asked just now.
    pub(crate) fn now(frame: &[u8]) -> Self {
        let key = frame.first_chunk();
        Self {
            bytes: frame.len(),
            api: key.map_or(-1, |key| i16::from_be_bytes(*key)),
            at: Instant::now(),
        }
    }
}

struct InFlight {
    pending: Pending,
    asked: Asked,
    /// The request's memory: held until what was made of it is durable.
    _permit: Permit,
}

/// The queue.
#[derive(Default)]
pub(crate) struct Pipeline {
    queue: VecDeque<InFlight>,
    bytes: usize,
    gate: Gate,
}

impl Pipeline {
    /// Whether another request may come in.
    pub(crate) fn has_room(&self, limits: &Limits) -> bool {
        self.queue.is_empty()
            || (self.queue.len() < limits.in_flight_requests_max && self.bytes < limits.in_flight_bytes_max)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the answer in front waits for something other than the disk.
    pub(crate) fn front_is_parked(&self) -> bool {
        matches!(
            self.queue.front(),
            Some(InFlight {
                pending: Pending::Later(_),
                ..
            })
        )
    }

    /// Adds a request.
    pub(crate) fn push(&mut self, pending: Pending, asked: Asked, permit: Permit) {
        self.bytes += asked.bytes;
        self.queue.push_back(InFlight {
            pending,
            asked,
            _permit: permit,
        });
    }

    /// The next answer, once it is due; `None` if nothing is owed.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
    ) -> Result<Poll<Option<Reply>>, Close> {
        let Some(front) = self.queue.front_mut() else {
            return Ok(Poll::Ready(None));
        };
        if let Pending::Later(later) = &mut front.pending {
            match later.as_mut().poll(cx) {
                Poll::Ready(reply) => front.pending = Pending::Ready(reply?),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        if let Pending::Ready(reply) = &front.pending
            && self.gate.poll(&shared.durable, reply.after, cx)?.is_pending()
        {
            return Ok(Poll::Pending);
        }
        match self.queue.pop_front() {
            Some(InFlight {
                pending: Pending::Ready(reply),
                asked,
                ..
            }) => {
                self.bytes -= asked.bytes;
                shared.metrics.answered(asked.api, asked.at.elapsed());
                Ok(Poll::Ready(Some(reply)))
            }
            _ => Ok(Poll::Ready(None)),
        }
    }
}
