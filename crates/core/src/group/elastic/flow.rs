//! Flow control: how many records of a share its member may have taken and not committed.
//!
//! What a member was handed cannot move to another, and a fence opens only when it is done. Client libraries take all
//! that they are given into their buffers, however slow the application is. So a member gets ahead of its commits what it
//! works off until the next one, and a second more ([`HANDED_OUT_AHEAD_MS`]): enough that it never waits for the broker,
//! and no more.
//!
//! How fast it works is seen at its commits. Two things are not seen there, and are found out:
//!
//! - A member that takes all it may and has it all done at its next commit could have done more, nobody knows how much:
//!   its window doubles.
//! - A member that does not commit may be slow, stuck, or gathering records for one large commit. It is given what it would
//!   have worked off in the time since its last commit, and the longer that lasts, the less its measured speed is believed:
//!   a client that never commits is held back at first, never for good.

use super::average::{MEASURED_OVER_MS_MIN, mixed};
use crate::limits::{
    COMMIT_INTERVAL_ASSUMED_MS, HANDED_OUT_AHEAD_MS, HANDED_OUT_RECORDS_MIN, HANDED_OUT_RECORDS_START,
};

/// A part of the window that is not worth an answer of its own, as one in so many.
const GRAIN: u64 = 8;

/// After so long without a commit a member is given twice what its measured speed asks for, and so on.
const BELIEVED_MS: u64 = 30_000;

/// How fast a member works, and how often it commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// Records in a thousand seconds.
    pub(super) rate: Option<u64>,
    /// Milliseconds between two commits with progress.
    pub(super) interval_ms: Option<u64>,
}

/// The window of one member in one partition.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pace: Pace,
    window: u64,
    /// Since when it has had something to do, or its last commit, whichever is later; monotonic milliseconds.
    since_ms: u64,
    /// Records done, whether it ran out of records or left many that it might have had, and since when this is counted.
    done: u64,
    is_bound: bool,
    measured_ms: u64,
    /// When the window was last raised without a commit.
    raised_ms: u64,
}

impl Flow {
    /// Of a member that has committed nothing of the partition yet. What is known of others that do the same work is
    /// taken as its own pace until its own is seen.
    pub(super) fn new(now_ms: u64, pace: Pace) -> Self {
        let mut flow = Self {
            pace,
            window: HANDED_OUT_RECORDS_START,
            since_ms: now_ms,
            done: 0,
            is_bound: false,
            measured_ms: now_ms,
            raised_ms: now_ms,
        };
        flow.window = flow.wanted(0).unwrap_or(HANDED_OUT_RECORDS_START);
        flow
    }

    /// How many more records it may be handed, having so many that are not done; 0: none before it commits.
    pub(super) fn room(&self, outstanding: u64) -> u64 {
        let room = self.window.saturating_sub(outstanding);
        if outstanding > 0 && room <= self.window / GRAIN {
            return 0;
        }
        room.max(1)
    }

    /// It is handed something, having so many that are not done.
    pub(super) fn handed(&mut self, now_ms: u64, before: u64) {
        if before == 0 {
            self.since_ms = now_ms;
            self.start_measuring(now_ms);
        }
    }

    /// It made progress by a commit.
    pub(super) fn committed(&mut self, now_ms: u64, before: u64, after: u64) {
        let between_ms = now_ms.saturating_sub(self.since_ms);
        self.pace.interval_ms = Some(mixed(self.pace.interval_ms, between_ms));
        self.since_ms = now_ms;
        self.done = self.done.saturating_add(before.saturating_sub(after));
        let ran_dry = self.room(before) == 0 && after <= before / GRAIN;
        self.is_bound |= ran_dry || before < self.window / 2;
        if ran_dry {
            self.window = self.window.saturating_mul(2);
        }
        let passed_ms = now_ms.saturating_sub(self.measured_ms);
        if passed_ms >= MEASURED_OVER_MS_MIN {
            self.measure(now_ms, passed_ms);
        }
    }

    fn measure(&mut self, now_ms: u64, passed_ms: u64) {
        let rate = self.done.saturating_mul(1_000_000) / passed_ms;
        // Up at once, down slowly: too large a window costs a later hand-over, too small a one costs speed.
        let known = self.pace.rate.filter(|known| *known > rate);
        self.pace.rate = Some(known.map_or(rate, |known| mixed(Some(known), rate)));
        let wanted = self.wanted(0).unwrap_or(HANDED_OUT_RECORDS_START);
        // One that could have done more, or had no need of more, has not shown what it wants.
        self.window = if self.is_bound {
            self.window.max(wanted)
        } else {
            wanted
        };
        self.start_measuring(now_ms);
    }

    fn start_measuring(&mut self, now_ms: u64) {
        (self.done, self.is_bound) = (0, false);
        self.measured_ms = now_ms;
    }

    /// A look from time to time, for members that do not commit. Says whether it may be handed more now.
    pub(super) fn look(&mut self, now_ms: u64, outstanding: u64) -> bool {
        if self.room(outstanding) > 0 {
            return false;
        }
        let silent_ms = now_ms.saturating_sub(self.since_ms);
        let wanted = match self.wanted(silent_ms) {
            Some(wanted) => wanted,
            None if now_ms.saturating_sub(self.raised_ms.max(self.since_ms)) < HANDED_OUT_AHEAD_MS => {
                return false;
            }
            None => self.window.saturating_mul(2),
        };
        if wanted <= self.window {
            return false;
        }
        self.window = wanted;
        self.raised_ms = now_ms;
        self.room(outstanding) > 0
    }

    /// What was measured, or believed from the beginning.
    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// The window for a member that has not committed for so long. Commits come as regularly as timers do: a quarter is for
    /// late ones. `None`: its speed is not known.
    fn wanted(&self, silent_ms: u64) -> Option<u64> {
        let interval_ms = self.pace.interval_ms.unwrap_or(COMMIT_INTERVAL_ASSUMED_MS);
        let usual_ms = interval_ms.saturating_add(interval_ms / 4);
        let doubtful_ms = u128::from(silent_ms) * u128::from(silent_ms) / u128::from(BELIEVED_MS);
        let silent_ms = u128::from(silent_ms) + doubtful_ms;
        let ms = u128::from(usual_ms).max(silent_ms) + u128::from(HANDED_OUT_AHEAD_MS);
        let records = u128::from(self.pace.rate?.max(1)) * ms / 1_000_000;
        Some(
            u64::try_from(records)
                .unwrap_or(u64::MAX)
                .max(HANDED_OUT_RECORDS_MIN),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that takes whatever it is given, works at a fixed speed, and commits what is done by a timer.
    struct Client {
        flow: Flow,
        per_second: u64,
        commit_ms: u64,
        outstanding: u64,
        /// Of these, done and not committed.
        done: u64,
        idle_ms: u64,
        most: u64,
    }

    const TICK_MS: u64 = 10;

    impl Client {
        fn new(pace: Pace, per_second: u64, commit_ms: u64) -> Self {
            Self {
                flow: Flow::new(0, pace),
                per_second,
                commit_ms,
                outstanding: 0,
                done: 0,
                idle_ms: 0,
                most: 0,
            }
        }

        /// Runs it, and forgets what was seen before. Says how many records it did.
        fn run(&mut self, from_ms: u64, to_ms: u64) -> u64 {
            (self.idle_ms, self.most) = (0, 0);
            let mut all = 0;
            for now_ms in (from_ms..to_ms).step_by(TICK_MS as usize) {
                let room = self.flow.room(self.outstanding);
                if room > 0 {
                    let before = self.outstanding;
                    self.outstanding += room;
                    self.flow.handed(now_ms, before);
                }
                self.most = self.most.max(self.outstanding);
                let could = self.per_second * TICK_MS / 1_000;
                let does = could.min(self.outstanding - self.done);
                self.done += does;
                all += does;
                self.idle_ms += if does < could { TICK_MS } else { 0 };
                if self.commit_ms > 0 && now_ms % self.commit_ms == 0 && self.done > 0 {
                    let before = self.outstanding;
                    self.outstanding -= self.done;
                    self.done = 0;
                    self.flow.committed(now_ms, before, self.outstanding);
                }
                if now_ms % 1_000 == 0 {
                    self.flow.look(now_ms, self.outstanding);
                }
            }
            all
        }
    }

    #[test]
    fn nobody_waits_for_the_broker_and_nobody_has_much_more_than_until_the_next_commit() {
        for per_second in [200, 1_000, 20_000] {
            for commit_ms in [10, 200, 1_000, 5_000] {
                let mut client = Client::new(Pace::default(), per_second, commit_ms);
                client.run(0, 120_000);
                let done = client.run(120_000, 150_000);
                let what = format!("{per_second} a second, a commit every {commit_ms} ms");
                assert_eq!((client.idle_ms, done), (0, per_second * 30), "{what}");
                let most = per_second * (commit_ms * 3 / 2 + 1_500) / 1_000;
                assert!(
                    client.most <= most.max(HANDED_OUT_RECORDS_MIN),
                    "{what}: {} of {most}",
                    client.most
                );
            }
        }
    }

    #[test]
    fn a_member_of_unknown_speed_that_commits_every_five_seconds_is_at_full_speed_soon() {
        let mut client = Client::new(Pace::default(), 10_000, 5_000);
        let done = client.run(0, 20_000);
        assert!(done > 100_000, "{done} of 200,000");
        client.run(20_000, 40_000);
        assert_eq!(client.idle_ms, 0);
    }

    #[test]
    fn the_pace_of_others_is_believed_at_first() {
        let pace = Pace {
            rate: Some(1_000_000),
            interval_ms: Some(1_000),
        };
        let mut client = Client::new(pace, 1_000, 1_000);
        client.run(0, 10_000);
        assert_eq!(client.idle_ms, 0);
        assert!(client.most <= 2_500, "{}", client.most);
    }

    #[test]
    fn a_member_that_works_and_does_not_commit_goes_on() {
        let pace = Pace {
            rate: Some(1_000_000),
            interval_ms: Some(1_000),
        };
        let mut client = Client::new(pace, 1_000, 0);
        client.run(0, 10_000);
        let done = client.run(10_000, 40_000);
        assert_eq!(done, 30_000, "as fast as it was believed to be");
        let mut faster = Client::new(pace, 10_000, 0);
        faster.run(0, 600_000);
        let done = faster.run(600_000, 660_000);
        assert_eq!(done, 600_000, "in the end as fast as it is");
        let mut unknown = Client::new(Pace::default(), 1_000, 0);
        unknown.run(0, 10_000);
        unknown.run(10_000, 40_000);
        assert_eq!(unknown.idle_ms, 0);
    }

    #[test]
    fn a_member_that_is_stuck_is_handed_what_it_would_have_done() {
        let mut client = Client::new(Pace::default(), 1_000, 1_000);
        client.run(0, 10_000);
        client.per_second = 0;
        client.run(10_000, 20_000);
        assert!(client.most < 16_000, "{}", client.most);
    }

    #[test]
    fn a_member_that_becomes_slower_is_handed_less() {
        let mut client = Client::new(Pace::default(), 10_000, 1_000);
        client.run(0, 10_000);
        client.per_second = 100;
        client.run(10_000, 400_000);
        client.run(400_000, 410_000);
        assert!(client.most <= 300, "{}", client.most);
    }

    #[test]
    fn a_member_that_had_little_to_read_has_not_shown_that_it_is_slow() {
        let pace = Pace {
            rate: Some(10_000_000),
            interval_ms: Some(1_000),
        };
        let mut flow = Flow::new(0, pace);
        let window = flow.room(0);
        for second in 1..=60 {
            flow.handed(second * 1_000, 0);
            flow.committed(second * 1_000 + 500, 10, 0);
        }
        assert_eq!(flow.room(0), window);
    }

    #[test]
    fn a_crumb_is_no_answer_and_an_empty_hand_always_gets_something() {
        let pace = Pace {
            rate: Some(1),
            interval_ms: Some(1),
        };
        let flow = Flow::new(0, pace);
        assert_eq!(flow.room(0), HANDED_OUT_RECORDS_MIN);
        assert_eq!(flow.room(HANDED_OUT_RECORDS_MIN - 1), 0);
        assert_eq!(flow.room(HANDED_OUT_RECORDS_MIN / 2), HANDED_OUT_RECORDS_MIN / 2);
    }
}
