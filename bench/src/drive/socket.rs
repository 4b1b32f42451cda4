//! One non-blocking connection: frames out, frames in.

use anyhow::{Context, Result, bail};
use mio::net::TcpStream;
use std::io::{ErrorKind, Read, Write};

/// A connection with its unsent and unread bytes.
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Socket {
    pub(crate) fn connect(address: &str) -> Result<Self> {
        let stream =
            std::net::TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(stream);
        Ok(Self {
            stream,
            out: Vec::new(),
            written: 0,
            input: vec![0; 256 << 10],
            begin: 0,
            end: 0,
        })
    }

    /// Queues a frame; [`flush`](Self::flush) sends it.
    pub(crate) fn queue(&mut self, frame: &[u8]) {
        self.out.extend_from_slice(frame);
    }

    /// Writes what the kernel takes.
    pub(crate) fn flush(&mut self) -> Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => bail!("the broker closed the connection"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot write to the broker"),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads until the kernel has no more, handing each whole frame (length prefix included) to `each`.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        loop {
            let more = self.fill()?;
            while let Some(size) = self.next_frame() {
                each(&self.input[self.begin..self.begin + size])?;
                self.begin += size;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Size of the frame at the front, if it is whole.
    fn next_frame(&self) -> Option<usize> {
        let have = &self.input[self.begin..self.end];
        let length = u32::from_be_bytes(have.get(..4)?.try_into().ok()?) as usize;
        (have.len() >= 4 + length).then_some(4 + length)
    }

    /// One read into free room; false when the kernel has nothing now.
    fn fill(&mut self) -> Result<bool> {
        if self.begin == self.end {
            self.begin = 0;
            self.end = 0;
        } else if self.end == self.input.len() {
            self.input.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            if self.end * 2 > self.input.len() {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        match self.stream.read(&mut self.input[self.end..]) {
            Ok(0) => bail!("the broker closed the connection"),
            Ok(count) => {
                self.end += count;
                Ok(self.end == self.input.len())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error).context("cannot read from the broker"),
        }
    }
}
