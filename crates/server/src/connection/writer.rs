//! The writing half: answers that are due, written as few vectored writes as the socket takes.

use std::io::{ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_wire::chunks::Chunks;
use bytes::Buf;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{Close, Reply};
use crate::budget::Permit;
use crate::config::Limits;
use crate::metrics::Metrics;

/// Answers are taken over while less than this is queued, bytes.
pub(crate) const QUEUED_BYTES_MAX: usize = 256 << 10;

/// Pieces handed to one write.
const SLICES_MAX: usize = 64;

/// Queued answers.
pub(crate) struct Writer {
    queue: Chunks,
    /// Memory of the queued answers; given back when all have left.
    permits: Vec<Permit>,
    /// When the socket last took something, or was last owed nothing.
    progress: Instant,
}

impl Writer {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            queue: Chunks::default(),
            permits: Vec::new(),
            progress: now,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether another answer may be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() < QUEUED_BYTES_MAX
    }

    /// Queues an answer.
    pub(crate) fn push(&mut self, reply: Reply) {
        if self.queue.is_empty() {
            self.progress = Instant::now();
        }
        self.queue.append(reply.chunks);
        self.permits.extend(reply.permit);
    }

    /// When the client must have taken something.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        (!self.queue.is_empty()).then(|| self.progress + limits.write_timeout)
    }

    /// Writes until nothing is left or the socket takes no more.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        metrics: &Metrics,
    ) -> Result<Poll<()>, Close> {
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.queue.chunks_vectored(&mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            match Pin::new(&mut *stream).poll_write_vectored(cx, slices) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(Close::Io(ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    self.queue.advance(written);
                    self.progress = Instant::now();
                    metrics.sent_bytes.add(written as u64);
                }
                Poll::Ready(Err(error)) => return Err(Close::Io(error)),
            }
        }
        self.permits.clear();
        Ok(Poll::Ready(()))
    }
}
