//! Topics in queue mode, as the broker's tasks and its administration API see them; see [`anabranch_core::queues`].

use anabranch_core::Refused;
use anabranch_core::ids::Lsn;
use anabranch_core::node::{QueueOrder, QueuesView};

use crate::broker::Broker;

/// How soon queue counts are looked at again while the disk does not answer, milliseconds.
const QUEUES_AGAIN_MS: u64 = 1_000;

impl Broker {
    /// Changes the queue counts that are due. Returns when to do so again if nothing happens, real time; `None` if no topic
    /// is in queue mode.
    pub(crate) fn adjust_queues(&self) -> Option<u64> {
        let mut guard = self.lock();
        let core = &mut *guard;
        let real = self.clock.now();
        let now = core.group_clock.now(real);
        let before = core.node().state_lsn();
        let (next, outcome) = core.engine.adjust_queues(now);
        self.pass_on_decisions(core, before, outcome);
        // While group time stands still nothing is due; it is looked again when it may go on.
        let again_ms = real.mono_ms.saturating_add(QUEUES_AGAIN_MS);
        Some(core.group_clock.real(next?, real.mono_ms).unwrap_or(again_ms))
    }

    /// Does what an operator wants of a topic's queues; the answer must wait for the entry that is returned.
    pub(crate) fn order_queues(&self, topic: &str, order: QueueOrder) -> Result<Lsn, Refused> {
        let mut guard = self.lock();
        let core = &mut *guard;
        let now = core.group_clock.now(self.clock.now());
        let before = core.node().state_lsn();
        let (result, outcome) = core.engine.order_queues(now, topic, order);
        let after = self.pass_on_decisions(core, before, outcome);
        result.map(|()| after)
    }

    /// A topic in queue mode as it is now; `None` if it is not, or there is no such topic.
    pub(crate) fn queues_view(&self, topic: &str) -> Option<QueuesView> {
        let mut guard = self.lock();
        let core = &mut *guard;
        let now = core.group_clock.now(self.clock.now());
        let id = core.node().topic_by_name(topic)?.id;
        core.engine.queues_view(now, id)
    }
}
