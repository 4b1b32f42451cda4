//! A partition that the members of a group share, while the broker dies.
//!
//! ```text
//!  writer ──> a partition with a backlog of many keys
//!  members ─> come, work record by record, commit by hand, leave; eager, cooperative and KIP-848 members in one group
//!  ledger ──> what they took, did and committed, in the order in which it happened; faults are found as they happen
//! ```
//!
//! Shares move whenever a member comes, leaves or has read its part; the killer looks for such moments. What must hold
//! whatever happens:
//!
//! - each record is worked on; of each key, first in the order of the log, and by one member at a time;
//! - the committed offset that outsiders see lies behind no record that is not done, at any time;
//! - what was acknowledged as committed does not come again;
//! - after each restart the group divides the partition again.

pub(crate) mod ledger;
pub(crate) mod member;
mod outsider;
pub(crate) mod writer;

use anyhow::{Context, Result, bail, ensure};
use ledger::Ledger;
use std::thread;
use std::time::{Duration, Instant};

/// The topic, with one partition.
pub(crate) const TOPIC: &str = "shared";
/// The group that shares it.
pub(crate) const GROUP: &str = "crash-sharers";
/// Members that are there at most at once.
pub(crate) const MEMBERS: u64 = 4;

/// Settings of the topic: small backlogs are divided, and often.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("elastic.split.min.remaining", "100"),
    ("elastic.steal.min.remaining", "100"),
    ("elastic.steal.min.ms", "50"),
    ("elastic.split.cooldown.ms", "100"),
];

/// How long a group may take to be divided after a restart, and to work off its backlog.
const PATIENCE: Duration = Duration::from_secs(60);

/// A look at the group from outside, after a restart: nothing is committed that is not done.
pub(crate) fn check_committed(address: &str, ledger: &Ledger) -> Result<()> {
    let committed = outsider::committed(address).context("asking what is committed")?;
    ledger.check_committed(committed)?;
    ledger.verdict()
}

/// Waits until two members work on shares that they were given, or read again, since the last restart.
pub(crate) fn wait_until_divided(ledger: &Ledger) -> Result<()> {
    wait(ledger, "the partition is divided again", Ledger::is_divided)
}

/// Waits until all that was written is done.
pub(crate) fn wait_until_done(ledger: &Ledger) -> Result<()> {
    wait(ledger, "all records are done", Ledger::is_all_done)
}

fn wait(ledger: &Ledger, what: &str, look: impl Fn(&Ledger) -> bool) -> Result<()> {
    let begun = Instant::now();
    while !look(ledger) {
        ledger.verdict()?;
        if begun.elapsed() > PATIENCE {
            bail!("not within {} s: {what}; {}", PATIENCE.as_secs(), ledger.report());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Holds the log against what the members saw, and what is committed against what they did.
pub(crate) fn verify(address: &str, ledger: &Ledger) -> Result<String> {
    let log = crate::verify::values(address, (TOPIC, 0)).context("reading the shared partition")?;
    let seen = ledger.seen();
    ensure!(
        log.len() == seen.len(),
        "{} records are stored, {} were seen by members",
        log.len(),
        seen.len()
    );
    for (offset, value) in log {
        let line = writer::Line::parse(&value);
        let at = usize::try_from(offset).ok().and_then(|offset| seen.get(offset));
        ensure!(
            line.is_some() && at.copied().flatten() == line,
            "at offset {offset} members saw {at:?}, stored is {line:?}"
        );
    }
    check_committed(address, ledger)?;
    Ok(ledger.report())
}
