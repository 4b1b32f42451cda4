//! E1: a second member joins while the first has a backlog; the time until it has its first record.
//!
//! What a user sees is measured with librdkafka: it has the first member's heartbeats and commits in it, which no broker
//! can hasten. The broker's part is measured with members that never wait: the first commits after each millisecond's
//! work, both send heartbeats without pause.

use super::api::last_words;
use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::raw::{GROUP, RawMember, topic_id};
use super::{Site, Stage, insert_times, quantile};
use crate::case::Numbers;
use anyhow::{Result, anyhow, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Work on a record.
pub(super) const COST: Duration = Duration::from_millis(1);

/// What librdkafka members commit by.
pub(super) const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait for anything that must come.
const LIMIT: Duration = Duration::from_secs(60);

/// How long Kafka's second member waits for a record that cannot come.
const IN_VAIN: Duration = Duration::from_secs(5);

/// Longer than `elastic.split.cooldown.ms`, so that each join meets a planner that may act at once.
const BETWEEN: Duration = Duration::from_millis(1200);

/// Asked for at once: a few records, as many as are worked on in some milliseconds.
pub(super) const READ_BYTES: i32 = 2_000;

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    if stage.contender.is_kafka() {
        return in_vain(stage, numbers, cpu);
    }
    for protocol in Protocol::ALL {
        let mut times_ms = as_users_see_it(stage, protocol, cpu)?;
        let name = format!("e1_{}", protocol.word());
        numbers.insert(format!("{name}.join_p50_ms"), quantile(&mut times_ms, 0.5));
        numbers.insert(format!("{name}.join_max_ms"), quantile(&mut times_ms, 1.0));
    }
    insert_times(numbers, "e1.broker", of_the_broker(stage, cpu)?);
    Ok(())
}

fn job(site: &Site<'_>, protocol: Protocol) -> Job {
    Job {
        address: site.address().into(),
        group: "e1".into(),
        topic: "e1".into(),
        protocol,
        cost: COST,
        commit_interval: Some(COMMIT_INTERVAL),
    }
}

/// Milliseconds from subscribing to the first record, in turn.
fn as_users_see_it(stage: Stage<'_>, protocol: Protocol, cpu: &mut f64) -> Result<Vec<f64>> {
    let site = Site::start(stage, cpu)?;
    let (records, joins) = if stage.quick { (100_000, 2) } else { (2_000_000, 5) };
    site.topic("e1", Backlog::new(records, Keys::Uniform))?;
    let mut crew = Crew::new(job(&site, protocol));
    crew.join()?;
    ensure!(
        crew.wait(LIMIT, |crew| crew.delivered() > 2_500)?,
        "the first member does not work"
    );
    let mut times_ms = Vec::new();
    for join in 0..joins {
        // At another point of everybody's timers each time.
        thread::sleep(Duration::from_millis(join * 370 % 1000));
        let at = crew.join()?;
        let first = |crew: &Crew| crew.members.get(at).and_then(|member| member.journal.first_us());
        ensure!(
            crew.wait(LIMIT, |crew| first(crew).is_some())?,
            "{}: the second member got nothing: {}",
            protocol.word(),
            last_words(&site.broker.http()?, "e1")
        );
        let started_us = crew.members.get(at).map_or(0, |member| member.started_us);
        times_ms.push((first(&crew).unwrap_or_default() - started_us) as f64 / 1000.0);
        crew.leave(at)?;
        thread::sleep(Duration::from_secs(2));
    }
    Ok(times_ms)
}

/// Records that Kafka's second member got of one partition.
fn in_vain(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    site.topic("e1", Backlog::new(50_000, Keys::Uniform))?;
    let mut crew = Crew::new(job(&site, Protocol::Consumer));
    crew.join()?;
    ensure!(
        crew.wait(LIMIT, |crew| crew.delivered() > 0)?,
        "Kafka's first member does not work"
    );
    let at = crew.join()?;
    thread::sleep(IN_VAIN);
    let got = crew
        .members
        .get(at)
        .map_or(0, |member| member.journal.deliveries().len());
    numbers.insert("e1.second_member_records".into(), got as f64);
    Ok(())
}

/// Milliseconds from joining to the first record between members that never wait.
fn of_the_broker(stage: Stage<'_>, cpu: &mut f64) -> Result<Vec<f64>> {
    let site = Site::start(stage, cpu)?;
    let (records, joins) = if stage.quick { (40_000, 10) } else { (100_000, 30) };
    let small = Backlog {
        records_per_batch: 8,
        ..Backlog::new(records, Keys::Uniform)
    };
    site.topic("e1", small)?;
    let owner = Owner::start(site.address(), "e1")?;
    let id = topic_id(site.address(), "e1")?;
    let mut times_ms = Vec::new();
    for join in 0..joins {
        thread::sleep(BETWEEN);
        let mut newcomer = RawMember::connect(site.address(), "e1", id, &format!("newcomer-{join}"))?;
        let begin = Instant::now();
        loop {
            newcomer.beat()?;
            if !newcomer.read(READ_BYTES)?.is_empty() {
                break;
            }
            owner.check()?;
            ensure!(
                begin.elapsed() < LIMIT,
                "the newcomer got nothing: {}",
                last_words(&site.broker.http()?, GROUP)
            );
            thread::sleep(Duration::from_micros(200));
        }
        times_ms.push(begin.elapsed().as_secs_f64() * 1000.0);
        newcomer.commit()?;
        newcomer.leave()?;
    }
    owner.stop()?;
    Ok(times_ms)
}

/// A raw member at work in a thread: reads a few records, works on them, commits, sends a heartbeat, and so on.
pub(super) struct Owner {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<()>>,
    /// Keys of the records that came, and when.
    came: Arc<Mutex<Vec<(Instant, u32)>>>,
}

impl Owner {
    /// Returns once it has committed something.
    pub(super) fn start(address: &str, topic: &str) -> Result<Self> {
        let mut member = RawMember::join(address, topic, topic_id(address, topic)?, "owner")?;
        let begin = Instant::now();
        let came = Arc::new(Mutex::default());
        while !work(&mut member, &came)? {
            ensure!(begin.elapsed() < LIMIT, "the owner got nothing");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (told, noted) = (Arc::clone(&stop), Arc::clone(&came));
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                work(&mut member, &noted)?;
            }
            Ok(())
        });
        Ok(Self { stop, thread, came })
    }

    /// When it got the first record behind a moment whose key is one of some.
    pub(super) fn first_of(&self, since: Instant, is_wanted: impl Fn(u32) -> bool) -> Option<Instant> {
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |(at, key): &&(Instant, u32)| *at >= since && is_wanted(*key);
        came.iter().find(wanted).map(|(at, _)| *at)
    }

    /// An error if it has ended.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(!self.thread.is_finished(), "the owner has ended");
        Ok(())
    }

    pub(super) fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the owner panicked"))?
    }
}

/// One turn of a member's work; whether there was any.
fn work(member: &mut RawMember, noted: &Mutex<Vec<(Instant, u32)>>) -> Result<bool> {
    member.beat()?;
    let came = member.read(READ_BYTES)?;
    let now = Instant::now();
    let mut notes = noted.lock().unwrap_or_else(PoisonError::into_inner);
    notes.extend(came.iter().map(|(key, _)| (now, *key)));
    drop(notes);
    thread::sleep(COST * u32::try_from(came.len().max(1))?);
    member.commit()?;
    Ok(!came.is_empty())
}
