//! The broker itself: whether its HTTP listener answers, and what its metrics complain of.

use anabranch_server::settings::{HostPort, Settings};

use super::finding::Finding;
use super::network::{Bound, judge_listener, try_bind};
use crate::client::{AdminApi, AdminUrl, is_loopback};
use crate::failure::{Exit, Outcome};
use crate::top::series::samples;

/// Offsets that have stood still for so long, seconds, are worth a word.
const STUCK_S: f64 = 300.0;

pub(super) fn examine(settings: &Settings, admin: &AdminUrl) -> Vec<Finding> {
    const CHECK: &str = "http";
    let mut findings = Vec::new();
    let listener: Option<HostPort> = settings.server.http.as_ref().and_then(|http| http.parse().ok());
    if let Some(address) = &listener {
        match try_bind(address) {
            // What answers there is asked below.
            Bound::Taken => {}
            bound => findings.push(judge_listener(CHECK, address, &bound)),
        }
        findings.extend(judge_exposed(address));
    }
    match admin.open().and_then(|api| ask(&api)) {
        Ok(found) => findings.extend(found),
        Err(failure) if failure.exit == Exit::Unreachable && !admin.is_given() => {}
        Err(failure) => {
            let remedy = failure
                .hint
                .unwrap_or_else(|| "--admin URL names another".to_owned());
            findings.push(Finding::error(CHECK, failure.message, remedy));
        }
    }
    findings
}

/// Whoever reaches the listener reads what is there.
fn judge_exposed(address: &HostPort) -> Option<Finding> {
    (!is_loopback(&address.host)).then(|| {
        let text =
            format!("everyone who reaches {address} can read the console and its API, messages included");
        Finding::note("http", text)
            .remedy("open it to machines that you trust, or let it listen on 127.0.0.1")
    })
}

fn ask(api: &AdminApi) -> Outcome<Vec<Finding>> {
    let metrics = api.metrics()?;
    let mut findings = vec![Finding::good(
        "http",
        format!("{} is a broker that answers", api.base()),
    )];
    findings.extend(judge(&metrics));
    Ok(findings)
}

/// What the metrics complain of.
fn judge(metrics: &str) -> Vec<Finding> {
    const CHECK: &str = "broker";
    let mut findings = Vec::new();
    let (mut open, mut most) = (0.0, 0.0);
    for sample in samples(metrics) {
        let group = sample.label("consumergroup");
        match sample.name {
            "anabranch_disk_almost_full" if sample.value > 0.0 => findings.push(Finding::error(
                CHECK,
                "its disk is almost full: it takes no records",
                "shorten retention, delete topics, or add space",
            )),
            "anabranch_errors_total" if sample.label("error") == "KafkaStorageError" && sample.value > 0.0 => {
                findings.push(Finding::error(
                    CHECK,
                    format!("it could not read or write its disk {} times since its start", sample.value),
                    "its log names the file; look at the system's log for errors of the disk",
                ));
            }
            "anabranch_connections_refused_total" if sample.value > 0.0 => findings.push(Finding::warning(
                CHECK,
                format!("it has refused {} connections since its start because of a limit", sample.value),
                "its log says which limit; docs/limits.md explains them",
            )),
            "anabranch_group_stuck_seconds" if sample.value > STUCK_S => findings.push(Finding::warning(
                CHECK,
                format!(
                    "group {group:?} has committed nothing in a partition of {:?} for {} s, though records wait",
                    sample.label("topic"),
                    sample.value.round()
                ),
                format!("`anabranch group describe {group}` shows where, and whose it is"),
            )),
            "process_open_fds" => open = sample.value,
            "process_max_fds" => most = sample.value,
            _ => {}
        }
    }
    if most > 0.0 && open > most * 0.8 {
        findings.push(Finding::warning(
            CHECK,
            format!("it has {open} files and sockets open, and may have {most}"),
            "LimitNOFILE= of a systemd unit, --ulimit nofile= of a container, ulimit -n of a shell",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_listener_for_everybody_is_pointed_out() {
        assert_eq!(judge_exposed(&"127.0.0.1:9099".parse().unwrap()), None);
        assert_eq!(judge_exposed(&"localhost:9099".parse().unwrap()), None);
        let open = judge_exposed(&"0.0.0.0:9099".parse().unwrap()).unwrap();
        assert_eq!(open.level, Level::Note);
    }

    #[test]
    fn complaints_of_the_metrics_are_findings() {
        let calm = "anabranch_disk_almost_full 0\nprocess_open_fds 50\nprocess_max_fds 1024\nanabranch_group_stuck_seconds{consumergroup=\"g\",topic=\"t\"} 20\nanabranch_connections_refused_total 0\n";
        assert_eq!(judge(calm), []);
        let bad = "anabranch_disk_almost_full 1\nprocess_open_fds 1000\nprocess_max_fds 1024\nanabranch_group_stuck_seconds{consumergroup=\"g\",topic=\"t\"} 900.4\nanabranch_connections_refused_total 3\nanabranch_errors_total{error=\"KafkaStorageError\"} 2\n";
        let found = judge(bad);
        let levels: Vec<Level> = found.iter().map(|finding| finding.level).collect();
        let (error, warning) = (Level::Error, Level::Warning);
        assert_eq!(levels, [error, warning, warning, error, warning]);
        assert!(found.iter().all(|finding| finding.remedy.is_some()));
        assert!(
            found[1].message.contains("\"g\"") && found[1].message.contains("900 s"),
            "{found:?}"
        );
    }
}
