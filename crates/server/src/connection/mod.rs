//! One client connection: one task that reads, hands requests over, and writes answers in order.
//!
//! ```text
//!   socket -> Reader ----frame----> Service::call ----Pending----> Pipeline ----answer----> Writer -> socket
//!             (buffer, size limit,  (decode, decide; never         (order; waits for the    (vectored writes,
//!              memory permit)        blocks)                        disk or a parked reply)  write timeout)
//! ```
//!
//! All four are polled by one hand-written future, so that nothing on the way of a request crosses a thread except the
//! commit itself. The request's decision is taken the moment it arrives; only its answer waits. Back pressure is always
//! the same: while the pipeline is full, memory is short, or the client does not read its answers, the socket is not
//! read.
//!
//! | what | bound by |
//! |---|---|
//! | idle | no buffer; closed after `idle_timeout` |
//! | small requests, pipelined | `in_flight_requests_max`, `in_flight_bytes_max`, `receive_buffer_bytes_max` |
//! | large request | its permit from the request budget, taken between its length and its body |
//! | answers | [`writer::QUEUED_BYTES_MAX`] plus one answer |
//! | a client that stops in the middle of a request, or does not read | `stall_timeout`, `body_rate_min`, `write_timeout` |

mod close;
mod pipeline;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_core::group::Connection as ConnectionId;
use anabranch_core::group::elastic::ClientSoftware;
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::budget::{Budget, RequestBudget};
use crate::config::{Advertised, Limits};
use crate::durable::Durable;
use crate::metrics::Metrics;
use crate::shutdown::{Phase, Shutdown, Sleeper};

pub(crate) use close::Close;
use pipeline::{Asked, Pipeline};
pub(crate) use pipeline::{Pending, Reply};
use reader::Reader;
use writer::Writer;

/// Who is at the other end, and what it said about itself.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Names the connection.
    pub(crate) connection: ConnectionId,
    /// Its address.
    pub(crate) addr: SocketAddr,
    /// What it is to be told to connect to.
    pub(crate) advertised: Advertised,
    /// Name and version of its software, from ApiVersions v3 and later.
    pub(crate) software: Option<ClientSoftware>,
}

/// What a connection hands its requests to.
pub(crate) trait Service: Send + Sync + 'static {
    /// Takes a request (without length prefix), decides at once, and says where the answer will come from. Requests of
    /// a connection arrive here in order. Never blocks.
    fn call(&self, peer: &mut Peer, frame: Bytes) -> Result<Pending, Close>;

    /// A connection has ended, and with it whatever was parked on it. Comes once for each connection.
    fn closed(&self, connection: ConnectionId);
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    /// Memory for request bodies.
    pub(crate) requests: RequestBudget,
    /// Memory for receive buffers beyond the first few KiB.
    pub(crate) read_ahead: Budget,
    pub(crate) durable: Durable,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The connection, as a future of why it ended.
pub(crate) struct Connection<S> {
    stream: TcpStream,
    peer: Peer,
    service: Arc<S>,
    shared: Arc<Shared>,
    reader: Reader,
    pipeline: Pipeline,
    writer: Writer,
    /// The client has sent its last byte; what is durable is still answered.
    ended: bool,
    /// The socket was not read for want of room, which is no fault of the client's sending.
    paused: bool,
    /// Fires at or before the next deadline; set lazily, so that a busy connection hardly touches it.
    timer: Pin<Box<Sleep>>,
    idle_since: Instant,
    draining_since: Option<Instant>,
    sleeper: Option<Sleeper>,
}

impl<S: Service> Connection<S> {
    pub(crate) fn new(stream: TcpStream, peer: Peer, service: Arc<S>, shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now + shared.limits.idle_timeout));
        Self {
            stream,
            peer,
            service,
            shared,
            reader: Reader::new(),
            pipeline: Pipeline::default(),
            writer: Writer::new(now),
            ended: false,
            paused: false,
            timer,
            idle_since: now,
            draining_since: None,
            sleeper: None,
        }
    }

    /// Serves until one side has had enough; the peer is given back for the log.
    pub(crate) async fn run(mut self) -> (Peer, Close) {
        let close = std::future::poll_fn(|cx| self.poll_run(cx)).await;
        (self.peer, close)
    }

    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Close> {
        if self.sleeper.is_none() {
            self.sleeper = Some(self.shared.shutdown.sleeper(cx));
        }
        if self.shared.shutdown.phase() == Phase::Cut {
            return Poll::Ready(Close::Cut);
        }
        match self.poll_work(cx) {
            Ok(()) => self.poll_deadline(cx),
            Err(close) => Poll::Ready(close),
        }
    }

    /// Does all that can be done now; leaves the task registered with whatever it must wait for.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Result<(), Close> {
        loop {
            // Answers first: a client should not wait for the checks of what it sent behind.
            let mut progress = self.poll_answers(cx)?;
            let flushed = self
                .writer
                .poll_flush(cx, &mut self.stream, &self.shared.metrics)?
                .is_ready();
            if self.ended && flushed && (self.pipeline.is_empty() || self.pipeline.front_is_parked()) {
                return Err(Close::Eof);
            }
            progress |= self.poll_requests(cx)?;
            if !progress {
                break;
            }
        }
        if self.is_idle() {
            self.reader.release_buffer();
        }
        Ok(())
    }

    /// Reads and hands over requests while there is room for them.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Result<bool, Close> {
        let mut progress = false;
        while !self.ended && self.has_room() && !self.is_past_grace() {
            if std::mem::take(&mut self.paused) {
                self.reader.excuse();
            }
            match self.reader.poll_frame(cx, &mut self.stream, &self.shared)? {
                Poll::Ready(Some((frame, permit))) => {
                    let asked = Asked::now(&frame);
                    let pending = self.service.call(&mut self.peer, frame)?;
                    self.pipeline.push(pending, asked, permit);
                    progress = true;
                }
                Poll::Ready(None) => {
                    self.ended = true;
                    progress = true;
                }
                Poll::Pending => break,
            }
        }
        self.paused = !self.has_room();
        Ok(progress)
    }

    fn has_room(&self) -> bool {
        self.writer.has_room() && self.pipeline.has_room(&self.shared.limits)
    }

    /// Moves answers that are due to the writer.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> Result<bool, Close> {
        let mut progress = false;
        while self.writer.has_room() {
            match self.pipeline.poll_next(cx, &self.shared)? {
                Poll::Ready(Some(answer)) => {
                    self.writer.push(answer);
                    progress = true;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if progress {
            self.idle_since = Instant::now();
        }
        Ok(progress)
    }

    /// The server ends, and has waited long enough for requests that were on their way.
    fn is_past_grace(&self) -> bool {
        self.draining_since
            .is_some_and(|since| since + self.shared.limits.shutdown_grace <= Instant::now())
    }

    /// Whether the client is owed nothing.
    fn is_even(&self) -> bool {
        self.pipeline.is_empty() && self.writer.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.is_even() && self.reader.is_empty()
    }

    /// The next moment at which something would be overdue, and what.
    fn deadline(&self) -> (Instant, Close) {
        let limits = &self.shared.limits;
        let idle = (self.idle_since + limits.idle_timeout, Close::Idle);
        let mut next = if self.is_idle() {
            idle
        } else {
            (Instant::now() + limits.idle_timeout, Close::Idle)
        };
        if let Some(at) = self
            .reader
            .deadline(limits)
            .filter(|at| !self.paused && *at < next.0)
        {
            next = (at, Close::Stalled);
        }
        if let Some(at) = self.writer.deadline(limits).filter(|at| *at < next.0) {
            next = (at, Close::NotRead);
        }
        if let Some(since) = self.draining_since.filter(|_| self.is_even()) {
            let at = since + limits.shutdown_grace;
            if at < next.0 {
                next = (at, Close::Drained);
            }
        }
        next
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Close> {
        if self.draining_since.is_none() && self.shared.shutdown.phase() >= Phase::Draining {
            self.draining_since = Some(Instant::now());
        }
        let (at, _) = self.deadline();
        if at < self.timer.deadline() {
            self.timer.as_mut().reset(at);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let (at, close) = self.deadline();
            if at <= Instant::now() {
                return Poll::Ready(close);
            }
            self.timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}
