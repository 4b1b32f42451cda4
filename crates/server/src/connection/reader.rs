//! The reading half: bytes from the socket become frames, at a bounded cost.
//!
//! ```text
//! | len | body ......... | len | body ...          one buffer; frames leave as slices of it, without a copy
//!   ^ checked against the limit, then a permit for the body, then the body is read
//! ```
//!
//! The buffer does not exist while the connection is idle, begins small, and grows while reads fill it (beyond the
//! first few KiB only with a permit from the read-ahead budget). For a large request it grows with the bytes that
//! arrived, never to the size that was merely announced.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{Close, Shared};
use crate::budget::{Claim, Permit};
use crate::config::Limits;

/// Length of the length prefix.
const PREFIX: usize = 4;

/// The buffer of a connection that sends little, bytes.
const SMALL_BUFFER: usize = 4 << 10;

/// Most bytes that are made ready for a large request at once, beyond what has arrived.
const GROWTH_MAX: usize = 1 << 20;

/// After this many reads that use little of the buffer it is halved.
const LEAN_READS: u32 = 16;

/// Reads frames.
#[derive(Default)]
pub(crate) struct Reader {
    buffer: BytesMut,
    /// Room offered to the next read while requests are small.
    room: usize,
    lean_reads: u32,
    read_ahead: Option<Permit>,
    claim: Claim,
    /// When the frame at the head of the buffer began.
    began: Option<Instant>,
    last_byte: Option<Instant>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            room: SMALL_BUFFER,
            ..Self::default()
        }
    }

    /// The next request without its prefix, and the permit for its memory; `None` at a clean end of the stream.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        shared: &Shared,
    ) -> Result<Poll<Option<(Bytes, Permit)>>, Close> {
        loop {
            let announced = announced(&self.buffer, &shared.limits)?;
            if let Some(len) = announced {
                let waited = self.claim.is_waiting();
                if self.claim.poll_held(cx, &shared.requests, len).is_pending() {
                    return Ok(Poll::Pending);
                }
                if waited {
                    self.excuse();
                }
                if let Some(frame) = self.split(len) {
                    return Ok(Poll::Ready(Some(frame)));
                }
            }
            match self.poll_fill(cx, stream, shared, announced)? {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(0) if self.buffer.is_empty() => return Ok(Poll::Ready(None)),
                Poll::Ready(0) => {
                    let received = self.buffer.len().saturating_sub(PREFIX);
                    return Err(Close::Truncated {
                        announced: announced.unwrap_or(0),
                        received,
                    });
                }
                Poll::Ready(_) => {}
            }
        }
    }

    /// Whether no byte of a further request is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Gives the buffer back; for connections that are idle.
    pub(crate) fn release_buffer(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > SMALL_BUFFER {
            self.buffer = BytesMut::new();
            self.read_ahead = None;
        }
    }

    /// Starts the client's time anew, after a pause that was ours.
    pub(crate) fn excuse(&mut self) {
        self.began = Some(Instant::now());
        self.last_byte = self.began;
    }

    /// When the request that has begun is overdue.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        if self.buffer.is_empty() || self.claim.is_waiting() {
            return None;
        }
        let len = announced(&self.buffer, limits).ok().flatten().unwrap_or(0);
        let slowest = std::time::Duration::from_millis((len / (limits.body_rate_min / 1_000).max(1)) as u64);
        let whole = self.began? + limits.stall_timeout + slowest;
        Some(whole.min(self.last_byte? + limits.stall_timeout))
    }

    /// Takes the first frame out of the buffer if all of it is there.
    fn split(&mut self, len: usize) -> Option<(Bytes, Permit)> {
        if self.buffer.len() < PREFIX + len {
            return None;
        }
        let permit = self.claim.hand_over()?;
        self.buffer.advance(PREFIX);
        let frame = self.buffer.split_to(len).freeze();
        self.began = self.last_byte;
        Some((frame, permit))
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
        shared: &Shared,
        announced: Option<usize>,
    ) -> Result<Poll<usize>, Close> {
        // Only once there is something to read is a buffer made for it.
        match ready_ok(stream.poll_read_ready(cx))? {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(()) => {}
        }
        let was_empty = self.buffer.is_empty();
        self.make_room(shared, announced);
        let room = self.buffer.capacity() - self.buffer.len();
        let read = match pin!(stream.read_buf(&mut self.buffer)).poll(cx) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(read) => read?,
        };
        let now = Instant::now();
        self.last_byte = Some(now);
        if was_empty {
            self.began = Some(now);
        }
        self.adapt(read, room, &shared.limits);
        shared.metrics.received_bytes.add(read as u64);
        Ok(Poll::Ready(read))
    }

    /// Sees to it that the next read has room, within the bounds.
    fn make_room(&mut self, shared: &Shared, announced: Option<usize>) {
        let spare = self.buffer.capacity() - self.buffer.len();
        let missing = announced.map_or(0, |len| (PREFIX + len).saturating_sub(self.buffer.len()));
        if missing > self.room {
            // The permit for the body is held. Doubling keeps the copies of a growing buffer below its size.
            if spare == 0 || spare < missing.min(SMALL_BUFFER) {
                self.buffer
                    .reserve(missing.min(self.buffer.len().max(GROWTH_MAX)));
            }
            return;
        }
        if spare > 0 && spare >= (self.room / 4).max(missing) {
            return;
        }
        let mut room = self.room;
        if room > SMALL_BUFFER && self.read_ahead.is_none() {
            self.read_ahead = shared.read_ahead.try_take(shared.limits.receive_buffer_bytes_max);
            if self.read_ahead.is_none() {
                room = SMALL_BUFFER;
            }
        }
        self.buffer.reserve(room.max(missing));
    }

    /// Learns from the last read how much to offer to the next.
    fn adapt(&mut self, read: usize, room: usize, limits: &Limits) {
        if read >= room {
            self.room = (self.room * 4).min(limits.receive_buffer_bytes_max.max(SMALL_BUFFER));
            self.lean_reads = 0;
        } else if read < self.room / 8 {
            self.lean_reads += 1;
            if self.lean_reads >= LEAN_READS {
                self.room = (self.room / 2).max(SMALL_BUFFER);
                self.lean_reads = 0;
            }
        } else {
            self.lean_reads = 0;
        }
    }
}

fn ready_ok(poll: Poll<std::io::Result<()>>) -> Result<Poll<()>, Close> {
    match poll {
        Poll::Ready(result) => Ok(Poll::Ready(result?)),
        Poll::Pending => Ok(Poll::Pending),
    }
}

/// The length of the request at the head of `buffer`, once its prefix is there, checked against the limit.
fn announced(buffer: &[u8], limits: &Limits) -> Result<Option<usize>, Close> {
    let Some(prefix) = buffer.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let len = i32::from_be_bytes(*prefix);
    match usize::try_from(len) {
        Ok(len) if len > 0 && len <= limits.request_bytes_max => Ok(Some(len)),
        _ => Err(Close::Hostile(format!(
            "frame of {len} bytes is not between 1 and the limit of {}{}",
            limits.request_bytes_max,
            hint(prefix)
        ))),
    }
}

/// What the first bytes look like, if not like Kafka.
fn hint(prefix: &[u8; PREFIX]) -> &'static str {
    match prefix {
        [0x16, 0x03, ..] => "; looks like TLS, which this listener does not speak",
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"PRI " => {
            "; looks like HTTP, which has a port of its own"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_before_anything_is_read() {
        let limits = Limits {
            request_bytes_max: 1_000,
            ..Limits::default()
        };
        assert!(announced(&[0, 0, 3], &limits).unwrap().is_none());
        assert_eq!(announced(&[0, 0, 3, 232], &limits).unwrap(), Some(1_000));
        for bad in [[0, 0, 3, 233], [0, 0, 0, 0], [255; 4]] {
            assert!(announced(&bad, &limits).is_err());
        }
    }

    #[test]
    fn foreign_protocols_are_named() {
        let limits = Limits::default();
        let message = |bytes: &[u8]| announced(bytes, &limits).unwrap_err().to_string();
        assert!(message(b"GET / HTTP/1.1").contains("HTTP"));
        assert!(message(&[0x16, 3, 1, 2, 0]).contains("TLS"));
        assert!(message(&[0x80, 0, 0, 0]).ends_with("104857600"));
    }

    #[test]
    fn the_buffer_offer_grows_with_full_reads_and_shrinks_with_lean_ones() {
        let limits = Limits::default();
        let mut reader = Reader::new();
        for _ in 0..10 {
            reader.adapt(reader.room, reader.room, &limits);
        }
        assert_eq!(reader.room, limits.receive_buffer_bytes_max);
        for _ in 0..LEAN_READS * 10 {
            reader.adapt(10, reader.room, &limits);
        }
        assert_eq!(reader.room, SMALL_BUFFER);
    }
}
