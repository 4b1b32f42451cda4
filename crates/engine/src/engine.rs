//! [`Engine`]: every change of the state goes through here into the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::group::{Caller, Connection, Coordinator, Effects, Notice, Reply, Token, Topics};
use anabranch_core::ids::{LogId, Lsn, Now, Offset, TopicId};
use anabranch_core::meta::Command;
use anabranch_core::node::{LogEffect, Node};
use anabranch_core::queues::Kind as QueueChange;
use anabranch_store::{Batch, Store};

/// Where entries are appended: the store itself, or something that also looks at what goes in.
pub trait Journal {
    /// The store behind it.
    fn store(&self) -> &Store;

    /// Queues a state entry, see [`Store::append_state`].
    fn append_state(&self, bytes: Vec<u8>) -> Lsn {
        self.store().append_state(bytes)
    }

    /// Queues a batch, see [`Store::append_batch`].
    fn append_batch(&self, batch: Batch) -> Lsn {
        self.store().append_batch(batch)
    }
}

impl Journal for Arc<Store> {
    fn store(&self) -> &Store {
        self
    }
}

/// What the owner of the engine has to pass on after a call.
#[derive(Debug)]
#[must_use = "others may wait for the replies"]
pub struct Outcome {
    /// The entry that the answer, and the replies, wait for: all state up to now.
    pub after: Lsn,
    /// Answers to parked requests, or to this one if it was given a token.
    pub replies: Vec<Reply>,
    /// Worth a line in the operator's log.
    pub notices: Vec<Notice>,
    /// Fetches that wait on these logs are to look again: their topic was deleted, or members of a group read other parts of
    /// them than before.
    pub look_again: Vec<LogId>,
    /// The planner is to think at once: [`Coordinator::plan`].
    pub plan_soon: bool,
}

impl Outcome {
    /// Nothing has come of it.
    pub(crate) fn nothing(after: Lsn) -> Self {
        Self {
            after,
            replies: Vec::new(),
            notices: Vec::new(),
            look_again: Vec::new(),
            plan_soon: false,
        }
    }

    /// Both together.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.after = self.after.max(other.after);
        self.replies.extend(other.replies);
        self.notices.extend(other.notices);
        self.look_again.extend(other.look_again);
        self.plan_soon |= other.plan_soon;
    }
}

/// The broker's state and the journal of its changes.
#[derive(Debug)]
pub struct Engine<J> {
    pub(crate) node: Node,
    pub(crate) journal: J,
    next_token: u64,
    pub(crate) state_bytes: u64,
    queue_changes: BTreeMap<QueueChange, u64>,
}

impl<J: Journal> Engine<J> {
    pub(crate) fn new(node: Node, journal: J) -> Self {
        Self {
            node,
            journal,
            next_token: 0,
            state_bytes: 0,
            queue_changes: BTreeMap::new(),
        }
    }

    /// The state as it is by now, durable or not.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The journal.
    pub fn journal(&self) -> &J {
        &self.journal
    }

    /// The store behind the journal.
    pub fn store(&self) -> &Store {
        self.journal.store()
    }

    /// Bytes of changes of the state that were appended to the journal since the start.
    pub fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    /// Changes of the queues of topics in queue mode since the start, by kind.
    pub fn queue_changes(&self) -> &BTreeMap<QueueChange, u64> {
        &self.queue_changes
    }

    /// Gives the journal back, for the store to be closed.
    pub fn into_journal(self) -> J {
        self.journal
    }

    /// Looks at the state and perhaps changes it. The answer to whatever was asked waits for [`Outcome::after`].
    pub fn update<T>(&mut self, now: Now, work: impl FnOnce(&mut Update<'_, J>) -> T) -> (T, Outcome) {
        let mut update = Update {
            engine: self,
            now,
            gone: Vec::new(),
            topics: false,
        };
        let result = work(&mut update);
        let (gone, topics) = (update.gone, update.topics);
        let effects = match topics {
            true => {
                let now = self.node.dated(now);
                self.node.topics_changed(now)
            }
            false => Effects::default(),
        };
        let mut outcome = self.settle(effects);
        outcome.look_again.extend(gone);
        (result, outcome)
    }

    /// Hands a request to the coordinator, with the moment by which it is to date things ([`Node::dated`]).
    pub fn group<T>(
        &mut self,
        now: Now,
        work: impl FnOnce(&mut Coordinator, &dyn Topics, Now) -> (T, Effects),
    ) -> (T, Outcome) {
        let now = self.node.dated(now);
        let (groups, topics) = self.node.groups_mut();
        let (result, effects) = work(groups, &topics, now);
        (result, self.settle(effects))
    }

    /// The same for a request whose answer comes under a token: among these replies, or those of a later call.
    pub fn group_reply(
        &mut self,
        now: Now,
        work: impl FnOnce(&mut Coordinator, &dyn Topics, Now, Token) -> Effects,
    ) -> (Token, Outcome) {
        let token = Token(self.next_token);
        self.next_token += 1;
        let ((), outcome) = self.group(now, |groups, topics, now| ((), work(groups, topics, now, token)));
        (token, outcome)
    }

    /// Stops the planner for a group, or lets it go on. `false`: there is no such group.
    pub fn set_paused(&mut self, now: Now, group: &str, paused: bool) -> (bool, Outcome) {
        self.group(now, |groups, topics, now| {
            groups.set_paused(now, topics, group, paused)
        })
    }

    /// Breaks a rule of divided cursors on purpose, for simulators.
    #[cfg(feature = "planted-faults")]
    pub fn plant(&mut self, fault: anabranch_core::cursor::Fault) {
        self.node.groups_mut().0.plant(Some(fault));
    }

    /// A client has said on its connection what it is; see [`Coordinator::introduced`].
    pub fn introduced(&mut self, caller: &Caller) {
        self.node.groups_mut().0.introduced(caller);
    }

    /// A connection has ended; see [`Coordinator::connection_closed`].
    pub fn connection_closed(&mut self, connection: Connection) {
        self.node.groups_mut().0.connection_closed(connection);
    }

    /// Nobody waits for the answer to `token` any more.
    pub fn disconnected(&mut self, now: Now, token: Token) -> Outcome {
        self.group(now, |groups, topics, now| {
            ((), groups.disconnected(now, topics, token))
        })
        .1
    }

    /// To be called by the store's commit listener: entries up to `upto` are durable, and with them the records of
    /// `tails`. Returns what the store is to be told, see [`crate::tell_store`]; fetches that wait on those logs are to
    /// look again.
    #[must_use = "the store does not know by itself which records are gone"]
    pub fn committed(&mut self, upto: Lsn, tails: &[(LogId, Offset)]) -> Vec<LogEffect> {
        self.node.committed(upto, tails)
    }

    pub(crate) fn log_of(&self, (topic, partition): (TopicId, i32)) -> Option<LogId> {
        self.node.topic_by_id(topic)?.log(partition)
    }

    /// Journals what the coordinator has changed already.
    pub(crate) fn settle(&mut self, effects: Effects) -> Outcome {
        let Effects {
            changes,
            replies,
            notices,
            moved,
            plan_soon,
        } = effects;
        for change in changes {
            let entry = Command::Group(change).encode();
            self.state_bytes += entry.len() as u64;
            let lsn = self.journal.append_state(entry);
            self.node.journaled(lsn, Vec::new());
        }
        Outcome {
            after: self.node.state_lsn(),
            replies,
            notices,
            look_again: moved.into_iter().filter_map(|key| self.log_of(key)).collect(),
            plan_soon,
        }
    }
}

/// One change of the state under way.
#[derive(Debug)]
pub struct Update<'a, J> {
    engine: &'a mut Engine<J>,
    /// The moment of the request.
    pub now: Now,
    gone: Vec<LogId>,
    /// Whether topics have come, gone or grown, or have other queues.
    topics: bool,
}

impl<J: Journal> Update<'_, J> {
    /// The state as it is by now.
    pub fn node(&self) -> &Node {
        &self.engine.node
    }

    /// The state, for decisions that note something volatile.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.engine.node
    }

    /// Applies and journals what was decided.
    pub fn run(&mut self, commands: Vec<Command>) {
        let Engine {
            node,
            journal,
            state_bytes,
            queue_changes,
            ..
        } = &mut *self.engine;
        for command in commands {
            if let Command::SetQueues { decision, .. } = &command {
                *queue_changes.entry(decision.kind).or_default() += 1;
            }
            self.topics |= matches!(
                command,
                Command::CreateTopic { .. }
                    | Command::DeleteTopic { .. }
                    | Command::CreatePartitions { .. }
                    | Command::SetQueues { .. }
            );
            let effects = node.apply(&command);
            self.gone.extend(effects.iter().filter_map(|effect| match effect {
                LogEffect::Drop { log } => Some(*log),
                LogEffect::Start { .. } => None,
            }));
            let entry = command.encode();
            *state_bytes += entry.len() as u64;
            node.journaled(journal.append_state(entry), effects);
        }
    }
}
