//! The two clocks of the broker, read here and nowhere else.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anabranch_core::ids::Now;

/// Reads the time for the core, which has no clock of its own.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Now, monotonic and by the wall.
    pub(crate) fn now(&self) -> Now {
        Now {
            mono_ms: millis(self.start.elapsed()),
            wall_ms: wall_ms(),
        }
    }

    /// The instant of a monotonic time of the core.
    pub(crate) fn instant(&self, mono_ms: u64) -> tokio::time::Instant {
        let far = std::time::Duration::from_secs(365 * 24 * 3_600);
        let after = std::time::Duration::from_millis(mono_ms).min(self.start.elapsed() + far);
        tokio::time::Instant::from_std(self.start + after)
    }
}

/// Milliseconds since 1970 UTC; 0 if the clock is set before that.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Sixteen bytes that nobody can foresee: ids of topics, members and so on.
pub(crate) fn fresh_id() -> [u8; 16] {
    let mut id = [0; 16];
    // The system's generator fails only where the system cannot run a server anyway.
    getrandom::fill(&mut id).expect("the operating system gives random bytes");
    id
}
