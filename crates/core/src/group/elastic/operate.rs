//! What an operator asks of the planner: a look at the group, what it would decide now, a split or a merge by order.

use std::collections::BTreeSet;
use std::ops::RangeBounds;

use super::view::Counts;
use super::{CountWanted, Key};
use crate::cursor::{ChainView, Cursor};
use crate::elastic::{self, Decision, Plan, Refusal, Snapshot};
use crate::group::coordinator::{Coordinator, Effects, Step};
use crate::group::topics::Topics;
use crate::ids::{Now, Offset};

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whatever the planner thinks right now.
    Plan,
    /// A partition is to be divided for whoever has nothing to do, however little is left in it and however short ago it
    /// was divided.
    Split(Key),
    /// The shares of a partition are to flow together, however busy it is.
    Merge(Key),
}

/// What came of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// What was decided; done unless it was only asked about.
    pub decisions: Vec<Decision>,
    /// What was refused, and why.
    pub refusals: Vec<Refusal>,
    /// What has to be counted first. Nothing was done then: count, and give the order again.
    pub wanted: BTreeSet<CountWanted>,
}

impl Coordinator {
    /// The group as the planner sees it; `None` if it is none whose partitions the broker assigns.
    pub fn look_at(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        counts: &dyn Counts,
    ) -> Option<Snapshot> {
        let step = Step::new(now, topics);
        self.snapshot_for_planner(&step, group, counts)
    }

    /// What [`Coordinator::look_at`] needs counted to be exact about divided partitions.
    pub fn counts_of_divided(&self, now: Now, topics: &dyn Topics, group: &str) -> BTreeSet<CountWanted> {
        let step = Step::new(now, topics);
        let cursors = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| &group.cursors);
        let divided = cursors.filter(|(_, cursor)| matches!(cursor, Cursor::Divided(_)));
        divided
            .flat_map(|(key, _)| self.counts_wanted(&step, group, *key))
            .collect()
    }

    /// A group's cursor in a partition.
    pub fn cursor_of(&self, group: &str, key: Key) -> Option<&Cursor> {
        self.cursor(group, key)
    }

    /// The committed offset as everybody but the members sees it.
    pub fn committed(&self, group: &str, key: Key) -> Option<Offset> {
        self.outside_offset(group, key, self.cursor(group, key)?)
    }

    /// What the group has committed in `keys`, in their order: the cursor, and the offset as with [`Coordinator::committed`].
    pub fn committed_in<'a>(
        &'a self,
        group: &'a str,
        keys: impl RangeBounds<Key>,
    ) -> impl Iterator<Item = (Key, &'a Cursor, Offset)> {
        let cursors = self.groups.get(group).map(|group| group.cursors.range(keys));
        cursors.into_iter().flatten().filter_map(move |(key, cursor)| {
            let offset = self.outside_offset(group, *key, cursor)?;
            Some((*key, cursor, offset))
        })
    }

    /// The offset of [`Cursor::outside_view`], without a copy of the metadata that was committed with it.
    fn outside_offset(&self, group: &str, key: Key, cursor: &Cursor) -> Option<Offset> {
        let offset = match cursor {
            Cursor::Plain(plain) => plain.offset,
            Cursor::Divided(divided) => self.with_live(group, key, |live| divided.outside_offset(live)),
        };
        (offset >= 0).then_some(offset)
    }

    /// The chains of a divided cursor; none if it is plain.
    pub fn chains(&self, group: &str, key: Key) -> Vec<ChainView> {
        match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => self.with_live(group, key, |live| divided.view(live)),
            Some(Cursor::Plain(_)) | None => Vec::new(),
        }
    }

    /// Asks the planner in an operator's name, and does what it decides unless `dry_run` is set. `None` if there is no such
    /// group.
    pub fn order(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        counts: &dyn Counts,
        (order, dry_run): (Order, bool),
    ) -> (Option<Ordered>, Effects) {
        let mut step = Step::new(now, topics);
        let Some(mut snapshot) = self.snapshot_for_planner(&step, group, counts) else {
            return (None, step.effects);
        };
        bend(&mut snapshot, order);
        let Plan {
            mut decisions,
            refusals,
            uncounted,
            ..
        } = elastic::plan(&snapshot);
        let concerns = |decision: &Decision| {
            let key = match order {
                Order::Plan => return true,
                Order::Split(key) | Order::Merge(key) => key,
            };
            let mut moves = decision.change.moves.iter();
            moves.any(|one| (one.of.topic, one.of.partition) == key)
        };
        decisions.retain(concerns);
        let wanted = uncounted
            .iter()
            .flat_map(|one| self.counts_wanted(&step, group, (one.topic, one.partition)))
            .collect::<BTreeSet<_>>();
        if !dry_run && wanted.is_empty() {
            for decision in &decisions {
                self.carry_out(&mut step, group, decision.clone());
            }
        }
        let ordered = Ordered {
            decisions,
            refusals,
            wanted,
        };
        (Some(ordered), step.effects)
    }
}

/// An order stands above thresholds and pauses, and above nothing else.
fn bend(snapshot: &mut Snapshot, order: Order) {
    let key = match order {
        Order::Plan => return,
        Order::Split(key) | Order::Merge(key) => key,
    };
    snapshot.paused = false;
    let Some(topic) = snapshot.topics.get_mut(&key.0) else {
        return;
    };
    topic.settings.split_min_remaining = 1;
    topic.settings.split_cooldown_ms = 0;
    topic.settings.steal_min_remaining = 1;
    topic.settings.steal_min_ms = 0;
    topic.divided_ms = None;
    if let Order::Merge(_) = order
        && let Some(partition) = topic.partitions.get_mut(&key.1)
    {
        topic.settings.merge_delay_ms = 0;
        partition.quiet_since_ms = Some(snapshot.now.mono_ms);
    }
}
