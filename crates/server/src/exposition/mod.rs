//! `/metrics`: what Prometheus reads.
//!
//! ```text
//! GET /metrics -> Scrape::take    one look at the core under its lock, and at the store beside it
//!                  |  wait until the entry behind that look is durable
//!                  v
//!              Insight::look      ... and how it differs from earlier ones: ages, speeds, what stands still
//!                  v
//!              families()         process, clients, storage, topics, groups, elastic: one file each, made of table rows
//!                  |
//!                  v
//!              text::render       the format that the scraper asked for
//! ```
//!
//! Everything about partitions and groups comes from one look, so that lag is never negative and adds up. Names of
//! `kafka_exporter` have its meaning, so that dashboards and alerts made for it go on to work; what is ours begins with
//! `anabranch_`. Keys of records never become labels. Series by group and partition are bounded
//! ([`METRIC_SERIES_MAX`](anabranch_core::limits::METRIC_SERIES_MAX)); sums by topic are always there.
//!
//! [`metrics_page`] is the reference in `docs/metrics.md`, from the same rows ([`Row`]).

mod clients;
mod elastic;
mod groups;
mod insight;
mod process;
mod reference;
mod row;
mod scrape;
mod storage;
mod text;
mod topics;
mod trend;

pub(crate) use insight::Insight;
pub use reference::metrics_page;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::admin::routes::{Door, broker};
use crate::broker::Broker;
use row::{Family, Row};
use scrape::Scrape;
use text::Format;
use trend::Outlook;

/// All rows, in the order in which they are shown.
const ROWS: [&[Row]; 6] = [
    process::ROWS,
    clients::ROWS,
    storage::ROWS,
    topics::ROWS,
    groups::ROWS,
    elastic::ROWS,
];

/// Answers a scrape.
pub(crate) async fn handle(State(door): State<Door>, headers: HeaderMap) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let format = Format::of(accept.unwrap_or_default());
    let scrape = Scrape::take(&broker);
    if broker.shared.durable.reached(scrape.after).await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the store has failed\n").into_response();
    }
    let outlook = Insight::look(&broker, &scrape);
    match text::render(families(&broker, &scrape, &outlook), format) {
        Ok(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn families(broker: &Arc<Broker>, scrape: &Scrape, outlook: &Outlook) -> Vec<Family> {
    let mut families = process::families();
    families.extend(clients::families(&broker.shared.metrics));
    families.extend(storage::families(broker, scrape));
    families.extend(topics::families(scrape));
    families.extend(groups::families(scrape, outlook));
    families.extend(elastic::families(scrape));
    families
}
