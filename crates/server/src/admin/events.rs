//! The broker as it changes: server-sent events.
//!
//! | event | data | when |
//! |---|---|---|
//! | `overview` | [`Overview`](super::model::Overview) | every second |
//! | `group` | [`Group`](super::model::Group) | every second, and after a decision, if a group was asked for |
//! | `gone` | the id of the group | when the group is none whose partitions the broker assigns |
//! | `decisions` | [`Decisions`] | at the beginning the latest, then what is new, and once more when it has ended |
//!
//! What has not changed is not sent again. A reader that is slow gets fewer events, not older ones: the next is made when
//! the last is taken.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_core::limits::ADMIN_STREAMS_MAX;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::model::{Decisions, Verdict};
use super::routes::{broker, refused};
use super::state::{Admin, Wish};
use super::{decisions, groups};
use crate::broker::Broker;
use crate::shutdown::Phase;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// At least between two looks, however much is decided.
const PAUSE: Duration = Duration::from_millis(250);

/// Decisions in the first event.
const DECISIONS_FIRST: usize = 200;

/// Decisions in a later event.
const DECISIONS_MAX: usize = 500;

/// Decisions whose end is waited for.
const OPEN_MAX: usize = 32;

/// What to watch.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Watch {
    /// The group to show, and the only one whose decisions are told.
    group: Option<String>,
    /// Of the group only partitions of this topic.
    topic: Option<String>,
    /// Bands of slots, as for `GET /api/v1/groups/{group}`.
    bands: Option<usize>,
}

pub(super) async fn events(State(admin): State<Admin>, Query(watch): Query<Watch>) -> Response {
    let broker = match broker(admin.door()) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let Ok(permit) = admin.streams().try_acquire_owned() else {
        let text = format!("{ADMIN_STREAMS_MAX} event streams are open already; close some pages");
        return refused(StatusCode::SERVICE_UNAVAILABLE, "too-many", &text);
    };
    let (to_reader, events) = mpsc::channel(1);
    let group = watch.group.map(|group| Wish {
        group,
        topic: watch.topic,
        bands: watch.bands.unwrap_or(0),
    });
    let feed = Feed {
        admin,
        group,
        decided: None,
        open: BTreeSet::new(),
        is_gone: false,
        last_group: String::new(),
        to_reader,
    };
    tokio::spawn(feed.run(broker));
    let events = Events {
        events,
        _permit: permit,
    };
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// What a connection takes events from; once it is dropped the feed ends.
struct Events {
    events: mpsc::Receiver<Event>,
    _permit: OwnedSemaphorePermit,
}

impl Stream for Events {
    type Item = Result<Event, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context).map(|event| event.map(Ok))
    }
}

/// The reader is gone, or the server ends.
struct Ended;

struct Feed {
    admin: Admin,
    group: Option<Wish>,
    /// Number of the last decision that was told.
    decided: Option<u64>,
    /// Numbers of decisions that were told before they had ended.
    open: BTreeSet<u64>,
    is_gone: bool,
    /// The group as it was told last.
    last_group: String,
    to_reader: mpsc::Sender<Event>,
}

impl Feed {
    async fn run(mut self, broker: Arc<Broker>) {
        let shared = Arc::clone(&broker.shared);
        let reader = self.to_reader.clone();
        let feed = async {
            let mut next_overview = Instant::now();
            while self.look(&broker, &mut next_overview).await.is_ok() {}
        };
        tokio::select! {
            () = feed => {}
            // Streams end with the first step of a shutdown: a page that is open does not hold it up.
            () = shared.shutdown.reached(Phase::Draining) => {}
            () = reader.closed() => {}
        }
    }

    async fn look(&mut self, broker: &Arc<Broker>, next_overview: &mut Instant) -> Result<(), Ended> {
        let decided = broker.decided.notified();
        tokio::pin!(decided);
        decided.as_mut().enable();
        let began = Instant::now();
        if began >= *next_overview {
            *next_overview = began + EVERY;
            let overview = self.admin.overview(broker);
            self.tell("overview", &*overview).await?;
        }
        self.tell_group(broker).await?;
        self.tell_decisions(broker).await?;
        tokio::time::sleep_until(began + PAUSE).await;
        // It may have been about another group.
        let wait = async {
            loop {
                decided.as_mut().await;
                let news = self.decisions(broker, self.decided, 1);
                if !news.decisions.is_empty() {
                    break;
                }
                decided.set(broker.decided.notified());
                decided.as_mut().enable();
            }
        };
        tokio::select! {
            () = wait => {}
            () = tokio::time::sleep_until(*next_overview) => {}
        }
        Ok(())
    }

    async fn tell_group(&mut self, broker: &Arc<Broker>) -> Result<(), Ended> {
        let Some(wish) = &self.group else {
            return Ok(());
        };
        match groups::take(&self.admin, broker, wish).await {
            Some(group) => {
                self.is_gone = false;
                let text = written(&*group);
                if text != self.last_group {
                    self.send("group", &text).await?;
                    self.last_group = text;
                }
            }
            None if self.is_gone => {}
            None => {
                self.is_gone = true;
                self.last_group.clear();
                let group = wish.group.clone();
                self.tell("gone", &group).await?;
            }
        }
        Ok(())
    }

    /// Tells what is new, and how that ended which was told before its end.
    async fn tell_decisions(&mut self, broker: &Arc<Broker>) -> Result<(), Ended> {
        let is_first = self.decided.is_none();
        let limit = if is_first { DECISIONS_FIRST } else { DECISIONS_MAX };
        let from_open = self.open.first().map(|seq| seq.saturating_sub(1));
        let after = self
            .decided
            .map(|decided| from_open.unwrap_or(decided).min(decided));
        let mut news = self.decisions(broker, after, limit);
        if news.decisions.len() == limit {
            // So much has happened since that the oldest end is not worth being waited for.
            self.open.clear();
        }
        news.decisions.retain(|one| {
            let is_new = self.decided.is_none_or(|decided| one.seq > decided);
            is_new || (one.result.is_some() && self.open.contains(&one.seq))
        });
        if !is_first && news.decisions.is_empty() {
            return Ok(());
        }
        for one in &news.decisions {
            match one.outcome == Verdict::Decided && one.result.is_none() {
                true => self.open.insert(one.seq),
                false => self.open.remove(&one.seq),
            };
        }
        // What has not ended by then never will: decisions about queues have no end.
        while self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
        self.decided = news
            .decisions
            .last()
            .map(|one| one.seq)
            .max(self.decided)
            .or(Some(0));
        self.tell("decisions", &news).await
    }

    fn decisions(&self, broker: &Broker, after: Option<u64>, limit: usize) -> Decisions {
        let group = self.group.as_ref().map(|wish| wish.group.as_str());
        decisions::list(broker, group, after, limit)
    }

    async fn tell(&self, name: &str, document: &impl Serialize) -> Result<(), Ended> {
        self.send(name, &written(document)).await
    }

    async fn send(&self, name: &str, text: &str) -> Result<(), Ended> {
        let event = Event::default().event(name).data(text);
        self.to_reader.send(event).await.map_err(|_| Ended)
    }
}

fn written(document: &impl Serialize) -> String {
    // Documents of this API are structs of numbers, texts and lists, which can always be written.
    serde_json::to_string(document).unwrap_or_default()
}
