use anabranch_core::sieve::Sieve;
use anabranch_wire::batch::Compression;

use super::super::fake::{Fake, ID, LOG, share, sieve};
use super::super::read::{ReadLimits, read_slice};
use super::*;

#[test]
fn recalls_what_was_handed_out_in_turns() {
    let mut fake = Fake::new();
    fake.fill(100, 20, |_, random| random % 300);
    fake.push_unreadable();
    fake.push_control();
    fake.push(Compression::Gzip, 30, &["a", "", "b"]);
    let cache = ScanCache::new(4 << 20);
    for (from, ceiling) in [
        (0, fake.end()),
        (3, 1_500),
        (777, 778),
        (1_990, 2_002),
        (5, 5),
        (9, 3),
    ] {
        let sieve: Sieve = sieve(&share(0, 2), 2, 1_800);
        let query = SliceQuery {
            log: LOG,
            id_bits: ID,
            sieve: &sieve,
            from,
            upto: ceiling,
        };
        let limits = ReadLimits {
            bytes_max: usize::MAX,
            records_max: usize::MAX,
            scan_bytes_max: usize::MAX,
        };
        let whole = SliceQuery {
            upto: fake.end(),
            ..query
        };
        let mut expected = read_slice(&fake, &cache, &whole, &limits).unwrap().records;
        expected.retain(|(offset, _)| *offset < ceiling);
        for scan_bytes_max in [1, 3_000, usize::MAX] {
            let (mut at, mut records) = (from, Vec::new());
            loop {
                let query = SliceQuery { from: at, ..query };
                let found = recall(&fake, &cache, &query, fake.end(), scan_bytes_max).unwrap();
                records.extend(found.records);
                if found.stop == Stop::Exhausted {
                    break;
                }
                assert!(found.stop == Stop::Budget && found.scanned_to > at);
                at = found.scanned_to;
            }
            assert_eq!(records, expected, "{from}..{ceiling} by {scan_bytes_max}");
        }
    }
}
