//! Requests, one by one: decided, applied and journaled in one step, like the server's handlers.

use anabranch_core::Refused;
use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::meta::{Command, Resource};
use anabranch_core::node::{AlterConfig, AlterOp, TopicRef};
use anabranch_engine::produce::{self, Appended};
use anabranch_engine::tell_store;
use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::{Broker, Process, Slot, fetch};
use crate::message::{Answer, Place, Request, TopicSeen};
use crate::net::{CallId, Lane};
use crate::run::Ctx;
use crate::sights::Sight;
use crate::world::Keep;

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
        if ctx.world.keep() > Keep::Nothing {
            let brief = request.brief();
            ctx.world.trace(format_args!("<- {lane:?} #{call} {brief}"));
        }
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
            } => {
                let connection = self.caller(ctx, lane, call).connection;
                let until_ms = ctx.world.now().mono_ms + wait_ms;
                let fetch = fetch::understood(&wants, bytes_max);
                Slot::Fetch(Box::new(fetch::Fetching::new(fetch, connection, until_ms)))
            }
            Request::ListOffsets { tp, edge } => {
                let caller = self.caller(ctx, lane, call);
                ready(self.list_offsets(ctx, &caller, tp, edge), self.node().state_lsn())
            }
            Request::Produce {
                place,
                partition,
                batch,
            } => self.produce(ctx, &place, partition, batch),
            Request::Metadata => ready(self.metadata(), self.node().state_lsn()),
            Request::InitProducerId => self.init_producer_id(ctx),
            other => self.administer(ctx, other),
        };
        self.lanes.entry(lane).or_default().push_back((call, slot));
    }

    fn metadata(&self) -> Answer {
        let seen = self.node().topics().map(|topic| TopicSeen {
            name: topic.name.clone(),
            id: topic.id,
            partitions: topic.partitions(),
        });
        Answer::Metadata(seen.collect())
    }

    fn init_producer_id(&mut self, ctx: &mut Ctx<'_>) -> Slot {
        let (given, outcome) = self.engine.update(ctx.world.now(), |update| {
            let (id, commands) = update.node_mut().init_producer_id(None)?;
            update.run(commands);
            Ok(id)
        });
        let after = self.pass_on(outcome);
        match given.map_err(|refused: Refused| refused.code()) {
            Ok(id) => ready(
                Answer::InitProducerId {
                    id: id.id,
                    epoch: id.epoch,
                },
                after,
            ),
            Err(error) => ready(Answer::Refused(error), Lsn(0)),
        }
    }

    fn produce(&mut self, ctx: &mut Ctx<'_>, place: &Place, partition: i32, batch: Bytes) -> Slot {
        let checked = produce::target(self.node(), place.as_ref(), partition).and_then(|target| {
            let header = produce::check(&target, &batch, true).map_err(|error| error.code())?;
            Ok((target.log, header))
        });
        let (log, header) = match checked {
            Ok(checked) => checked,
            Err(error) => return ready(Answer::Refused(error), Lsn(0)),
        };
        let now = ctx.world.now();
        // The server looks at the space now and then: it may find some between any two requests.
        let is_refused = self.short_of_space && !ctx.world.rng.percent(LOOKS_PERCENT);
        let appended = if is_refused {
            ctx.saw(Sight::ProduceRefusedForSpace);
            let known = self.engine.refuse(now, log, &header);
            known.ok_or(ErrorCode::KafkaStorageError)
        } else {
            let appended = self.engine.append(now, log, &header, batch);
            appended.map_err(|error| error.code())
        };
        ctx.world.trace(format_args!(
            "   log {log}, producer {} epoch {} sequence {}: {appended:?}",
            header.producer_id, header.producer_epoch, header.base_sequence
        ));
        match appended {
            Ok(appended) => self.produced(ctx, log, &appended),
            Err(error) => {
                if error == ErrorCode::OutOfOrderSequenceNumber {
                    ctx.saw(Sight::OutOfOrderRefused);
                }
                ready(Answer::Refused(error), Lsn(0))
            }
        }
    }

    fn produced(&self, ctx: &mut Ctx<'_>, log: LogId, appended: &Appended) -> Slot {
        if appended.is_duplicate {
            ctx.saw(Sight::DuplicateAnswered);
            if appended.after <= self.started_at {
                ctx.saw(Sight::DuplicateAfterRestart);
            }
        }
        let Some(log) = self.node().log(log) else {
            return ready(Answer::Refused(ErrorCode::UnknownTopicOrPartition), Lsn(0));
        };
        let tp = (log.topic(), log.partition());
        // Of a batch that is stored elsewhere nothing is told.
        if appended.base_offset >= 0 {
            ctx.oracle
                .bounds(tp, appended.log_start_offset, log.high_watermark());
        }
        let answer = Answer::Produced {
            topic: tp.0,
            base_offset: appended.base_offset,
            log_start: appended.log_start_offset,
        };
        ready(answer, appended.after)
    }

    fn administer(&mut self, ctx: &mut Ctx<'_>, request: Request) -> Slot {
        if let Request::OrderQueues { topic, order } = &request {
            let (result, outcome) = self.engine.order_queues(ctx.world.now(), topic, *order);
            let after = self.pass_on(outcome);
            return match result {
                Ok(()) => {
                    ctx.saw(Sight::QueuesOrdered);
                    ready(Answer::Done { low_watermark: None }, after)
                }
                Err(refused) => ready(Answer::Refused(refused.code()), after),
            };
        }
        match self.decide(ctx, request) {
            Ok((commands, low_watermark)) => {
                self.run(ctx, commands);
                ready(Answer::Done { low_watermark }, self.node().state_lsn())
            }
            Err(refused) => {
                ctx.world.trace(format_args!("refused: {}", refused.message()));
                ready(Answer::Refused(refused.code()), self.node().state_lsn())
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
                self.node().create_topic(now, &wish, fresh).map(plain)
            }
            Request::DeleteTopic { name } => self.node().delete_topic(now, TopicRef::Name(&name)).map(plain),
            Request::CreatePartitions { name, count } => {
                self.node().create_partitions(&name, count, None).map(plain)
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
                self.node()
                    .incremental_alter_configs(&Resource::Topic(topic), &[change])
                    .map(plain)
            }
            Request::DeleteRecords { tp, offset } => {
                let log = self
                    .log_of(tp)
                    .map_err(|code| Refused::new(code, "no such partition"))?;
                let (commands, low_watermark) = self.node().delete_records(log, offset)?;
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
        tell_store(self.engine.store(), self.effects.make_contiguous());
        self.effects.clear();
    }
}

fn ready(answer: Answer, after: Lsn) -> Slot {
    Slot::Ready(Box::new(answer), after)
}
