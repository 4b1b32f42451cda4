//! A coordinator and client programs with connections, for the tests of who speaks.

use anabranch_wire::ErrorCode;

use super::*;
use crate::cursor::SliceId;
use crate::group::Answer;
use crate::group::api::{Caller, Connection, Heartbeat, JoinGroup, OffsetFetch, SyncGroup, Token, TopicRef};
use crate::group::harness::{Bench, classic, modern};
use crate::group::state::Member;
use crate::ids::TopicId;

/// A client program: its id, its address, what it says about itself, and its connections by number.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) client_id: &'static str,
    pub(super) host: &'static str,
    pub(super) software: Option<ClientSoftware>,
    pub(super) base: u64,
}

impl Client {
    pub(super) fn new(software: &str, client_id: &'static str, base: u64) -> Self {
        let software = software.split_once(' ');
        Self {
            client_id,
            host: "/10.0.0.1",
            software: software.map(|(name, version)| ClientSoftware::new(name, version).unwrap()),
            base,
        }
    }

    /// A request on its connection `number`.
    pub(super) fn on(&self, number: u64) -> Caller {
        Caller {
            client_id: self.client_id.to_owned(),
            host: self.host.to_owned(),
            connection: Connection(self.base + number),
            software: self.software.clone(),
        }
    }
}

/// A coordinator with topic "t" of two partitions.
pub(super) struct Room {
    pub(super) bench: Bench,
    pub(super) t: TopicId,
    pub(super) tokens: u64,
}

impl Room {
    pub(super) fn new() -> Self {
        let bench = Bench::new(&[("t", 2)]);
        let t = bench.topics.id("t");
        Self { bench, t, tokens: 0 }
    }

    /// JoinGroup and SyncGroup; the member id.
    pub(super) fn enter(&mut self, caller: &Caller, mut request: JoinGroup) -> String {
        let mut generation = -1;
        for _ in 0..2 {
            self.tokens += 1;
            let mut fresh = [0; 16];
            fresh[..8].copy_from_slice(&self.tokens.to_be_bytes());
            let token = Token(self.tokens);
            let bench = &mut self.bench;
            let effects = bench
                .coordinator
                .join(bench.now, &bench.topics, fresh, token, caller, &request);
            let reply = effects.replies.first().cloned();
            bench.take(effects);
            let Some(Answer::Join(answer)) = reply.map(|reply| reply.answer) else {
                panic!("the broker assigns, so the answer is there at once");
            };
            request.member_id = answer.member_id;
            generation = answer.generation_id;
            if answer.error == ErrorCode::None {
                break;
            }
        }
        self.sync(caller, &request.member_id, generation);
        request.member_id
    }

    pub(super) fn sync(&mut self, caller: &Caller, member: &str, generation_id: i32) {
        let request = SyncGroup {
            group_id: "g".to_owned(),
            generation_id,
            member_id: member.to_owned(),
            ..SyncGroup::default()
        };
        let bench = &mut self.bench;
        let effects = bench
            .coordinator
            .sync(bench.now, &bench.topics, Token(0), caller, &request);
        bench.take(effects);
    }

    pub(super) fn heartbeat(&mut self, caller: &Caller, member: &str) -> ErrorCode {
        let request = Heartbeat {
            group_id: "g".to_owned(),
            generation_id: self.state(member).current.epoch,
            member_id: member.to_owned(),
            instance_id: None,
        };
        let bench = &mut self.bench;
        let (error, effects) = bench
            .coordinator
            .heartbeat(bench.now, &bench.topics, caller, &request);
        bench.take(effects);
        error
    }

    /// A member of the consumer protocol joins.
    pub(super) fn join_consumer(&mut self, caller: &Caller, id: &str) -> i32 {
        let bench = &mut self.bench;
        let request = modern(id, &["t"]);
        let (answer, effects) =
            bench
                .coordinator
                .consumer_heartbeat(bench.now, &bench.topics, [1; 16], caller, &request);
        bench.take(effects);
        answer.unwrap().member_epoch
    }

    pub(super) fn state(&self, member: &str) -> &crate::group::state::MemberState {
        &self.bench.coordinator.groups()["g"].consumer().unwrap().members[member]
    }

    pub(super) fn member(&self, member: &str) -> &Member {
        &self.state(member).member
    }

    /// OffsetFetch of partitions of "t".
    pub(super) fn fetch(&mut self, caller: &Caller, named: Option<&str>, partitions: &[i32]) {
        let request = OffsetFetch {
            group_id: "g".to_owned(),
            member_id: named.map(str::to_owned),
            member_epoch: -1,
            topics: Some(vec![(TopicRef::Name("t".to_owned()), partitions.to_vec())]),
        };
        let bench = &mut self.bench;
        let (answer, effects) = bench
            .coordinator
            .fetch(bench.now, &bench.topics, caller, &request);
        answer.unwrap();
        bench.take(effects);
    }

    /// Who asks for partition 0 of "t": "member", "outsider", or the error to come again.
    pub(super) fn who(&self, caller: &Caller, named: Option<&str>) -> String {
        match self.bench.coordinator.asker("g", caller, named).of(self.t, 0) {
            Identity::Member(id) => id.to_owned(),
            Identity::NotYet(error) => format!("{error:?}"),
            Identity::Outsider => "outsider".to_owned(),
        }
    }

    /// Whether "t" may be divided.
    pub(super) fn verdict(&self) -> Result<(), Ineligible> {
        let bench = &self.bench;
        bench.coordinator.eligibility(&bench.topics, "g", self.t)
    }

    pub(super) fn restart(&mut self) {
        self.bench.restart();
    }
}

pub(super) fn slice(number: u32) -> SliceId {
    SliceId::new(number).unwrap()
}

pub(super) fn range() -> JoinGroup {
    JoinGroup {
        // The oldest that a library without introduction sends.
        version: 2,
        ..classic("", "range", &["t"])
    }
}
