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
    let (offset, error) = read(&answer).context("the answer to OffsetFetch is cut off")?;
    ensure!(
        error == 0,
        "OffsetFetch of {GROUP} is answered with error {error}"
    );
    Ok(offset)
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

/// The offset and the error in the answer: behind the correlation id, the number of topics, the name, the number of partitions
/// and the partition; between them is a text.
fn read(answer: &[u8]) -> Option<(i64, i16)> {
    let at = 4 + 4 + 2 + TOPIC.len() + 4 + 4;
    let (offset, rest) = answer.get(at..)?.split_first_chunk()?;
    let (text, rest) = rest.split_first_chunk()?;
    // None at all has the length -1.
    let text = usize::try_from(i16::from_be_bytes(*text)).unwrap_or(0);
    let error = rest.get(text..)?.first_chunk()?;
    Some((i64::from_be_bytes(*offset), i16::from_be_bytes(*error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &[u8], error: i16) -> Vec<u8> {
        let mut answer = vec![0, 0, 0, 0, 0, 0, 0, 1];
        super::text(&mut answer, TOPIC);
        answer.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        answer.extend(4_711_i64.to_be_bytes());
        answer.extend(text);
        answer.extend(error.to_be_bytes());
        answer
    }

    #[test]
    fn an_answer_gives_its_offset_and_error_and_a_short_one_nothing() {
        assert_eq!(read(&answer(&[0xff, 0xff], 0)), Some((4_711, 0)));
        let whole = answer(&[0, 3, b'a', b'b', b'c'], 16);
        assert_eq!(read(&whole), Some((4_711, 16)));
        for size in 0..whole.len() {
            assert_eq!(read(&whole[..size]), None);
        }
    }
}
