//! What a run consists of, drawn from its seed. Not every run has everything: what is missing makes room for what is
//! there, and so situations arise that an even mixture would never show.

use crate::broker::Settings;
use crate::client::Client;
use crate::client::admin::{AGEING, Admin, FLEETING, LONELY_GROUP, SHRINKING, STEADY, TOPICS};
use crate::client::idempotent::Idempotent;
use crate::client::member::{Habits, Member, Style};
use crate::client::outsider::Outsider;
use crate::client::producer::Producer;
use crate::faults::Faults;
use crate::rng::Rng;

/// A group and what it reads.
#[derive(Clone, Debug)]
pub struct Group {
    /// Group id.
    pub name: String,
    /// Topics.
    pub topics: Vec<String>,
}

/// All of it.
pub struct Plan {
    /// The broker.
    pub broker: Settings,
    /// Clients, the administrator first.
    pub clients: Vec<Box<dyn Client>>,
    /// Groups that have members.
    pub groups: Vec<Group>,
    /// Faults.
    pub faults: Faults,
    /// How long faults happen, milliseconds.
    pub chaos_ms: u64,
}

impl Plan {
    /// Draws a plan.
    pub fn draw(rng: &mut Rng) -> Self {
        let broker = Settings {
            segment_bytes: 64 << 10,
            cache_bytes: if rng.percent(50) { 64 << 10 } else { 512 << 10 },
            pack_live_percent: if rng.percent(20) { 0 } else { 80 },
            commit_pause_us: rng.between(1_000, 80_000),
            session_ms: rng.between(5_000, 10_000),
        };
        let groups = draw_groups(rng);
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let mut clients: Vec<Box<dyn Client>> = vec![Box::new(Admin::new(0, names.clone()))];
        for _ in 0..rng.between(1, 2) {
            let (index, topic) = (clients.len(), draw_topic(rng));
            clients.push(Box::new(Producer::new(index, topic, rng.between(20, 400))));
        }
        for _ in 0..rng.between(1, 3) {
            let (index, topic) = (clients.len(), draw_topic(rng));
            clients.push(Box::new(Idempotent::new(index, topic, rng.between(5, 150))));
        }
        for group in &groups {
            draw_members(rng, group, &mut clients);
        }
        let looked_at = names.into_iter().chain([LONELY_GROUP.to_owned()]).collect();
        clients.push(Box::new(Outsider::new(clients.len(), looked_at)));
        Self {
            broker,
            clients,
            groups,
            faults: Faults::draw(rng),
            chaos_ms: rng.between(12_000, 30_000),
        }
    }
}

fn draw_topic(rng: &mut Rng) -> &'static str {
    TOPICS.get(rng.index(TOPICS.len())).copied().unwrap_or(STEADY)
}

fn draw_groups(rng: &mut Rng) -> Vec<Group> {
    let group = |name: &str, topics: &[&str]| Group {
        name: name.to_owned(),
        topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
    };
    let mut groups = vec![group("alpha", &[STEADY, FLEETING])];
    if rng.percent(60) {
        groups.push(group("beta", &[STEADY, SHRINKING, AGEING]));
    }
    groups
}

fn draw_members(rng: &mut Rng, group: &Group, clients: &mut Vec<Box<dyn Client>>) {
    let styles = [Style::Eager, Style::Cooperative, Style::Modern];
    let shared = rng.pick(&styles).copied().filter(|_| rng.percent(60));
    for nth in 0..rng.between(2, 4) {
        let style = shared
            .or_else(|| rng.pick(&styles).copied())
            .unwrap_or(Style::Modern);
        let habits = Habits {
            group: group.name.clone(),
            topics: group.topics.clone(),
            style,
            instance: rng.percent(25).then(|| format!("{}-{nth}", group.name)),
            manual: rng.percent(40),
            commit_ms: rng.between(300, 3_000),
        };
        clients.push(Box::new(Member::new(clients.len(), habits)));
    }
}
