//! The data folder: whether it can be written, what it is on, how much space there is, and how long a sync takes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::finding::Finding;
use crate::failure::reason;
use crate::output::human_bytes;

/// Syncs that are measured, at most.
const SYNCS_MAX: usize = 64;

/// No more are begun after this.
const MEASURE_MAX: Duration = Duration::from_secs(2);

/// What is written before each sync: a small group of records.
const BLOCK: [u8; 4096] = [0x5a; 4096];

/// Kinds of file systems by the numbers of `statfs(2)`, and what is to be said of them.
const UNFIT: [(i64, &str, bool); 6] = [
    (
        0x0102_1994,
        "tmpfs, in memory: all records are gone with the machine",
        true,
    ),
    (
        0x8584_58f6,
        "ramfs, in memory: all records are gone with the machine",
        true,
    ),
    (
        0x6969,
        "NFS: a sync there is only as good as the server's, and slow",
        false,
    ),
    (
        0xff53_4d42,
        "CIFS: a sync there is only as good as the server's, and slow",
        false,
    ),
    (
        0x0000_517b,
        "SMB: a sync there is only as good as the server's, and slow",
        false,
    ),
    (
        0x794c_7630,
        "the writable layer of a container: all records are gone with the container",
        true,
    ),
];

pub(super) fn examine(folder: &Path, free_bytes_min: u64) -> Vec<Finding> {
    const CHECK: &str = "data";
    let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let Some(there) = nearest(folder) else {
        let text = format!("{} and everything above it is missing", folder.display());
        return vec![Finding::error(CHECK, text, "--data names another folder")];
    };
    let mut findings = vec![match there != *folder {
        true => Finding::note(
            CHECK,
            format!(
                "{} does not exist yet; {} does",
                folder.display(),
                there.display()
            ),
        ),
        false => Finding::good(CHECK, folder.display().to_string()),
    }];
    match measure(&there) {
        Ok(times) => findings.push(judge_syncs(times)),
        Err(error) => {
            let text = format!("cannot write into {}: {}", there.display(), reason(&error));
            let remedy = "start the broker as the owner of the folder (chown, User= of the unit), or name another: --data";
            findings.push(Finding::error(CHECK, text, remedy));
        }
    }
    if let Ok(found) = rustix::fs::statfs(&there) {
        findings.extend(judge_kind(found.f_type));
    }
    // What is not for files, such as /proc, has no size.
    if let Some(found) = rustix::fs::statvfs(&there)
        .ok()
        .filter(|found| found.f_blocks > 0)
    {
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        findings.push(judge_space(
            bytes(found.f_bavail),
            bytes(found.f_blocks),
            free_bytes_min,
        ));
    }
    findings
}

/// The folder, or the nearest one above it that exists.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let mut above = folder.ancestors();
    above.find(|path| path.is_dir()).map(Path::to_owned)
}

/// How long each of some small writes takes until it is on disk.
fn measure(folder: &Path) -> io::Result<Vec<Duration>> {
    let path = folder.join(format!(".anabranch-doctor-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    let measured = (|| {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while times.len() < SYNCS_MAX && begun.elapsed() < MEASURE_MAX {
            let before = Instant::now();
            file.write_all(&BLOCK)?;
            file.sync_data()?;
            times.push(before.elapsed());
        }
        Ok(times)
    })();
    fs::remove_file(&path)?;
    measured
}

fn judge_syncs(mut times: Vec<Duration>) -> Finding {
    const CHECK: &str = "sync";
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(times.len().saturating_sub(1) * part / 100)
            .copied()
            .unwrap_or_default()
    };
    let (usual, slow) = (at(50), at(95));
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let seen = format!(
        "half of {} syncs took {} or less, one in twenty more than {}",
        times.len(),
        ms(usual),
        ms(slow)
    );
    if slow > Duration::from_millis(100) {
        let remedy = "put the data on a disk of its own that is faster; `--durability relaxed` waits for no sync, and a power cut may cost acknowledged records";
        return Finding::warning(
            CHECK,
            format!("{seen}: every acknowledged record waits that long"),
            remedy,
        );
    }
    if usual < Duration::from_micros(20) {
        let text = format!(
            "{seen}: faster than any disk; it does not wait for one (a memory file system, or syncs switched off)"
        );
        return Finding::warning(CHECK, text, "do not rely on records surviving a power cut here");
    }
    Finding::good(CHECK, seen)
}

fn judge_kind(kind: i64) -> Option<Finding> {
    const CHECK: &str = "data";
    // The number is 32 bits wide, whatever its type.
    let (_, what, is_lost) = UNFIT.iter().find(|(number, ..)| *number == kind & 0xffff_ffff)?;
    let remedy = match is_lost {
        true => "name a folder on a disk or a volume: --data",
        false => "name a folder on a local disk: --data",
    };
    Some(Finding::warning(
        CHECK,
        format!("the data folder is on {what}"),
        remedy,
    ))
}

fn judge_space(free: u64, size: u64, free_min: u64) -> Finding {
    const CHECK: &str = "space";
    let seen = format!("{} of {} are free", human_bytes(free), human_bytes(size));
    let remedy = "shorten retention, delete topics, or add space";
    // The store's rule. A broker that runs counts the files that it keeps for reuse as well; what it came to is in its metrics.
    if free < free_min {
        let text = format!("{seen}: below {} no records are taken", human_bytes(free_min));
        Finding::error(CHECK, text, remedy)
    } else if free < size / 10 {
        Finding::warning(CHECK, seen, remedy)
    } else {
        Finding::good(CHECK, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn the_nearest_folder_that_exists_is_measured_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/there");
        let findings = examine(&deep, 0);
        assert!(findings[0].message.contains("does not exist yet"));
        assert_eq!(findings[1].check, "sync");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(measure(&file).is_err());
        let of_the_system = examine(Path::new("/proc/not/there"), 1);
        assert!(
            of_the_system.iter().all(|finding| finding.check != "space"),
            "{of_the_system:?}"
        );
    }

    #[test]
    fn syncs_are_judged_by_the_slow_ones_and_distrusted_when_too_fast() {
        let times = |ms: u64, count: usize| vec![Duration::from_micros(ms * 1_000); count];
        assert_eq!(judge_syncs(times(2, 60)).level, Level::Good);
        let slow = judge_syncs([times(2, 50), times(300, 10)].concat());
        assert_eq!(slow.level, Level::Warning);
        assert!(
            slow.message.contains("2.00 ms or less") && slow.message.contains("300.00 ms"),
            "{}",
            slow.message
        );
        assert_eq!(
            judge_syncs(vec![Duration::from_micros(5); 60]).level,
            Level::Warning
        );
    }

    #[test]
    fn space_and_kind_of_the_file_system_are_judged() {
        assert_eq!(judge_space((1 << 30) - 1, 1 << 40, 1 << 30).level, Level::Error);
        let just_enough = judge_space(1 << 30, 1 << 40, 1 << 30).level;
        assert_eq!(just_enough, Level::Warning, "records are still taken");
        assert_eq!(judge_space(2 << 30, 1 << 40, 1 << 30).level, Level::Warning);
        assert_eq!(judge_space(1 << 39, 1 << 40, 1 << 30).level, Level::Good);
        assert!(judge_kind(0x0102_1994).unwrap().message.contains("tmpfs"));
        assert!(
            judge_kind(i64::from(0xff53_4d42_u32 as i32))
                .unwrap()
                .message
                .contains("CIFS")
        );
        assert_eq!(judge_kind(0xef53), None, "ext4");
    }
}
