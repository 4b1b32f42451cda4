//! End-to-end latency on an open loop: records leave by a schedule, whatever the answers do, and time counts from the
//! moment a record *should* have left.

use super::ANSWER_US_MAX;
use super::bytes::{Produce, STAMPED_VALUE, batch, produced, stamp};
use super::consume::Reader;
use super::payload::payloads;
use super::socket::Socket;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use std::time::{Duration, Instant};

const PRODUCER: Token = Token(0);
const READER: Token = Token(1);

/// Sends `per_second` records of 1,000 bytes, one a request, and reads them back through another connection.
///
/// Returns microseconds from intended send to receipt, of the records intended after the warm-up.
pub(crate) fn end_to_end(
    address: &str,
    topic: &str,
    per_second: u64,
    warm_up: Duration,
    measured: Duration,
) -> Result<Histogram<u64>> {
    let mut poll = Poll::new()?;
    let mut request = Produce::new(topic, &batch(&payloads(1, STAMPED_VALUE), 1), 1);
    let mut producer = Socket::connect(address)?;
    let mut reader = Reader::connect(address, topic, 0, 0)?;
    let both = Interest::READABLE | Interest::WRITABLE;
    poll.registry().register(&mut producer.stream, PRODUCER, both)?;
    poll.registry()
        .register(&mut reader.socket.stream, READER, both)?;
    reader.ask()?;

    let mut times = Histogram::new_with_bounds(1, ANSWER_US_MAX, 3)?;
    let begin = Instant::now();
    let total = (warm_up + measured).as_nanos() as u64 * per_second / 1_000_000_000;
    let due_ns = |number: u64| number * 1_000_000_000 / per_second;
    let (mut sent, mut received) = (0, 0);
    let mut events = Events::with_capacity(16);
    while received < total {
        let now_ns = begin.elapsed().as_nanos() as u64;
        ensure!(
            now_ns < due_ns(total) + 30_000_000_000,
            "{received} of {total} records after 30 s more"
        );
        while sent < total && due_ns(sent) <= now_ns {
            request.set_stamp(due_ns(sent));
            producer.queue(&request.frame);
            sent += 1;
        }
        producer.flush()?;
        // Spinning for the next moment: a sleep here oversleeps by more than what is measured.
        poll.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            if event.token() == PRODUCER {
                producer.drain(|answer| {
                    let (error, _) = produced(answer).context("the answer to a produce is malformed")?;
                    ensure!(error == 0, "a produce failed with error {error}");
                    Ok(())
                })?;
            } else {
                let arrived_ns = begin.elapsed().as_nanos() as u64;
                received += reader
                    .take(|batch| {
                        let Some(intended_ns) = stamp(batch) else { return };
                        if intended_ns >= warm_up.as_nanos() as u64 {
                            times.saturating_record(arrived_ns.saturating_sub(intended_ns) / 1000);
                        }
                    })?
                    .0;
            }
        }
    }
    Ok(times)
}
