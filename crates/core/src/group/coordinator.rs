//! The coordinator: all groups, their deadlines, and the doors through which requests come in.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::ErrorCode;

use super::api::{Answer, JoinAnswer, Reply, SyncAnswer, Token};
use super::change::{GroupChange, Groups, apply};
use super::classic::{Barrier, Phase};
use super::codec::{Decisions, Pools, decode_groups, encode_groups};
use super::consumer::Regexes;
use super::elastic::{Elastic, Identities};
use super::settings::GroupSettings;
use super::state::{Group, Kind};
use super::timers::{TimerKey, TimerKind, Timers};
use super::topics::Topics;
use crate::codec::CodecError;
use crate::config::ConsumerGroupSettings;
use crate::elastic::{DecisionLog, Totals};
use crate::ids::{Now, TopicId};
use crate::limits::{DECISIONS_PER_GROUP_BYTES_MAX, DECISIONS_PER_GROUP_MAX};

/// All groups of the broker.
///
/// The durable part (`groups`) changes only through [`GroupChange`]; everything else is rebuilt after a restart.
#[derive(Debug, Default)]
pub struct Coordinator {
    pub(super) settings: GroupSettings,
    /// Groups with timings of their own for members of the consumer protocol.
    pub(super) own_settings: BTreeMap<String, ConsumerGroupSettings>,
    pub(super) groups: Groups,
    /// Slice ids of partitions that were ever divided. Durable, as the groups are.
    pub(super) slice_ids: Pools,
    /// What the planner decided and refused, by group. Durable, too.
    pub(super) decisions: Decisions,
    pub(super) elastic: Elastic,
    /// What the planner did since the process began.
    pub(super) totals: Totals,
    pub(super) barriers: BTreeMap<String, Barrier>,
    pub(super) timers: Timers,
    pub(super) regexes: Regexes,
    pub(super) identities: Identities,
    /// Notices about subscriptions that were given already: members repeat their JoinGroup.
    pub(super) given: BTreeSet<(String, String)>,
}

/// What a request led to, besides its own answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "changes must be journaled and replies sent"]
pub struct Effects {
    /// To be journaled in this order. The coordinator has made them already; making them again does no harm.
    pub changes: Vec<GroupChange>,
    /// Answers to send, each once the changes up to here are durable: to this request, or to parked ones.
    pub replies: Vec<Reply>,
    /// Worth a line in the log.
    pub notices: Vec<Notice>,
    /// Partitions of which members read other parts than before: fetches that wait there must look again, once the
    /// changes are durable.
    pub moved: BTreeSet<(TopicId, i32)>,
    /// Something happened that the planner is to think about at once: [`Coordinator::plan`].
    pub plan_soon: bool,
}

/// Something an operator should know about a group, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Group id.
    pub group: String,
    /// What happened and why, as a sentence.
    pub text: String,
}

/// One request while it is handled.
pub(super) struct Step<'a> {
    pub(super) now: Now,
    pub(super) topics: &'a dyn Topics,
    pub(super) effects: Effects,
}

impl<'a> Step<'a> {
    pub(super) fn new(now: Now, topics: &'a dyn Topics) -> Self {
        Self {
            now,
            topics,
            effects: Effects::default(),
        }
    }

    pub(super) fn reply_join(&mut self, token: Token, answer: JoinAnswer) {
        self.effects.replies.push(Reply {
            token,
            answer: Answer::Join(answer),
        });
    }

    pub(super) fn reply_sync(&mut self, token: Token, answer: SyncAnswer) {
        self.effects.replies.push(Reply {
            token,
            answer: Answer::Sync(answer),
        });
    }

    pub(super) fn notice(&mut self, group: &str, text: String) {
        self.effects.notices.push(Notice {
            group: group.to_owned(),
            text,
        });
    }
}

impl Coordinator {
    /// A coordinator without groups.
    pub fn new(settings: GroupSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Breaks a rule of divided cursors on purpose, for simulators; see [`crate::cursor::Fault`].
    #[cfg(any(test, feature = "planted-faults"))]
    pub fn plant(&mut self, fault: Option<crate::cursor::Fault>) {
        self.elastic.planted = crate::cursor::Planted::new(fault);
    }

    /// The settings in force.
    pub fn settings(&self) -> &GroupSettings {
        &self.settings
    }

    /// Changes the settings; running deadlines keep their length.
    pub fn set_settings(&mut self, settings: GroupSettings) {
        self.settings = settings;
    }

    /// Gives one group timings of its own, or takes them back; running deadlines keep their length.
    pub fn set_own_settings(&mut self, group: &str, settings: Option<ConsumerGroupSettings>) {
        match settings {
            Some(settings) => self.own_settings.insert(group.to_owned(), settings),
            None => self.own_settings.remove(group),
        };
    }

    /// Timings of the members of a group that speak the consumer protocol.
    pub(super) fn timings(&self, group: &str) -> ConsumerGroupSettings {
        let of_broker = ConsumerGroupSettings {
            session_timeout_ms: self.settings.consumer_session_timeout_ms,
            heartbeat_interval_ms: self.settings.heartbeat_interval_ms,
        };
        self.own_settings.get(group).copied().unwrap_or(of_broker)
    }

    /// The durable state of all groups, in the order of their ids.
    pub fn groups(&self) -> &BTreeMap<String, Group> {
        &self.groups
    }

    /// Makes a change from the journal. Pure and total; the live path goes through the same function.
    pub fn apply(&mut self, change: &GroupChange) {
        apply(&mut self.groups, change);
        match change {
            GroupChange::SliceIds {
                topic,
                partition,
                changes,
                ..
            } => {
                let pool = self.slice_ids.entry((*topic, *partition)).or_default();
                changes.iter().for_each(|change| pool.apply(change));
            }
            GroupChange::Decided { group, decision } => {
                self.decision_log(group).decide((**decision).clone());
            }
            GroupChange::Refused { group, refusal } => {
                self.decision_log(group).refuse((**refusal).clone());
            }
            GroupChange::Settled {
                group,
                number,
                settled,
            } => {
                if let Some(log) = self.decisions.get_mut(group) {
                    log.settle(*number, *settled);
                }
            }
            GroupChange::Gone { group } => {
                self.decisions.remove(group);
                self.elastic.group_gone(group);
            }
            _ => {}
        }
    }

    fn decision_log(&mut self, group: &str) -> &mut DecisionLog {
        let fresh = || DecisionLog::new(DECISIONS_PER_GROUP_MAX, DECISIONS_PER_GROUP_BYTES_MAX);
        self.decisions.entry(group.to_owned()).or_insert_with(fresh)
    }

    /// Makes a change and notes it for the journal.
    pub(super) fn record(&mut self, step: &mut Step<'_>, change: GroupChange) {
        self.identities.observe(&self.groups, &change);
        self.count(&change);
        self.apply(&change);
        step.effects.changes.push(change);
    }

    /// All groups as bytes, for a snapshot.
    pub fn snapshot_encode(&self) -> Vec<u8> {
        encode_groups(&self.groups, &self.slice_ids, &self.decisions)
    }

    /// A coordinator with the groups of a snapshot. Sessions do not run yet: see [`Coordinator::restart_sessions`].
    pub fn snapshot_decode(settings: GroupSettings, bytes: &[u8]) -> Result<Self, CodecError> {
        let (groups, slice_ids, decisions) = decode_groups(bytes)?;
        Ok(Self {
            settings,
            groups,
            slice_ids,
            decisions,
            ..Self::default()
        })
    }

    /// After a recovery: every member gets its session anew at full length, nobody is expelled and nothing is
    /// assigned. Members that were releasing partitions get their time for that anew as well.
    pub fn restart_sessions(&mut self, now: Now) {
        self.timers = Timers::default();
        self.barriers.clear();
        self.identities = Identities::after_restart(&self.groups);
        let mut members = Vec::new();
        for (id, group) in &self.groups {
            match &group.kind {
                Kind::Simple => {}
                Kind::Consumer(consumer) => {
                    members.extend(consumer.members.keys().map(|member| (id.clone(), member.clone())));
                }
                Kind::Classic(generation) => {
                    let barrier = Barrier::restored(generation);
                    for (member, seat) in &generation.members {
                        let key = TimerKey::new(id, member, TimerKind::Session);
                        self.timers
                            .set(key, now.mono_ms.saturating_add(to_ms(seat.session_timeout_ms)));
                    }
                    if barrier.phase == Phase::Joining {
                        let key = TimerKey::new(id, "", TimerKind::JoinPhase);
                        self.timers
                            .set(key, now.mono_ms.saturating_add(barrier.rebalance_timeout_ms()));
                    }
                    if !barrier.is_deserted() {
                        self.barriers.insert(id.clone(), barrier);
                    }
                }
            }
        }
        for (group, member) in members {
            self.restart_session(now.mono_ms, &group, &member);
            self.watch_release(now.mono_ms, &group, &member);
        }
    }

    /// Topics were created, deleted or grew: subscriptions are looked at anew. Call it after every such change.
    pub fn topics_changed(&mut self, now: Now, topics: &dyn Topics) -> Effects {
        let mut step = Step::new(now, topics);
        self.replan_after_topics(&mut step);
        self.drop_cursors_of_deleted_topics(&mut step);
        step.effects
    }

    /// When [`Coordinator::on_time`] wants to be called next, monotonic milliseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Lets everything happen whose time has come.
    pub fn on_time(&mut self, now: Now, topics: &dyn Topics) -> Effects {
        let mut step = Step::new(now, topics);
        let mut expelled: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        while let Some(key) = self.timers.pop_due(now.mono_ms) {
            if self.barriers.contains_key(&key.group) {
                self.barrier_timer(&mut step, &key);
            } else {
                step.notice(
                    &key.group,
                    format!("member {} is expelled: {}", key.member, reason(key.kind)),
                );
                expelled.entry(key.group).or_default().insert(key.member);
            }
        }
        for (group, members) in expelled {
            self.remove_members(&mut step, &group, &members);
        }
        step.effects
    }

    /// Refuses group ids that Kafka or our bounds refuse.
    pub(super) fn check_group_id(&self, group: &str) -> Result<(), ErrorCode> {
        if group.is_empty() || group.len() > self.settings.group_id_bytes_max {
            return Err(ErrorCode::InvalidGroupId);
        }
        Ok(())
    }

    /// Gives a notice unless it was given already.
    pub(super) fn notice_once(&mut self, step: &mut Step<'_>, group: &str, text: String) {
        if self.given.len() >= NOTICES_REMEMBERED_MAX {
            self.given.clear();
        }
        if self.given.insert((group.to_owned(), text.clone())) {
            step.notice(group, text);
        }
    }

    /// Whether one more group may exist.
    pub(super) fn has_room_for(&self, group: &str) -> bool {
        self.groups.contains_key(group) || self.groups.len() < self.settings.groups_max
    }
}

/// Notices that are remembered as given; more are forgotten, and may come again.
const NOTICES_REMEMBERED_MAX: usize = 1_024;

fn reason(kind: TimerKind) -> &'static str {
    match kind {
        TimerKind::Session => "it was not heard of for its session timeout",
        TimerKind::Release => "it did not release its partitions within its rebalance timeout",
        TimerKind::Rejoin => "it was told to rejoin and did not within its rebalance timeout",
        TimerKind::Sync => "it joined and did not sync within its rebalance timeout",
        TimerKind::Pending => "it did not come back with the member id it was given",
        TimerKind::JoinPhase | TimerKind::SyncPhase => "the rebalance timeout has passed",
    }
}

/// Milliseconds from a protocol field; negative ones count as 0.
pub(super) fn to_ms(value: i32) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
