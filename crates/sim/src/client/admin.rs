//! The administrator: creates, deletes and grows topics, changes retention, deletes records, and commits, sets back and
//! deletes the offsets of groups without members. One thing after the other, all on one connection.

use std::collections::BTreeMap;

use anabranch_core::group::{CommitPartition, OffsetCommit, TopicRef};
use anabranch_core::node::{CreateTopic, QueueOrder};
use anabranch_wire::ErrorCode;

use super::{Client, Seat};
use crate::message::{Answer, Request, Tp};
use crate::net::{CallId, Line};
use crate::oracle::commits::{Key, NONE};
use crate::oracle::topics::Change;
use crate::run::Ctx;
use crate::sights::Sight;

const ACT: u32 = 0;

/// Topics: what may happen to each.
pub const STEADY: &str = "steady";
/// Gets retention by size, and records deleted.
pub const SHRINKING: &str = "shrinking";
/// Gets retention by time.
pub const AGEING: &str = "ageing";
/// Is deleted and made anew.
pub const FLEETING: &str = "fleeting";
/// Is in queue mode, in some runs.
pub const QUEUED: &str = "queued";
/// All others.
pub const TOPICS: [&str; 4] = [STEADY, SHRINKING, AGEING, FLEETING];
/// A group that nobody is a member of.
pub const LONELY_GROUP: &str = "lonely";

/// Most partitions of a topic.
const PARTITIONS_MAX: i32 = 5;

#[derive(Clone, Debug)]
enum Deed {
    Topic { name: String, change: Change },
    Records,
    Offset { key: Key, value: i64, step: u64 },
    Queues,
}

/// The administrator.
#[derive(Debug)]
pub struct Admin {
    seat: Seat,
    deed: Option<(CallId, Deed)>,
    groups: Vec<String>,
    /// Topics that were deleted once.
    deleted: BTreeMap<String, u32>,
    settled: bool,
    /// Groups divide partitions here: there are few of them.
    is_elastic: bool,
    /// A topic is in queue mode.
    has_queues: bool,
}

impl Admin {
    /// The administrator, who may also set back these groups.
    pub fn new(index: usize, groups: Vec<String>, is_elastic: bool, has_queues: bool) -> Self {
        Self {
            seat: Seat::new(index),
            deed: None,
            groups,
            deleted: BTreeMap::new(),
            settled: false,
            is_elastic,
            has_queues,
        }
    }

    fn rest(&mut self, ctx: &mut Ctx<'_>, ms_max: u64) {
        let pause_ms = ctx.world.rng.between(1, ms_max);
        self.seat.wake_in(ctx, pause_ms, ACT);
    }

    fn act(&mut self, ctx: &mut Ctx<'_>) {
        ctx.observe_topics();
        let missing = TOPICS
            .iter()
            .find(|name| ctx.oracle.replay.node().topic_by_name(name).is_none());
        if let Some(name) = missing {
            return self.create(ctx, name);
        }
        if self.has_queues && ctx.oracle.replay.node().topic_by_name(QUEUED).is_none() {
            let partitions = ctx.world.rng.between(2, 6) as i32;
            return self.topic(ctx, QUEUED, Change::CreateQueued(partitions));
        }
        if self.settled {
            return;
        }
        if self.has_queues && ctx.world.rng.percent(20) {
            return self.steer_queues(ctx);
        }
        let deserted = |group: &&String| {
            let found = ctx.oracle.replay.groups().groups().get(*group);
            found.is_some_and(|group| group.is_empty() && !group.cursors.is_empty())
        };
        if let Some(group) = self.groups.iter().find(deserted).cloned()
            && ctx.world.rng.percent(30)
        {
            return self.set_back(ctx, group);
        }
        match ctx.world.rng.below(11) {
            0 => self.topic(ctx, FLEETING, Change::Delete),
            1 | 2 => self.grow(ctx),
            3 => self.alter(ctx),
            4..7 => self.delete_records(ctx),
            7 => self.delete_offset(ctx),
            _ => self.commit_lonely(ctx),
        }
    }

    fn topic(&mut self, ctx: &mut Ctx<'_>, name: &str, change: Change) {
        let owned = name.to_owned();
        let request = match &change {
            Change::Create(partitions) => Request::CreateTopic(CreateTopic {
                name: owned,
                partitions: *partitions,
                replication_factor: -1,
                ..CreateTopic::default()
            }),
            Change::CreateQueued(partitions) => Request::CreateTopic(CreateTopic {
                name: owned,
                partitions: *partitions,
                replication_factor: -1,
                configs: vec![("elastic.mode".to_owned(), Some("queues".to_owned()))],
                ..CreateTopic::default()
            }),
            Change::Delete => Request::DeleteTopic { name: owned },
            Change::Grow(count) => Request::CreatePartitions {
                name: owned,
                count: *count,
            },
            Change::Set(key, value) => {
                let key = match key.as_str() {
                    "elastic.mode" => "elastic.mode",
                    "retention.ms" => "retention.ms",
                    _ => "retention.bytes",
                };
                Request::AlterConfig {
                    topic: owned,
                    key,
                    value: value.clone(),
                }
            }
        };
        ctx.oracle.topics.began(name, change.clone());
        let call = self.seat.send(ctx, Line::Group, request);
        self.deed = Some((
            call,
            Deed::Topic {
                name: name.to_owned(),
                change,
            },
        ));
    }

    fn create(&mut self, ctx: &mut Ctx<'_>, name: &str) {
        let most = if self.is_elastic && ctx.world.rng.percent(75) {
            1
        } else {
            3
        };
        let partitions = ctx.world.rng.between(1, most) as i32;
        self.topic(ctx, name, Change::Create(partitions));
    }

    fn grow(&mut self, ctx: &mut Ctx<'_>) {
        let Some(name) = ctx.world.rng.pick(&TOPICS).copied() else {
            return self.rest(ctx, 100);
        };
        let partitions = ctx
            .oracle
            .replay
            .node()
            .topic_by_name(name)
            .map_or(0, anabranch_core::meta::Topic::partitions);
        let is_enough = self.is_elastic && !ctx.world.rng.percent(10);
        if partitions >= PARTITIONS_MAX || is_enough {
            return self.rest(ctx, 100);
        }
        self.topic(ctx, name, Change::Grow(partitions + 1));
    }

    fn alter(&mut self, ctx: &mut Ctx<'_>) {
        let (name, key, value) = if ctx.world.rng.percent(50) {
            (SHRINKING, "retention.bytes", ctx.world.rng.between(1_000, 30_000))
        } else {
            (AGEING, "retention.ms", ctx.world.rng.between(5_000, 200_000))
        };
        let value = ctx.world.rng.percent(80).then(|| value.to_string());
        self.topic(ctx, name, Change::Set(key.to_owned(), value));
    }

    /// Another number of queues, no longer waiting, more partitions, another mode.
    fn steer_queues(&mut self, ctx: &mut Ctx<'_>) {
        let topic = ctx.oracle.replay.node().topic_by_name(QUEUED);
        let partitions = topic.map_or(0, anabranch_core::meta::Topic::partitions);
        let order = match ctx.world.rng.below(10) {
            0..3 => {
                let wish = ctx.world.rng.between(1, 6) as u32;
                QueueOrder::Wish(Some(wish))
            }
            3..6 => QueueOrder::Wish(None),
            6..8 => QueueOrder::Force,
            8 if partitions < PARTITIONS_MAX => {
                return self.topic(ctx, QUEUED, Change::Grow(partitions + 1));
            }
            _ => {
                let modes = [Some("queues"), Some("queues"), Some("off"), None];
                let mode = ctx.world.rng.pick(&modes).copied().flatten().map(str::to_owned);
                return self.topic(ctx, QUEUED, Change::Set("elastic.mode".to_owned(), mode));
            }
        };
        let request = Request::OrderQueues {
            topic: QUEUED.to_owned(),
            order,
        };
        let call = self.seat.send(ctx, Line::Group, request);
        self.deed = Some((call, Deed::Queues));
    }

    /// A partition of one of these topics.
    fn partition(&self, ctx: &mut Ctx<'_>, names: &[&str]) -> Option<Tp> {
        let name = ctx.world.rng.pick(names).copied()?;
        let topic = ctx.oracle.replay.node().topic_by_name(name)?;
        let (id, partitions) = (topic.id, topic.partitions());
        Some((id, ctx.world.rng.below(partitions as u64) as i32))
    }

    fn delete_records(&mut self, ctx: &mut Ctx<'_>) {
        let Some(tp) = self.partition(ctx, &[STEADY, SHRINKING, FLEETING]) else {
            return self.rest(ctx, 100);
        };
        let node = ctx.oracle.replay.node();
        let log = node
            .topic_by_id(tp.0)
            .and_then(|topic| topic.log(tp.1))
            .and_then(|log| node.log(log));
        let (start, end) = log.map_or((0, 0), |log| (log.start(), log.next_offset()));
        let offset = if ctx.world.rng.percent(10) {
            -1
        } else {
            ctx.world.rng.between(start as u64, end as u64) as i64
        };
        let call = self
            .seat
            .send(ctx, Line::Group, Request::DeleteRecords { tp, offset });
        self.deed = Some((call, Deed::Records));
    }

    fn commit(&mut self, ctx: &mut Ctx<'_>, key: Key, value: i64) {
        let step = ctx.world.step();
        let partition = CommitPartition {
            partition: key.1.1,
            offset: value,
            leader_epoch: -1,
            metadata: None,
        };
        let request = OffsetCommit {
            version: 10,
            group_id: key.0.clone(),
            generation_or_epoch: -1,
            retention_ms: -1,
            topics: vec![(TopicRef::Id(key.1.0), vec![partition])],
            ..OffsetCommit::default()
        };
        ctx.oracle.commits.began(key.clone(), value, step);
        let call = self.seat.send(ctx, Line::Group, Request::OffsetCommit(request));
        self.deed = Some((call, Deed::Offset { key, value, step }));
    }

    fn commit_lonely(&mut self, ctx: &mut Ctx<'_>) {
        let Some(tp) = self.partition(ctx, &TOPICS) else {
            return self.rest(ctx, 100);
        };
        let value = ctx.world.rng.between(0, 1_000) as i64;
        self.commit(ctx, (LONELY_GROUP.to_owned(), tp), value);
    }

    /// Sets a position of a group back; refused if members have come meanwhile.
    fn set_back(&mut self, ctx: &mut Ctx<'_>, group: String) {
        let Some(tp) = self.partition(ctx, &TOPICS) else {
            return self.rest(ctx, 100);
        };
        let found = ctx.oracle.replay.groups().groups().get(&group);
        let Some(cursor) = found.and_then(|group| group.cursors.get(&tp)) else {
            return self.rest(ctx, 100);
        };
        let highest = cursor.outside_view(None).offset;
        let value = ctx.world.rng.between(0, u64::try_from(highest).unwrap_or(0)) as i64;
        self.commit(ctx, (group, tp), value);
    }

    fn delete_offset(&mut self, ctx: &mut Ctx<'_>) {
        let Some(tp) = self.partition(ctx, &TOPICS) else {
            return self.rest(ctx, 100);
        };
        let Some(topic) = ctx
            .oracle
            .replay
            .node()
            .topic_by_id(tp.0)
            .map(|topic| topic.name.clone())
        else {
            return self.rest(ctx, 100);
        };
        let key = (LONELY_GROUP.to_owned(), tp);
        let step = ctx.world.step();
        ctx.oracle.commits.began(key.clone(), NONE, step);
        let request = Request::OffsetDelete {
            group: key.0.clone(),
            topic,
            partitions: vec![tp.1],
        };
        let call = self.seat.send(ctx, Line::Group, request);
        self.deed = Some((
            call,
            Deed::Offset {
                key,
                value: NONE,
                step,
            },
        ));
    }

    fn saw(&mut self, ctx: &mut Ctx<'_>, name: &str, change: &Change) {
        match change {
            Change::Delete => {
                ctx.saw(Sight::TopicDeleted);
                self.deleted.insert(name.to_owned(), 1);
            }
            Change::Create(_) if self.deleted.contains_key(name) => ctx.saw(Sight::TopicReborn),
            Change::Grow(_) => ctx.saw(Sight::TopicGrown),
            Change::Set(key, _) if key == "elastic.mode" => ctx.saw(Sight::QueueModeLeft),
            _ => {}
        }
    }

    fn done(&mut self, ctx: &mut Ctx<'_>, deed: Deed, answer: Option<&Answer>) {
        let error = match answer {
            Some(Answer::Refused(error)) => Some(*error),
            Some(Answer::Committed(topics)) => topics
                .iter()
                .flat_map(|(_, all)| all)
                .map(|(_, error)| *error)
                .next(),
            Some(_) => Some(ErrorCode::None),
            None => None,
        };
        match deed {
            Deed::Topic { name, change } => {
                ctx.oracle.topics.ended(error.map(ErrorCode::is_ok));
                if error == Some(ErrorCode::None) {
                    self.saw(ctx, &name, &change);
                }
            }
            Deed::Offset { key, value, step } => match error {
                Some(error) if error.is_ok() => {
                    ctx.oracle.commits.ended(&key, value, step, ctx.world.step());
                    let lonely = key.0 == LONELY_GROUP;
                    match (lonely, value) {
                        (_, NONE) => ctx.saw(Sight::OffsetsDeleted),
                        (false, _) => ctx.saw(Sight::OffsetsReset),
                        _ => {}
                    }
                }
                Some(_) => ctx.oracle.commits.refused(&key, value, step),
                None => {}
            },
            Deed::Records | Deed::Queues => {}
        }
    }
}

impl Client for Admin {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.rest(ctx, 1);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _what: u32) {
        if self.deed.is_none() {
            self.act(ctx);
        }
    }

    fn answer(&mut self, ctx: &mut Ctx<'_>, _line: Line, call: CallId, answer: Option<Answer>) {
        let Some((_, deed)) = self.deed.take_if(|(own, _)| *own == call) else {
            return;
        };
        self.done(ctx, deed, answer.as_ref());
        self.rest(ctx, 700);
    }

    fn settle(&mut self, _ctx: &mut Ctx<'_>) {
        self.settled = true;
    }

    /// Its memory is the book of the oracles: it only loses its connections.
    fn die(&mut self, ctx: &mut Ctx<'_>) {
        ctx.cut((self.seat.index, Line::Group));
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}
