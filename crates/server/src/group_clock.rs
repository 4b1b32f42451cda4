//! The time that counts for the members of groups: it stands still while the disk does.
//!
//! Answers wait for the disk, and on a connection they keep their order. A member whose commit waits gets no answer to the
//! heartbeat behind it, and clients send the next one only then: while a flush takes seconds, members are silent because of
//! the broker. Their sessions must not run out for that, just as they do not run while the broker is down. (An expulsion
//! would help nobody: it is durable no sooner than what everybody waits for.)
//!
//! ```text
//! real time   ----|---------------------------|------>     an entry is queued ... it is durable
//! group time  ----|----+                      +------>     runs on for PATIENCE_MS, then stands until the disk has caught up
//! ```
//!
//! What goes by real time (connections, produce, retention) does not come here.

use anabranch_core::ids::{Lsn, Now};

/// Longest wait for the disk during which group time runs on, milliseconds: far longer than a flush of a sound disk, and
/// shorter than any session in use.
const PATIENCE_MS: u64 = 1_000;

/// Lives under the broker's lock, where entries are queued. All times are monotonic milliseconds.
#[derive(Debug, Default)]
pub(crate) struct GroupClock {
    /// The last entry that was queued.
    queued: Lsn,
    /// Since when the disk has owed us something; `None` if it does not.
    waiting_since: Option<u64>,
    /// How far group time is behind real time, for waits that are over.
    behind_ms: u64,
}

impl GroupClock {
    /// The clock of a broker whose entries up to this one are durable.
    pub(crate) fn starting_at(durable: Lsn) -> Self {
        Self {
            queued: durable,
            ..Self::default()
        }
    }

    /// This is the last entry that was queued; whoever does not know whether there was one since may say it again.
    pub(crate) fn queued(&mut self, lsn: Lsn, real_ms: u64) {
        if lsn > self.queued {
            self.queued = lsn;
            self.waiting_since.get_or_insert(real_ms);
        }
    }

    /// Entries up to this one are durable. Returns whether group time had stood still.
    pub(crate) fn committed(&mut self, upto: Lsn, real_ms: u64) -> bool {
        let stood_ms = self.standing_ms(real_ms);
        self.behind_ms += stood_ms;
        self.waiting_since = (upto < self.queued).then_some(real_ms);
        stood_ms > 0
    }

    /// The time to hand to the coordinator; the wall clock is left alone.
    pub(crate) fn now(&self, real: Now) -> Now {
        let behind_ms = self.behind_ms + self.standing_ms(real.mono_ms);
        Now {
            mono_ms: real.mono_ms.saturating_sub(behind_ms),
            ..real
        }
    }

    /// The real time of a deadline in group time; `None` while group time stands still: then it is known once
    /// [`GroupClock::committed`] says so.
    pub(crate) fn real(&self, deadline_ms: u64, real_ms: u64) -> Option<u64> {
        (self.standing_ms(real_ms) == 0).then(|| deadline_ms.saturating_add(self.behind_ms))
    }

    /// How long group time has stood still by now in the present wait.
    fn standing_ms(&self, real_ms: u64) -> u64 {
        let waited_ms = self
            .waiting_since
            .map_or(0, |since| real_ms.saturating_sub(since));
        waited_ms.saturating_sub(PATIENCE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_ms(clock: &GroupClock, real_ms: u64) -> u64 {
        let real = Now {
            mono_ms: real_ms,
            wall_ms: 7,
        };
        let now = clock.now(real);
        assert_eq!(now.wall_ms, 7);
        now.mono_ms
    }

    #[test]
    fn a_sound_disk_changes_nothing() {
        let mut clock = GroupClock::default();
        for step in 0..100 {
            clock.queued(Lsn(step + 1), step * 1_000);
            assert!(!clock.committed(Lsn(step + 1), step * 1_000 + 900));
            // An hour without entries is no wait.
            assert_eq!(group_ms(&clock, step * 1_000 + 999), step * 1_000 + 999);
        }
        assert_eq!(group_ms(&clock, 3_600_000), 3_600_000);
        assert_eq!(clock.real(5_000, 3_600_000), Some(5_000));
    }

    #[test]
    fn group_time_stands_while_the_disk_owes_an_entry_and_never_goes_back() {
        let mut clock = GroupClock::default();
        clock.queued(Lsn(1), 10_000);
        clock.queued(Lsn(2), 10_500);
        let mut last = 0;
        for real_ms in (10_000..30_000).step_by(100) {
            let now = group_ms(&clock, real_ms);
            assert!(now >= last && now <= 11_000);
            last = now;
        }
        assert_eq!(last, 11_000);
        assert_eq!(clock.real(12_000, 11_000), Some(12_000), "not known to stand yet");
        assert_eq!(clock.real(12_000, 20_000), None);
        // The first of two is durable: the wait for the second one begins.
        assert!(clock.committed(Lsn(1), 30_000));
        assert_eq!(group_ms(&clock, 30_000), 11_000);
        assert_eq!(group_ms(&clock, 30_700), 11_700);
        assert_eq!(clock.real(12_000, 30_700), Some(31_000));
        assert_eq!(group_ms(&clock, 40_000), 12_000);
        assert!(clock.committed(Lsn(2), 40_000));
        assert_eq!(group_ms(&clock, 50_000), 22_000);
        assert_eq!(clock.real(23_000, 50_000), Some(51_000));
    }

    /// A disk that is always slow slows group time down, but does not stop it: whoever is dead is noticed.
    #[test]
    fn a_slow_disk_does_not_stop_group_time() {
        let mut clock = GroupClock::default();
        for step in 0..10 {
            clock.queued(Lsn(step + 1), step * 2_000);
            assert!(clock.committed(Lsn(step + 1), (step + 1) * 2_000));
        }
        assert_eq!(group_ms(&clock, 20_000), 10_000);
    }
}
