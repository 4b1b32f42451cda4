//! Record batches: judged as on receipt, opened, walked, decompressed, built again.
//!
//! Input: the records field of a produce request, or a stretch of a log.

use anabranch_wire::batch::{
    self, BatchBuilder, BatchError, BatchHeader, BatchIter, DecompressLimits, HEADER_LEN, HeaderField,
    ProduceLimits, Record, RecordSet,
};

const DECOMPRESS: DecompressLimits = DecompressLimits {
    bytes_max: 4 << 20,
    ratio_max: 1_000,
};

fn limits() -> ProduceLimits {
    ProduceLimits {
        bytes_max: 1 << 20,
        transactional: true,
        zstd: true,
        timestamps_ms: Some(0..=1 << 50),
    }
}

/// Goes through the bytes as they are, and through their first batch with lengths and checksum put right, behind which
/// no mutation would otherwise get.
pub fn run(data: &[u8]) {
    walk(data);
    let _ = batch::check_produced(data, &limits());
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    walk(&sealed);
    if let Ok(header) = batch::check_produced(&sealed, &limits()) {
        accepted(&sealed, header);
    }
}

/// Makes one batch of all bytes: format 2, length and checksum right.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_LEN {
        return;
    }
    let length = bytes.len() as i32 - 12;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// Everything that a reader of a log does.
fn walk(bytes: &[u8]) {
    let mut next = 0;
    for (position, header) in BatchIter::new(bytes).flatten() {
        assert_eq!(position, next, "batches follow each other");
        next += header.size();
        assert!(next <= bytes.len());
        let _ = (header.next_offset(), header.last_sequence());
        let Ok(set) = batch::records(&bytes[position..next], &DECOMPRESS) else {
            continue;
        };
        assert!(set.body().len() <= DECOMPRESS.bytes_max.max(bytes.len()));
        let mut tiled = 0;
        for record in set.iter().flatten() {
            assert_eq!(&set.body()[tiled..tiled + record.raw.len()], record.raw);
            tiled += record.raw.len();
            let _ = (
                set.offset_of(&record),
                set.timestamp_of(&record),
                record.headers.count(),
            );
            record.headers.for_each(drop);
        }
    }
}

/// What must hold of a batch that was accepted.
fn accepted(bytes: &[u8], header: BatchHeader) {
    assert_eq!(header.size(), bytes.len());
    assert!(header.record_count > 0 && header.next_offset() == i64::from(header.record_count));
    let mut stored = bytes.to_vec();
    batch::patch(&mut stored, 1_000, 5);
    let patched = BatchHeader::parse(&stored).expect("patching changes offset and epoch alone");
    assert_eq!(
        (patched.base_offset, patched.leader_epoch, patched.crc),
        (1_000, 5, header.crc)
    );

    match batch::check_records(bytes, &limits(), &DECOMPRESS, false) {
        Ok(set) => {
            assert_eq!(set.iter().count() as i32, header.record_count);
            rebuild(&set);
        }
        Err(error) => assert!(
            !matches!(error, BatchError::Crc { .. } | BatchError::Truncated { .. }),
            "{error}"
        ),
    }
}

/// Builds a batch of the same records and compares.
fn rebuild(set: &RecordSet<'_>) {
    let mut builder = BatchBuilder::new();
    for record in set {
        let record = record.expect("checked");
        let headers: Option<Vec<_>> = record
            .headers
            .map(|header| header.expect("checked"))
            // The builder takes only text for keys, as clients do.
            .map(|header| {
                Some(HeaderField {
                    key: str::from_utf8(header.key).ok()?,
                    value: header.value,
                })
            })
            .collect();
        let Some(headers) = headers else { return };
        builder.append(set.timestamp_of(&record), record.key, record.value, &headers);
    }
    let built = builder.finish().expect("records of a batch fit into a batch");
    let again = batch::records(&built, &DECOMPRESS).expect("a batch just built can be read");
    assert_eq!(again.header().record_count, set.header().record_count);
    for (left, right) in set.iter().flatten().zip(again.iter().flatten()) {
        assert_eq!(set.timestamp_of(&left), again.timestamp_of(&right));
        assert_eq!(fields(&left), fields(&right));
        assert!(left.headers.eq(right.headers));
    }
}

fn fields<'a>(record: &Record<'a>) -> (Option<&'a [u8]>, Option<&'a [u8]>, i32) {
    (record.key, record.value, record.offset_delta)
}
