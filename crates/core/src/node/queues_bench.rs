//! Test help: a node with a topic in queue mode, its journal, and what the owner of a node does.

use super::tests::{apply_all, at, fresh, node, options, wish};
use super::*;
use crate::group::{Caller, CommitPartition, ConsumerHeartbeat, OffsetCommit};
use crate::queues::Queues;

/// What a journal has.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    State(Vec<u8>),
    Batch(LogId, Offset, BatchFacts),
}

/// A node with its journal, and what the owner of a node does.
pub(super) struct Bench {
    pub(super) node: Node,
    pub(super) journal: Vec<Entry>,
    pub(super) now_ms: u64,
}

impl Bench {
    /// A topic "orders" in queue mode with so many partitions.
    pub(super) fn new(partitions: i32, configs: &[(&str, &str)]) -> Self {
        let mut bench = Self {
            node: node(&[]),
            journal: Vec::new(),
            now_ms: 0,
        };
        let all = [&[("elastic.mode", "queues")], configs].concat();
        let topic = CreateTopic {
            replication_factor: -1,
            ..wish("orders", partitions, &all)
        };
        let commands = bench.node.create_topic(at(0), &topic, fresh(1)).unwrap();
        bench.run(&commands);
        bench
    }

    pub(super) fn run(&mut self, commands: &[Command]) {
        apply_all(&mut self.node, commands);
        let bytes = commands.iter().map(|command| Entry::State(command.encode()));
        self.journal.extend(bytes);
    }

    pub(super) fn id(&self) -> TopicId {
        self.node.topic_by_name("orders").unwrap().id
    }

    pub(super) fn queues(&self) -> &Queues {
        &self.node.state().queues()[&self.id()]
    }

    pub(super) fn counts(&self) -> (u32, u32) {
        (self.queues().write, self.queues().read)
    }

    pub(super) fn log(&self, partition: i32) -> LogId {
        self.node.topic_by_name("orders").unwrap().log(partition).unwrap()
    }

    pub(super) fn end(&self, partition: i32) -> Offset {
        self.node.log(self.log(partition)).unwrap().next_offset()
    }

    /// What the server's chore does.
    pub(super) fn tick(&mut self) {
        let now = at(self.now_ms);
        loop {
            let due = self.node.queues_due(now);
            if due.is_empty() {
                break;
            }
            self.run(&due);
            let _ = self.node.topics_changed(now);
        }
        let (groups, topics) = self.node.groups_mut();
        let _ = groups.recheck_queues(now, &topics);
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.tick();
    }

    /// What the engine does with a batch. The answer's offset, or whether it was here already.
    pub(super) fn produce(
        &mut self,
        partition: i32,
        facts: &BatchFacts,
    ) -> Result<(bool, Offset), AppendError> {
        let log = self.log(partition);
        match self.node.append(at(self.now_ms), log, facts)? {
            Append::Duplicate { base_offset, .. } => Ok((false, base_offset)),
            Append::New {
                log: home,
                base_offset,
                ..
            } => {
                if home != log && facts.producer_id >= 0 {
                    let addressed = Command::Addressed { log: home, partition };
                    self.journal.push(Entry::State(addressed.encode()));
                }
                self.journal.push(Entry::Batch(home, base_offset, *facts));
                let lsn = Lsn(self.node.state_lsn().0 + self.journal.len() as u64);
                self.node.appended(log, lsn);
                self.node.appended(home, lsn);
                let end = self.node.log(home).unwrap().next_offset();
                let _ = self.node.committed(lsn, &[(home, end)]);
                Ok((true, base_offset))
            }
        }
    }

    /// Where the published design stores a batch for an id.
    pub(super) fn home(&self, id: i32) -> i32 {
        let write = self.counts().0.cast_signed();
        if id < write { id } else { id % write }
    }

    /// The partition in which the newest batch is stored.
    pub(super) fn stored_in(&self) -> Option<i32> {
        let batches = self.journal.iter().rev().filter_map(|entry| match entry {
            Entry::Batch(log, ..) => self.node.log(*log),
            Entry::State(_) => None,
        });
        batches.map(Log::partition).next()
    }

    pub(super) fn set(&mut self, key: &str, value: &str) {
        let mut configs = self.node.topic_by_name("orders").unwrap().configs.clone();
        configs.insert(key.to_owned(), value.to_owned());
        let resource = Resource::Topic("orders".to_owned());
        self.run(&[Command::SetConfigs { resource, configs }]);
    }

    pub(super) fn beat(&mut self, group: &str, member: &str, epoch: i32) {
        let beat = ConsumerHeartbeat {
            version: 1,
            group_id: group.to_owned(),
            member_id: member.to_owned(),
            member_epoch: epoch,
            rebalance_timeout_ms: 60_000,
            topic_names: (epoch == 0).then(|| vec!["orders".to_owned()]),
            owned: (epoch == 0).then(Vec::new),
            ..ConsumerHeartbeat::default()
        };
        let (groups, topics) = self.node.groups_mut();
        let now = at(self.now_ms);
        let (answer, _) = groups.consumer_heartbeat(now, &topics, fresh(7), &Caller::default(), &beat);
        assert!(answer.is_ok(), "{answer:?}");
        self.tick();
    }

    pub(super) fn join(&mut self, group: &str, members: &[&str]) {
        members.iter().for_each(|member| self.beat(group, member, 0));
    }

    pub(super) fn leave(&mut self, group: &str, members: &[&str]) {
        members.iter().for_each(|member| self.beat(group, member, -1));
    }

    /// A member commits the end of some partitions.
    pub(super) fn commit(&mut self, group: &str, member: &str, partitions: impl IntoIterator<Item = i32>) {
        let partition = |partition| CommitPartition {
            partition,
            offset: self.end(partition),
            leader_epoch: -1,
            metadata: None,
        };
        let consumer = self.node.groups().groups()[group].consumer().unwrap();
        let request = OffsetCommit {
            version: 9,
            group_id: group.to_owned(),
            generation_or_epoch: consumer.members[member].current.epoch,
            member_id: member.to_owned(),
            instance_id: None,
            retention_ms: -1,
            topics: vec![(
                crate::group::TopicRef::Name("orders".to_owned()),
                partitions.into_iter().map(partition).collect(),
            )],
        };
        let now = at(self.now_ms);
        let (groups, topics) = self.node.groups_mut();
        let (answer, _) = groups.commit(now, &topics, &Caller::default(), &request);
        assert_eq!(answer[0].1[0].1, ErrorCode::None);
        self.tick();
    }

    /// What the members of a group are to hold, in the order of their ids.
    pub(super) fn targets(&self, group: &str) -> Vec<Vec<i32>> {
        let consumer = self.node.groups().groups()[group].consumer().unwrap();
        let of = |member: &crate::group::state::MemberState| {
            let partitions = member.target.get(&self.id());
            partitions.into_iter().flatten().copied().collect()
        };
        consumer.members.values().map(of).collect()
    }

    /// The node that a restart makes of the journal.
    pub(super) fn replayed(&self) -> Node {
        let mut node = Node::new(options(&[])).unwrap();
        for entry in &self.journal {
            match entry {
                Entry::State(bytes) => node.replay_state(bytes).unwrap(),
                Entry::Batch(log, base, facts) => node.replay_batch(*log, *base, facts).unwrap(),
            }
        }
        node
    }
}
