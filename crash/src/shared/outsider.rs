//! Somebody who is no member, and asks what is committed: one request over one connection, so that it costs no time.

use super::{GROUP, TOPIC};
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const OFFSET_FETCH: i16 = 9;
const ANSWER_BYTES_MAX: u32 = 64 * 1024;

/// The committed offset of the shared partition, -1 if there is none.
pub(crate) fn committed(address: &str) -> Result<i64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&request())?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = u32::from_be_bytes(size);
    ensure!(size <= ANSWER_BYTES_MAX, "an answer of {size} bytes");
    let mut answer = vec![0; size as usize];
    stream.read_exact(&mut answer)?;
    offset(&answer).context("the answer to OffsetFetch is cut off")
}

/// OffsetFetch version 1, with its header and size.
fn request() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(OFFSET_FETCH.to_be_bytes());
    body.extend(1_i16.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    text(&mut body, "outsider");
    text(&mut body, GROUP);
    body.extend(1_i32.to_be_bytes());
    text(&mut body, TOPIC);
    body.extend(1_i32.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [size.to_be_bytes().to_vec(), body].concat()
}

fn text(body: &mut Vec<u8>, text: &str) {
    body.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    body.extend(text.as_bytes());
}

/// The offset in the answer: behind the correlation id, the number of topics, the name, the number of partitions and the partition.
fn offset(answer: &[u8]) -> Option<i64> {
    let at = 4 + 4 + 2 + TOPIC.len() + 4 + 4;
    let bytes = answer.get(at..at + 8)?;
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gives_its_offset_and_a_short_one_none() {
        let mut answer = vec![0, 0, 0, 0, 0, 0, 0, 1];
        text(&mut answer, TOPIC);
        answer.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        answer.extend(4_711_i64.to_be_bytes());
        // No text, no error.
        answer.extend([0xff, 0xff, 0, 0]);
        assert_eq!(offset(&answer), Some(4_711));
        assert_eq!(offset(&answer[..20]), None);
    }
}
