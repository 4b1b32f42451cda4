//! Records of a partition, to look at: from an offset, from a time, or those of a key.

use std::sync::Arc;

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::limits::{
    ADMIN_ANSWER_BYTES_MAX, ADMIN_SEARCH_BYTES_MAX, ADMIN_SEARCH_RECORDS_MAX, DECOMPRESSED_BATCH_BYTES_MAX,
    DECOMPRESSION_RATIO_MAX,
};
use anabranch_store::ReadError;
use anabranch_wire::batch::{BatchHeader, BatchIter, DecompressLimits, Record, RecordSet, records};
use anabranch_wire::slot::{murmur2, slot_of_batch, slot_of_key};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::model::{Header, Message, Messages, Text};
use super::routes::{Door, broker, refused};
use super::topics::no_topic;
use crate::api::list_offsets::first_at_or_after;
use crate::broker::Broker;

/// Records in one answer unless told otherwise, and at most.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;

/// Bytes of a key or a value that are shown unless told otherwise, and at most.
const BYTES: usize = 4 << 10;
const BYTES_MAX: usize = 64 << 10;

/// Bytes of batches in one read.
const READ_BYTES: usize = 1 << 20;

/// Headers of a record that are shown.
const HEADERS_MAX: usize = 32;

/// Which records are wanted.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Wanted {
    /// Number of the partition. Left out: the one that Kafka's partitioner gives the key, or 0.
    partition: Option<i32>,
    /// From this offset on, or the nearest that exists.
    offset: Option<i64>,
    /// From the first record on that is not older, milliseconds since 1970.
    time_ms: Option<i64>,
    /// Only records with this key.
    key: Option<String>,
    /// At most so many records, and never more than 500; 50 if left out. Without a place to begin, the latest ones.
    limit: Option<usize>,
    /// Bytes of a key or value that are shown, at most 65,536; 4,096 if left out.
    bytes: Option<usize>,
}

/// What exists of a partition and can be read.
struct Range {
    partition: i32,
    log: LogId,
    start: Offset,
    end: Offset,
}

pub(super) async fn messages(
    State(door): State<Door>,
    Path(topic): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let range = match range(&broker, &topic, &wanted) {
        Ok(range) => range,
        Err(response) => return *response,
    };
    // Reads of the disk have turns, so that a page that asks for much does not take the threads of clients.
    let Ok(turn) = Arc::clone(&broker.turns).acquire_owned().await else {
        return broken();
    };
    let found = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        Search::of(&wanted, topic, &range).run(&broker, &wanted, &range)
    });
    match found.await {
        Ok(Ok(found)) => Json(found).into_response(),
        Ok(Err(error)) => {
            tracing::error!(%error, "cannot read messages");
            broken()
        }
        Err(_) => broken(),
    }
}

fn broken() -> Response {
    let text = "the messages cannot be read; the broker's log says why";
    refused(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", text)
}

fn range(broker: &Arc<Broker>, topic: &str, wanted: &Wanted) -> Result<Range, Box<Response>> {
    if wanted.offset.is_some() && wanted.time_ms.is_some() {
        let text = "offset and time_ms name two places to begin; give one";
        return Err(Box::new(refused(StatusCode::BAD_REQUEST, "bad-request", text)));
    }
    broker.with(|core| {
        let found = core.node().topic_by_name(topic);
        let found = found.ok_or_else(|| Box::new(no_topic(topic)))?;
        let by_key = |key: &String| {
            let positive = murmur2(key.as_bytes()) & i32::MAX;
            positive.checked_rem(found.logs.len() as i32).unwrap_or(0)
        };
        let partition = wanted
            .partition
            .unwrap_or_else(|| wanted.key.as_ref().map_or(0, by_key));
        let log = found.log(partition).and_then(|log| core.node().log(log));
        let log = log.ok_or_else(|| {
            let text = format!("there is no partition {partition} of topic {topic:?}");
            Box::new(refused(StatusCode::NOT_FOUND, "not-found", &text))
        })?;
        Ok(Range {
            partition,
            log: log.id(),
            start: log.start(),
            end: log.high_watermark(),
        })
    })
}

/// A search under way.
struct Search {
    found: Messages,
    limit: usize,
    bytes_max: usize,
    text_bytes: usize,
}

impl Search {
    fn of(wanted: &Wanted, topic: String, range: &Range) -> Self {
        Self {
            found: Messages {
                topic,
                partition: range.partition,
                log_start: range.start,
                log_end: range.end,
                ..Messages::default()
            },
            limit: wanted.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX),
            bytes_max: wanted.bytes.unwrap_or(BYTES).min(BYTES_MAX),
            text_bytes: 0,
        }
    }

    fn begin(&self, broker: &Broker, wanted: &Wanted, range: &Range) -> Result<Offset, ReadError> {
        if let Some(time_ms) = wanted.time_ms {
            let found = first_at_or_after(&broker.store, range.log, time_ms, range.start..range.end)?;
            return Ok(found.map_or(range.end, |(offset, _)| offset));
        }
        let latest = range.end.saturating_sub(self.limit as i64);
        // Records of a key may lie anywhere: without a place to begin they are looked for from the first on.
        let usual = if wanted.key.is_some() { range.start } else { latest };
        Ok(wanted.offset.unwrap_or(usual).clamp(range.start, range.end))
    }

    fn run(mut self, broker: &Broker, wanted: &Wanted, range: &Range) -> Result<Messages, ReadError> {
        let mut at = self.begin(broker, wanted, range)?;
        let mut bytes = 0;
        while at < range.end && bytes < ADMIN_SEARCH_BYTES_MAX && !self.is_full() {
            let batches = broker.store.read(range.log, at, range.end, READ_BYTES, true)?;
            let before = at;
            let each = batches.iter().flat_map(|run| {
                let places = BatchIter::new(run).flatten();
                places.filter_map(|(from, header)| run.get(from..from + header.size()))
            });
            for batch in each {
                bytes += batch.len();
                at = self.take_batch(batch, at, wanted);
                if self.is_full() {
                    break;
                }
            }
            if at == before {
                // Nothing more is there, whatever the bounds said.
                at = range.end;
            }
        }
        self.found.next = (at < range.end).then_some(at);
        Ok(self.found)
    }

    fn is_full(&self) -> bool {
        self.found.messages.len() >= self.limit
            || self.found.searched >= ADMIN_SEARCH_RECORDS_MAX
            || self.text_bytes >= ADMIN_ANSWER_BYTES_MAX
    }

    /// Takes the records of a batch from `from` on; returns where to go on.
    fn take_batch(&mut self, batch: &[u8], from: Offset, wanted: &Wanted) -> Offset {
        let Ok(header) = BatchHeader::parse(batch) else {
            return from;
        };
        let limits = DecompressLimits {
            bytes_max: DECOMPRESSED_BATCH_BYTES_MAX,
            ratio_max: DECOMPRESSION_RATIO_MAX,
        };
        // What cannot be opened, and what clients do not see, is passed over.
        let set = match header.is_control() {
            true => None,
            false => records(batch, &limits).ok(),
        };
        for record in set.iter().flatten().flatten() {
            let Some(set) = &set else { break };
            let offset = set.offset_of(&record);
            if offset < from {
                continue;
            }
            if self.is_full() {
                return offset;
            }
            self.found.searched += 1;
            let key = wanted.key.as_ref().map(String::as_bytes);
            if key.is_none() || key == record.key {
                let message = self.message(set, &record);
                self.found.messages.push(message);
            }
        }
        header.next_offset().max(from)
    }

    fn message(&mut self, set: &RecordSet<'_>, record: &Record<'_>) -> Message {
        let slot = match record.key {
            Some(key) => slot_of_key(key),
            None => slot_of_batch(set.header().base_offset),
        };
        let headers = record.headers.into_iter().flatten().take(HEADERS_MAX);
        let headers: Vec<Header> = headers
            .map(|header| Header {
                name: String::from_utf8_lossy(header.key).chars().take(256).collect(),
                value: header.value.map(|value| self.text(value)),
            })
            .collect();
        Message {
            offset: set.offset_of(record),
            time_ms: set.timestamp_of(record),
            slot: slot.get(),
            key: record.key.map(|key| self.text(key)),
            value: record.value.map(|value| self.text(value)),
            headers,
        }
    }

    fn text(&mut self, bytes: &[u8]) -> Text {
        let text = text(bytes, self.bytes_max);
        self.text_bytes += text.text.len();
        text
    }
}

/// Bytes as they are shown: UTF-8 as it is, cut at a character; anything else in hexadecimal.
fn text(bytes: &[u8], bytes_max: usize) -> Text {
    let cut = bytes.len() > bytes_max;
    let shown = bytes.get(..bytes_max).unwrap_or(bytes);
    let valid = match std::str::from_utf8(shown) {
        Ok(text) => Some(text),
        // A character that the cut goes through is left out.
        Err(error) if cut && error.error_len().is_none() => {
            std::str::from_utf8(&shown[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    Text {
        text: match valid {
            Some(text) => text.to_owned(),
            None => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
        hex: valid.is_none(),
        bytes: bytes.len() as u64,
        cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_where_they_are_utf8() {
        let shown = |bytes: &[u8], max| {
            let text = text(bytes, max);
            (text.text, text.hex, text.cut)
        };
        assert_eq!(shown("äb".as_bytes(), 10), ("äb".to_owned(), false, false));
        assert_eq!(shown("aä".as_bytes(), 2), ("a".to_owned(), false, true));
        assert_eq!(shown(&[0xff, 1], 10), ("ff01".to_owned(), true, false));
        assert_eq!(shown(&[0xff, 1], 1), ("ff".to_owned(), true, true));
        assert_eq!(shown(b"", 0), (String::new(), false, false));
    }
}
