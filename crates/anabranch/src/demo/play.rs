//! Plays the demo: members, the broker's words, the picture, until every record is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anabranch_server::admin::model;

use super::broker_view::BrokerView;
use super::journal::{CELLS, Clock, Delivered};
use super::member::{Common, Member};
use super::place::Place;
use super::screen::Screen;
use super::timeline::{Change, Phase, SETTLE_EXPECTED, Step, measure, steps};
use super::view::{Event, Picture, Row};
use crate::decisions;
use crate::failure::Outcome;

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(100);

/// The rate in the picture is that of this last time.
const RATE_WINDOW_US: u64 = 1_000_000;

/// A member that did nothing for so long is no longer shown as reading.
const READS_WINDOW_US: u64 = 1_500_000;

/// Without any progress for this long, and the time that some records take, the rest counts as lost.
const STALL_MAX: Duration = Duration::from_secs(60);

/// What is to be played.
pub(crate) struct Script {
    pub(crate) members: u32,
    pub(crate) records: u32,
    pub(crate) cost: Duration,
    pub(crate) protocol: &'static str,
    pub(crate) title: String,
}

/// What was seen.
pub(crate) struct Played {
    pub(crate) members: Vec<Member>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) events: Vec<Event>,
    pub(crate) decisions: Vec<model::Decision>,
    pub(crate) seconds: f64,
}

/// Plays it; a flag that is raised ends it early.
pub(crate) fn play(
    place: &Place,
    script: &Script,
    screen: &mut Screen,
    interrupted: &Arc<AtomicBool>,
) -> Outcome<Played> {
    let (tell, told) = channel();
    let common = Common {
        clock: Clock::start(),
        cost: script.cost,
        protocol: script.protocol,
        delivered: Arc::new(Delivered::new(script.records)),
        tell,
    };
    let mut play = Play {
        place,
        script,
        common,
        told,
        broker: BrokerView::start(place.api.clone(), &place.group),
        members: Vec::new(),
        phases: Vec::new(),
        events: Vec::new(),
        decisions: Vec::new(),
        names: BTreeMap::new(),
        to_come: steps(script.members),
        measure: None,
        single_rate: None,
    };
    play.run(screen, interrupted)?;
    play.end(screen)
}

struct Play<'a> {
    place: &'a Place,
    script: &'a Script,
    common: Common,
    told: Receiver<String>,
    broker: BrokerView,
    members: Vec<Member>,
    phases: Vec<Phase>,
    events: Vec<Event>,
    decisions: Vec<model::Decision>,
    /// What members that were seen are called, by their ids.
    names: BTreeMap<String, String>,
    to_come: Vec<Step>,
    /// How long the present phase is measured.
    measure: Option<Duration>,
    /// Records per second of one member alone.
    single_rate: Option<f64>,
}

impl Play<'_> {
    fn run(&mut self, screen: &mut Screen, interrupted: &AtomicBool) -> Outcome {
        let mut progress = (0, self.common.clock.now_us());
        while !interrupted.load(Ordering::Relaxed) {
            let (done, now_us) = (self.common.delivered.count(), self.common.clock.now_us());
            if done > progress.0 {
                progress = (done, now_us);
            }
            let patience = STALL_MAX + self.script.cost * 2;
            let stalled = u128::from(now_us - progress.1) >= patience.as_micros();
            if done >= u64::from(self.script.records) || stalled {
                return Ok(());
            }
            self.advance(now_us)?;
            self.listen(now_us);
            self.reap()?;
            screen.show(&self.picture(now_us))?;
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    /// Begins the next phase when the present one is over.
    fn advance(&mut self, now_us: u64) -> Outcome {
        if let Some(phase) = self.phases.last_mut() {
            let subject = match phase.step.change {
                Change::Join => self.members.last(),
                Change::Leave => self.members.iter().rev().find(|member| member.is_leaving()),
            };
            if let Some(subject) = subject {
                phase.settle(subject, now_us);
            }
            if !phase.is_over(self.measure, now_us) {
                return Ok(());
            }
            phase.end_us = Some(now_us);
            if self.single_rate.is_none() {
                self.single_rate = rate(&self.members, phase);
            }
        }
        let Some(step) = self.to_come.first().copied() else {
            return Ok(());
        };
        let settle = self.phases.iter().filter_map(Phase::settle_time).max();
        let settle = settle.unwrap_or(SETTLE_EXPECTED);
        self.measure = measure(&self.to_come, self.remaining(), self.script.cost, settle);
        self.to_come.remove(0);
        self.phases.push(Phase::new(step, now_us));
        match step.change {
            Change::Join => {
                let member = Member::start(self.members.len() as u32 + 1, self.place, &self.common)?;
                self.event(now_us, format!("{} joins", member.name));
                self.members.push(member);
            }
            Change::Leave => {
                if let Some(oldest) = self.members.iter().find(|member| !member.is_leaving()) {
                    oldest.leave();
                    let text = format!("{} leaves", oldest.name);
                    self.event(now_us, text);
                }
            }
        }
        Ok(())
    }

    /// Takes in what members and broker have said.
    fn listen(&mut self, now_us: u64) {
        let told: Vec<String> = self.told.try_iter().collect();
        for text in told {
            self.event(now_us, text);
        }
        for decision in self.broker.decisions(self.decisions.len()) {
            let text = self.with_names(decisions::sentence(&decision));
            self.event(now_us, text);
            self.decisions.push(decision);
        }
    }

    /// The same text with what members are called in place of their ids.
    fn with_names(&mut self, text: String) -> String {
        if let Some(group) = self.broker.group() {
            self.names
                .extend(group.members.into_iter().map(|one| (one.member, one.client_id)));
        }
        self.names
            .iter()
            .fold(text, |text, (id, name)| text.replace(id.as_str(), name))
    }

    /// A member that ended without having been told to has failed.
    fn reap(&mut self) -> Outcome {
        for member in &mut self.members {
            if member.has_ended() && !member.is_leaving() {
                member.join()?;
            }
        }
        Ok(())
    }

    /// Lets all members leave, and sums up.
    fn end(mut self, screen: &mut Screen) -> Outcome<Played> {
        let now_us = self.common.clock.now_us();
        if let Some(phase) = self.phases.last_mut() {
            phase.end_us = Some(now_us);
        }
        let mut last = self.picture(now_us);
        for member in &self.members {
            member.leave();
        }
        for member in &mut self.members {
            member.join()?;
        }
        self.listen(now_us);
        last.phase = if last.remaining == 0 { "done" } else { "ended" }.to_owned();
        last.events.clone_from(&self.events);
        screen.show(&last)?;
        Ok(Played {
            members: self.members,
            phases: self.phases,
            events: self.events,
            decisions: self.decisions,
            seconds: now_us as f64 / 1e6,
        })
    }

    fn remaining(&self) -> u64 {
        u64::from(self.script.records).saturating_sub(self.common.delivered.count())
    }

    fn event(&mut self, now_us: u64, text: String) {
        let seconds = now_us as f64 / 1e6;
        self.events.push(Event { seconds, text });
    }

    fn picture(&self, now_us: u64) -> Picture {
        let group = self.broker.group();
        let here = self.members.iter().filter(|member| !member.has_ended());
        let members: Vec<Row> = here.map(|member| row(member, group.as_ref(), now_us)).collect();
        let rate = members.iter().fold(0.0, |sum, row| sum + row.rate);
        Picture {
            title: self.script.title.clone(),
            phase: self.phases.last().map(Phase::describe).unwrap_or_default(),
            seconds: now_us as f64 / 1e6,
            records: u64::from(self.script.records),
            remaining: self.remaining(),
            rate,
            speed_up: self
                .single_rate
                .filter(|single| *single > 0.0)
                .map(|single| rate / single),
            members,
            events: self.events.clone(),
        }
    }
}

/// Records per second in a phase, of all members.
pub(crate) fn rate(members: &[Member], phase: &Phase) -> Option<f64> {
    let (from, to) = (phase.settled_us?, phase.end_us?);
    let done: u64 = members
        .iter()
        .map(|member| member.journal.done_between(from, to))
        .sum();
    (to > from).then(|| done as f64 * 1e6 / (to - from) as f64)
}

/// A member as the broker sees it, or, where the broker does not tell, as its own work shows it.
fn row(member: &Member, group: Option<&model::Group>, now_us: u64) -> Row {
    let journal = &member.journal;
    let from = now_us.saturating_sub(RATE_WINDOW_US);
    let cells = journal.cells();
    let is_active = |at: &&u64| **at > 0 && now_us.saturating_sub(**at) < READS_WINDOW_US;
    let active = cells.iter().filter(is_active).count();
    let mut row = Row {
        name: member.name.clone(),
        state: state(member, now_us).to_owned(),
        share: active as f64 / CELLS as f64,
        slots: None,
        remaining: None,
        rate: journal.done_between(from, now_us) as f64 * 1e6 / (now_us - from).max(1) as f64,
        done: journal.done(),
    };
    let Some(group) = group else { return row };
    let known = group.members.iter().find(|one| one.client_id == member.name);
    let Some(known) = known else { return row };
    row.state = known.state.name().to_owned();
    let partitions = group.partitions.iter();
    let shares: Vec<&model::Share> = partitions
        .flat_map(|partition| &partition.shares)
        .filter(|share| share.member == known.member)
        .collect();
    // Of a chain only the last slice is open; those before are a rest of what it held.
    let open = shares.iter().filter(|share| share.end.is_none());
    let slots: u32 = open.map(|share| share.slots).sum();
    row.share = f64::from(slots) / anabranch_wire::slot::SLOTS as f64;
    row.slots = Some(slots);
    row.remaining = Some(shares.iter().map(|share| share.remaining).sum());
    row
}

fn state(member: &Member, now_us: u64) -> &'static str {
    let idle_us = member.journal.last_done_us().map(|at| now_us.saturating_sub(at));
    match idle_us {
        _ if member.is_leaving() => "leaving",
        Some(idle) if idle < READS_WINDOW_US => "busy",
        None if now_us.saturating_sub(member.started_us) < READS_WINDOW_US => "joining",
        _ => "idle",
    }
}
