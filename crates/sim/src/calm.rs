//! How long a run waits for its groups once all faults have healed: as long as they get on with what is left, within bounds.

/// So long at least, milliseconds: sessions, fences, watchdogs and the timers of clients all have their time in it.
const AT_LEAST_MS: u64 = 90_000;
/// After that, so long without any progress is a standstill, milliseconds.
const STILL_MS: u64 = 20_000;
/// Each record that was left to be processed, or to be committed, is worth so much time, milliseconds: a single member commits it by hand,
/// and waits for that before it takes the next.
const RECORD_MS: u64 = 100;

/// How long a run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    since_ms: u64,
    /// What was left at the beginning, and the least since; nothing while nobody knows.
    left: Option<(u64, u64)>,
    /// When there was less left than ever before.
    progress_ms: u64,
}

impl Patience {
    /// Begins now, at these milliseconds since the start of the run.
    pub(crate) fn from(now_ms: u64) -> Self {
        Self {
            since_ms: now_ms,
            left: None,
            progress_ms: now_ms,
        }
    }

    /// So much is left now, if anybody knows. Says whether that is the end of waiting.
    pub(crate) fn is_over(&mut self, now_ms: u64, left: Option<u64>) -> bool {
        if let Some(left) = left {
            let (first, least) = self.left.unwrap_or((left, u64::MAX));
            if left < least {
                self.progress_ms = now_ms;
            }
            self.left = Some((first, least.min(left)));
        }
        let first = self.left.map_or(0, |(first, _)| first);
        let (waited_ms, still_ms) = (now_ms - self.since_ms, now_ms - self.progress_ms);
        let is_long = waited_ms > AT_LEAST_MS + first.saturating_mul(RECORD_MS);
        waited_ms > AT_LEAST_MS && (still_ms > STILL_MS || is_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moment at which waiting ends, with so many records left at each.
    fn ends_ms(left: impl Fn(u64) -> Option<u64>) -> u64 {
        let mut patience = Patience::from(1_000);
        let mut moments = (1_000..1_000_000).step_by(500);
        moments
            .find(|now_ms| patience.is_over(*now_ms, left(*now_ms)))
            .unwrap()
    }

    #[test]
    fn a_standstill_ends_it_and_progress_prolongs_it_within_bounds() {
        let first_ms = 1_000 + AT_LEAST_MS + 500;
        assert_eq!(ends_ms(|_| None), first_ms, "nobody knows");
        assert_eq!(ends_ms(|_| Some(5)), first_ms, "nothing happens");
        assert_eq!(ends_ms(|now_ms| Some(50_000 + now_ms)), first_ms, "it grows");
        let to_and_fro = |now_ms: u64| Some(1_000 + now_ms / 500 % 2);
        assert_eq!(ends_ms(to_and_fro), first_ms, "no end in sight");
        let stuck = |now_ms: u64| Some(10_000 - now_ms.min(95_000) / 100);
        assert_eq!(
            ends_ms(stuck),
            95_000 + STILL_MS + 500,
            "it comes to a standstill"
        );
        let crawls = |now_ms: u64| Some(200 - now_ms / 10_000);
        assert_eq!(ends_ms(crawls), first_ms + 200 * RECORD_MS, "too slow");
        let works = |now_ms: u64| Some(10_000_u64.saturating_sub(now_ms / 20));
        assert!(ends_ms(works) > 200_000, "slow, and not too slow");
    }
}
