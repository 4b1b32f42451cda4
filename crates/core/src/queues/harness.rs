//! Test help: a topic in queue mode, the groups that read it, and a clock.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{Blocked, Change, Decision, Kind, Moment, Phase, QueueSettings, Queues, Watch, Wish};
use crate::ids::Now;

/// A group that reads the topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    pub(super) instances: u32,
    /// Committed offsets.
    pub(super) committed: BTreeMap<u32, u64>,
    /// Wall clock of the newest commit.
    pub(super) commit_ms: Option<i64>,
}

/// The world of one topic.
#[derive(Debug)]
pub(super) struct World {
    pub(super) queues: Queues,
    pub(super) watch: Watch,
    pub(super) settings: QueueSettings,
    pub(super) facade: u32,
    pub(super) now: Now,
    pub(super) groups: BTreeMap<String, Reader>,
    /// Records of each queue.
    pub(super) ends: BTreeMap<u32, u64>,
    pub(super) told: Vec<Decision>,
    /// How often it was asked what is unread.
    pub(super) checks: RefCell<u32>,
}

impl World {
    /// A new topic with a facade of 64 ids and the default settings.
    pub(super) fn new() -> Self {
        let now = Now {
            mono_ms: 1_000_000,
            wall_ms: 1_700_000_000_000,
        };
        let settings = QueueSettings::default();
        let Change { queues, decision } = Queues::start(settings.clamped(0, 64), now);
        Self {
            watch: Watch::resumed(&queues, now),
            queues,
            settings,
            facade: 64,
            now,
            groups: BTreeMap::new(),
            ends: BTreeMap::new(),
            told: vec![decision],
            checks: RefCell::default(),
        }
    }

    /// So many instances of a group are there from now on.
    pub(super) fn instances(&mut self, group: &str, count: u32) {
        self.groups.entry(group.to_owned()).or_default().instances = count;
        self.settle();
    }

    pub(super) fn largest(&self) -> Option<Wish> {
        let live = self.groups.iter().filter(|(_, group)| group.instances > 0);
        let (group, reader) = live.max_by_key(|(_, group)| group.instances)?;
        Some(Wish {
            group: group.clone(),
            instances: reader.instances,
        })
    }

    /// By the rule of the issue: live groups count, and those with a young commit; a group without any commit counts only
    /// with members.
    pub(super) fn blocked(&self, ids: Range<u32>) -> Option<Blocked> {
        *self.checks.borrow_mut() += 1;
        ids.into_iter().find_map(|queue| {
            let end = self.ends.get(&queue).copied().unwrap_or(0);
            let counts = |reader: &Reader| {
                let young = reader
                    .commit_ms
                    .is_some_and(|at_ms| self.now.wall_ms.abs_diff(at_ms) < self.settings.group_ttl_ms);
                reader.instances > 0 || young
            };
            self.groups
                .iter()
                .filter(|(_, reader)| counts(reader))
                .find_map(|(group, reader)| {
                    let unread = end - reader.committed.get(&queue).copied().unwrap_or(0);
                    (unread > 0).then(|| Blocked {
                        group: group.clone(),
                        queue,
                        unread,
                    })
                })
        })
    }

    /// A batch for an id; the id in which it is stored.
    pub(super) fn produce(&mut self, id: u32) -> u32 {
        let home = self.queues.home(id);
        *self.ends.entry(home).or_default() += 1;
        home
    }

    /// A group reads and commits everything in the ids that it is assigned: those below R, and what is left above.
    pub(super) fn read(&mut self, group: &str) {
        let reader = self.groups.entry(group.to_owned()).or_default();
        reader.committed.extend(&self.ends);
        reader.commit_ms = Some(self.now.wall_ms);
        self.settle();
    }

    /// Time passes in small steps.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        while self.now.mono_ms < end {
            let step = (end - self.now.mono_ms).min(1_000);
            self.now.mono_ms += step;
            self.now.wall_ms += step as i64;
            self.settle();
        }
    }

    /// The broker is gone for a while.
    pub(super) fn restart(&mut self, away_ms: i64) {
        self.now.wall_ms += away_ms;
        self.now.mono_ms = 5;
        self.watch = Watch::resumed(&self.queues, self.now);
        self.settle();
    }

    /// Does whatever is due, and checks what must always be true.
    pub(super) fn settle(&mut self) {
        for _ in 0..8 {
            let Some(change) = self.step() else {
                return;
            };
            self.make(change);
        }
        panic!("the machine does not come to rest: {:?}", self.told);
    }

    fn step(&mut self) -> Option<Change> {
        let mut watch = self.watch;
        let blocked = |ids| self.blocked(ids);
        let change = self.queues.step(&mut watch, &self.moment(&blocked));
        self.watch = watch;
        change
    }

    pub(super) fn force(&mut self) {
        let mut watch = self.watch;
        let blocked = |ids| self.blocked(ids);
        let change = self.queues.forced(&mut watch, &self.moment(&blocked));
        self.watch = watch;
        if let Some(change) = change {
            self.make(change);
        }
    }

    pub(super) fn wish(&mut self, wish: Option<u32>) {
        if let Some(change) = self.queues.wished(self.now, wish) {
            self.make(change);
        }
        self.settle();
    }

    fn moment<'a>(&'a self, blocked: &'a dyn Fn(Range<u32>) -> Option<Blocked>) -> Moment<'a> {
        Moment {
            now: self.now,
            facade: self.facade,
            settings: &self.settings,
            largest: self.largest(),
            blocked,
        }
    }

    fn make(&mut self, change: Change) {
        let Change { queues, decision } = change;
        if decision.kind == Kind::ReadDown && !matches!(decision.why, super::Why::Forced(_)) {
            assert_eq!(
                self.blocked(queues.read..self.queues.read),
                None,
                "R fell over unread records"
            );
        }
        assert_eq!(decision.before, self.counts());
        self.queues = queues;
        assert_eq!(decision.after, self.counts());
        self.told.push(decision);
        self.check();
    }

    /// W <= R <= facade, and the phase is what follows from the numbers.
    pub(super) fn check(&self) {
        let Queues {
            write, read, goal, ..
        } = self.queues;
        let is_right = match &self.queues.phase {
            Phase::Idle => write == read && read == goal,
            Phase::ReadingAhead => write < goal && goal <= read,
            Phase::Draining | Phase::Postponed(_) => write == goal && goal < read,
        };
        assert!(
            is_right && 1 <= write && write <= read && read <= self.facade,
            "{:?}",
            self.queues
        );
    }

    pub(super) fn counts(&self) -> (u32, u32) {
        (self.queues.write, self.queues.read)
    }

    /// The kinds of all decisions since the last call.
    pub(super) fn kinds(&mut self) -> Vec<Kind> {
        self.told.drain(..).map(|decision| decision.kind).collect()
    }
}
