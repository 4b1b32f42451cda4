//! Requests, one by one: decided, applied and journaled in one step, like the server's handlers.

use anabranch_core::Refused;
use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::log::{Append, BatchFacts};
use anabranch_core::meta::{Command, Resource};
use anabranch_core::node::{AlterConfig, AlterOp, LogEffect, TopicRef};
use anabranch_store::Batch;
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{BatchHeader, ProduceLimits, check_produced, set_log_append_time};
use bytes::{Bytes, BytesMut};

use super::{Broker, Process, Slot};
use crate::message::{Answer, Place, Request, TopicSeen, Tp};
use crate::net::{CallId, Lane};
use crate::oracle::replay::Entry;
use crate::run::Ctx;
use crate::sights::Sight;

/// How many produces of a hundred find that there is space after all, while there is little.
const LOOKS_PERCENT: u64 = 10;

impl Broker {
    /// A request has arrived.
    pub fn handle(&mut self, ctx: &mut Ctx<'_>, lane: Lane, call: CallId, request: Request) {
        let Some(process) = &mut self.process else {
            // Nobody listens: the connection is refused.
            ctx.net.cut(ctx.world, lane, false);
            return;
        };
        ctx.world
            .trace(format_args!("<- {lane:?} #{call} {}", request.name()));
        process.handle(ctx, lane, call, request);
        if ctx.net.is_orphan(call) {
            // Its connection is gone, so nothing is to wait behind its answer.
            ctx.saw(Sight::LateRequest);
            process.lanes.entry(lane).or_default().pop_back();
        }
        process.follow_up(ctx, self.life, &self.settings);
        self.bury(ctx, None);
    }

    /// A connection has broken.
    pub fn disconnected(&mut self, ctx: &mut Ctx<'_>, lane: Lane) {
        if let Some(process) = &mut self.process {
            process.disconnected(ctx, lane);
            process.follow_up(ctx, self.life, &self.settings);
        }
    }
}

impl Process {
    fn handle(&mut self, ctx: &mut Ctx<'_>, lane: Lane, call: CallId, request: Request) {
        let Some(request) = self.handle_group(ctx, lane, call, request) else {
            return;
        };
        let slot = match request {
            Request::Fetch {
                wants,
                wait_ms,
                bytes_max,
            } => Slot::Fetch {
                wants,
                until_ms: ctx.world.now().mono_ms + wait_ms,
                bytes_max,
                parked: false,
            },
            Request::ListOffsets { tp, edge } => ready(self.list_offsets(ctx, tp, edge), Lsn(0)),
            Request::Produce {
                place,
                partition,
                batch,
            } => self.produce(ctx, &place, partition, batch),
            Request::Metadata => ready(self.metadata(), self.node.state_lsn()),
            Request::InitProducerId => self.init_producer_id(ctx),
            other => self.administer(ctx, other),
        };
        self.lanes.entry(lane).or_default().push_back((call, slot));
    }

    fn metadata(&self) -> Answer {
        let seen = self.node.topics().map(|topic| TopicSeen {
            name: topic.name.clone(),
            id: topic.id,
            partitions: topic.partitions(),
        });
        Answer::Metadata(seen.collect())
    }

    fn init_producer_id(&mut self, ctx: &mut Ctx<'_>) -> Slot {
        match self.node.init_producer_id(None) {
            Ok((id, commands)) => {
                self.run(ctx, commands);
                ready(
                    Answer::InitProducerId {
                        id: id.id,
                        epoch: id.epoch,
                    },
                    self.node.state_lsn(),
                )
            }
            Err(refused) => ready(Answer::Refused(refused.code()), Lsn(0)),
        }
    }

    fn produce(&mut self, ctx: &mut Ctx<'_>, place: &Place, partition: i32, batch: Bytes) -> Slot {
        let (topic, missing) = match place {
            Place::Name(name) => (self.node.topic_by_name(name), ErrorCode::UnknownTopicOrPartition),
            Place::Id(id) => (self.node.topic_by_id(*id), ErrorCode::UnknownTopicId),
        };
        let Some(topic) = topic else {
            return ready(Answer::Refused(missing), Lsn(0));
        };
        let tp: Tp = (topic.id, partition);
        let Some(log) = topic.log(partition) else {
            return ready(Answer::Refused(ErrorCode::UnknownTopicOrPartition), Lsn(0));
        };
        let limits = ProduceLimits {
            bytes_max: usize::MAX,
            transactional: true,
            zstd: true,
            timestamps_ms: None,
        };
        let header = match check_produced(&batch, &limits) {
            Ok(header) => header,
            Err(error) => return ready(Answer::Refused(error.code()), Lsn(0)),
        };
        // The server looks at the space now and then: it may find some between any two requests.
        if self.short_of_space && !ctx.world.rng.percent(LOOKS_PERCENT) {
            ctx.saw(Sight::ProduceRefusedForSpace);
            let known = self
                .node
                .note_refused(ctx.world.now(), log, &BatchFacts::from(&header));
            if let Some(Append::Duplicate { base_offset, lsn, .. }) = known {
                let log_start = self.shown_start(ctx, log);
                return ready(
                    Answer::Produced {
                        topic: tp.0,
                        base_offset,
                        log_start,
                    },
                    lsn,
                );
            }
            return ready(Answer::Refused(ErrorCode::KafkaStorageError), Lsn(0));
        }
        self.append(ctx, tp, log, &header, batch)
    }

    /// The start of a log, as an answer is about to show it.
    fn shown_start(&self, ctx: &mut Ctx<'_>, log: LogId) -> i64 {
        let Some(log) = self.node.log(log) else { return -1 };
        ctx.oracle
            .bounds((log.topic(), log.partition()), log.start(), log.high_watermark());
        log.start()
    }

    fn append(
        &mut self,
        ctx: &mut Ctx<'_>,
        tp: Tp,
        log: LogId,
        header: &BatchHeader,
        mut bytes: Bytes,
    ) -> Slot {
        let facts = BatchFacts::from(header);
        let decision = self.node.append(ctx.world.now(), log, &facts);
        let log_start = self.shown_start(ctx, log);
        ctx.world.trace(format_args!(
            "   log {log}, producer {} epoch {} sequence {}: {decision:?}",
            facts.producer_id, facts.producer_epoch, facts.base_sequence
        ));
        let produced = |base_offset| Answer::Produced {
            topic: tp.0,
            base_offset,
            log_start,
        };
        match decision {
            Err(error) => {
                if error.code() == ErrorCode::OutOfOrderSequenceNumber {
                    ctx.saw(Sight::OutOfOrderRefused);
                }
                ready(Answer::Refused(error.code()), Lsn(0))
            }
            Ok(Append::Duplicate { base_offset, lsn, .. }) => {
                ctx.saw(Sight::DuplicateAnswered);
                if lsn <= self.started_at {
                    ctx.saw(Sight::DuplicateAfterRestart);
                }
                ready(produced(base_offset), lsn)
            }
            Ok(Append::New {
                base_offset,
                leader_epoch,
                log_append_time_ms,
            }) => {
                if let Some(time_ms) = log_append_time_ms {
                    let mut stamped = BytesMut::from(bytes.as_ref());
                    set_log_append_time(&mut stamped, time_ms);
                    bytes = stamped.freeze();
                }
                let max_timestamp = log_append_time_ms.unwrap_or(header.max_timestamp);
                let lsn = self.store.append_batch(Batch {
                    log,
                    base_offset,
                    leader_epoch,
                    last_offset: base_offset + i64::from(header.last_offset_delta),
                    max_timestamp,
                    bytes,
                });
                self.node.appended(log, lsn);
                let stored = BatchFacts {
                    max_timestamp,
                    ..facts
                };
                ctx.oracle
                    .replay
                    .appended(lsn.0, Entry::Batch(log, base_offset, stored));
                ready(produced(base_offset), lsn)
            }
        }
    }

    fn administer(&mut self, ctx: &mut Ctx<'_>, request: Request) -> Slot {
        match self.decide(ctx, request) {
            Ok((commands, low_watermark)) => {
                self.run(ctx, commands);
                ready(Answer::Done { low_watermark }, self.node.state_lsn())
            }
            Err(refused) => {
                ctx.world.trace(format_args!("refused: {}", refused.message()));
                ready(Answer::Refused(refused.code()), self.node.state_lsn())
            }
        }
    }

    fn decide(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: Request,
    ) -> Result<(Vec<Command>, Option<i64>), Refused> {
        let now = ctx.world.now();
        let plain = |commands| (commands, None);
        match request {
            Request::CreateTopic(wish) => {
                let fresh = ctx.world.rng.id();
                self.node.create_topic(now, &wish, fresh).map(plain)
            }
            Request::DeleteTopic { name } => self.node.delete_topic(now, TopicRef::Name(&name)).map(plain),
            Request::CreatePartitions { name, count } => {
                self.node.create_partitions(&name, count, None).map(plain)
            }
            Request::AlterConfig { topic, key, value } => {
                let op = if value.is_some() {
                    AlterOp::Set
                } else {
                    AlterOp::Delete
                };
                let change = AlterConfig {
                    name: key.to_owned(),
                    op,
                    value,
                };
                self.node
                    .incremental_alter_configs(&Resource::Topic(topic), &[change])
                    .map(plain)
            }
            Request::DeleteRecords { tp, offset } => {
                let log = self
                    .log_of(tp)
                    .map_err(|code| Refused::new(code, "no such partition"))?;
                let (commands, low_watermark) = self.node.delete_records(log, offset)?;
                if !commands.is_empty() {
                    ctx.oracle.log_start.allow(tp, low_watermark);
                    ctx.saw(Sight::RecordsDeleted);
                }
                Ok((commands, Some(low_watermark)))
            }
            _ => Err(Refused::new(
                ErrorCode::UnsupportedVersion,
                "not a request of the model",
            )),
        }
    }

    /// Tells the store what is dead and durably so.
    pub(super) fn tell_store(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                LogEffect::Start { log, offset } => self.store.set_log_start(log, offset),
                LogEffect::Drop { log } => self.store.drop_log(log),
            }
        }
    }
}

fn ready(answer: Answer, after: Lsn) -> Slot {
    Slot::Ready(Box::new(answer), after)
}
