//! The dashboard, the alert rules and the scalers in `deploy/` against what a broker serves: names, labels, and whether a metric is used
//! as what it is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod promql;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::*;
use promql::{Expression, Use};
use serde_json::Value;

/// What Prometheus adds to what it scrapes.
const ADDED: [&str; 2] = ["job", "instance"];

/// Functions that turn a counter into something that goes up and down.
const RATES: [&str; 3] = ["rate", "irate", "increase"];

/// A metric as it is served.
#[derive(Debug)]
struct Metric {
    kind: String,
    /// Labels that it is seen with, and labels by the reference page.
    labels: BTreeSet<String>,
}

type Metrics = BTreeMap<String, Metric>;

/// The types by the output of a broker, the labels by that and the reference page, which must agree.
async fn served() -> Metrics {
    let server = TestServer::with_http().await;
    let mut client = server.client().await;
    client.create_topic("t", 2, &[]).await;
    assert_eq!(client.produce("t", 0, batch(&["a", "b"])).await.error_code, 0);
    let answer = http_get(server.http(), "/metrics").await;
    let page = anabranch_server::metrics_page();
    let mut metrics = Metrics::new();
    for line in answer.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let row = page.lines().find(|row| row.starts_with(&format!("| `{name}` |")));
        let cells: Vec<&str> = row.expect(name).split(" | ").collect();
        assert_eq!(cells[1], kind, "{name}");
        let labels = cells[2]
            .split(", ")
            .map(|label| label.trim().trim_matches('`').to_owned());
        let metric = Metric {
            kind: kind.to_owned(),
            labels: labels.filter(|label| !label.is_empty()).collect(),
        };
        metrics.insert(name.to_owned(), metric);
    }
    for line in answer
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains('{'))
    {
        let used = promql::read(line.rsplit_once(' ').unwrap().0).uses.remove(0);
        let (name, _) = base(&metrics, &used.name).unwrap_or_else(|| panic!("{line}"));
        for label in used.labels.iter().filter(|label| *label != "le") {
            assert!(
                metrics[name].labels.contains(label),
                "{label} of {name} is not in the reference"
            );
        }
    }
    metrics
}

/// The metric behind a name, and the part of a histogram that is meant.
fn base<'a>(metrics: &'a Metrics, name: &str) -> Option<(&'a str, Option<&'static str>)> {
    if let Some((name, _)) = metrics.get_key_value(name) {
        return Some((name, None));
    }
    ["_bucket", "_sum", "_count"].into_iter().find_map(|end| {
        let (base, metric) = metrics.get_key_value(name.strip_suffix(end)?)?;
        (metric.kind == "histogram").then_some((base.as_str(), Some(end)))
    })
}

/// Labels that an expression can have, if all of its metrics exist and are used as what they are.
fn check(metrics: &Metrics, expression: &str) -> BTreeSet<String> {
    let found = promql::read(expression);
    assert!(!found.uses.is_empty(), "{expression} uses nothing");
    let mut labels: BTreeSet<String> = ADDED.iter().map(ToString::to_string).collect();
    for used in &found.uses {
        // Whether a scrape succeeded: Prometheus's own.
        if used.name == "up" {
            continue;
        }
        labels.extend(check_use(metrics, used, &found, expression));
    }
    for label in &found.grouped {
        assert!(
            label == "le" || labels.contains(label),
            "{label} is no label in {expression}"
        );
    }
    labels
}

fn check_use(metrics: &Metrics, used: &Use, found: &Expression, expression: &str) -> BTreeSet<String> {
    let name = &used.name;
    let (base, part) =
        base(metrics, name).unwrap_or_else(|| panic!("there is no metric {name}: {expression}"));
    let metric = &metrics[base];
    for label in &used.labels {
        let is_known = metric.labels.contains(label) || ADDED.contains(&label.as_str());
        assert!(is_known, "{name} has no label {label}: {expression}");
    }
    let around = used.inside.last().map_or("", String::as_str);
    let is_rate = RATES.contains(&around);
    match (metric.kind.as_str(), part) {
        ("histogram", None) => panic!("{name} is a histogram, not a number: {expression}"),
        ("histogram", Some("_bucket")) => {
            let is_quantile = used
                .inside
                .first()
                .is_some_and(|outer| outer == "histogram_quantile");
            assert!(
                is_quantile && found.grouped.contains("le"),
                "buckets of {name}: {expression}"
            );
            assert!(is_rate, "{name} only grows: {expression}");
        }
        ("counter", _) | ("histogram", Some(_)) => assert!(is_rate, "{name} only grows: {expression}"),
        ("gauge", _) => assert!(!is_rate, "{name} goes up and down: {expression}"),
        (kind, _) => panic!("{name} is a {kind}"),
    }
    assert!(used.is_range || !is_rate, "{around} needs a range: {expression}");
    metric.labels.clone()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Names in double braces: `{{ $labels.topic }}` with this start, `{{topic}}` with an empty one.
fn placeholders<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = text.split("{{").skip(1);
    let inside = parts.filter_map(|part| part.split_once("}}"));
    inside.filter_map(move |(inside, _)| inside.trim().split(' ').next()?.strip_prefix(start))
}

#[tokio::test]
async fn every_alert_uses_what_a_broker_serves_as_what_it_is() {
    let metrics = served().await;
    let text = std::fs::read_to_string(folder().join("prometheus/anabranch.rules.yml")).unwrap();
    let rules: Value = serde_norway::from_str(&text).unwrap();
    let page = std::fs::read_to_string(folder().join("../docs/operations.md")).unwrap();
    let mut names = BTreeSet::new();
    for rule in rules["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
    {
        let name = rule["alert"].as_str().unwrap();
        assert!(name.starts_with("Anabranch") && names.insert(name), "{name}");
        // What to do when it fires is where the alert itself says.
        assert!(page.contains(&format!("\n| {name} | ")), "{name} has no row");
        let runbook = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(
            runbook.ends_with("docs/operations.md#alerts"),
            "{name}: {runbook}"
        );
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning"].contains(&severity), "{name}: {severity}");
        let labels = check(&metrics, rule["expr"].as_str().unwrap());
        for part in ["summary", "description"] {
            let text = rule["annotations"][part].as_str().unwrap();
            for label in placeholders(text, "$labels.") {
                assert!(labels.contains(label), "{name} has no label {label}: {text}");
            }
            for command in text.split('`').skip(1).step_by(2) {
                assert!(command.starts_with("anabranch "), "{name}: {command}");
            }
        }
    }
    assert!(names.len() > 10);
}

#[tokio::test]
async fn every_panel_uses_what_a_broker_serves_as_what_it_is() {
    let metrics = served().await;
    let text = std::fs::read_to_string(folder().join("grafana/anabranch.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let variables: Vec<&Value> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        let query = variable["query"]["query"].as_str().unwrap();
        let inside = query
            .strip_prefix("label_values(")
            .unwrap()
            .strip_suffix(')')
            .unwrap();
        let (metric, label) = inside.rsplit_once(", ").unwrap();
        assert!(check(&metrics, metric).contains(label), "{query}");
    }
    let mut ids = BTreeSet::new();
    let mut used = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(
            ids.insert(panel["id"].as_i64().unwrap()),
            "{panel} has the id of another"
        );
        let place = &panel["gridPos"];
        assert!(
            place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24,
            "{panel}"
        );
        let targets = panel["targets"].as_array().into_iter().flatten();
        for target in targets {
            let expression = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
            let labels = check(&metrics, &expression);
            let legend = target["legendFormat"].as_str().unwrap();
            for label in placeholders(legend, "") {
                assert!(
                    labels.contains(label),
                    "{label} of the legend {legend}: {expression}"
                );
            }
            used.extend(promql::read(&expression).uses.into_iter().map(|one| one.name));
            for name in variables
                .iter()
                .map(|variable| variable["name"].as_str().unwrap())
            {
                let known = name == "datasource" || !expression.contains(&format!("${name}\""));
                assert!(
                    known || expression.contains(&format!("{name}=~\"${name}\"")),
                    "{expression}"
                );
            }
        }
    }
    assert!(used.len() > 40, "{used:?}");
}

#[tokio::test]
async fn every_scaler_asks_for_what_a_broker_serves() {
    let metrics = served().await;
    let text = std::fs::read_to_string(folder().join("keda/scaledobjects.yaml")).unwrap();
    let mut kinds = Vec::new();
    for document in text.split("\n---\n") {
        let object: Value = serde_norway::from_str(document).unwrap();
        assert_eq!(object["kind"], "ScaledObject");
        for trigger in object["spec"]["triggers"].as_array().unwrap() {
            let metadata = &trigger["metadata"];
            kinds.push(trigger["type"].as_str().unwrap().to_owned());
            if trigger["type"] == "prometheus" {
                check(&metrics, metadata["query"].as_str().unwrap());
            }
            // KEDA takes strings only, and says so when it is too late.
            let mut values = metadata.as_object().unwrap().values();
            assert!(values.all(Value::is_string), "{metadata}");
        }
    }
    assert_eq!(kinds, ["prometheus", "kafka", "kafka"]);
}

#[tokio::test]
async fn misuse_is_found() {
    let metrics = served().await;
    for (expression, why) in [
        ("kafka_brokers_total", "no metric"),
        ("anabranch_connections{topic=\"t\"}", "no label"),
        ("anabranch_requests_total", "only grows"),
        ("rate(anabranch_connections[5m])", "goes up and down"),
        ("rate(anabranch_requests_total)", "needs a range"),
        ("anabranch_sync_seconds", "is a histogram"),
        (
            "histogram_quantile(0.5, sum(rate(anabranch_sync_seconds_bucket[5m])))",
            "buckets of",
        ),
        ("sum by (group) (anabranch_connections)", "is no label"),
    ] {
        let found = std::panic::catch_unwind(|| check(&metrics, expression)).unwrap_err();
        let said = found.downcast_ref::<String>().unwrap();
        assert!(said.contains(why), "{expression}: {said}");
    }
}
