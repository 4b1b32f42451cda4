//! What a run consists of, drawn from its seed. Not every run has everything: what is missing makes room for what is
//! there, and so situations arise that an even mixture would never show.

use crate::broker::Settings;
use crate::client::admin::{AGEING, Admin, FLEETING, LONELY_GROUP, QUEUED, SHRINKING, STEADY, TOPICS};
use crate::client::idempotent::Idempotent;
use crate::client::member::Member;
use crate::client::member::cast::{self, Scene};
use crate::client::outsider::Outsider;
use crate::client::producer::Producer;
use crate::client::{Client, Clock, Seat};
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
        // Chance of their own, so that runs without queues are what they would be if there were none at all.
        let mut of_queues = Rng::new(rng.clone().bits());
        let mut broker = Settings {
            segment_bytes: rng
                .pick(&[64 << 10, 128 << 10, 256 << 10])
                .copied()
                .unwrap_or(64 << 10),
            cache_bytes: if rng.percent(50) { 64 << 10 } else { 512 << 10 },
            pack_live_percent: if rng.percent(20) { 0 } else { 80 },
            commit_pause_us: rng.between(1_000, 80_000),
            session_ms: rng.between(5_000, 10_000),
            elastic: draw_elastic(rng),
            queues: Vec::new(),
            fault: None,
        };
        let is_elastic = broker.is_elastic();
        let mut groups = draw_groups(rng, is_elastic);
        if of_queues.percent(40) {
            broker.queues = draw_queues(&mut of_queues, &mut groups);
        }
        let has_queues = !broker.queues.is_empty();
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let mut clients: Vec<Box<dyn Client>> =
            vec![Box::new(Admin::new(0, names.clone(), is_elastic, has_queues))];
        for _ in 0..rng.between(1, 2) {
            let (seat, topic) = (draw_seat(rng, clients.len()), draw_topic(rng));
            clients.push(Box::new(Producer::new(seat, topic, rng.between(20, 400))));
        }
        for _ in 0..rng.between(1, 3) {
            let (seat, topic) = (draw_seat(rng, clients.len()), draw_topic(rng));
            clients.push(Box::new(Idempotent::new(seat, topic, rng.between(5, 150))));
        }
        if has_queues {
            let seat = draw_seat(&mut of_queues, clients.len());
            clients.push(Box::new(Idempotent::new(seat, QUEUED, of_queues.between(5, 150))));
            let seat = draw_seat(&mut of_queues, clients.len());
            clients.push(Box::new(Producer::new(seat, QUEUED, of_queues.between(20, 400))));
        }
        for group in &groups {
            draw_members(rng, group, &broker, &mut clients);
        }
        let looked_at = names.into_iter().chain([LONELY_GROUP.to_owned()]).collect();
        clients.push(Box::new(Outsider::new(clients.len(), looked_at)));
        Self {
            broker,
            clients,
            groups,
            faults: Faults::draw(rng),
            chaos_ms: draw_chaos(rng),
        }
    }
}

/// How long faults happen, milliseconds. What a run costs grows with that, and what it finds does, too: most runs are
/// short, and some last long enough for several sessions and for retention.
fn draw_chaos(rng: &mut Rng) -> u64 {
    let (low, high) = match rng.below(10) {
        0..7 => (5_000, 14_000),
        7..9 => (10_000, 20_000),
        _ => (20_000, 30_000),
    };
    rng.between(low, high)
}

fn draw_topic(rng: &mut Rng) -> &'static str {
    TOPICS.get(rng.index(TOPICS.len())).copied().unwrap_or(STEADY)
}

/// Settings of groups whose members share partitions; in some runs they do not. All times are short, so that much happens.
fn draw_elastic(rng: &mut Rng) -> Vec<(&'static str, String)> {
    if rng.percent(35) {
        return vec![("elastic.mode", "off".to_owned())];
    }
    let mut drawn = vec![("elastic.mode", "slices".to_owned())];
    drawn.extend(draw_numbers(
        rng,
        &[
            ("elastic.interval.ms", 50, 800),
            ("elastic.split.min.remaining", 1, 12),
            ("elastic.steal.min.remaining", 1, 12),
            ("elastic.steal.min.ms", 0, 100),
            ("elastic.split.cooldown.ms", 0, 500),
            ("elastic.fence.timeout.ms", 200, 4_000),
            ("elastic.merge.delay.ms", 100, 4_000),
            ("elastic.balance.cooldown.ms", 0, 1_000),
        ],
    ));
    if rng.percent(40) {
        drawn.push(("elastic.commit.evidence", "latest".to_owned()));
    }
    drawn
}

/// Settings of a topic in queue mode, with short times, and who reads it: some of the groups, and one of its own.
fn draw_queues(rng: &mut Rng, groups: &mut Vec<Group>) -> Vec<(&'static str, String)> {
    for group in groups.iter_mut() {
        if rng.percent(50) {
            group.topics.push(QUEUED.to_owned());
        }
    }
    groups.push(Group {
        name: "gamma".to_owned(),
        topics: vec![QUEUED.to_owned()],
    });
    draw_numbers(
        rng,
        &[
            ("elastic.queues.min", 1, 2),
            ("elastic.queues.max", 2, 6),
            ("elastic.queues.write.delay.ms", 0, 1_500),
            ("elastic.queues.drain.delay.ms", 0, 3_000),
            ("elastic.queues.shrink.grace.ms", 0, 3_000),
            ("elastic.queues.group.ttl.ms", 0, 10_000),
        ],
    )
}

/// A value for each setting, between its bounds.
fn draw_numbers(rng: &mut Rng, settings: &[(&'static str, u64, u64)]) -> Vec<(&'static str, String)> {
    let settings = settings.iter();
    settings
        .map(|(key, low, high)| (*key, rng.between(*low, *high).to_string()))
        .collect()
}

fn draw_groups(rng: &mut Rng, is_elastic: bool) -> Vec<Group> {
    let group = |name: &str, topics: &[&str]| Group {
        name: name.to_owned(),
        topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
    };
    // Few partitions for many members.
    let topics: &[&str] = match is_elastic && rng.percent(60) {
        true => &[STEADY],
        false => &[STEADY, FLEETING],
    };
    let mut groups = vec![group("alpha", topics)];
    if rng.percent(60) {
        groups.push(group("beta", &[STEADY, SHRINKING, AGEING]));
    }
    groups
}

fn draw_members(rng: &mut Rng, group: &Group, settings: &Settings, clients: &mut Vec<Box<dyn Client>>) {
    let (members_max, work_ms_max) = if settings.is_elastic() { (5, 40) } else { (4, 2) };
    let takes_latest = |(key, value): &(&str, String)| *key == "elastic.commit.evidence" && value == "latest";
    let scene = Scene {
        group: &group.name,
        topics: &group.topics,
        members_max,
        work_us_max: work_ms_max * 1_000,
        is_elastic: settings.is_elastic(),
        commit_means_done: settings.elastic.iter().any(takes_latest),
    };
    for habits in cast::draw(rng, scene, clients.len()) {
        clients.push(Box::new(Member::new(clients.len(), habits)));
    }
}

/// The seat of a producer: the wall clocks of some are minutes off.
fn draw_seat(rng: &mut Rng, index: usize) -> Seat {
    let off_ms = rng.between(1_000, 50 * 60_000) as i64;
    let ahead_ms = match rng.below(8) {
        0 => off_ms,
        1 => -off_ms,
        _ => 0,
    };
    Seat::with_clock(
        index,
        Clock {
            ahead_ms,
            ..Clock::default()
        },
    )
}
