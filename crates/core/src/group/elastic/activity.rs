//! What members are doing: how fast they work, how often they commit, since when they have nothing to do.
//!
//! All volatile. After a restart everybody is new here, and the planner treats what it does not know with care.

use super::average::{MEASURED_OVER_MS_MIN, mixed};
use crate::elastic::{Commits, MemberState};

/// What is known of one member's work.
#[derive(Clone, Debug)]
pub(in crate::group) struct Activity {
    /// What it is doing, and since when, monotonic milliseconds.
    pub(super) state: MemberState,
    pub(super) since_ms: u64,
    /// Its commits with progress.
    pub(super) commits: Commits,
    /// Records a second.
    pub(super) rate: Option<u64>,
    /// Since when it has had a record that it has not committed, and made no progress.
    pub(super) uncommitted_ms: Option<u64>,
    /// Records that it has committed.
    done: u64,
    /// The same when its rate was last measured, and the moment.
    measured: Option<(u64, u64)>,
}

impl Activity {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            state: MemberState::Idle,
            since_ms: now_ms,
            commits: Commits::default(),
            rate: None,
            uncommitted_ms: None,
            done: 0,
            measured: None,
        }
    }

    /// It was handed so many records of slices.
    pub(super) fn was_handed(&mut self, now_ms: u64, records: usize) {
        if records > 0 {
            self.uncommitted_ms.get_or_insert(now_ms);
        }
    }

    /// It committed so many records that it had not committed before. A commit of several partitions is one.
    pub(super) fn committed(&mut self, now_ms: u64, records: u64) {
        self.done = self.done.saturating_add(records);
        let commits = &mut self.commits;
        if commits.last_ms == Some(now_ms) {
            return;
        }
        commits.seen = commits.seen.saturating_add(1);
        if let Some(last) = commits.last_ms {
            // Having had nothing to do is not being slow to commit.
            let between = now_ms.saturating_sub(self.uncommitted_ms.unwrap_or(last).max(last));
            commits.interval_ms = Some(mixed(commits.interval_ms, between));
        }
        commits.last_ms = Some(now_ms);
        self.uncommitted_ms = Some(now_ms);
    }

    /// It committed an offset of a partition that had none: where it began is not known, so nothing is measured up to now.
    pub(super) fn began(&mut self, now_ms: u64) {
        self.commits.last_ms = Some(now_ms);
        self.measured = Some((self.done, now_ms));
    }

    /// A look at the member: what it is doing, and whether it was handed records of slices that it has not committed.
    pub(super) fn look(&mut self, now_ms: u64, state: MemberState, has_undone: bool) {
        let (done, was_busy) = (self.done, self.state == MemberState::Busy);
        let is_busy = state == MemberState::Busy;
        match self.measured {
            Some((_, at)) if now_ms.saturating_sub(at) < MEASURED_OVER_MS_MIN && state == self.state => {}
            // Progress is seen at commits, and these may be rare: it is measured from one to another.
            Some((before, _)) if done == before && is_busy && was_busy => {}
            Some((before, at)) => {
                let passed_ms = now_ms.saturating_sub(at).max(1);
                if was_busy && done > before {
                    let rate = (done - before).saturating_mul(1000) / passed_ms;
                    self.rate = Some(mixed(self.rate, rate));
                }
                self.measured = Some((done, now_ms));
            }
            None => self.measured = Some((done, now_ms)),
        }
        if !has_undone {
            self.uncommitted_ms = None;
        }
        if state != self.state {
            self.state = state;
            self.since_ms = now_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_measured_while_there_is_work() {
        let mut activity = Activity::new(0);
        activity.look(0, MemberState::Busy, false);
        activity.was_handed(0, 500);
        activity.committed(1_000, 200);
        activity.look(1_000, MemberState::Busy, true);
        assert_eq!(activity.rate, Some(200));
        activity.committed(2_000, 300);
        activity.look(2_000, MemberState::Drained, false);
        assert_eq!(activity.rate, Some(240), "300 more in a second, averaged");
        activity.look(9_000, MemberState::Busy, false);
        assert_eq!(activity.rate, Some(240), "having nothing to do is not being slow");
        assert_eq!(activity.since_ms, 9_000);
    }

    #[test]
    fn the_rate_of_a_member_that_commits_rarely_is_that_of_the_time_between() {
        let mut activity = Activity::new(0);
        activity.look(0, MemberState::Busy, true);
        for second in 1..=20 {
            let now_ms = second * 1_000;
            if second % 5 == 0 {
                activity.committed(now_ms, 5_000);
            }
            activity.look(now_ms, MemberState::Busy, true);
        }
        assert_eq!(activity.rate, Some(1_000));
        assert_eq!(activity.commits.interval_ms, Some(5_000));
    }

    #[test]
    fn commits_have_an_interval_and_end_the_wait_for_one() {
        let mut activity = Activity::new(0);
        activity.was_handed(10, 1);
        assert_eq!(activity.uncommitted_ms, Some(10));
        activity.committed(1_000, 1);
        activity.committed(2_000, 1);
        activity.committed(2_000, 1);
        assert_eq!(
            activity.commits.interval_ms,
            Some(1_000),
            "two partitions in one commit"
        );
        assert_eq!((activity.commits.seen, activity.uncommitted_ms), (2, Some(2_000)));
        activity.look(2_500, MemberState::Drained, false);
        assert_eq!(activity.uncommitted_ms, None);
        activity.was_handed(60_000, 1);
        activity.committed(61_000, 1);
        assert_eq!(
            activity.commits.interval_ms,
            Some(1_000),
            "having had nothing to commit is not being slow to commit"
        );
    }
}
