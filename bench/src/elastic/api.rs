//! Anabranch's administration API, as far as it is needed here: decisions, counters, queues.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What was decided.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Decision {
    pub(crate) time_ms: i64,
    pub(crate) kind: String,
    pub(crate) outcome: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Vec<String>,
    text: String,
}

#[derive(Deserialize)]
struct Decisions {
    decisions: Vec<Decision>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct Queues {
    write: u32,
    read: u32,
}

#[derive(Deserialize)]
struct Group {
    members: Vec<Member>,
    partitions: Vec<Partition>,
}

#[derive(Deserialize)]
struct Partition {
    shares: Vec<Share>,
}

#[derive(Deserialize)]
struct Share {
    member: String,
    end: Option<i64>,
    slot_runs: Vec<[u16; 2]>,
}

#[derive(Deserialize)]
struct Member {
    member: String,
    client_id: String,
}

/// What the broker has counted since it began.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Counters {
    pub(crate) state_bytes_total: u64,
    pub(crate) slice_read_bytes_total: u64,
    pub(crate) slice_opened_bytes_total: u64,
    pub(crate) slice_delivered_bytes_total: u64,
}

/// The decisions about a group that changed something.
pub(crate) fn decisions(http: &str, group: &str) -> Result<Vec<Decision>> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page: Decisions = get(http, &format!("/api/v1/decisions?group={group}&after={after}"))?;
        let empty = page.decisions.is_empty();
        all.extend(page.decisions.into_iter().filter(|one| one.outcome == "decided"));
        match page.next {
            Some(next) if !empty && next > after => after = next,
            _ => return Ok(all),
        }
    }
}

/// The last decisions and refusals about a group, for the message when something did not happen.
pub(crate) fn last_words(http: &str, group: &str) -> String {
    let page: Result<Decisions> = get(http, &format!("/api/v1/decisions?group={group}"));
    let texts = page.map(|page| {
        let last = page.decisions.iter().rev().take(5).rev();
        last.map(|one| format!("\n  {}", one.text)).collect()
    });
    texts.unwrap_or_else(|error| error.to_string())
}

/// What the members of a group call themselves, by the ids that decisions name them by.
pub(crate) fn client_ids(http: &str, group: &str) -> Result<BTreeMap<String, String>> {
    let group: Group = get(http, &format!("/api/v1/groups/{group}"))?;
    let members = group.members.into_iter();
    Ok(members.map(|one| (one.member, one.client_id)).collect())
}

/// The slots that a member of a group has, in its newest slice of the first partition, as runs of numbers.
pub(crate) fn slots_of(http: &str, group: &str, member: &str) -> Result<Vec<[u16; 2]>> {
    let group: Group = get(http, &format!("/api/v1/groups/{group}"))?;
    let shares = group
        .partitions
        .into_iter()
        .next()
        .map(|one| one.shares)
        .unwrap_or_default();
    let own = shares
        .into_iter()
        .find(|share| share.member == member && share.end.is_none());
    Ok(own.map(|share| share.slot_runs).unwrap_or_default())
}

/// The counters now.
pub(crate) fn counters(http: &str) -> Result<Counters> {
    get(http, "/api/v1/counters")
}

/// Write and read queue count of a topic.
pub(crate) fn queues(http: &str, topic: &str) -> Result<(u32, u32)> {
    let queues: Queues = get(http, &format!("/api/v1/topics/{topic}/queues"))?;
    Ok((queues.write, queues.read))
}

/// Wishes for a number of queues.
pub(crate) fn wish_queues(http: &str, topic: &str, count: u32) -> Result<()> {
    let path = format!("/api/v1/topics/{topic}/queues/wish");
    let _: Queues = ask(http, &format!("POST {path}"), &format!("{{\"count\":{count}}}"))?;
    Ok(())
}

fn get<T: DeserializeOwned>(http: &str, path: &str) -> Result<T> {
    ask(http, &format!("GET {path}"), "")
}

fn ask<T: DeserializeOwned>(http: &str, what: &str, body: &str) -> Result<T> {
    let mut stream = TcpStream::connect(http).with_context(|| format!("cannot connect to {http}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let size = body.len();
    let head = format!("{what} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\nContent-Length: {size}");
    stream.write_all(format!("{head}\r\nContent-Type: application/json\r\n\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{what}: {head}");
    serde_json::from_str(body).with_context(|| format!("{what} answers something else"))
}
