//! End-to-end latency on an open loop: records are due by a schedule, whatever the answers do, and time counts from the
//! moment a record *should* have left.
//!
//! They leave as an ordinary client sends them that does not linger: at once while fewer than five requests are under way;
//! else what has become due goes together in the next one.

use super::ANSWER_US_MAX;
use super::bytes::{Produce, STAMPED_RECORDS_MAX, STAMPED_VALUE, batch, produced, stamps};
use super::consume::Reader;
use super::payload::payloads;
use super::socket::Socket;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use std::time::{Duration, Instant};

const PRODUCER: Token = Token(0);
const READER: Token = Token(1);

/// Requests under way, at most: `max.in.flight.requests.per.connection` of Kafka's clients.
const IN_FLIGHT_MAX: usize = 5;

/// What was seen of the records that were due after the warm-up.
pub(crate) struct Times {
    /// Microseconds from when a record was due to its receipt.
    pub(crate) end_to_end_us: Histogram<u64>,
    /// Microseconds by which a record left late although fewer than five requests were under way: what the driver adds.
    pub(crate) late_us: Histogram<u64>,
    /// Records of a request, on average.
    pub(crate) records_a_request: f64,
}

/// Sends `per_second` records of 1,000 bytes and reads them back through another connection.
pub(crate) fn end_to_end(
    address: &str,
    topic: &str,
    per_second: u64,
    warm_up: Duration,
    measured: Duration,
) -> Result<Times> {
    let mut poll = Poll::new()?;
    let mut sender = Sender::connect(address, topic, per_second, warm_up + measured)?;
    let mut reader = Reader::connect(address, topic, 0, 0)?;
    let both = Interest::READABLE | Interest::WRITABLE;
    poll.registry()
        .register(&mut sender.socket.stream, PRODUCER, both)?;
    poll.registry()
        .register(&mut reader.socket.stream, READER, both)?;
    reader.ask()?;

    let mut end_to_end_us = Histogram::new_with_bounds(1, ANSWER_US_MAX, 3)?;
    let warm_up_ns = warm_up.as_nanos() as u64;
    let mut received = 0;
    let mut events = Events::with_capacity(16);
    while received < sender.total {
        ensure!(
            sender.now_ns() < sender.due_ns(sender.total) + 30_000_000_000,
            "{received} of {} records after 30 s more",
            sender.total
        );
        sender.send_what_is_due()?;
        // Spinning for the next moment: a sleep here oversleeps by more than what is measured.
        poll.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            if event.token() == PRODUCER {
                sender.answered()?;
            } else {
                let arrived_ns = sender.now_ns();
                let took_ns = |due_ns: u64| arrived_ns.saturating_sub(due_ns);
                received += reader
                    .take(|batch| {
                        for due_ns in stamps(batch).filter(|due_ns| *due_ns >= warm_up_ns) {
                            end_to_end_us.saturating_record(took_ns(due_ns) / 1000);
                        }
                    })?
                    .0;
            }
        }
    }
    Ok(Times {
        end_to_end_us,
        late_us: sender.late_us,
        records_a_request: sender.total as f64 / sender.requests_sent.max(1) as f64,
    })
}

/// The producing side.
struct Sender {
    socket: Socket,
    /// A prepared request of each number of records, from one.
    requests: Vec<Produce>,
    begin: Instant,
    per_second: u64,
    total: u64,
    sent: u64,
    requests_sent: u64,
    under_way: usize,
    /// When there was last no room for a request.
    full_ns: u64,
    late_us: Histogram<u64>,
}

impl Sender {
    fn connect(address: &str, topic: &str, per_second: u64, time: Duration) -> Result<Self> {
        let values = payloads(STAMPED_RECORDS_MAX, STAMPED_VALUE);
        Ok(Self {
            socket: Socket::connect(address)?,
            requests: (1..=values.len())
                .map(|records| Produce::new(topic, &batch(&values[..records]), 1))
                .collect(),
            begin: Instant::now(),
            per_second,
            total: time.as_nanos() as u64 * per_second / 1_000_000_000,
            sent: 0,
            requests_sent: 0,
            under_way: 0,
            full_ns: 0,
            late_us: Histogram::new_with_bounds(1, ANSWER_US_MAX, 3)?,
        })
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// When a record is due.
    fn due_ns(&self, number: u64) -> u64 {
        number * 1_000_000_000 / self.per_second
    }

    fn send_what_is_due(&mut self) -> Result<()> {
        loop {
            let now_ns = self.now_ns();
            if self.under_way == IN_FLIGHT_MAX {
                self.full_ns = now_ns;
                break;
            }
            let due = (now_ns * self.per_second / 1_000_000_000 + 1).min(self.total);
            let records = due.saturating_sub(self.sent).min(STAMPED_RECORDS_MAX as u64);
            if records == 0 {
                break;
            }
            let late_ns = now_ns - self.due_ns(self.sent).max(self.full_ns).min(now_ns);
            self.late_us.saturating_record(late_ns / 1000);
            let (first, per_second) = (self.sent, self.per_second);
            let request = &mut self.requests[records as usize - 1];
            request.set_stamps((first..).map(|number| number * 1_000_000_000 / per_second));
            self.socket.queue(&request.frame);
            self.sent += records;
            self.under_way += 1;
            self.requests_sent += 1;
        }
        self.socket.flush()
    }

    fn answered(&mut self) -> Result<()> {
        let under_way = &mut self.under_way;
        self.socket.drain(|answer| {
            let (error, _) = produced(answer).context("the answer to a produce is malformed")?;
            ensure!(error == 0, "a produce failed with error {error}");
            *under_way -= 1;
            Ok(())
        })
    }
}
