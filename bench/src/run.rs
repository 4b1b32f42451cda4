//! One run: rounds of all contenders in turn, forwards and backwards, one alive at a time.

use crate::broker::{Broker, Contender, Places};
use crate::case::{Numbers, Scale, clients, latency, life, throughput};
use crate::elastic;
use crate::machine::{Foreign, level_the_field, own_cpu_seconds, sync_probe, wait_until_quiet};
use crate::report::Round;
use crate::say;
use crate::table::wanted;
use anyhow::{Context, Result};
use std::collections::BTreeSet;

/// Gigabytes touched and freed before each contender.
const LEVEL_GB: usize = 6;

/// What a run measures.
pub(crate) struct Plan {
    pub(crate) places: Places,
    pub(crate) scale: Scale,
    /// Smaller loads for elastic groups.
    pub(crate) quick: bool,
    /// Whether the machine is taken as it is.
    pub(crate) hurry: bool,
    /// Ids to measure; all if empty.
    pub(crate) only: Vec<String>,
    /// Names of the contenders; all if empty.
    pub(crate) who: Vec<String>,
}

impl Plan {
    fn wants(&self, ids: &str) -> bool {
        ids.split(' ').any(|id| wanted(&self.only, id))
    }

    /// Measures all rounds. The numbers of contenders that were measured before something failed are kept.
    pub(crate) fn run(&self) -> (Vec<Round>, Result<()>) {
        let mut rounds = Vec::new();
        let mut done = Ok(());
        for number in 0..self.scale.rounds {
            let mut round = Round::default();
            done = self.round(number, &mut round);
            rounds.push(round);
            if done.is_err() {
                break;
            }
        }
        // Tens of gigabytes, and of no use to anybody.
        let data = self.places.work.join("data");
        if data.exists() {
            let removed = std::fs::remove_dir_all(&data);
            done = done.and(removed.with_context(|| format!("cannot remove {}", data.display())));
        }
        (rounds, done)
    }

    fn round(&self, number: u32, round: &mut Round) -> Result<()> {
        let mut order = Contender::ALL.to_vec();
        order.retain(|contender| wanted(&self.who, contender.name()));
        if number % 2 == 1 {
            order.reverse();
        }
        for contender in order {
            let busy = if self.hurry { f64::NAN } else { wait_until_quiet() };
            if !self.hurry {
                level_the_field(LEVEL_GB);
            }
            let probe = sync_probe(&self.places.work)?;
            say(&format!(
                "round {}/{}: {}; sync probe {:.0}/{:.0} us, machine {:.0} % busy before",
                number + 1,
                self.scale.rounds,
                contender.name(),
                probe.0,
                probe.1,
                busy * 100.0
            ));
            let mut numbers = Numbers::new();
            let measured = self.measure(contender, &mut numbers);
            for (name, value) in &numbers {
                say(&format!("  {name} = {value:.3}"));
            }
            measured.with_context(|| format!("measuring {}", contender.name()))?;
            round.numbers.insert(contender.name().into(), numbers);
            round.sync_probe_us.insert(contender.name().into(), probe);
        }
        Ok(())
    }

    /// All cases of one contender.
    fn measure(&self, contender: Contender, numbers: &mut Numbers) -> Result<()> {
        if self.wants("P1 P2 P3 P4 P5 P6 P8 C1 C2 U1") {
            self.loads(contender, numbers)?;
        }
        if self.wants("L1 L2 L3") {
            // The driver's half of the split layout; the broker is started on core 0.
            crate::pin(Some(1))?;
            let done = latency::run(contender, &self.places, self.scale, numbers);
            crate::pin(None)?;
            done?;
        }
        if matches!(contender, Contender::Durable | Contender::KafkaStock) {
            self.lives(contender, numbers)?;
            let stage = elastic::Stage {
                contender,
                places: &self.places,
                quick: self.quick,
            };
            elastic::run(stage, &|id| wanted(&self.only, id), numbers)?;
        }
        Ok(())
    }

    fn loads(&self, contender: Contender, numbers: &mut Numbers) -> Result<()> {
        let broker = Broker::fresh(contender, &self.places, None)?;
        throughput::warm_up(&broker, self.scale).context("warm-up")?;
        let foreign = Foreign::begin(broker.cpu_seconds() + own_cpu_seconds());
        throughput::producers(&broker, self.scale, &|id| wanted(&self.only, id), numbers)?;
        if self.wants("C1") {
            throughput::tailing(&broker, self.scale, numbers).context("C1")?;
        }
        if self.wants("C2") {
            throughput::catch_up(&broker, self.scale, numbers).context("C2")?;
        }
        let share = foreign.share(broker.cpu_seconds() + own_cpu_seconds());
        let ids = numbers
            .keys()
            .filter_map(|metric| metric.split(['.', '_']).next());
        let ids: BTreeSet<String> = ids.map(str::to_owned).collect();
        numbers.extend(ids.into_iter().map(|id| (format!("{id}.foreign_share"), share)));
        if self.wants("P6") && matches!(contender, Contender::Durable | Contender::KafkaStock) {
            let part = if self.scale.rounds > 1 { 1.0 } else { 0.3 };
            clients::run(&broker, &self.places, part, numbers).context("P6")?;
        }
        Ok(())
    }

    fn lives(&self, contender: Contender, numbers: &mut Numbers) -> Result<()> {
        if self.wants("S1 M1") {
            life::start_and_idle(contender, &self.places, self.scale, numbers).context("S1, M1")?;
        }
        if self.wants("M2") {
            life::many_partitions(contender, &self.places, numbers).context("M2")?;
        }
        if self.wants("M3") {
            life::idle_connections(contender, &self.places, numbers).context("M3")?;
        }
        if self.wants("R1") {
            life::restart(contender, &self.places, self.scale, numbers).context("R1")?;
        }
        if self.wants("R2") {
            life::terminate_under_load(contender, &self.places, numbers).context("R2")?;
        }
        Ok(())
    }
}
