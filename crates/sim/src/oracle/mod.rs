//! The oracles: one file per invariant, each with the sentence that it stands for.
//!
//! They are told what clients did and learned, and what the broker showed, and compare that with what may be. An
//! outcome is ok, failed or *unknown*; what is unknown may have happened, or may happen yet, and is never taken for
//! failed. The first violation ends the run.
//!
//! | file | invariant |
//! |---|---|
//! | `durability` | an acknowledged record survives, where it was told |
//! | `agreement` | one offset, one value |
//! | `order` | what is sent later comes later |
//! | `idempotence` | once each, in order, without a hole |
//! | `ledger` | nothing invented, nothing foreign, nothing refused |
//! | `watermark` | the high watermark never goes back |
//! | `log_start` | deletion only when asked for, or due |
//! | `commits` | acknowledged commits stay, and go forward |
//! | `topics` | acknowledged changes of topics stay |
//! | `ownership` | one owner at a time; nobody else commits what it owns |
//! | `delivery` | at least once; and all of it, once faults have healed |
//! | `epochs` | epochs grow |
//! | `producer_ids` | unique for ever |
//! | `replay` | recovery is a function of the journal; what was committed is in it |
//! | `queues` | queue mode: W <= R; nothing is stored elsewhere, nothing goes unread; the counts settle |
//!
//! Of groups whose members share a partition, by the numbers of the design's invariants; `watch` feeds them what is durable,
//! `truth` knows what the logs hold:
//!
//! | file | invariant |
//! |---|---|
//! | `slots` | 1: every slot once |
//! | `progress` | 2: at least once; positions go forward, divisions begin and end where they are exact |
//! | `work` | 3: a slot's records in order, one member at a time |
//! | `slices`, `rested` | 4: ids are durable before they are seen, and grow; a slice is read as it is |
//! | `strangers` | who cannot live with shares stays out of it |
//! | `outside` | 5: outsiders see a plain offset, the lowest |
//! | `agreement`, `durability`, and the bytes below | 6 and 7: the log stays as it is, also for those who read slices |

pub mod agreement;
pub mod batches;
pub mod commits;
pub mod delivery;
pub mod durability;
pub mod epochs;
pub mod idempotence;
pub mod ledger;
pub mod log_start;
mod members;
pub mod order;
pub mod outside;
pub mod ownership;
pub mod producer_ids;
mod programs;
pub mod progress;
pub mod queues;
pub mod replay;
pub mod rested;
pub mod slices;
pub mod slots;
pub mod story;
pub mod strangers;
pub mod topics;
pub mod truth;
pub mod watch;
pub mod watermark;
pub mod work;

use anabranch_core::ids::TopicId;
use anabranch_core::node::Node;
use anabranch_wire::batch::{BatchHeader, ProduceLimits, check_produced, patch};
use bytes::Bytes;

use crate::message::Tp;
use crate::record::{self, Fate, RecordId, Sent};
use crate::sights::Sight;
use crate::world::World;
use anabranch_core::cursor::{SliceId, SliceOffset};
use commits::Key;
use durability::Audit;

/// What must not happen has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, as a sentence.
    pub invariant: &'static str,
    /// What was seen.
    pub detail: String,
    /// The group and partition that it is about, if it is about one.
    pub about: Option<Key>,
}

impl Violation {
    /// A violation of an invariant.
    pub fn new(invariant: &'static str, detail: String) -> Self {
        Self {
            invariant,
            detail,
            about: None,
        }
    }

    /// It is about this group and partition.
    pub fn about(self, key: &Key) -> Self {
        Self {
            about: Some(key.clone()),
            ..self
        }
    }
}

/// Where in the log a position is, whether a client names it plain or in a slice.
fn log_offset(wire: i64) -> i64 {
    SliceOffset::from_wire(wire).map_or(wire, SliceOffset::offset)
}

/// The slice that it is in; none for a plain one.
pub(crate) fn slice_of(wire: i64) -> Option<SliceId> {
    SliceOffset::from_wire(wire)?.slice()
}

/// The judgement of an oracle.
pub type Verdict = Result<(), Violation>;

/// The sentence about batches as bytes.
const BYTES: &str = "a batch is stored and served as it was sent, but for offset and epoch";
/// The sentence about readers.
const STEADY: &str = "a reader sees every record once, in the order of offsets";

/// All of them.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the oracle of the module of its name")]
pub struct Oracles {
    pub batches: batches::Batches,
    pub ledger: ledger::Ledger,
    pub agreement: agreement::Agreement,
    pub durability: durability::Durability,
    pub order: order::Order,
    pub watermark: watermark::Watermark,
    pub log_start: log_start::LogStart,
    pub commits: commits::Commits,
    pub topics: topics::Topics,
    pub ownership: ownership::Ownership,
    pub delivery: delivery::Delivery,
    pub epochs: epochs::Epochs,
    pub producer_ids: producer_ids::ProducerIds,
    pub replay: replay::Replay,
    pub progress: progress::Progress,
    pub work: work::Works,
    pub slices: slices::Slices,
    pub outside: outside::Outside,
    pub story: story::Story,
    pub strangers: strangers::Strangers,
    pub queues: queues::Queues,
    /// The step of the run.
    pub step: u64,
    sights: Vec<Sight>,
    violation: Option<Violation>,
}

/// What a producer is about to send.
#[derive(Clone, Debug)]
pub struct Intent<'a> {
    /// Its session.
    pub session: u64,
    /// Whether it is idempotent.
    pub idempotent: bool,
    /// Topic name.
    pub topic: &'a str,
    /// How far its clock is ahead, milliseconds.
    pub clock_ahead_ms: i64,
    /// Topic id, if it names the topic so.
    pub id: Option<TopicId>,
    /// Partition.
    pub partition: i32,
    /// Ordinal of the first record.
    pub ordinal: u64,
}

impl Oracles {
    /// The oracles of a run that begins with an empty folder, whose state is `node`.
    pub fn new(node: Node) -> Self {
        Self {
            batches: batches::Batches::default(),
            ledger: ledger::Ledger::default(),
            agreement: agreement::Agreement::default(),
            durability: durability::Durability::default(),
            order: order::Order::default(),
            watermark: watermark::Watermark::default(),
            log_start: log_start::LogStart::default(),
            commits: commits::Commits::default(),
            topics: topics::Topics::default(),
            ownership: ownership::Ownership::default(),
            delivery: delivery::Delivery::default(),
            epochs: epochs::Epochs::default(),
            producer_ids: producer_ids::ProducerIds::default(),
            replay: replay::Replay::new(node),
            progress: progress::Progress::default(),
            work: work::Works::default(),
            slices: slices::Slices::default(),
            outside: outside::Outside::default(),
            story: story::Story::default(),
            strangers: strangers::Strangers::default(),
            queues: queues::Queues::default(),
            step: 0,
            sights: Vec::new(),
            violation: None,
        }
    }

    /// Takes a judgement in. The first violation counts.
    pub fn judge(&mut self, verdict: Verdict) {
        if let (Err(violation), None) = (verdict, &self.violation) {
            self.violation = Some(violation);
        }
    }

    /// The first violation, if there was one.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Numbers for records that are about to be sent.
    pub fn sending(&mut self, world: &World, intent: &Intent<'_>, count: u64) -> Vec<RecordId> {
        let sent = |n| Sent {
            session: intent.session,
            idempotent: intent.idempotent,
            topic: intent.topic.to_owned(),
            id: intent.id,
            partition: intent.partition,
            ordinal: intent.ordinal + n,
            step: world.step(),
            sent_ms: world.elapsed_ms(),
            dated: world.wall_skew_ms() == 0 && intent.clock_ahead_ms == 0,
            fate: Fate::Unknown,
        };
        (0..count).map(|n| self.ledger.add(sent(n))).collect()
    }

    /// A producer is told that these records begin at `base`; in queue mode perhaps only that they are there.
    pub fn acked(&mut self, world: &World, tp: Tp, base: i64, ids: &[RecordId]) {
        if base < 0 {
            return self.acked_elsewhere(tp, ids);
        }
        for (offset, id) in (base..).zip(ids) {
            self.ledger.set_fate(*id, Fate::Acked);
            self.durability.acked(tp, offset, *id);
            let verdict = self.ledger.check(tp, offset, *id, None, false);
            self.judge(verdict);
            let verdict = self.agreement.observe(tp, offset, *id, "a producer");
            self.judge(verdict);
        }
        let sent = ids
            .first()
            .and_then(|id| self.ledger.get(*id))
            .map_or(0, |sent| sent.step);
        let last = base + ids.len() as i64 - 1;
        let verdict = self.order.acked(tp, sent, world.step(), base, last);
        self.judge(verdict);
    }

    /// A producer is told that these records are stored, in another partition than the one it knows. They are there.
    fn acked_elsewhere(&mut self, (topic, partition): Tp, ids: &[RecordId]) {
        self.sights.push(Sight::StoredElsewhere);
        for id in ids {
            self.ledger.set_fate(*id, Fate::Acked);
            // A producer without sequence numbers may have sent it more than once.
            let places = self.queues.places(*id);
            let is_elsewhere = |(tp, _): &&(Tp, i64)| tp.0 == topic && tp.1 < partition;
            let place = places.iter().rfind(is_elsewhere).copied();
            match place.filter(|_| self.queues.was_queued(topic)) {
                Some((tp, offset)) => self.durability.acked(tp, offset, *id),
                None => {
                    let detail = format!(
                        "record {id} was acknowledged without an offset in partition {partition} of {topic:?}; it is at {places:?}"
                    );
                    self.judge(Err(Violation::new(durability::SENTENCE, detail)));
                }
            }
        }
    }

    /// A producer is told that these records are not there, and it will not send them again.
    pub fn failed(&mut self, ids: &[RecordId]) {
        ids.iter().for_each(|id| self.ledger.set_fate(*id, Fate::Failed));
    }

    /// The broker shows the bounds of a log.
    pub fn bounds(&mut self, tp: Tp, start: i64, high_watermark: i64) {
        let verdict = self.watermark.shown(tp, high_watermark);
        self.judge(verdict);
        let verdict = self.log_start.shown(tp, start, high_watermark);
        self.judge(verdict);
    }

    /// Somebody asked for records from `asked` on and got these batches, all of them below `upto`. Returns offset and number
    /// of each.
    pub fn read(
        &mut self,
        who: &str,
        tp: Tp,
        asked: i64,
        upto: i64,
        batches: &[Bytes],
    ) -> Vec<(i64, RecordId)> {
        let mut next = asked;
        let mut found = Vec::new();
        for bytes in batches {
            for (offset, id) in self.open(tp, bytes) {
                if offset < asked {
                    continue;
                }
                if offset != next || offset >= upto {
                    let detail = format!(
                        "{who} reads {tp:?} from {asked} to {upto}: after {next} should come, {offset} comes"
                    );
                    self.judge(Err(Violation::new(STEADY, detail)));
                }
                next = offset + 1;
                found.push((offset, id));
                let verdict = self.agreement.observe(tp, offset, id, who);
                self.judge(verdict);
            }
        }
        found
    }

    /// Reads a run of stored batches and checks them.
    fn open(&mut self, tp: Tp, bytes: &Bytes) -> Vec<(i64, RecordId)> {
        let limits = ProduceLimits {
            bytes_max: usize::MAX,
            transactional: false,
            zstd: true,
            timestamps_ms: None,
        };
        let mut found = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = BatchHeader::parse(rest).map_or(rest.len(), |header| header.size());
            let (batch, behind) = rest.split_at(size.min(rest.len()));
            rest = behind;
            if let Some(ids) = self.batches.find(batch) {
                let base = BatchHeader::parse(batch).map_or(-1, |header| header.base_offset);
                found.extend((base..).zip(ids.iter().copied()));
                continue;
            }
            // As it was sent: offset and epoch lie outside the checksum.
            let mut sent = batch.to_vec();
            patch(&mut sent, 0, -1);
            let intact = check_produced(&sent, &limits).map_err(|error| error.to_string());
            match intact.and_then(|_| record::read(batch)) {
                Ok(records) => found.extend(records),
                Err(problem) => self.judge(Err(Violation::new(BYTES, format!("{tp:?}: {problem}")))),
            }
        }
        for (offset, id) in &found {
            let name = self
                .replay
                .node()
                .topic_by_id(tp.0)
                .map(|topic| topic.name.as_str());
            let is_queued = self.queues.was_queued(tp.0);
            let verdict = self.ledger.check(tp, *offset, *id, name, is_queued);
            self.judge(verdict);
        }
        found
    }

    /// Everything that a partition holds was read.
    pub fn audit(&mut self, tp: Tp, start: i64, high_watermark: i64, batches: &[Bytes]) {
        let mut found = Vec::new();
        for bytes in batches {
            found.extend(self.open(tp, bytes));
        }
        for (offset, id) in &found {
            let verdict = self.agreement.observe(tp, *offset, *id, "the audit");
            self.judge(verdict);
        }
        let audit = Audit {
            tp,
            start,
            high_watermark,
            found,
        };
        let verdict = self.durability.audit(&audit);
        self.judge(verdict);
        // In queue mode a producer's records may be in several partitions: the oracle of queues looks at them in the journal.
        if !self.queues.was_queued(tp.0) {
            let verdict = idempotence::audit(&self.ledger, &audit);
            self.judge(verdict);
        }
    }

    /// Everything up to this entry is durable; after a restart, and nothing else.
    pub fn committed(&mut self, upto: u64, is_restart: bool) {
        let step = self.step;
        let Self {
            replay,
            epochs,
            progress,
            slices,
            outside,
            delivery,
            log_start,
            story,
            strangers,
            ledger,
            queues,
            sights,
            batches,
            ..
        } = self;
        let mut watch = watch::Watch {
            epochs,
            progress,
            slices,
            outside,
            delivery,
            log_start,
            strangers,
            ledger,
            queues,
            story,
            sights,
            batches,
            step,
        };
        let verdict = match is_restart {
            true => replay.recovered(upto, &mut watch),
            false => replay.committed(upto, &mut watch),
        };
        self.judge(verdict);
    }

    /// What was seen in what became durable, since the last call.
    pub fn take_sights(&mut self) -> Vec<Sight> {
        std::mem::take(&mut self.sights)
    }

    /// A member takes a partition.
    pub fn take(&mut self, group: &str, tp: Tp, client: usize, member: &str) {
        let replay = &self.replay;
        // Of a topic that was deleted while the answer was under way there is nothing to own: those who shared a partition of
        // it give it up one by one, as the broker's own state shows (`Ownership::durable`).
        let is_gone = replay.node().topic_by_id(tp.0).is_none();
        if is_gone || replay.is_shared(group, tp) {
            return self.ownership.share((group, tp), client, member);
        }
        let verdict = self.ownership.take((group, tp), client, member, |member| {
            replay.is_member(group, member)
        });
        self.judge(verdict);
    }

    /// A member resumes a partition at its group's committed position.
    pub fn resumed(&mut self, key: &Key, position: i64) {
        if slice_of(position).is_some() {
            return;
        }
        let start = self.log_start.highest(key.1);
        let verdict = self.delivery.resumed(key, position, start);
        self.judge(verdict);
    }
}
