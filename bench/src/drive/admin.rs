//! Blocking calls for set-up: topics, producer ids, end offsets.

use super::bytes::{Frame, set_correlation};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;

/// A blocking connection, one request at a time.
pub(crate) struct Admin(TcpStream);

impl Admin {
    pub(crate) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(stream))
    }

    /// Sends a frame and returns the answer behind the correlation id.
    pub(crate) fn call(&mut self, mut frame: Vec<u8>) -> Result<Vec<u8>> {
        set_correlation(&mut frame, 1);
        self.0.write_all(&frame)?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length).context("no answer")?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        Ok(answer.split_off(4))
    }

    /// Creates a topic and waits until it can be written (CreateTopics version 4).
    pub(crate) fn create_topic(
        &mut self,
        topic: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<()> {
        let mut frame = Frame::request(19, 4);
        frame.i32(1);
        frame.string(topic);
        frame.i32(partitions);
        frame.i16(1);
        frame.i32(0);
        frame.i32(i32::try_from(configs.len())?);
        for (name, value) in configs {
            frame.string(name);
            frame.string(value);
        }
        frame.i32(60_000);
        frame.i8(0);
        let answer = self.call(frame.finish())?;
        let error = number(&answer, 4 + 4 + 2 + topic.len())?;
        ensure!(error == 0, "creating {topic}: error {error}");
        self.wait_for_leaders(topic, partitions)
    }

    /// Deletes a topic (DeleteTopics version 1).
    pub(crate) fn delete_topic(&mut self, topic: &str) -> Result<()> {
        let mut frame = Frame::request(20, 1);
        frame.i32(1);
        frame.string(topic);
        frame.i32(60_000);
        let answer = self.call(frame.finish())?;
        let error = number(&answer, 4 + 4 + 2 + topic.len())?;
        ensure!(error == 0, "deleting {topic}: error {error}");
        Ok(())
    }

    /// Repeats Metadata (version 1) until every partition has a leader, and asks each for its end: Kafka needs a moment
    /// for the first, and another until the leaders know that they lead.
    fn wait_for_leaders(&mut self, topic: &str, partitions: i32) -> Result<()> {
        let mut ready = 0;
        for _ in 0..3000 {
            if self.leaders(topic)? == partitions {
                while ready < partitions && self.end_offset(topic, ready).is_ok() {
                    ready += 1;
                }
            }
            if ready == partitions {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{topic} has no leaders after 30 s")
    }

    fn leaders(&mut self, topic: &str) -> Result<i32> {
        let mut frame = Frame::request(3, 1);
        frame.i32(1);
        frame.string(topic);
        let answer = self.call(frame.finish())?;
        let mut at = 4;
        for _ in 0..long(&answer, 0)? {
            at += 4;
            at += 2 + usize::try_from(number(&answer, at)?)? + 4;
            at += 2 + usize::try_from(number(&answer, at)?.max(0))?;
        }
        at += 4 + 4;
        if number(&answer, at)? != 0 {
            return Ok(0);
        }
        at += 2;
        at += 2 + usize::try_from(number(&answer, at)?)? + 1;
        let count = long(&answer, at)?;
        at += 4;
        let mut led = 0;
        for _ in 0..count {
            led += i32::from(number(&answer, at)? == 0 && long(&answer, at + 6)? >= 0);
            at += 10;
            for _ in 0..2 {
                at += 4 + 4 * usize::try_from(long(&answer, at)?)?;
            }
        }
        Ok(led)
    }

    /// A fresh producer id (InitProducerId version 0).
    pub(crate) fn producer_id(&mut self) -> Result<i64> {
        let mut frame = Frame::request(22, 0);
        frame.i16(-1);
        frame.i32(60_000);
        let frame = frame.finish();
        for _ in 0..1000 {
            let answer = self.call(frame.clone())?;
            match number(&answer, 4)? {
                0 => return wide(&answer, 6),
                // Kafka fetches its first block of ids when they are first asked for.
                COORDINATOR_LOAD_IN_PROGRESS => std::thread::sleep(Duration::from_millis(10)),
                error => bail!("no producer id: error {error}"),
            }
        }
        bail!("no producer id after 10 s")
    }

    /// The end of a partition (ListOffsets version 1, latest).
    pub(crate) fn end_offset(&mut self, topic: &str, partition: i32) -> Result<i64> {
        let mut frame = Frame::request(2, 1);
        frame.i32(-1);
        frame.i32(1);
        frame.string(topic);
        frame.i32(1);
        frame.i32(partition);
        frame.i64(-1);
        let answer = self.call(frame.finish())?;
        let at = 4 + 2 + topic.len() + 4 + 4;
        ensure!(
            number(&answer, at)? == 0,
            "no end offset: error {}",
            number(&answer, at)?
        );
        wide(&answer, at + 2 + 8)
    }
}

fn field<const N: usize>(answer: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = answer.get(at..at + N).context("the answer is too short")?;
    Ok(bytes.try_into()?)
}

fn number(answer: &[u8], at: usize) -> Result<i16> {
    Ok(i16::from_be_bytes(field(answer, at)?))
}

fn long(answer: &[u8], at: usize) -> Result<i32> {
    Ok(i32::from_be_bytes(field(answer, at)?))
}

fn wide(answer: &[u8], at: usize) -> Result<i64> {
    Ok(i64::from_be_bytes(field(answer, at)?))
}
