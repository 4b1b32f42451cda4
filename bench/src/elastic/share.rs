//! Kafka's share group (KIP-932), in the place of a divided one: consumers of the Java client, since librdkafka has none.

use super::verdict::Delivery;
use crate::broker::Places;
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Drains `records` records of a topic with `members` consumers, a millisecond's sleep for each record.
pub(super) fn drain(
    places: &Places,
    address: &str,
    topic: &str,
    (members, records): (u32, u32),
    limit: Duration,
) -> Result<Vec<Delivery>> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/share/ShareMembers.java");
    let output = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "java", "-cp"])
        .arg(places.jars.join("*"))
        .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", source])
        .args([address, topic, &members.to_string(), &records.to_string()])
        .arg(limit.as_millis().to_string())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start java by setpriv (of util-linux)")?;
    ensure!(output.status.success(), "the share group's members failed");
    let text = String::from_utf8(output.stdout)?;
    let deliveries: Option<Vec<Delivery>> = text.lines().map(delivery).collect();
    deliveries.context("the share group's members say something else than deliveries")
}

fn delivery(line: &str) -> Option<Delivery> {
    let mut numbers = line.split(' ').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    Some(Delivery {
        member: u32::try_from(next()?).ok()?,
        key: u32::try_from(next()?).ok()?,
        seq: u32::try_from(next()?).ok()?,
        start_us: next()?,
        done_us: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_delivery() {
        let expected = Delivery {
            member: 1,
            key: 20,
            seq: 3,
            start_us: 400,
            done_us: 500,
        };
        assert_eq!(delivery("1 20 3 400 500"), Some(expected));
        assert_eq!(delivery("1 20 3 400"), None);
        assert_eq!(delivery("WARN something"), None);
    }
}
