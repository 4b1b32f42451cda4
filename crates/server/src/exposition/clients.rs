//! Connections, requests, and what goes through them.

use anabranch_wire::ErrorCode;
use anabranch_wire::api::ApiKey;

use super::row::{Family, Value, rows};
use crate::metrics::Metrics;

rows! {
    CONNECTIONS: Gauge "anabranch_connections" [] "Open connections of clients";
    ACCEPTED: Counter "anabranch_connections_accepted_total" [] "Connections accepted";
    REFUSED: Counter "anabranch_connections_refused_total" [] "Connections refused because of a limit";
    EXPELLED: Counter "anabranch_connections_expelled_total" [] "Connections closed for what they sent, or failed to send or take in time";
    RECEIVED: Counter "anabranch_received_bytes_total" [] "Bytes read from clients";
    SENT: Counter "anabranch_sent_bytes_total" [] "Bytes written to clients";
    REQUESTS: Counter "anabranch_requests_total" ["api"] "Requests";
    ERRORS: Counter "anabranch_errors_total" ["error"] "Errors in answers, by Kafka's name; one answer can hold several";
    TOOK: Histogram "anabranch_request_seconds" ["api"] "Time from a request's arrival until its answer may leave: waiting for the disk, for new records and for other members of a group included";
    PRODUCED_RECORDS: Counter "anabranch_produced_records_total" [] "Records appended";
    PRODUCED_BYTES: Counter "anabranch_produced_bytes_total" [] "Bytes of batches appended, as compressed by clients";
    DUPLICATES: Counter "anabranch_produced_duplicate_batches_total" [] "Batches of idempotent producers that were there already";
    FETCHED_BYTES: Counter "anabranch_fetched_bytes_total" [] "Bytes of batches handed out";
    PARKED: Counter "anabranch_fetches_parked_total" [] "Fetches that had to wait for records";
    FROM_DISK: Counter "anabranch_fetches_from_disk_total" [] "Fetches that had to read from the disk";
    AUTO_CREATED: Counter "anabranch_topics_auto_created_total" [] "Topics created because a client asked for them";
}

pub(super) fn families(metrics: &Metrics) -> Vec<Family> {
    vec![
        CONNECTIONS.alone(metrics.connections_now.get()),
        ACCEPTED.alone(metrics.connections_accepted.get()),
        REFUSED.alone(metrics.connections_refused.get()),
        EXPELLED.alone(metrics.connections_expelled.get()),
        RECEIVED.alone(metrics.received_bytes.get()),
        SENT.alone(metrics.sent_bytes.get()),
        requests(metrics),
        errors(metrics),
        times(metrics),
        PRODUCED_RECORDS.alone(metrics.produced_records.get()),
        PRODUCED_BYTES.alone(metrics.produced_bytes.get()),
        DUPLICATES.alone(metrics.produced_duplicates.get()),
        FETCHED_BYTES.alone(metrics.fetched_bytes.get()),
        PARKED.alone(metrics.fetches_parked.get()),
        FROM_DISK.alone(metrics.fetches_from_disk.get()),
        AUTO_CREATED.alone(metrics.topics_auto_created.get()),
    ]
}

/// The served APIs. All of them have a series from the start, so that a rate of one never begins with a jump.
fn apis() -> impl Iterator<Item = ApiKey> {
    let served = anabranch_wire::api::all()
        .iter()
        .filter(|api| api.served.is_some());
    served.map(|api| api.key)
}

fn requests(metrics: &Metrics) -> Family {
    REQUESTS.with(apis().map(|api| {
        let count = metrics.requests(api.number());
        (vec![api.name().to_owned()], Value::Count(count))
    }))
}

/// Errors that have happened: there are too many that never do.
fn errors(metrics: &Metrics) -> Family {
    let all = (i16::MIN..=i16::MAX).filter_map(ErrorCode::from_i16);
    let seen = all.map(|code| (code, metrics.errors(code)));
    let seen = seen.filter(|(code, count)| !code.is_ok() && *count > 0);
    ERRORS.with(seen.map(|(code, count)| (vec![format!("{code:?}")], Value::Count(count))))
}

fn times(metrics: &Metrics) -> Family {
    let seen = apis().filter_map(|api| Some((api, metrics.request_time(api.number())?)));
    TOOK.with(seen.map(|(api, time)| (vec![api.name().to_owned()], time.into())))
}
