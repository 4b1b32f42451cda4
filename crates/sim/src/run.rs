//! One run: a seed becomes a broker, clients and faults, and a verdict.
//!
//! ```text
//! chaos: everything happens, faults too   ->   calm: faults are healed, producers stop   ->   drained? last crash, audit
//! ```
//!
//! Every event of the queue is one step; after each, the oracles are asked whether they have seen a violation.

use std::collections::BTreeMap;

use anabranch_core::cursor::Fault;
use anabranch_core::log::Log;
use anabranch_core::node::Node;

use crate::broker::{Broker, node_options};
use crate::calm::Patience;
use crate::client::Client;
use crate::faults::Faults;
use crate::message::Tp;
use crate::net::{Lane, Net};
use crate::oracle::commits::Key;
use crate::oracle::topics::Shape;
use crate::oracle::{Oracles, Violation, delivery, queues};
use crate::plan::{Group, Plan};
use crate::sights::{Sight, Sights};
use crate::world::{Event, Keep, World};

/// How long the broker may take to be there again after the last crash, milliseconds.
const RETURN_MS_MAX: u64 = 90_000;
/// A run of more steps than this is stuck in a circle.
const STEPS_MAX: u64 = 400_000;

/// What everybody may use while an event is handled.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// Time and chance.
    pub world: &'a mut World,
    /// Connections.
    pub net: &'a mut Net,
    /// Oracles.
    pub oracle: &'a mut Oracles,
    sights: &'a mut Sights,
    /// Connections that were broken: the broker hears of it after the event.
    cut: &'a mut Vec<Lane>,
}

impl Ctx<'_> {
    /// Something interesting has happened.
    pub fn saw(&mut self, sight: Sight) {
        self.sights.note(sight);
    }

    /// Everything up to this entry is durable; after a restart, and nothing else.
    pub fn committed(&mut self, upto: u64, is_restart: bool) {
        self.oracle.committed(upto, is_restart);
        for sight in self.oracle.take_sights() {
            self.saw(sight);
        }
    }

    /// Breaks a connection.
    pub fn cut(&mut self, lane: Lane) {
        self.net.cut(self.world, lane, true);
        self.cut.push(lane);
    }

    /// Retention by time has taken these records: none of them may be young.
    pub fn check_age(&mut self, tp: Tp, from: i64, upto: i64, retention_ms: u64) {
        for offset in from..upto {
            let id = self.oracle.agreement.at(tp, offset);
            let Some(sent) = id
                .and_then(|id| self.oracle.ledger.get(id))
                .filter(|sent| sent.dated)
            else {
                continue;
            };
            let age_ms = self.world.elapsed_ms() - sent.sent_ms;
            let verdict = self.oracle.log_start.aged_out(tp, offset, age_ms, retention_ms);
            self.oracle.judge(verdict);
        }
    }

    /// Compares the durable topics with what the administrator was told.
    pub fn observe_topics(&mut self) {
        if self.oracle.replay.waiting() > 0 {
            // What is durable is not known: perhaps more than anybody has heard of.
            return;
        }
        for name in self.oracle.topics.names() {
            let topic = self.oracle.replay.node().topic_by_name(&name);
            let shape = topic.map(|topic| Shape {
                id: Some(topic.id),
                partitions: topic.partitions(),
                configs: topic.configs.clone().into_iter().collect(),
            });
            let verdict = self.oracle.topics.observe(&name, shape);
            self.oracle.judge(verdict);
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Steps.
    pub steps: u64,
    /// Records that were sent, and acknowledged.
    pub records: (usize, usize),
    /// Processes of the broker.
    pub lives: u64,
    /// What was seen.
    pub sights: Sights,
    /// Hash of its course: of when its events came, and of the draws before them.
    pub course: u64,
    /// Hash of the trace, if it was kept.
    pub hash: u64,
    /// The violation, if there was one.
    pub violation: Option<Violation>,
    /// What concerned the partition that the violation is about, if it was kept.
    pub story: Vec<String>,
    /// The whole trace, if it was kept.
    pub trace: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Chaos,
    Calm(Patience),
    /// The last crash; the audit comes with the start.
    Last {
        until_ms: u64,
    },
    Done,
}

/// A run under way.
pub struct Run {
    seed: u64,
    world: World,
    net: Net,
    oracle: Oracles,
    sights: Sights,
    broker: Broker,
    clients: Vec<Box<dyn Client>>,
    groups: Vec<Group>,
    faults: Faults,
    /// Clients that stand still, and until when.
    paused: BTreeMap<usize, u64>,
    stage: Stage,
    chaos_ms: u64,
}

impl Run {
    /// The run of a seed.
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self::with_fault(seed, keep, None)
    }

    /// The same with a broker that breaks a rule.
    pub fn with_fault(seed: u64, keep: Keep, fault: Option<Fault>) -> Self {
        let mut world = World::new(seed, keep);
        let mut plan = Plan::draw(&mut world.rng);
        plan.broker.fault = fault;
        let options = node_options(&plan.broker, world.now());
        let node = Node::new(options).expect("the configuration of the simulation is valid");
        let mut oracle = Oracles::new(node);
        if keep == Keep::Whole {
            oracle.story.keep();
        }
        Self {
            seed,
            net: Net::default(),
            oracle,
            sights: Sights::default(),
            broker: Broker::new(world.rng.bits(), plan.broker),
            clients: plan.clients,
            groups: plan.groups,
            faults: plan.faults,
            paused: BTreeMap::new(),
            stage: Stage::Chaos,
            chaos_ms: plan.chaos_ms,
            world,
        }
    }

    /// Whether groups divide partitions in it.
    pub fn is_elastic(&self) -> bool {
        self.broker.is_elastic()
    }

    /// Runs it to its end.
    pub fn finish(mut self) -> Outcome {
        self.world.after_us(0, Event::Start);
        self.world.after_ms(300, Event::Fault);
        self.with(|ctx, _, clients| clients.iter_mut().for_each(|client| client.start(ctx)));
        while self.stage != Stage::Done && self.oracle.violation().is_none() {
            let Some(event) = self.world.advance() else { break };
            if self.world.step() > STEPS_MAX {
                let detail = format!("{STEPS_MAX} steps have not brought the run to its end");
                self.oracle.judge(Err(Violation::new(delivery::DRAINED, detail)));
            }
            self.oracle.step = self.world.step();
            self.oracle.slices.rested.clock(self.world.now().wall_ms);
            self.handle(event);
        }
        let (answers, requests) = self.net.losses();
        if answers > 0 {
            self.sights.note(Sight::AnswerLost);
        }
        if requests > 0 {
            self.sights.note(Sight::RequestLost);
        }
        Outcome {
            seed: self.seed,
            steps: self.world.step(),
            records: (self.oracle.ledger.len(), self.oracle.durability.count()),
            lives: self.broker.lives(),
            sights: self.sights,
            course: self.world.course(),
            hash: self.world.trace_hash(),
            violation: self.oracle.violation().cloned(),
            story: self
                .oracle
                .violation()
                .and_then(|violation| violation.about.as_ref())
                .map(|key| self.oracle.story.of(key))
                .unwrap_or_default(),
            trace: self.world.trace_whole().to_owned(),
        }
    }

    /// Lends out everything at once.
    fn with<T>(&mut self, work: impl FnOnce(&mut Ctx<'_>, &mut Broker, &mut Vec<Box<dyn Client>>) -> T) -> T {
        let mut cut = Vec::new();
        let mut ctx = Ctx {
            world: &mut self.world,
            net: &mut self.net,
            oracle: &mut self.oracle,
            sights: &mut self.sights,
            cut: &mut cut,
        };
        let result = work(&mut ctx, &mut self.broker, &mut self.clients);
        while let Some(lane) = ctx.cut.pop() {
            self.broker.disconnected(&mut ctx, lane);
        }
        result
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(lane, call, request) => {
                if self.net.arrive(lane, call) {
                    self.with(|ctx, broker, _| broker.handle(ctx, lane, call, *request));
                }
            }
            Event::Answer((client, line), call, answer) => {
                if self.is_paused(client) {
                    return self.later(client, Event::Answer((client, line), call, answer));
                }
                match answer {
                    Some(_) if !self.net.received((client, line), call) => return,
                    Some(_) => {}
                    None => self.net.seen((client, line)),
                }
                if self.world.keep() > Keep::Nothing {
                    let brief = answer.as_ref().map(|answer| answer.brief());
                    let brief = brief.as_deref().unwrap_or("lost");
                    self.world
                        .trace(format_args!("-> ({client}, {line:?}) #{call} {brief}"));
                }
                self.with(|ctx, _, clients| {
                    if let Some(client) = clients.get_mut(client) {
                        client.answer(ctx, line, call, answer.map(|answer| *answer));
                    }
                });
            }
            Event::Wake(client, life, what) => {
                if self.is_paused(client) {
                    return self.later(client, Event::Wake(client, life, what));
                }
                self.with(|ctx, _, clients| {
                    if let Some(client) = clients
                        .get_mut(client)
                        .filter(|client| client.seat().life == life)
                    {
                        client.wake(ctx, what);
                    }
                });
            }
            Event::Broker(life, chore) => self.with(|ctx, broker, _| broker.chore(ctx, life, chore)),
            Event::Start => {
                self.with(|ctx, broker, _| broker.start(ctx));
                if matches!(self.stage, Stage::Last { .. }) && self.broker.is_up() {
                    self.stage = Stage::Done;
                }
            }
            Event::Fault => self.tick(),
        }
    }

    fn is_paused(&self, client: usize) -> bool {
        self.paused
            .get(&client)
            .is_some_and(|until_us| self.world.now_us() < *until_us)
    }

    fn later(&mut self, client: usize, event: Event) {
        let until_us = self.paused.get(&client).copied().unwrap_or(0);
        self.world.at_us(until_us, event);
    }

    /// The turn of the fault driver; once all has healed, a look at how far things are.
    fn tick(&mut self) {
        let now_ms = self.world.elapsed_ms();
        match self.stage {
            Stage::Chaos if now_ms < self.chaos_ms => {
                let mut faults = std::mem::take(&mut self.faults);
                let mut paused = std::mem::take(&mut self.paused);
                let pause_ms =
                    self.with(|ctx, broker, clients| faults.strike(ctx, broker, clients, &mut paused));
                (self.faults, self.paused) = (faults, paused);
                self.world.after_ms(pause_ms, Event::Fault);
            }
            Stage::Chaos => {
                self.world.trace(format_args!("== calm"));
                let mut faults = std::mem::take(&mut self.faults);
                self.paused.clear();
                self.with(|ctx, broker, clients| {
                    faults.heal(ctx, broker);
                    clients.iter_mut().for_each(|client| client.settle(ctx));
                });
                self.stage = Stage::Calm(Patience::from(now_ms));
                self.world.after_ms(1_000, Event::Fault);
            }
            Stage::Calm(mut patience) => {
                match self.backlog() {
                    None => {
                        self.world.trace(format_args!("== drained"));
                        self.with(|ctx, broker, _| {
                            broker.audit(ctx);
                            broker.kill(ctx);
                        });
                        self.stage = Stage::Last {
                            until_ms: now_ms + RETURN_MS_MAX,
                        };
                    }
                    Some((key, what)) => {
                        if patience.is_over(now_ms, self.left()) {
                            let violation = Violation::new(delivery::DRAINED, what);
                            self.oracle.judge(Err(match key {
                                Some(key) => violation.about(&key),
                                None => violation,
                            }));
                        }
                        self.stage = Stage::Calm(patience);
                    }
                }
                self.world.after_ms(500, Event::Fault);
            }
            Stage::Last { until_ms } if now_ms > until_ms => {
                let detail = "the broker does not come up again".to_owned();
                self.oracle.judge(Err(Violation::new(delivery::DRAINED, detail)));
            }
            Stage::Last { .. } | Stage::Done => self.world.after_ms(500, Event::Fault),
        }
    }

    /// Why the queues of a topic are not yet as they are to stay.
    fn unsettled_queues(&self, node: &Node) -> Option<String> {
        let bounds = self.broker.queue_bounds()?;
        let mut topics = node.state().queues().keys();
        let what = topics.find_map(|topic| queues::unsettled(node, *topic, bounds))?;
        Some(format!("{}: {what}", queues::SETTLED))
    }

    /// What is still to be done, if anything, and where.
    fn backlog(&self) -> Option<(Option<Key>, String)> {
        let Some(node) = self.broker.node().filter(|_| self.broker.queued() == 0) else {
            let what = "the broker is down, or has entries that are not committed";
            return Some((None, what.to_owned()));
        };
        for (key, log) in self.read_logs(node) {
            let (start, end) = (log.start(), log.high_watermark());
            if let Some(offset) = self.oracle.delivery.gap(&key, start, end) {
                let what = format!("group {key:?} has not processed offset {offset}");
                return Some((Some(key), what));
            }
            let position = node.groups().committed(&key.0, key.1);
            if position != Some(end) {
                let what = format!("group {key:?} has committed {position:?}, the log is {start} to {end}");
                return Some((Some(key), what));
            }
        }
        self.unsettled_queues(node).map(|what| (None, what))
    }

    /// How many records are still to be processed, and how many to be committed, in sum; nothing while the broker is down.
    fn left(&self) -> Option<u64> {
        let node = self.broker.node()?;
        let left = self.read_logs(node).map(|(key, log)| {
            let (start, end) = (log.start(), log.high_watermark());
            let position = node.groups().committed(&key.0, key.1).unwrap_or(start);
            let uncommitted = end.saturating_sub(position.max(start));
            self.oracle.delivery.missing(&key, start, end) + u64::try_from(uncommitted).unwrap_or(0)
        });
        Some(left.sum())
    }

    /// The logs that groups with members read and that have records, and for which group.
    fn read_logs<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (Key, &'a Log)> {
        self.groups.iter().flat_map(move |group| {
            let logs = node.logs().filter(|log| {
                let topic = node.topic_by_id(log.topic());
                topic.is_some_and(|topic| group.topics.contains(&topic.name))
            });
            logs.filter(|log| log.high_watermark() > log.start())
                .map(|log| ((group.name.clone(), (log.topic(), log.partition())), log))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_twice_is_the_same_run_byte_for_byte() {
        let seeds = 1..=5;
        assert!(
            seeds
                .clone()
                .any(|seed| Run::new(seed, Keep::Nothing).is_elastic()),
            "groups divide partitions in some"
        );
        for seed in seeds {
            let (first, second) = (
                Run::new(seed, Keep::Whole).finish(),
                Run::new(seed, Keep::Whole).finish(),
            );
            assert!(first.trace.lines().count() > 1_000);
            assert!(first.trace == second.trace, "seed {seed} gave two runs");
            assert_eq!((first.hash, first.sights), (second.hash, second.sights));
            let untold = Run::new(seed, Keep::Nothing).finish();
            assert!(
                untold.trace.is_empty() && untold.course == first.course,
                "seed {seed}"
            );
        }
    }

    #[test]
    fn seeds_differ() {
        let [first, second] = [1, 2].map(|seed| Run::new(seed, Keep::Hash).finish());
        assert!(first.hash != second.hash && first.course != second.course);
    }
}
