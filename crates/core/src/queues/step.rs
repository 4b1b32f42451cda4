//! The machine: which change of the counts is due, from the counts, the moment, and what the groups say.

use std::ops::Range;

use super::{Blocked, Decision, Kind, Phase, QueueSettings, Queues, Why};
use crate::ids::Now;

/// The first check after a postponement comes so soon, milliseconds; each further one waits twice as long, up to the
/// drain delay.
const CHECK_FIRST_MS: u64 = 1_000;

/// The largest group that reads a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The group.
    pub group: String,
    /// Its instances that read the topic; at least 1.
    pub instances: u32,
}

/// What a step is decided from, besides the topic's own state.
pub struct Moment<'a> {
    /// When it is.
    pub now: Now,
    /// Ids that the topic shows to clients: its partitions.
    pub facade: u32,
    /// The settings in force.
    pub settings: &'a QueueSettings,
    /// The largest group; `None` while nobody reads the topic.
    pub largest: Option<Wish>,
    /// The first of some queues that a group which counts has not read to its end.
    pub blocked: &'a dyn Fn(Range<u32>) -> Option<Blocked>,
}

/// What is remembered of a topic while the broker runs: how long things have been as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// When the phase would have begun by the monotonic clock, milliseconds; before the start if negative.
    began_ms: i64,
    /// Since when there have been fewer instances than queues are wanted, monotonic milliseconds.
    fewer_ms: Option<u64>,
    /// Checks of a postponement since it was told last, and when the next is due, monotonic milliseconds.
    checks: u32,
    check_ms: u64,
}

/// A change of the counts or of what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The topic's state after it.
    pub queues: Queues,
    /// The decision.
    pub decision: Decision,
}

impl Watch {
    /// Looks at a topic for the first time since the broker was started: the phase has lasted as long as the wall clock
    /// says, but the grace begins anew, since nobody could come back while the broker was down.
    pub fn resumed(queues: &Queues, now: Now) -> Self {
        let lasted_ms = now.wall_ms.saturating_sub(queues.since_ms).max(0);
        Self {
            began_ms: signed(now.mono_ms).saturating_sub(lasted_ms),
            fewer_ms: None,
            checks: 0,
            check_ms: now.mono_ms,
        }
    }

    /// How long the phase has lasted, milliseconds.
    pub fn waited_ms(&self, now: Now) -> u64 {
        u64::try_from(signed(now.mono_ms).saturating_sub(self.began_ms)).unwrap_or(0)
    }

    /// For how long there have been fewer instances than queues are wanted, milliseconds.
    pub fn fewer_for_ms(&self, now: Now) -> Option<u64> {
        Some(now.mono_ms.saturating_sub(self.fewer_ms?))
    }

    /// When the next step is due at the latest, monotonic milliseconds, if nothing happens; `None`: never.
    pub fn next_ms(&self, queues: &Queues, settings: &QueueSettings) -> Option<u64> {
        let after = |delay_ms| {
            let at_ms = self.began_ms.saturating_add(signed(delay_ms));
            u64::try_from(at_ms).unwrap_or(0)
        };
        let phase = match queues.phase {
            Phase::Idle => None,
            Phase::ReadingAhead => Some(after(settings.write_delay_ms)),
            Phase::Draining => Some(after(settings.drain_delay_ms)),
            Phase::Postponed(_) => Some(self.check_ms),
        };
        let fewer = self
            .fewer_ms
            .map(|at_ms| at_ms.saturating_add(settings.shrink_grace_ms));
        phase.into_iter().chain(fewer).min()
    }

    fn begin(&mut self, now: Now) {
        self.began_ms = signed(now.mono_ms);
    }

    /// A check found something unread; the next one is later.
    fn back_off(&mut self, now: Now, settings: &QueueSettings) {
        let wait_ms = CHECK_FIRST_MS.saturating_mul(1 << self.checks.min(20));
        self.checks = self.checks.saturating_add(1);
        let wait_ms = wait_ms.min(settings.drain_delay_ms.max(CHECK_FIRST_MS));
        self.check_ms = now.mono_ms.saturating_add(wait_ms);
    }
}

impl Queues {
    /// A topic that enters queue mode, its first `count` ids in use.
    pub fn start(count: u32, now: Now) -> Change {
        let queues = Self::at_rest(count, now.wall_ms);
        let counts = (queues.write, queues.read);
        queues.decided(now, (Kind::Start, Why::SwitchedOn), counts, 0)
    }

    /// What is told when a topic of so many partitions leaves queue mode.
    pub fn end(&self, facade: u32, now: Now) -> Decision {
        Decision {
            at_ms: now.wall_ms,
            kind: Kind::End,
            why: Why::SwitchedOff,
            before: (self.write, self.read),
            after: (facade, facade),
            goal: facade,
            wait_ms: 0,
        }
    }

    /// The change that is due, if one is. After it has been made there may be another one.
    pub fn step(&self, watch: &mut Watch, moment: &Moment<'_>) -> Option<Change> {
        if let Some((goal, why)) = self.new_goal(watch, moment) {
            return Some(self.turned(watch, moment, goal, why));
        }
        match &self.phase {
            Phase::Idle => None,
            Phase::ReadingAhead => self.write_up(watch, moment),
            Phase::Draining if watch.waited_ms(moment.now) < moment.settings.drain_delay_ms => None,
            Phase::Draining => {
                watch.checks = 0;
                Some(self.checked(watch, moment))
            }
            Phase::Postponed(before) => {
                if moment.now.mono_ms < watch.check_ms {
                    return None;
                }
                let change = self.checked(watch, moment);
                // The same is not told again and again.
                let is_news = match &change.queues.phase {
                    Phase::Postponed(now) => now.group != before.group || now.queue != before.queue,
                    _ => true,
                };
                is_news.then_some(change)
            }
        }
    }

    /// An operator wants so many queues whatever the number of instances, or none in particular any more.
    pub fn wished(&self, now: Now, wish: Option<u32>) -> Option<Change> {
        if self.wish == wish {
            return None;
        }
        let queues = Self { wish, ..self.clone() };
        let why = (Kind::Wish, Why::Operator { wish });
        Some(queues.decided(now, why, (self.write, self.read), 0))
    }

    /// An operator does not want to wait until everything is read: R goes down to W now. `None` if nothing waits for that.
    pub fn forced(&self, watch: &mut Watch, moment: &Moment<'_>) -> Option<Change> {
        if !self.phase.is_shrinking() {
            return None;
        }
        let left = (moment.blocked)(self.write..self.read);
        Some(self.read_down(watch, moment.now, Why::Forced(left)))
    }

    /// What is wanted now, if it is something else than before.
    fn new_goal(&self, watch: &mut Watch, moment: &Moment<'_>) -> Option<(u32, Why)> {
        let bounded = |count| moment.settings.clamped(count, moment.facade);
        let (wanted, why) = match (self.wish, &moment.largest) {
            (Some(wish), _) => (bounded(wish), Why::Operator { wish: self.wish }),
            (None, Some(largest)) => {
                let (group, instances) = (largest.group.clone(), largest.instances);
                (bounded(instances), Why::LargestGroup { group, instances })
            }
            // Nobody is there whose number could count.
            (None, None) => (bounded(self.goal), Why::Bounds),
        };
        if wanted >= self.goal {
            watch.fewer_ms = None;
            return (wanted > self.goal).then_some((wanted, why));
        }
        let since_ms = *watch.fewer_ms.get_or_insert(moment.now.mono_ms);
        let lasted_ms = moment.now.mono_ms.saturating_sub(since_ms);
        if self.wish.is_none() && lasted_ms < moment.settings.shrink_grace_ms {
            return None;
        }
        watch.fewer_ms = None;
        Some((wanted, why))
    }

    /// The first step towards another goal, from wherever the counts are.
    fn turned(&self, watch: &mut Watch, moment: &Moment<'_>, goal: u32, why: Why) -> Change {
        let (now, settings) = (moment.now, moment.settings);
        let mut queues = Self { goal, ..self.clone() };
        let (kind, restarts, delay_ms);
        if goal > self.write {
            queues.read = self.read.max(goal);
            queues.phase = Phase::ReadingAhead;
            let is_new = self.phase != Phase::ReadingAhead;
            restarts = queues.read > self.read || is_new;
            kind = if queues.read > self.read {
                Kind::ReadUp
            } else {
                Kind::Turn
            };
            delay_ms = settings.write_delay_ms;
        } else {
            queues.write = goal;
            let is_done = self.read == goal;
            queues.phase = if is_done { Phase::Idle } else { Phase::Draining };
            restarts = true;
            kind = if goal < self.write {
                Kind::WriteDown
            } else {
                Kind::Turn
            };
            delay_ms = if is_done { 0 } else { settings.drain_delay_ms };
        }
        if restarts {
            watch.begin(now);
            queues.since_ms = now.wall_ms;
        }
        let wait_ms = delay_ms.saturating_sub(watch.waited_ms(now));
        queues.decided(now, (kind, why), (self.write, self.read), wait_ms)
    }

    /// The write delay: when it is over, W follows.
    fn write_up(&self, watch: &mut Watch, moment: &Moment<'_>) -> Option<Change> {
        let (now, settings) = (moment.now, moment.settings);
        if watch.waited_ms(now) < settings.write_delay_ms {
            return None;
        }
        let mut queues = Self {
            write: self.goal,
            since_ms: now.wall_ms,
            ..self.clone()
        };
        watch.begin(now);
        // Queues above the goal were being drained, or read ahead, when the goal changed.
        let is_done = self.read == self.goal;
        queues.phase = if is_done { Phase::Idle } else { Phase::Draining };
        let wait_ms = if is_done { 0 } else { settings.drain_delay_ms };
        let why = (Kind::WriteUp, Why::DelayOver);
        Some(queues.decided(now, why, (self.write, self.read), wait_ms))
    }

    /// The drain delay is over: R follows W if everything is read.
    fn checked(&self, watch: &mut Watch, moment: &Moment<'_>) -> Change {
        let now = moment.now;
        let Some(blocked) = (moment.blocked)(self.write..self.read) else {
            return self.read_down(watch, now, Why::Drained);
        };
        watch.back_off(now, moment.settings);
        let queues = Self {
            phase: Phase::Postponed(blocked.clone()),
            ..self.clone()
        };
        let wait_ms = watch.check_ms.saturating_sub(now.mono_ms);
        let why = (Kind::Postpone, Why::Unread(blocked));
        queues.decided(now, why, (self.write, self.read), wait_ms)
    }

    fn read_down(&self, watch: &mut Watch, now: Now, why: Why) -> Change {
        let queues = Self {
            read: self.write,
            phase: Phase::Idle,
            since_ms: now.wall_ms,
            ..self.clone()
        };
        watch.begin(now);
        queues.decided(now, (Kind::ReadDown, why), (self.write, self.read), 0)
    }

    fn decided(self, now: Now, (kind, why): (Kind, Why), before: (u32, u32), wait_ms: u64) -> Change {
        let decision = Decision {
            at_ms: now.wall_ms,
            kind,
            why,
            before,
            after: (self.write, self.read),
            goal: self.goal,
            wait_ms,
        };
        Change {
            queues: self,
            decision,
        }
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
