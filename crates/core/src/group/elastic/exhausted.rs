//! What becomes of a divided partition of which no slice id is free.
//!
//! Every grant names a new slice, and an id comes back only a week after its slice is over. The planner divides nothing
//! when few are left, but members leave, die and join again all the same, and what they leave behind must not lie until
//! then. So the partition is *gathered*: one of those that share it is to have it whole, all others give it up as for any
//! other move, and so does that one. Whoever then gets it whole (`take_whole` in `moves`) needs one id, of whatever size: the
//! last one is kept for that ([`SliceIds::spare`](crate::cursor::SliceIds::spare)). If there is none all the same, the division
//! ends: the group reads on from its lowest resume point.
//!
//! The list of sharers is the durable half of this. What is promised is not, and a planner that finds the slots loose after
//! a restart promises them anew.

use super::Key;
use crate::cursor::{ChainState, Cursor, SliceId};
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::Sharing;
use crate::slots::SlotSet;

impl Coordinator {
    /// Gathers a partition if a member that has it cannot get what it is to get of it, since no slice id is free for that.
    /// Says whether members are to hold something else from now on.
    pub(super) fn gather_exhausted(&mut self, step: &mut Step<'_>, group: &str, key: Key) -> bool {
        match self.is_exhausted(step, group, key) {
            true => self.gather(step, group, key),
            false => false,
        }
    }

    fn is_exhausted(&self, step: &Step<'_>, group: &str, key: Key) -> bool {
        let (Some(sharers), Some(pool)) = (self.sharers(group, key), self.slice_ids.get(&key)) else {
            return false;
        };
        let (owners, up_to) = (self.owners_of(group, key), self.ids_up_to(group));
        let is_left = |above| pool.spare(above, up_to, step.now.wall_ms).is_some();
        let waits = |member: &String| owners.contains(member) && !self.due(group, key, member).is_empty();
        sharers
            .keys()
            .any(|member| waits(member) && !is_left(self.tail_id(group, key, member)))
    }

    /// What the next slice of a chain must be above of.
    fn tail_id(&self, group: &str, key: Key, member_id: &str) -> Option<SliceId> {
        match self.cursor(group, key)? {
            Cursor::Divided(divided) => divided
                .chain_of(member_id)
                .filter(|(_, chain)| chain.state() == ChainState::Held)
                .map(|(_, chain)| chain.tail().id),
            Cursor::Plain(_) => None,
        }
    }

    /// One of those that share a partition is to have it whole, as soon as all have given it up. Says whether that is new.
    pub(super) fn gather(&mut self, step: &mut Step<'_>, group: &str, key: Key) -> bool {
        let sharers = self.sharers(group, key).unwrap_or_default();
        let owners = self.owners_of(group, key);
        let slots = |member: &&String| match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => divided
                .chain_of(member)
                .map_or(0, |(_, chain)| chain.tail().pieces.slots().len()),
            Some(Cursor::Plain(_)) | None => 0,
        };
        let Some(one) = sharers
            .keys()
            .filter(|member| owners.contains(*member))
            .max_by_key(slots)
        else {
            return false;
        };
        let gathered = [(one.clone(), Sharing::Yields)].into();
        // So that nobody else is promised what comes loose meanwhile.
        self.promise(group, key, one, &SlotSet::all());
        if sharers == gathered {
            return false;
        }
        step.notice(
            group,
            format!(
                "no slice id is free in partition {}: member {one} is to have it whole, the others give it up",
                key.1
            ),
        );
        self.set_sharers(step, group, key, gathered);
        true
    }
}
