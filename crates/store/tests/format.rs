//! The bytes on disk against `docs/format`, and against a folder that was stored once and must stay readable.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Access, Disk, Options, Step};
use common::{Item, batch, open_manual, read_all, small, stored};

const FOLDER: &str = "/d";
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/folder-v1.txt");

fn options() -> Options {
    Options {
        cluster_id: Some(*b"anabranch-fixtur"),
        spare_segments: 0,
        ..small()
    }
}

fn entries() -> Vec<common_entry::Entry> {
    use common_entry::Entry::{Batch, State};
    vec![
        State(b"create topic".to_vec()),
        Batch(batch(1, 0, 3, 1_700_000_000_123, b"first")),
        Batch(batch(2, 0, 1, 1_700_000_000_100, b"other log")),
        Batch(batch(1, 3, 2, 1_700_000_000_090, b"second")),
        // Fills the segment, without making the fixture long.
        Batch(batch(1, 5, 1, 1_700_000_000_200, &[0; 40_000])),
        State(vec![7; 5]),
        Batch(batch(2, 1, 4, 1_700_000_000_300, b"in the next segment")),
        Batch(batch(1, 6, 1, 1_700_000_000_400, &[0; 20_000])),
    ]
}

mod common_entry {
    pub(crate) enum Entry {
        State(Vec<u8>),
        Batch(anabranch_store::Batch),
    }
}

/// Writes the folder of the fixture, with today's code.
fn written() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new(1));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), options()).unwrap();
    for (n, entry) in entries().into_iter().enumerate() {
        match entry {
            common_entry::Entry::State(bytes) => store.append_state(bytes),
            common_entry::Entry::Batch(batch) => store.append_batch(batch),
        };
        if n >= 3 {
            while store.commit_once() == Step::Committed {}
        }
        if n == 4 {
            store.write_snapshot(Lsn(2), b"state of the owner").unwrap();
        }
    }
    assert!(store.usage().segments >= 2);
    assert!(store.close());
    disk
}

/// Files as text: rows of 16 bytes that are not all zero.
fn dump(disk: &SimDisk) -> String {
    let mut text = String::from("# A data folder of format version 1; rows of zeros are left out.\n");
    for path in disk.files() {
        let content = disk.content(&path).unwrap();
        writeln!(text, "file {} {}", path.display(), content.len()).unwrap();
        for (row, bytes) in content.chunks(16).enumerate() {
            if bytes.iter().any(|byte| *byte != 0) {
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(text, "{:08x} {}", row * 16, hex.join(" ")).unwrap();
            }
        }
    }
    text
}

/// The files that a dump tells of.
fn parse(text: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut current = PathBuf::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(rest) = line.strip_prefix("file ") {
            let (path, len) = rest.split_once(' ').unwrap();
            current = PathBuf::from(path);
            files.insert(current.clone(), vec![0; len.parse().unwrap()]);
        } else {
            let (at, hex) = line.split_once(' ').unwrap();
            let at = usize::from_str_radix(at, 16).unwrap();
            let file: &mut Vec<u8> = files.get_mut(&current).unwrap();
            for (n, byte) in hex.split(' ').enumerate() {
                file[at + n] = u8::from_str_radix(byte, 16).unwrap();
            }
        }
    }
    files
}

fn fixture() -> BTreeMap<PathBuf, Vec<u8>> {
    parse(&std::fs::read_to_string(FIXTURE).unwrap())
}

/// A disk with these files.
fn disk_of(files: &BTreeMap<PathBuf, Vec<u8>>) -> Arc<SimDisk> {
    let disk = SimDisk::new(2);
    for folder in ["/d/wal", "/d/snapshots"] {
        disk.create_dir_all(Path::new(folder)).unwrap();
    }
    for (path, content) in files {
        disk.create(path, Access::Write)
            .unwrap()
            .write_at(content, 0)
            .unwrap();
    }
    Arc::new(disk)
}

#[test]
fn todays_code_writes_the_bytes_of_the_fixture() {
    let text = dump(&written());
    if std::env::var_os("UPDATE_FIXTURE").is_some() {
        std::fs::write(FIXTURE, &text).unwrap();
    }
    let fixture = std::fs::read_to_string(FIXTURE).unwrap();
    let difference = text
        .lines()
        .zip(fixture.lines())
        .find(|(today, then)| today != then);
    assert!(
        text == fixture,
        "format changed: {difference:?}; a new format needs a new version and a new fixture"
    );
}

#[test]
fn the_fixture_opens_and_holds_what_was_put_in() {
    let (store, recorder) = open_manual(Path::new(FOLDER), disk_of(&fixture()), options()).unwrap();
    assert_eq!(recorder.snapshot.as_deref(), Some(&b"state of the owner"[..]));
    assert!(store.recovered().clean);
    let expected: Vec<(Lsn, Item)> = entries()
        .into_iter()
        .zip(1..)
        .filter(|(_, lsn)| *lsn > 2)
        .map(|(entry, lsn)| match entry {
            common_entry::Entry::State(bytes) => (Lsn(lsn), Item::State(bytes)),
            common_entry::Entry::Batch(batch) => (Lsn(lsn), Item::Batch(batch.log, stored(&batch))),
        })
        .collect();
    assert!(recorder.items == expected);
    for log in [1, 2] {
        let of_log: Vec<u8> = entries()
            .iter()
            .filter_map(|entry| match entry {
                common_entry::Entry::Batch(batch) if batch.log == LogId(log) => Some(stored(batch)),
                _ => None,
            })
            .flatten()
            .collect();
        assert!(read_all(&store, LogId(log)) == of_log);
    }
}

/// A table of `docs/format`: its length in bytes, and offset and length of each field.
struct Table {
    bytes: usize,
    fields: BTreeMap<String, (usize, usize)>,
}

/// Reads the tables under headings such as `### Group header (64 bytes)`, and checks that their fields follow each other.
fn tables(text: &str) -> BTreeMap<String, Table> {
    let mut tables = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let (title, bytes) = heading.trim_end_matches(" bytes)").rsplit_once(" (").unwrap();
            tables.insert(
                title.to_owned(),
                Table {
                    bytes: bytes.parse().unwrap(),
                    fields: BTreeMap::new(),
                },
            );
            name = Some(title.to_owned());
        } else if line.starts_with('#') {
            name = None;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(name), [_, offset, bytes, field, ..]) = (&name, cells.as_slice()) else {
            continue;
        };
        if let (Ok(offset), Ok(bytes)) = (offset.parse(), bytes.parse()) {
            let table = tables.get_mut(name).unwrap();
            let end: usize = table.fields.values().map(|(_, bytes)| bytes).sum();
            assert_eq!(offset, end, "{name}: {field} follows the field before it");
            table.fields.insert((*field).to_owned(), (offset, bytes));
        }
    }
    for (name, table) in &tables {
        let sum: usize = table.fields.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(
            sum, table.bytes,
            "{name}: the fields are as long as the heading says"
        );
    }
    tables
}

fn documented() -> BTreeMap<String, Table> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    tables(&[read("wal.md"), read("segment.md"), read("snapshot.md")].join("\n"))
}

/// Bytes of the fixture, read by the documented tables.
struct View<'a> {
    table: &'a Table,
    bytes: &'a [u8],
}

impl View<'_> {
    fn raw(&self, field: &str) -> &[u8] {
        let (offset, bytes) = self.table.fields[field];
        &self.bytes[offset..offset + bytes]
    }

    fn number(&self, field: &str) -> i64 {
        let mut bytes = [0; 8];
        bytes[..self.raw(field).len()].copy_from_slice(self.raw(field));
        i64::from_le_bytes(bytes)
    }

    fn numbers<const N: usize>(&self, fields: [&str; N]) -> [i64; N] {
        fields.map(|field| self.number(field))
    }

    /// The checksum over this structure and what follows it, up to `len`, without the `crc` field.
    fn crc(&self, seed: u32, from: usize, len: usize) -> i64 {
        i64::from(crc32c::crc32c_append(seed, &self.bytes[from..len]))
    }
}

#[test]
fn groups_and_frames_are_as_documented() {
    let (documented, files) = (documented(), fixture());
    let segment = &files[Path::new("/d/wal/0000000000000001.seg")];
    let at = |name: &str, position: usize| View {
        table: &documented[name],
        bytes: &segment[position..],
    };
    let seed = crc32c::crc32c_append(crc32c::crc32c(b"anabranch-fixtur"), &1u64.to_le_bytes());

    let group = at("Group header", 4096);
    assert_eq!(group.raw("magic"), b"ABGR");
    let found = group.numbers([
        "group_seq",
        "first_lsn",
        "durable_lsn",
        "lsn_count",
        "frame_count",
        "previous_crc",
        "flags",
    ]);
    assert_eq!(found, [1, 1, 0, 4, 3, 0, 0]);
    assert_eq!(group.number("crc"), group.crc(seed, 8, 64));

    // A state, then log 1 with two batches, then log 2 with one.
    let mut position = 4096 + 64;
    let mut crcs = seed;
    for (kind, log, entries, first_lsn, base, last, payload) in [
        (1, 0, 1, 1, 0, 0, 12),
        (2, 1, 2, 2, 0, 4, 66 + 67),
        (2, 2, 1, 3, 0, 0, 70),
    ] {
        let frame = at("Frame header", position);
        let fields = [
            "kind",
            "log",
            "entries",
            "first_lsn",
            "base_offset",
            "last_offset",
            "payload_bytes",
        ];
        assert_eq!(
            frame.numbers(fields),
            [kind, log, entries, first_lsn, base, last, payload]
        );
        let table = if kind == 2 { entries as usize * 4 } else { 0 };
        let len = (48 + payload as usize + table).next_multiple_of(8);
        assert_eq!(frame.number("crc"), frame.crc(seed, 4, len));
        if entries == 2 {
            let table = &frame.bytes[48 + payload as usize..][..8];
            assert_eq!(table, [0, 0, 0, 0, 2, 0, 0, 0], "entries 2 and 4");
        }
        crcs = crc32c::crc32c_append(crcs, frame.raw("crc"));
        position += len;
    }
    assert_eq!(group.number("frames_crc"), i64::from(crcs));
    assert_eq!(group.number("bytes"), position as i64 - 4096);

    let next = at("Group header", 8192);
    assert_eq!(next.numbers(["group_seq", "first_lsn", "durable_lsn"]), [2, 5, 4]);
    assert_eq!(next.number("previous_crc"), group.number("crc"));
}

#[test]
fn headers_and_footers_are_as_documented() {
    let (documented, files) = (documented(), fixture());
    let segment = &files[Path::new("/d/wal/0000000000000001.seg")];
    let at = |name: &str, position: usize| View {
        table: &documented[name],
        bytes: &segment[position..],
    };
    let seed = crc32c::crc32c_append(crc32c::crc32c(b"anabranch-fixtur"), &1u64.to_le_bytes());

    let header = at("Segment header", 0);
    assert_eq!(header.raw("magic"), b"ANBRSEG\n");
    assert_eq!(header.raw("cluster"), b"anabranch-fixtur");
    let fields = [
        "version",
        "seq",
        "epoch",
        "replaces_from",
        "replaces_to",
        "file_bytes",
        "last_lsn",
        "kind",
    ];
    assert_eq!(header.numbers(fields), [1, 1, 1, 1, 1, 65536, 0, 0]);

    let trailer = at("Trailer", 65536 - 4096);
    assert_eq!(trailer.raw("magic"), b"ANBREND\n");
    let fields = [
        "version",
        "epoch",
        "first_lsn",
        "last_lsn",
        "last_group_seq",
        "summaries",
    ];
    assert_eq!(trailer.numbers(fields), [1, 1, 1, 7, 4, 2]);
    let summaries = trailer.number("summaries_position") as usize;
    assert_eq!(summaries + 2 * documented["Summary"].bytes, 65536 - 4096);
    assert_eq!(
        trailer.number("summaries_crc"),
        at("Summary", summaries).crc(seed, 0, 120)
    );

    let summary = at("Summary", summaries);
    let fields = [
        "log",
        "runs",
        "first_offset",
        "last_offset",
        "max_timestamp",
        "max_timestamp_base",
        "batches",
    ];
    assert_eq!(summary.numbers(fields), [1, 2, 0, 5, 1_700_000_000_200, 5, 3]);
    let entries = summary.number("entries_position") as usize;
    assert_eq!(entries as i64, trailer.number("entries_position"));
    let run = at("Run entry", entries);
    assert_eq!(
        summary.number("entries_crc"),
        run.crc(seed, 0, 2 * documented["Run entry"].bytes)
    );
    let fields = [
        "base_offset",
        "last_offset",
        "max_timestamp",
        "max_timestamp_base",
        "payload_bytes",
        "batches",
    ];
    assert_eq!(run.numbers(fields), [0, 4, 1_700_000_000_123, 0, 66 + 67, 2]);
    let frame = at("Frame header", run.number("position") as usize);
    assert_eq!(frame.numbers(["log", "base_offset"]), [1, 0]);
}

#[test]
fn snapshots_are_as_documented() {
    let (documented, files) = (documented(), fixture());
    let file = &files[Path::new("/d/snapshots/0000000000000002.snap")];
    let header = View {
        table: &documented["Snapshot header"],
        bytes: file,
    };
    assert_eq!(header.raw("magic"), b"ANBRSNP\n");
    assert_eq!(header.raw("cluster"), b"anabranch-fixtur");
    assert_eq!(header.numbers(["version", "lsn", "payload_bytes"]), [1, 2, 18]);
    assert_eq!(&file[64..], b"state of the owner");
    assert_eq!(
        header.number("payload_crc"),
        i64::from(crc32c::crc32c(b"state of the owner"))
    );
}
