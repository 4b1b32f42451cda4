//! The play: members join one by one, then the oldest leave one by one, and the last one works off the rest.
//!
//! A phase begins when a member is started or told to leave. It is *settled* when the new member has done its first
//! record, or the leaver has gone; from then on its rate is measured, long enough that what remains is enough for all
//! phases to come. A broker that gives the new member nothing to do is waited for [`SETTLE_MAX`], and the play goes on.

use std::time::Duration;

use super::member::Member;

/// Longest wait for a phase to settle.
pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(6);

/// How long a new member waits for work until that was seen: the heartbeat interval of librdkafka, at which the present
/// members learn that something has changed.
pub(crate) const SETTLE_EXPECTED: Duration = Duration::from_secs(3);

/// Shortest time that a rate is measured over.
const MEASURE_MIN: Duration = Duration::from_millis(500);

/// What a phase begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A member is started.
    Join,
    /// The oldest member is told to leave.
    Leave,
}

/// A phase that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) change: Change,
    /// Members in this phase.
    pub(crate) members: u32,
}

/// All phases.
pub(crate) fn steps(members: u32) -> Vec<Step> {
    let joining = (1..=members).map(|members| Step {
        change: Change::Join,
        members,
    });
    let leaving = (1..members).rev().map(|members| Step {
        change: Change::Leave,
        members,
    });
    joining.chain(leaving).collect()
}

/// How long the next phase is measured, if each member does one record in `cost` and one that joins waits for work for
/// `settle`: an equal time for all phases to come, so that the records just last. `None` for the last phase, which lasts
/// until nothing is left.
pub(crate) fn measure(
    to_come: &[Step],
    remaining: u64,
    cost: Duration,
    settle: Duration,
) -> Option<Duration> {
    if to_come.len() < 2 {
        return None;
    }
    let members: u32 = to_come.iter().map(|step| step.members).sum();
    // While one waits, the others go on.
    let joining = to_come.iter().filter(|step| step.change == Change::Join);
    let meanwhile = settle * joining.map(|step| step.members - 1).sum::<u32>();
    let work = cost.saturating_mul(u32::try_from(remaining).unwrap_or(u32::MAX));
    Some((work.saturating_sub(meanwhile) / members.max(1)).max(MEASURE_MIN))
}

/// A phase that has begun.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    pub(crate) step: Step,
    pub(crate) begun_us: u64,
    /// From when on it is measured.
    pub(crate) settled_us: Option<u64>,
    /// Whether it settled because of what it was to wait for, not for lack of patience.
    pub(crate) in_time: bool,
    /// Until when.
    pub(crate) end_us: Option<u64>,
}

impl Phase {
    pub(crate) fn new(step: Step, now_us: u64) -> Phase {
        Phase {
            step,
            begun_us: now_us,
            settled_us: None,
            in_time: false,
            end_us: None,
        }
    }

    /// How long the new member waited for work, if it did not wait in vain.
    pub(crate) fn settle_time(&self) -> Option<Duration> {
        let joined = self.in_time && self.step.change == Change::Join && self.step.members > 1;
        let settled = self.settled_us.filter(|_| joined)?;
        Some(Duration::from_micros(settled.saturating_sub(self.begun_us)))
    }

    /// Notes whether it has settled: `subject` is the member that it began with.
    pub(crate) fn settle(&mut self, subject: &Member, now_us: u64) {
        if self.settled_us.is_some() {
            return;
        }
        let came = match self.step.change {
            Change::Join => subject.journal.first_done_us().is_some(),
            Change::Leave => subject.has_ended(),
        };
        let waited = now_us.saturating_sub(self.begun_us);
        // The first member is waited for as long as it takes: there is nothing to measure before it works.
        let impatient = self.step.members > 1 && u128::from(waited) >= SETTLE_MAX.as_micros();
        if came || impatient {
            self.settled_us = Some(now_us);
            self.in_time = came;
        }
    }

    /// Whether it has been measured for as long as planned.
    pub(crate) fn is_over(&self, measure: Option<Duration>, now_us: u64) -> bool {
        let (Some(settled), Some(measure)) = (self.settled_us, measure) else {
            return false;
        };
        u128::from(now_us.saturating_sub(settled)) >= measure.as_micros()
    }

    /// In words.
    pub(crate) fn describe(&self) -> String {
        let members = crate::output::plural(u64::from(self.step.members), "member");
        match (self.step.change, self.settled_us) {
            (Change::Join, None) => format!("{members}, the newest is joining"),
            (Change::Leave, None) => format!("{members}, the oldest is leaving"),
            (_, Some(_)) => members,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go() {
        let members: Vec<u32> = steps(3).iter().map(|step| step.members).collect();
        assert_eq!(members, [1, 2, 3, 2, 1]);
        assert_eq!(steps(3)[3].change, Change::Leave);
        assert_eq!(steps(1).len(), 1);
    }

    /// If nothing goes to waste, the phases are of equal length and end with the records.
    #[test]
    fn the_records_last_for_all_phases() {
        let (steps, cost) = (steps(4), Duration::from_millis(1));
        let mut remaining = 48_000;
        for at in 0..steps.len() - 1 {
            let measure = measure(&steps[at..], remaining, cost, Duration::ZERO).unwrap();
            assert_eq!(measure, Duration::from_secs(3));
            remaining -= u64::from(steps[at].members) * 3_000;
        }
        assert_eq!(measure(&steps[6..], remaining, cost, Duration::ZERO), None);
        assert_eq!(remaining, 3_000);
        assert_eq!(measure(&steps, 10, cost, Duration::ZERO), Some(MEASURE_MIN));
        // Of 48 s of work, 1 + 2 + 3 members do 12 s while another one waits for 2 s.
        let waiting = measure(&steps, 48_000, cost, Duration::from_secs(2));
        assert_eq!(waiting, Some(Duration::from_millis(2_250)));
    }

    #[test]
    fn a_phase_is_measured_from_when_it_settled() {
        let mut phase = Phase::new(steps(2)[1], 1_000);
        let measure = Some(Duration::from_micros(500));
        assert!(!phase.is_over(measure, 10_000));
        phase.settled_us = Some(9_600);
        assert!(!phase.is_over(measure, 10_000));
        assert!(phase.is_over(measure, 10_100));
        assert!(
            !phase.is_over(None, 10_100),
            "the last lasts until nothing is left"
        );
    }
}
