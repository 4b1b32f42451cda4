//! Readers: one request under way per reader, each answer's bytes counted and stepped over.

use super::bytes::{batch_end, batches, fetch, fetched};
use super::socket::Socket;
use anyhow::{Context, Result, ensure};
use mio::{Events, Interest, Poll, Token};
use std::time::{Duration, Instant};

/// How much a reader asks for at once.
const FETCH_BYTES: i32 = 1 << 20;

/// How long the broker may hold an empty answer.
const WAIT_MS: i32 = 500;

/// What readers achieved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Read {
    pub(crate) fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// A reader of one partition.
pub(crate) struct Reader {
    pub(crate) socket: Socket,
    topic: String,
    partition: i32,
    pub(crate) offset: i64,
}

impl Reader {
    pub(crate) fn connect(address: &str, topic: &str, partition: i32, offset: i64) -> Result<Self> {
        Ok(Self {
            socket: Socket::connect(address)?,
            topic: topic.into(),
            partition,
            offset,
        })
    }

    pub(crate) fn ask(&mut self) -> Result<()> {
        self.socket.queue(&fetch(
            &self.topic,
            self.partition,
            self.offset,
            WAIT_MS,
            FETCH_BYTES,
        ));
        self.socket.flush()
    }

    /// Takes what has come, hands each batch to `each`, asks for more; returns records and bytes.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&[u8])) -> Result<(u64, u64)> {
        let (mut records, mut bytes, mut answers) = (0, 0, 0);
        let offset = &mut self.offset;
        self.socket.drain(|answer| {
            let (error, _, set) = fetched(answer).context("the answer to a fetch is malformed")?;
            ensure!(error == 0, "a fetch failed with error {error}");
            answers += 1;
            bytes += set.len() as u64;
            for batch in batches(set) {
                let (end, count) = batch_end(batch).context("a batch is malformed")?;
                records += u64::from(count.unsigned_abs());
                *offset = end.max(*offset);
                each(batch);
            }
            Ok(())
        })?;
        for _ in 0..answers {
            self.ask()?;
        }
        self.socket.flush()?;
        Ok((records, bytes))
    }
}

/// Reads partitions from their start until each reader has reached its end; one reader a partition.
pub(crate) fn catch_up(address: &str, topic: &str, ends: &[i64], limit: Duration) -> Result<Read> {
    let mut poll = Poll::new()?;
    let mut readers = Vec::new();
    for partition in 0..ends.len() {
        readers.push(Reader::connect(address, topic, i32::try_from(partition)?, 0)?);
    }
    for (token, reader) in readers.iter_mut().enumerate() {
        poll.registry().register(
            &mut reader.socket.stream,
            Token(token),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        reader.ask()?;
    }
    let begin = Instant::now();
    let mut read = Read::default();
    let mut events = Events::with_capacity(64);
    while readers.iter().zip(ends).any(|(reader, end)| reader.offset < *end) {
        ensure!(
            begin.elapsed() < limit,
            "readers did not reach the end within {limit:?}"
        );
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        for event in &events {
            let (records, bytes) = readers[event.token().0].take(|_| ())?;
            read.records += records;
            read.bytes += bytes;
        }
    }
    read.seconds = begin.elapsed().as_secs_f64();
    Ok(read)
}

/// Follows partition 0 from its end with `count` independent readers for some time.
pub(crate) fn tail(address: &str, topic: &str, count: usize, from: i64, time: Duration) -> Result<Read> {
    let mut poll = Poll::new()?;
    let mut readers = Vec::new();
    for _ in 0..count {
        readers.push(Reader::connect(address, topic, 0, from)?);
    }
    for (token, reader) in readers.iter_mut().enumerate() {
        poll.registry().register(
            &mut reader.socket.stream,
            Token(token),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        reader.ask()?;
    }
    let begin = Instant::now();
    let mut read = Read::default();
    let mut events = Events::with_capacity(64);
    while begin.elapsed() < time {
        poll.poll(&mut events, Some(Duration::from_millis(10)))?;
        for event in &events {
            let (records, bytes) = readers[event.token().0].take(|_| ())?;
            read.records += records;
            read.bytes += bytes;
        }
    }
    read.seconds = begin.elapsed().as_secs_f64();
    Ok(read)
}
