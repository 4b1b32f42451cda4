//! One line per source and minute: what a stranger does must not fill the log.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A source is silent for this long after a line.
const INTERVAL: Duration = Duration::from_secs(60);

/// Sources remembered; beyond it the oldest news is forgotten first.
const SOURCES_MAX: usize = 1_024;

/// Remembers who was written about.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    sources: Mutex<HashMap<IpAddr, Source>>,
}

#[derive(Debug)]
struct Source {
    since: Instant,
    suppressed: u64,
}

impl LogLimit {
    /// Whether to write a line about `source` now; if so, how many were left out since the last one.
    pub(crate) fn admit(&self, source: IpAddr, now: Instant) -> Option<u64> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sources.get_mut(&source) {
            if now.saturating_duration_since(known.since) < INTERVAL {
                known.suppressed += 1;
                return None;
            }
            known.since = now;
            return Some(std::mem::take(&mut known.suppressed));
        }
        if sources.len() >= SOURCES_MAX {
            sources.retain(|_, known| now.saturating_duration_since(known.since) < INTERVAL);
        }
        if sources.len() >= SOURCES_MAX {
            return None;
        }
        sources.insert(
            source,
            Source {
                since: now,
                suppressed: 0,
            },
        );
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_line_a_minute_and_a_count_of_the_rest() {
        let limit = LogLimit::default();
        let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let start = Instant::now();
        assert_eq!(limit.admit(source, start), Some(0));
        for seconds in [0, 1, 59] {
            assert_eq!(limit.admit(source, start + Duration::from_secs(seconds)), None);
        }
        assert_eq!(limit.admit(source, start + INTERVAL), Some(3));
    }

    #[test]
    fn a_crowd_of_sources_costs_bounded_memory() {
        let limit = LogLimit::default();
        let start = Instant::now();
        for n in 0..10_000_u32 {
            limit.admit(IpAddr::V4(Ipv4Addr::from(n)), start);
        }
        assert_eq!(limit.sources.lock().unwrap().len(), SOURCES_MAX);
        assert_eq!(
            limit.admit(IpAddr::V4(Ipv4Addr::from(20_000)), start + INTERVAL),
            Some(0)
        );
    }
}
