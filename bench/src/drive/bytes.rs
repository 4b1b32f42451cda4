//! The few requests that the raw driver sends, as bytes made once, and the answers, read in place.
//!
//! The driver must cost little beside the broker, so it neither builds nor decodes messages while it measures: a
//! request is a prepared frame in which the correlation id and, for idempotent producers, sequence and checksum are
//! overwritten. Versions are old ones without compact encodings, which both brokers speak.

/// Kafka's fixed header of a v2 record batch.
pub(crate) const BATCH_HEADER: usize = 61;

/// Position of the correlation id in a frame, after length, key and version.
const CORRELATION_AT: usize = 8;

/// A frame under construction: big-endian fields behind a length that is filled in at the end.
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// Begins a request with header version 1.
    pub(crate) fn request(key: i16, version: i16) -> Self {
        let mut frame = Self(vec![0; 4]);
        frame.i16(key);
        frame.i16(version);
        frame.i32(0);
        frame.string("bench");
        frame
    }

    pub(crate) fn i8(&mut self, value: i8) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.i16(i16::try_from(value.len()).expect("names in here are short"));
        self.0.extend_from_slice(value.as_bytes());
    }

    pub(crate) fn raw(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Fills in the length; the frame is ready to be sent.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).expect("frames in here are small");
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// Overwrites the correlation id of a finished frame.
pub(crate) fn set_correlation(frame: &mut [u8], id: i32) {
    frame[CORRELATION_AT..CORRELATION_AT + 4].copy_from_slice(&id.to_be_bytes());
}

/// A produce request (version 7) of one batch, and where the batch and its partition lie in it.
#[derive(Clone)]
pub(crate) struct Produce {
    pub(crate) frame: Vec<u8>,
    partition_at: usize,
    batch_at: usize,
}

impl Produce {
    pub(crate) fn new(topic: &str, batch: &[u8], acks: i16) -> Self {
        let mut frame = Frame::request(0, 7);
        frame.i16(-1);
        frame.i16(acks);
        frame.i32(30_000);
        frame.i32(1);
        frame.string(topic);
        frame.i32(1);
        let partition_at = frame.len();
        frame.i32(0);
        frame.i32(i32::try_from(batch.len()).expect("batches in here are small"));
        let batch_at = frame.len();
        frame.raw(batch);
        Self {
            frame: frame.finish(),
            partition_at,
            batch_at,
        }
    }

    pub(crate) fn set_partition(&mut self, partition: i32) {
        self.frame[self.partition_at..self.partition_at + 4].copy_from_slice(&partition.to_be_bytes());
    }

    /// Writes producer id, epoch 0 and sequence into the batch, and the checksum that covers them; id and sequence -1, with
    /// epoch -1, stand for no producer.
    pub(crate) fn set_sequence(&mut self, producer_id: i64, sequence: i32) {
        let epoch = if producer_id < 0 { -1_i16 } else { 0 };
        let batch = &mut self.frame[self.batch_at..];
        batch[43..51].copy_from_slice(&producer_id.to_be_bytes());
        batch[51..53].copy_from_slice(&epoch.to_be_bytes());
        batch[53..57].copy_from_slice(&sequence.to_be_bytes());
        seal(batch);
    }

    /// Writes a stamp over the start of each record's value, and the checksum.
    pub(crate) fn set_stamps(&mut self, stamps: impl Iterator<Item = u64>) {
        let batch = &mut self.frame[self.batch_at..];
        for (record, stamp) in batch[BATCH_HEADER..].chunks_exact_mut(STAMPED_RECORD).zip(stamps) {
            record[STAMP_AT..STAMP_AT + 8].copy_from_slice(&stamp.to_be_bytes());
        }
        seal(batch);
    }
}

/// Length of the value of a stamped record, that is, of every record of a latency run.
pub(crate) const STAMPED_VALUE: usize = 1000;

/// Most records of a stamped batch: up to here, they are of one length.
pub(crate) const STAMPED_RECORDS_MAX: usize = 64;

/// Where the value of a stamped record begins: after its length in two bytes, attributes, two deltas and the length of no key
/// in one byte each, and the value's length in two.
const STAMP_AT: usize = 2 + 1 + 1 + 1 + 1 + 2;

/// Length of a stamped record; its last byte is the number of headers.
const STAMPED_RECORD: usize = STAMP_AT + STAMPED_VALUE + 1;

/// The stamps of a stamped batch.
pub(crate) fn stamps(batch: &[u8]) -> impl Iterator<Item = u64> {
    let records = batch.get(BATCH_HEADER..).unwrap_or_default();
    records.chunks_exact(STAMPED_RECORD).map(|record| {
        let stamp = record[STAMP_AT..STAMP_AT + 8].try_into();
        u64::from_be_bytes(stamp.expect("eight bytes"))
    })
}

fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// A v2 batch of records without keys and headers, of the present time.
pub(crate) fn batch(values: &[Vec<u8>]) -> Vec<u8> {
    let timestamp = super::now_ms();
    let mut out = vec![0; BATCH_HEADER];
    let mut record = Vec::new();
    for (index, value) in values.iter().enumerate() {
        record.clear();
        record.push(0);
        varint(&mut record, 0);
        varint(&mut record, i64::try_from(index).expect("few records"));
        varint(&mut record, -1);
        varint(&mut record, i64::try_from(value.len()).expect("short values"));
        record.extend_from_slice(value);
        record.push(0);
        varint(&mut out, i64::try_from(record.len()).expect("short records"));
        out.extend_from_slice(&record);
    }
    let count = i32::try_from(values.len()).expect("few records");
    let length = i32::try_from(out.len() - 12).expect("small batch");
    out[8..12].copy_from_slice(&length.to_be_bytes());
    out[12..16].copy_from_slice(&(-1_i32).to_be_bytes());
    out[16] = 2;
    out[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    out[27..35].copy_from_slice(&timestamp.to_be_bytes());
    out[35..43].copy_from_slice(&timestamp.to_be_bytes());
    out[43..51].copy_from_slice(&(-1_i64).to_be_bytes());
    out[51..53].copy_from_slice(&(-1_i16).to_be_bytes());
    out[53..57].copy_from_slice(&(-1_i32).to_be_bytes());
    out[57..61].copy_from_slice(&count.to_be_bytes());
    seal(&mut out);
    out
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A fetch request (version 11) of one partition, without a session.
pub(crate) fn fetch(topic: &str, partition: i32, offset: i64, wait_ms: i32, bytes_max: i32) -> Vec<u8> {
    let mut frame = Frame::request(1, 11);
    frame.i32(-1);
    frame.i32(wait_ms);
    frame.i32(1);
    frame.i32(64 << 20);
    frame.i8(0);
    frame.i32(0);
    frame.i32(-1);
    frame.i32(1);
    frame.string(topic);
    frame.i32(1);
    frame.i32(partition);
    frame.i32(-1);
    frame.i64(offset);
    frame.i64(-1);
    frame.i32(bytes_max);
    frame.i32(0);
    frame.string("");
    frame.finish()
}

/// What a produce answer (version 7, one partition) says.
pub(crate) fn produced(answer: &[u8]) -> Option<(i16, i64)> {
    // Length, correlation id, number of topics.
    let mut at = Cursor {
        bytes: answer,
        at: 4 + 4 + 4,
    };
    let topic = at.i16()?;
    at.skip(usize::try_from(topic).ok()? + 4 + 4)?;
    Some((at.i16()?, at.i64()?))
}

/// What a fetch answer (version 11, one partition) says: error, high watermark, record set.
pub(crate) fn fetched(answer: &[u8]) -> Option<(i16, i64, &[u8])> {
    // Length, correlation id, throttle time, error, session, number of topics.
    let mut at = Cursor {
        bytes: answer,
        at: 4 + 4 + 4 + 2 + 4 + 4,
    };
    let topic = at.i16()?;
    at.skip(usize::try_from(topic).ok()? + 4 + 4)?;
    let error = at.i16()?;
    let high_watermark = at.i64()?;
    at.skip(16)?;
    let aborted = at.i32()?.max(0);
    at.skip(usize::try_from(aborted).ok()? * 16 + 4)?;
    let length = usize::try_from(at.i32()?.max(0)).ok()?;
    Some((error, high_watermark, answer.get(at.at..at.at + length)?))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.bytes.get(self.at..self.at + N)?.try_into().ok()?;
        self.at += N;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

/// The batches of a record set: bytes of each, whole ones only.
pub(crate) fn batches(records: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let length = i32::from_be_bytes(rest.get(8..12)?.try_into().ok()?);
        let size = 12 + usize::try_from(length).ok()?;
        let batch = rest.get(..size)?;
        rest = &rest[size..];
        Some(batch)
    })
}

/// Offset behind a batch, and its number of records.
pub(crate) fn batch_end(batch: &[u8]) -> Option<(i64, i32)> {
    let base = i64::from_be_bytes(batch.get(..8)?.try_into().ok()?);
    let last = i32::from_be_bytes(batch.get(23..27)?.try_into().ok()?);
    let count = i32::from_be_bytes(batch.get(57..61)?.try_into().ok()?);
    Some((base + i64::from(last) + 1, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamps_written_are_the_stamps_read_and_of_the_records_values() {
        for records in [1, 2, STAMPED_RECORDS_MAX] {
            let mut request = Produce::new("t", &batch(&vec![vec![7; STAMPED_VALUE]; records]), 1);
            let written: Vec<u64> = (0..records as u64)
                .map(|record| 0x0102_0304_0506_0708 + record)
                .collect();
            request.set_stamps(written.iter().copied());
            let sent = &request.frame[request.batch_at..];
            assert_eq!(stamps(sent).collect::<Vec<_>>(), written);
            assert_eq!(batch_end(sent), Some((records as i64, records as i32)));
        }
    }

    #[test]
    fn a_batch_is_of_the_present_time() {
        let made = batch(&[vec![7; 10]]);
        for at in [27, 35] {
            let timestamp = i64::from_be_bytes(made[at..at + 8].try_into().unwrap());
            assert!((0..60_000).contains(&(crate::drive::now_ms() - timestamp)));
        }
    }
}
