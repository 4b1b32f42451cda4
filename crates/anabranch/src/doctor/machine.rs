//! The machine: how many files and sockets a process may open, and whether the clock can be believed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};

use super::finding::Finding;

/// Files that the broker needs beside connections: segments, the data folder, its own sockets.
const FILES_BESIDE: u64 = 1_024;

/// The program is not older than this: 2026-01-01.
const BORN: Duration = Duration::from_secs(1_767_225_600);

/// How long clocks are watched beside each other.
const WATCH: Duration = Duration::from_millis(200);

/// A wall clock that goes so far astray meanwhile is being set.
const DRIFT_MAX: Duration = Duration::from_millis(50);

/// `connections_max` is what the settings let the broker have.
pub(super) fn examine(connections_max: u64) -> Vec<Finding> {
    let limit = getrlimit(Resource::Nofile);
    vec![
        judge_files(limit.current, limit.maximum, connections_max),
        watch_clock(),
    ]
}

/// The limits of this process, which those of the broker may differ from: a service has limits of its own. `None` is none.
fn judge_files(soft: Option<u64>, hard: Option<u64>, connections_max: u64) -> Finding {
    const CHECK: &str = "files";
    let Some(soft) = soft else {
        return Finding::good(CHECK, "no limit of open files and sockets");
    };
    let connections = soft.saturating_sub(FILES_BESIDE);
    let seen = format!("this shell may open {soft} files and sockets");
    let enough = connections_max.saturating_add(FILES_BESIDE);
    let raise = match hard {
        Some(hard) if hard < enough => format!(
            "raise the hard limit, {hard}, too: LimitNOFILE={enough} of a systemd unit, --ulimit nofile={enough} of a container, limits.conf of a login"
        ),
        _ => format!(
            "ulimit -n {enough} in the shell that starts it, LimitNOFILE={enough} of a systemd unit, --ulimit nofile={enough} of a container"
        ),
    };
    if connections == 0 {
        Finding::error(CHECK, format!("{seen}: too few for a broker"), raise)
    } else if connections < connections_max {
        Finding::warning(
            CHECK,
            format!(
                "{seen}: enough for about {connections} connections, and the setting max.connections allows {connections_max}"
            ),
            raise,
        )
    } else {
        Finding::good(
            CHECK,
            format!("{seen}: enough for about {connections} connections"),
        )
    }
}

fn watch_clock() -> Finding {
    let (wall, steady) = (SystemTime::now(), Instant::now());
    std::thread::sleep(WATCH);
    let went = SystemTime::now().duration_since(wall).ok();
    let since_1970 = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    judge_clock(since_1970, went, steady.elapsed())
}

/// The wall clock, how far it went, `None` if backwards, and how far it should have gone.
fn judge_clock(since_1970: Duration, went: Option<Duration>, should: Duration) -> Finding {
    const CHECK: &str = "clock";
    let remedy = "switch on time synchronisation: timedatectl set-ntp true, or chrony";
    if since_1970 < BORN {
        return Finding::error(
            CHECK,
            "the clock is set to a time before this program was made: retention by time would keep everything",
            remedy,
        );
    }
    match went {
        Some(went) if went.abs_diff(should) <= DRIFT_MAX => Finding::good(CHECK, "it goes evenly"),
        _ => Finding::warning(
            CHECK,
            "the clock is being set while we look: timestamps jump; retention follows it slowly, and deletes nothing at once",
            remedy,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn limits_of_files_are_judged_by_the_connections_they_leave() {
        for (soft, level) in [
            (None, Level::Good),
            (Some(512), Level::Error),
            (Some(4_096), Level::Warning),
            (Some(21_023), Level::Warning),
            (Some(21_024), Level::Good),
        ] {
            assert_eq!(judge_files(soft, Some(1 << 20), 20_000).level, level, "{soft:?}");
        }
        // What is enough is what the settings allow.
        assert_eq!(judge_files(Some(4_096), None, 3_000).level, Level::Good);
        let stuck = judge_files(Some(4_096), Some(8_192), 20_000);
        let remedy = stuck.remedy.unwrap();
        assert!(
            remedy.contains("the hard limit, 8192") && remedy.contains("LimitNOFILE=21024"),
            "{remedy}"
        );
        assert!(stuck.message.contains("about 3072 connections"));
    }

    #[test]
    fn a_clock_that_jumps_or_was_never_set_is_seen() {
        let (today, step) = (BORN + Duration::from_secs(9), Duration::from_millis(200));
        assert_eq!(judge_clock(today, Some(step), step).level, Level::Good);
        assert_eq!(judge_clock(today, None, step).level, Level::Warning);
        assert_eq!(judge_clock(today, Some(step * 3), step).level, Level::Warning);
        assert_eq!(
            judge_clock(Duration::from_secs(5), Some(step), step).level,
            Level::Error
        );
    }
}
