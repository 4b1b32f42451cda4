//! Anabranch's administration API, as far as it is needed here: decisions and counters.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
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
}

#[derive(Deserialize)]
struct Decisions {
    decisions: Vec<Decision>,
    next: Option<u64>,
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

/// The counters now.
pub(crate) fn counters(http: &str) -> Result<Counters> {
    get(http, "/api/v1/counters")
}

fn get<T: DeserializeOwned>(http: &str, path: &str) -> Result<T> {
    let mut stream = TcpStream::connect(http).with_context(|| format!("cannot connect to {http}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    serde_json::from_str(body).with_context(|| format!("{path} answers something else"))
}
