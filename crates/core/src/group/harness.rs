//! Test help: topics, requests in one line, and a coordinator that checks itself at every step.

use bytes::{BufMut, Bytes, BytesMut};

use anabranch_wire::ErrorCode;

pub(crate) use super::harness_topics::TestTopics;
pub(crate) use super::requests::*;
use super::*;
use crate::Refused;
use crate::ids::Now;

/// Subscription bytes of version 1 (0 without owned partitions).
pub(crate) fn subscription(topics: &[&str], owned: &[(&str, &[i32])], user_data: Option<&[u8]>) -> Bytes {
    let mut out = BytesMut::new();
    let string = |out: &mut BytesMut, value: &str| {
        out.put_i16(value.len() as i16);
        out.put_slice(value.as_bytes());
    };
    out.put_i16(1);
    out.put_i32(topics.len() as i32);
    for topic in topics {
        string(&mut out, topic);
    }
    match user_data {
        None => out.put_i32(-1),
        Some(data) => {
            out.put_i32(data.len() as i32);
            out.put_slice(data);
        }
    }
    out.put_i32(owned.len() as i32);
    for (topic, partitions) in owned {
        string(&mut out, topic);
        out.put_i32(partitions.len() as i32);
        for partition in *partitions {
            out.put_i32(*partition);
        }
    }
    out.freeze()
}

/// Reads an assignment of version 0 back.
pub(crate) fn read_assignment(bytes: &Bytes) -> Vec<(String, Vec<i32>)> {
    let int = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut at = 6;
    let mut topics = Vec::new();
    for _ in 0..int(2) {
        let len = usize::from(u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap()));
        let name = String::from_utf8(bytes[at + 2..at + 2 + len].to_vec()).unwrap();
        at += 2 + len;
        let count = int(at) as usize;
        at += 4;
        topics.push((name, (0..count).map(|k| int(at + 4 * k)).collect()));
        at += 4 * count;
    }
    assert_eq!(at + 4, bytes.len(), "no user data, nothing behind");
    topics
}

/// A coordinator with its surroundings, its journal, and the answers it gave.
pub(crate) struct Bench {
    pub(crate) coordinator: Coordinator,
    pub(crate) topics: TestTopics,
    pub(crate) now: Now,
    pub(crate) journal: Vec<GroupChange>,
    pub(crate) replies: Vec<Reply>,
    pub(crate) notices: Vec<Notice>,
    ids: u64,
    tokens: u64,
}

impl Bench {
    pub(crate) fn new(topics: &[(&str, i32)]) -> Self {
        Self::with(GroupSettings::default(), topics)
    }

    pub(crate) fn with(settings: GroupSettings, topics: &[(&str, i32)]) -> Self {
        Self {
            coordinator: Coordinator::new(settings),
            topics: TestTopics::of(topics),
            now: Now {
                mono_ms: 1_000,
                wall_ms: 1_000_000,
            },
            journal: Vec::new(),
            replies: Vec::new(),
            notices: Vec::new(),
            ids: 0,
            tokens: 0,
        }
    }

    /// Takes the effects in, and checks that the state is the fold of the journal.
    pub(crate) fn take(&mut self, effects: Effects) {
        for change in &effects.changes {
            assert_eq!(GroupChange::decode(&change.encode()).as_ref(), Ok(change));
        }
        self.journal.extend(effects.changes);
        self.replies.extend(effects.replies);
        self.notices.extend(effects.notices);
    }

    pub(crate) fn check_fold(&self) {
        let mut replayed = Coordinator::new(GroupSettings::default());
        for change in &self.journal {
            replayed.apply(change);
        }
        assert_eq!(
            replayed.groups(),
            self.coordinator.groups(),
            "the state is the fold of its changes"
        );
        // Replaying over the state it led to changes nothing.
        for change in &self.journal {
            replayed.apply(change);
        }
        assert_eq!(
            replayed.groups(),
            self.coordinator.groups(),
            "changes are idempotent as a run"
        );
        let bytes = self.coordinator.snapshot_encode();
        let restored = Coordinator::snapshot_decode(GroupSettings::default(), &bytes).unwrap();
        assert_eq!(
            restored.groups(),
            self.coordinator.groups(),
            "a snapshot brings everything back"
        );
        assert_eq!(restored.snapshot_encode(), bytes);
    }

    /// Kills and restarts the broker: durable state only.
    pub(crate) fn restart(&mut self) {
        self.check_fold();
        let bytes = self.coordinator.snapshot_encode();
        let settings = self.coordinator.settings().clone();
        self.coordinator = Coordinator::snapshot_decode(settings, &bytes).unwrap();
        self.coordinator.restart_sessions(self.now);
    }

    pub(crate) fn fresh(&mut self) -> [u8; 16] {
        self.ids += 1;
        let mut fresh = [0; 16];
        fresh[8..].copy_from_slice(&self.ids.to_be_bytes());
        fresh
    }

    /// Lets time pass, stopping at each deadline.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        while let Some(at) = self.coordinator.next_deadline().filter(|at| *at <= end) {
            self.step_to(at.max(self.now.mono_ms));
            let effects = self.coordinator.on_time(self.now, &self.topics);
            self.take(effects);
        }
        self.step_to(end);
    }

    fn step_to(&mut self, mono_ms: u64) {
        self.now.wall_ms += (mono_ms - self.now.mono_ms) as i64;
        self.now.mono_ms = mono_ms;
    }

    pub(crate) fn topics_changed(&mut self) {
        let effects = self.coordinator.topics_changed(self.now, &self.topics);
        self.take(effects);
    }

    pub(crate) fn caller() -> Caller {
        Caller {
            client_id: "client".to_owned(),
            host: "/127.0.0.1".to_owned(),
            software: super::elastic::ClientSoftware::new("apache-kafka-java", "4.3.1"),
            ..Caller::default()
        }
    }

    /// The same client, on the connection of that member.
    pub(crate) fn caller_of(member: &str) -> Caller {
        let number = member.bytes().fold(0u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        Caller {
            connection: Connection(number),
            ..Self::caller()
        }
    }

    /// Sends a JoinGroup; its answer may come later.
    pub(crate) fn send_join(&mut self, request: &JoinGroup) -> Token {
        self.tokens += 1;
        let (token, fresh) = (Token(self.tokens), self.fresh());
        let caller = Self::caller_of(&request.member_id);
        let effects = self
            .coordinator
            .join(self.now, &self.topics, fresh, token, &caller, request);
        self.take(effects);
        token
    }

    pub(crate) fn send_sync(&mut self, request: &SyncGroup) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        let effects = self.coordinator.sync(
            self.now,
            &self.topics,
            token,
            &Self::caller_of(&request.member_id),
            request,
        );
        self.take(effects);
        token
    }

    /// The answer under a token, if it has come.
    pub(crate) fn answer(&mut self, token: Token) -> Option<Answer> {
        let at = self.replies.iter().position(|reply| reply.token == token)?;
        Some(self.replies.remove(at).answer)
    }

    pub(crate) fn join_answer(&mut self, token: Token) -> JoinAnswer {
        match self.answer(token) {
            Some(Answer::Join(answer)) => answer,
            other => panic!("expected an answer to JoinGroup, got {other:?}"),
        }
    }

    pub(crate) fn sync_answer(&mut self, token: Token) -> SyncAnswer {
        match self.answer(token) {
            Some(Answer::Sync(answer)) => answer,
            other => panic!("expected an answer to SyncGroup, got {other:?}"),
        }
    }

    pub(crate) fn join(&mut self, request: &JoinGroup) -> JoinAnswer {
        let token = self.send_join(request);
        self.join_answer(token)
    }

    pub(crate) fn sync(&mut self, member: &str, generation_id: i32) -> SyncAnswer {
        let token = self.send_sync(&SyncGroup {
            group_id: "g".to_owned(),
            generation_id,
            member_id: member.to_owned(),
            ..SyncGroup::default()
        });
        self.sync_answer(token)
    }

    pub(crate) fn heartbeat(&mut self, member: &str, generation_id: i32) -> ErrorCode {
        let request = Heartbeat {
            group_id: "g".to_owned(),
            generation_id,
            member_id: member.to_owned(),
            instance_id: None,
        };
        let (error, effects) =
            self.coordinator
                .heartbeat(self.now, &self.topics, &Self::caller_of(member), &request);
        self.take(effects);
        error
    }

    pub(crate) fn leave(&mut self, member: &str, instance: Option<&str>) -> LeaveAnswer {
        let leaver = Leaver {
            member_id: member.to_owned(),
            instance_id: instance.map(str::to_owned),
        };
        let request = LeaveGroup {
            group_id: "g".to_owned(),
            members: vec![leaver],
        };
        let (answer, effects) = self.coordinator.leave(self.now, &self.topics, &request);
        self.take(effects);
        answer
    }

    pub(crate) fn consumer(
        &mut self,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerHeartbeatAnswer, Refused> {
        let (fresh, caller) = (self.fresh(), Self::caller_of(&request.member_id));
        let (answer, effects) =
            self.coordinator
                .consumer_heartbeat(self.now, &self.topics, fresh, &caller, request);
        self.take(effects);
        answer
    }

    pub(crate) fn commit(
        &mut self,
        member: &str,
        epoch: i32,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> ErrorCode {
        let request = OffsetCommit {
            version: 9,
            group_id: "g".to_owned(),
            generation_or_epoch: epoch,
            member_id: member.to_owned(),
            retention_ms: -1,
            topics: vec![(
                TopicRef::Name(topic.to_owned()),
                vec![CommitPartition {
                    partition,
                    offset,
                    leader_epoch: -1,
                    metadata: None,
                }],
            )],
            ..OffsetCommit::default()
        };
        self.send_commit(&request)[0].1[0].1
    }

    pub(crate) fn send_commit(&mut self, request: &OffsetCommit) -> CommitAnswer {
        let (answer, effects) = self.coordinator.commit(
            self.now,
            &self.topics,
            &Self::caller_of(&request.member_id),
            request,
        );
        self.take(effects);
        answer
    }

    /// The committed offset as an outsider sees it.
    pub(crate) fn committed(&mut self, topic: &str, partition: i32) -> i64 {
        let request = OffsetFetch {
            group_id: "g".to_owned(),
            member_epoch: -1,
            topics: Some(vec![(TopicRef::Name(topic.to_owned()), vec![partition])]),
            ..OffsetFetch::default()
        };
        self.fetch(&request).unwrap()[0].1[0].offset
    }

    /// An OffsetFetch by nobody in particular.
    pub(crate) fn fetch(&mut self, request: &OffsetFetch) -> Result<FetchAnswer, ErrorCode> {
        let nobody = Caller {
            connection: Connection(u64::MAX),
            ..Caller::default()
        };
        let (answer, effects) = self.coordinator.fetch(self.now, &self.topics, &nobody, request);
        self.take(effects);
        answer
    }

    /// Joins and syncs in one go: a classic member with one protocol.
    pub(crate) fn enter(
        &mut self,
        member: &str,
        protocol: &str,
        topics: &[&str],
    ) -> (JoinAnswer, SyncAnswer) {
        let joined = self.join(&classic(member, protocol, topics));
        let synced = self.sync(&joined.member_id, joined.generation_id);
        (joined, synced)
    }
}
