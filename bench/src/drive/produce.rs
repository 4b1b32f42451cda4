//! Producers as fast as the broker takes them: a closed loop with a fixed number of requests under way.

use super::ANSWER_US_MAX;
use super::admin::Admin;
use super::bytes::{Produce, batch, produced, set_correlation};
use super::payload::payloads;
use super::socket::Socket;
use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Requests that each of several partitions must have had before anything counts: a broker may do much at the first ones.
/// Kafka maps two index files of 10 MB per partition, and the first touch of each fills a whole read-ahead window with
/// zeros: 8 MB on some disks, tens of milliseconds of CPU time.
const PRIMING_REQUESTS: u32 = 8;

/// How long that may take.
const PRIMING_MAX: Duration = Duration::from_secs(120);

/// A load of producers.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    pub(crate) partitions: i32,
    pub(crate) records_per_batch: usize,
    pub(crate) record_bytes: usize,
    pub(crate) idempotent: bool,
    /// Whether the driver computes each batch's checksum anew, as it must for an idempotent producer: for a comparison with one.
    pub(crate) sealed: bool,
    /// How long the load runs before anything counts.
    pub(crate) warm_up: Duration,
    /// How long it counts.
    pub(crate) measured: Duration,
    /// Stop when so many bytes of values were acknowledged, whatever the time.
    pub(crate) bytes_max: Option<u64>,
    /// At most so many bytes of values a second, spread evenly.
    pub(crate) bytes_per_second: Option<u64>,
    /// Whether errors in answers are counted; else the first ends the load.
    pub(crate) counts_errors: bool,
}

impl Load {
    /// The load of P1: batches of 64 records of 1 KB into one partition, from 16 connections with 5 requests under way each.
    pub(crate) fn bulk(warm_up: Duration, measured: Duration) -> Self {
        Self {
            connections: 16,
            in_flight: 5,
            partitions: 1,
            records_per_batch: 64,
            record_bytes: 1024,
            idempotent: false,
            sealed: false,
            warm_up,
            measured,
            bytes_max: None,
            bytes_per_second: None,
            counts_errors: false,
        }
    }

    /// The load of P5: as long, of 64 producers that send single records of 100 bytes and wait for each answer.
    pub(crate) fn lone(self) -> Self {
        Self {
            connections: 64,
            in_flight: 1,
            records_per_batch: 1,
            record_bytes: 100,
            ..self
        }
    }

    /// The partition that a connection begins with: they walk through all in the same order, so they begin far apart, or
    /// all would always be at the same few.
    fn first_partition(&self, connection: usize) -> i32 {
        let partitions = self.partitions.unsigned_abs() as usize;
        let first = connection * partitions / self.connections.max(1) % partitions;
        i32::try_from(first).expect("less than the number of partitions")
    }
}

/// What a load achieved while it counted.
#[derive(Clone, Debug)]
pub(crate) struct Achieved {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    /// Batches that were refused, where that does not end the load.
    pub(crate) errors: u64,
    /// Answer times in microseconds.
    pub(crate) answer_us: Histogram<u64>,
}

impl Achieved {
    pub(crate) fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    pub(crate) fn records_per_second(&self) -> f64 {
        self.records as f64 / self.seconds
    }
}

struct Producer {
    socket: Socket,
    requests: Vec<Produce>,
    /// When each request under way was sent, and to which partition.
    sent: VecDeque<(Instant, i32)>,
    turn: usize,
    partition: i32,
    id: i64,
    sequences: Vec<i32>,
}

/// Runs a load against a topic that exists; `on_measured` is called when counting begins.
pub(crate) fn run(address: &str, topic: &str, load: &Load, on_measured: impl FnOnce()) -> Result<Achieved> {
    run_until(address, topic, load, &|| false, on_measured)
}

/// The same, until something else is over if that is earlier.
pub(crate) fn run_until(
    address: &str,
    topic: &str,
    load: &Load,
    is_over: &dyn Fn() -> bool,
    on_measured: impl FnOnce(),
) -> Result<Achieved> {
    let mut poll = Poll::new()?;
    let mut producers = connect(address, topic, load)?;
    for (token, producer) in producers.iter_mut().enumerate() {
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut producer.socket.stream, Token(token), both)?;
    }
    let mut meter = Meter::new(load);
    let mut on_measured = Some(on_measured);
    let mut events = Events::with_capacity(256);
    for producer in &mut producers {
        producer.fill(load, &mut meter)?;
    }
    loop {
        poll.poll(&mut events, Some(Duration::from_millis(1)))?;
        for event in &events {
            producers[event.token().0].answered(load, &mut meter)?;
        }
        if meter.paced() {
            producers
                .iter_mut()
                .try_for_each(|producer| producer.fill(load, &mut meter))?;
        }
        if meter.counting()
            && let Some(begin) = on_measured.take()
        {
            begin();
        }
        if meter.done() || is_over() {
            return Ok(meter.achieved());
        }
        ensure!(
            meter.begin.elapsed() < load.warm_up + load.measured + PRIMING_MAX,
            "the load has not reached all partitions within {PRIMING_MAX:?}"
        );
    }
}

fn connect(address: &str, topic: &str, load: &Load) -> Result<Vec<Producer>> {
    let values = payloads(1000, load.record_bytes);
    let requests: Vec<Produce> = values
        .chunks(load.records_per_batch)
        .filter(|chunk| chunk.len() == load.records_per_batch)
        .take(16)
        .map(|chunk| Produce::new(topic, &batch(chunk), -1))
        .collect();
    ensure!(!requests.is_empty(), "at most 1000 records a batch");
    let mut admin = Admin::connect(address)?;
    (0..load.connections)
        .map(|number| {
            Ok(Producer {
                socket: Socket::connect(address)?,
                requests: requests.clone(),
                sent: VecDeque::new(),
                turn: number,
                partition: load.first_partition(number),
                id: if load.idempotent { admin.producer_id()? } else { -1 },
                sequences: vec![0; usize::try_from(load.partitions)?],
            })
        })
        .collect()
}

impl Producer {
    /// Sends until the wanted number of requests is under way.
    fn fill(&mut self, load: &Load, meter: &mut Meter) -> Result<()> {
        while self.sent.len() < load.in_flight && meter.may_send(load) {
            self.turn = (self.turn + 1) % self.requests.len();
            let request = &mut self.requests[self.turn];
            request.set_partition(self.partition);
            if load.idempotent {
                let sequence = &mut self.sequences[usize::try_from(self.partition)?];
                request.set_sequence(self.id, *sequence);
                *sequence += i32::try_from(load.records_per_batch)?;
            } else if load.sealed {
                request.set_sequence(-1, -1);
            }
            set_correlation(&mut request.frame, 1);
            self.socket.queue(&request.frame);
            self.sent.push_back((Instant::now(), self.partition));
            self.partition = (self.partition + 1) % load.partitions;
        }
        self.socket.flush()
    }

    fn answered(&mut self, load: &Load, meter: &mut Meter) -> Result<()> {
        let sent = &mut self.sent;
        self.socket.drain(|answer| {
            let (error, _) = produced(answer).context("the answer to a produce is malformed")?;
            let (begin, partition) = sent.pop_front().context("an answer without a request")?;
            match error {
                0 => meter.count(load, partition, begin.elapsed()),
                _ if load.counts_errors => meter.errors += 1,
                _ => bail!("a produce failed with error {error}"),
            }
            Ok(())
        })?;
        self.fill(load, meter)
    }
}

/// Which partitions have not had their first requests yet.
struct Priming {
    /// Requests that are still to be acknowledged, by partition.
    missing: Vec<u32>,
    partitions: usize,
}

impl Priming {
    fn new(load: &Load) -> Self {
        let partitions = match load.partitions {
            1 => 0,
            _ if load.bytes_max.is_some() => 0,
            many => many.unsigned_abs() as usize,
        };
        Self {
            missing: vec![PRIMING_REQUESTS; partitions],
            partitions,
        }
    }

    fn answered(&mut self, partition: i32) {
        let at = usize::try_from(partition).unwrap_or(usize::MAX);
        if let Some(missing) = self.missing.get_mut(at).filter(|missing| **missing > 0) {
            *missing -= 1;
            self.partitions -= usize::from(*missing == 0);
        }
    }

    fn done(&self) -> bool {
        self.partitions == 0
    }
}

/// Counts what was acknowledged after the warm-up, and keeps the pace.
struct Meter {
    begin: Instant,
    warm_up: Duration,
    /// What is still to come before anything counts.
    priming: Priming,
    /// When counting began.
    counting_since: Option<Instant>,
    measured: Duration,
    bytes_max: u64,
    bytes_per_second: Option<u64>,
    sent_bytes: u64,
    total_bytes: u64,
    records: u64,
    bytes: u64,
    errors: u64,
    answer_us: Histogram<u64>,
}

impl Meter {
    fn new(load: &Load) -> Self {
        Self {
            begin: Instant::now(),
            warm_up: load.warm_up,
            priming: Priming::new(load),
            counting_since: None,
            measured: load.measured,
            bytes_max: load.bytes_max.unwrap_or(u64::MAX),
            bytes_per_second: load.bytes_per_second,
            sent_bytes: 0,
            total_bytes: 0,
            records: 0,
            bytes: 0,
            errors: 0,
            answer_us: Histogram::new_with_bounds(1, ANSWER_US_MAX, 3).expect("the bounds are allowed"),
        }
    }

    fn paced(&self) -> bool {
        self.bytes_per_second.is_some()
    }

    fn may_send(&mut self, load: &Load) -> bool {
        let due = self.bytes_per_second.map_or(f64::INFINITY, |rate| {
            rate as f64 * self.begin.elapsed().as_secs_f64()
        });
        let may = (self.sent_bytes as f64) < due && self.sent_bytes < self.bytes_max;
        if may {
            self.sent_bytes += (load.records_per_batch * load.record_bytes) as u64;
        }
        may
    }

    fn counting(&mut self) -> bool {
        if self.counting_since.is_none() && self.begin.elapsed() >= self.warm_up && self.priming.done() {
            self.counting_since = Some(Instant::now());
        }
        self.counting_since.is_some()
    }

    fn count(&mut self, load: &Load, partition: i32, answer: Duration) {
        let bytes = (load.records_per_batch * load.record_bytes) as u64;
        self.total_bytes += bytes;
        self.priming.answered(partition);
        if self.counting() {
            self.records += load.records_per_batch as u64;
            self.bytes += bytes;
            self.answer_us
                .saturating_record(u64::try_from(answer.as_micros()).unwrap_or(u64::MAX));
        }
    }

    fn done(&self) -> bool {
        self.total_bytes >= self.bytes_max
            || self
                .counting_since
                .is_some_and(|since| since.elapsed() >= self.measured)
    }

    fn achieved(self) -> Achieved {
        let seconds = self
            .counting_since
            .map_or(0.0, |since| since.elapsed().as_secs_f64());
        Achieved {
            records: self.records,
            bytes: self.bytes,
            seconds,
            errors: self.errors,
            answer_us: self.answer_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(partitions: i32) -> Load {
        Load {
            partitions,
            ..Load::bulk(Duration::ZERO, Duration::ZERO)
        }
    }

    #[test]
    fn nothing_counts_before_the_last_partition_has_had_its_first_requests() {
        let mut priming = Priming::new(&load(3));
        for partition in [0, 1].repeat(100) {
            priming.answered(partition);
        }
        assert!(
            !priming.done(),
            "partition 2 has had none, however many the others had"
        );
        for _ in 1..PRIMING_REQUESTS {
            priming.answered(2);
        }
        assert!(!priming.done());
        priming.answered(2);
        assert!(priming.done());
        priming.answered(2);
        assert!(priming.done());
    }

    #[test]
    fn one_partition_needs_the_warm_up_alone() {
        assert!(Priming::new(&load(1)).done());
    }

    #[test]
    fn connections_begin_far_apart() {
        let first = |partitions| -> Vec<i32> {
            let load = load(partitions);
            (0..load.connections)
                .map(|number| load.first_partition(number))
                .collect()
        };
        assert_eq!(first(256), (0..16).map(|number| number * 16).collect::<Vec<_>>());
        assert_eq!(first(16), (0..16).collect::<Vec<_>>());
        assert_eq!(first(4)[..6], [0, 0, 0, 0, 1, 1]);
        assert_eq!(first(1), [0; 16]);
    }
}
