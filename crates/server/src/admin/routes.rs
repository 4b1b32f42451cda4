//! The administration API: requests over HTTP to the engine and back.
//!
//! Reading is free; who may order is said in [`super::guard`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use anabranch_core::group::{Order, Ordered};
use anabranch_core::ids::{Lsn, TopicId};
use anabranch_core::limits::ADMIN_ROWS_MAX;
use anabranch_core::node::QueueOrder;
use anabranch_engine::counting::Thought;
use anabranch_wire::ErrorCode;
use axum::body::to_bytes;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::groups::{count, no_group};
use super::model::{Counters, Decisions, Order as OrderBody, QueueWish, Refusal, RefusalDetail};
use super::state::Admin;
use super::{decisions, events, groups, guard, messages, offsets, topics, view};
use crate::broker::Broker;

/// Longest wait for a decision, whatever a request asks for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Longest text of the framework that is passed on.
const REFUSAL_BYTES_MAX: usize = 4_096;

/// How requests find the broker: it is made after the listener, and ends before it.
pub(crate) type Door = Arc<std::sync::OnceLock<Weak<Broker>>>;

/// A path and its handler.
pub(super) type Route = (&'static str, MethodRouter<Admin>);

/// What is asked by GET and changes nothing.
pub(super) fn reads() -> Vec<Route> {
    vec![
        ("/api/v1/overview", get(overview)),
        ("/api/v1/groups/{group}", get(groups::group)),
        ("/api/v1/groups/{group}/offsets", get(offsets::offsets)),
        ("/api/v1/groups/{group}/plan", get(plan)),
        ("/api/v1/topics/{topic}", get(topics::topic)),
        ("/api/v1/topics/{topic}/messages", get(messages::messages)),
        ("/api/v1/topics/{topic}/queues", get(queues)),
        ("/api/v1/decisions", get(decided)),
        ("/api/v1/events", get(events::events)),
        ("/api/v1/counters", get(counters)),
    ]
}

/// What is ordered by POST.
pub(super) fn orders() -> Vec<Route> {
    vec![
        ("/api/v1/groups/{group}/split", post(split)),
        ("/api/v1/groups/{group}/merge", post(merge)),
        ("/api/v1/groups/{group}/pause", post(pause)),
        ("/api/v1/groups/{group}/resume", post(resume)),
        ("/api/v1/groups/{group}/reset", post(offsets::reset)),
        ("/api/v1/topics/{topic}/queues/wish", post(wish_queues)),
        ("/api/v1/topics/{topic}/queues/force", post(force_queues)),
    ]
}

/// The routes, to be nested under nothing.
pub(crate) fn routes(admin: Admin) -> Router {
    let add = |router: Router<Admin>, (path, handler): Route| router.route(path, handler);
    let orders = orders().into_iter().fold(Router::new(), add);
    let orders = orders.layer(middleware::from_fn_with_state(admin.guard(), guard::may_order));
    let all = reads().into_iter().fold(Router::new(), add).merge(orders);
    all.layer(middleware::map_response(in_our_words))
        .with_state(admin)
}

/// What the framework refuses before a handler sees it (a number that is none, say) is said in a document as well.
async fn in_our_words(response: Response) -> Response {
    let is_json = |kind: &HeaderValue| kind.as_bytes().starts_with(b"application/json");
    if !response.status().is_client_error() || response.headers().get(CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    let status = response.status();
    let words = to_bytes(response.into_body(), REFUSAL_BYTES_MAX)
        .await
        .unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let reason = status.canonical_reason().unwrap_or("refused").to_lowercase();
    refused(
        status,
        "bad-request",
        if words.is_empty() { &reason } else { &words },
    )
}

pub(super) fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let error = RefusalDetail {
        code: code.to_owned(),
        message: message.to_owned(),
    };
    (status, Json(Refusal { error })).into_response()
}

/// The broker, or the answer of a request that comes before it or after it.
pub(crate) fn broker(door: &Door) -> Result<Arc<Broker>, Box<Response>> {
    let found = door.get().and_then(Weak::upgrade);
    found.ok_or_else(|| {
        Box::new(refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "the broker is starting or ending",
        ))
    })
}

/// Which rows are wanted.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Rows {
    /// Only topics and groups with this in their names.
    contains: Option<String>,
    /// At most so many of each, and never more than 1,000.
    limit: Option<usize>,
}

async fn overview(State(admin): State<Admin>, Query(rows): Query<Rows>) -> Response {
    let broker = match broker(admin.door()) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    match rows {
        Rows {
            contains: None,
            limit: None,
        } => Json(&*admin.overview(&broker)).into_response(),
        Rows { contains, limit } => {
            let rows_max = limit.unwrap_or(ADMIN_ROWS_MAX).min(ADMIN_ROWS_MAX);
            Json(admin.overview_of(&broker, &contains.unwrap_or_default(), rows_max)).into_response()
        }
    }
}

async fn counters(State(door): State<Door>) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let slices = broker.scans.totals();
    Json(Counters {
        state_bytes_total: broker.with(|core| core.engine.state_bytes()),
        slice_read_bytes_total: slices.read,
        slice_opened_bytes_total: slices.opened,
        slice_delivered_bytes_total: slices.delivered,
    })
    .into_response()
}

async fn plan(State(door): State<Door>, Path(group): Path<String>) -> Response {
    order(&door, &group, Order::Plan, true).await
}

async fn split(State(door): State<Door>, Path(group): Path<String>, Json(body): Json<OrderBody>) -> Response {
    ordered(&door, &group, &body, Order::Split).await
}

async fn merge(State(door): State<Door>, Path(group): Path<String>, Json(body): Json<OrderBody>) -> Response {
    ordered(&door, &group, &body, Order::Merge).await
}

async fn ordered(
    door: &Door,
    group: &str,
    body: &OrderBody,
    kind: impl Fn((TopicId, i32)) -> Order,
) -> Response {
    let broker = match broker(door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    if body.member.is_some() {
        return refused(
            StatusCode::BAD_REQUEST,
            "member-not-chosen",
            "the planner chooses the members; leave the member out",
        );
    }
    let key = broker.with(|core| {
        let topic = core.node().topic_by_name(&body.topic)?;
        topic.log(body.partition).map(|_| (topic.id, body.partition))
    });
    let Some(key) = key else {
        let text = format!(
            "there is no partition {} of topic {:?}",
            body.partition, body.topic
        );
        return refused(StatusCode::NOT_FOUND, "not-found", &text);
    };
    order(door, group, kind(key), body.dry_run).await
}

/// Gives an order, counting for the planner what it asks for.
async fn order(door: &Door, group: &str, order: Order, dry_run: bool) -> Response {
    let broker = match broker(door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let mut thought = Thought::default();
    loop {
        let Some((ordered, tasks, after)) = broker.order(group, thought.counted(), (order, dry_run)) else {
            return no_group(group);
        };
        if tasks.is_empty() {
            return match durable(&broker, after).await {
                Ok(()) => Json(told(group, &ordered)).into_response(),
                Err(response) => *response,
            };
        }
        let Some(tasks) = thought.to_count(tasks) else {
            break;
        };
        match count(&broker, tasks).await {
            Some(more) => thought.learn(more),
            None => break,
        }
    }
    refused(
        StatusCode::SERVICE_UNAVAILABLE,
        "uncounted",
        "the remaining records could not be counted in time; try again",
    )
}

fn told(group: &str, ordered: &Ordered) -> Decisions {
    let decided = ordered
        .decisions
        .iter()
        .map(|decision| decisions::decided(group, 0, decision));
    let refused = ordered
        .refusals
        .iter()
        .map(|refusal| decisions::refused(group, 0, refusal, 1));
    Decisions {
        decisions: decided.chain(refused).collect(),
        next: None,
    }
}

async fn pause(State(door): State<Door>, Path(group): Path<String>) -> Response {
    set_paused(&door, &group, true).await
}

async fn resume(State(door): State<Door>, Path(group): Path<String>) -> Response {
    set_paused(&door, &group, false).await
}

/// What was done may be acknowledged: it is durable, as everything is that is acknowledged. Else the answer that says so.
pub(super) async fn durable(broker: &Broker, after: Lsn) -> Result<(), Box<Response>> {
    let reached = broker.shared.durable.reached(after).await;
    reached.map_err(|_| {
        let text = "the store has failed; nothing is acknowledged any more";
        Box::new(refused(StatusCode::SERVICE_UNAVAILABLE, "failed", text))
    })
}

async fn set_paused(door: &Door, group: &str, paused: bool) -> Response {
    let broker = match broker(door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let Some(after) = broker.set_paused(group, paused) else {
        return no_group(group);
    };
    if let Err(response) = durable(&broker, after).await {
        return *response;
    }
    Json(Decisions {
        decisions: Vec::new(),
        next: None,
    })
    .into_response()
}

async fn queues(State(door): State<Door>, Path(topic): Path<String>) -> Response {
    match broker(&door) {
        Ok(broker) => shown_queues(&broker, &topic),
        Err(response) => *response,
    }
}

fn shown_queues(broker: &Broker, topic: &str) -> Response {
    match view::queues(broker, topic) {
        Some(queues) => Json(queues).into_response(),
        None => {
            let text = format!("there is no topic {topic:?} in queue mode (elastic.mode=queues)");
            refused(StatusCode::NOT_FOUND, "not-found", &text)
        }
    }
}

async fn wish_queues(
    State(door): State<Door>,
    Path(topic): Path<String>,
    Json(body): Json<QueueWish>,
) -> Response {
    order_queues(&door, &topic, QueueOrder::Wish(body.count)).await
}

async fn force_queues(State(door): State<Door>, Path(topic): Path<String>) -> Response {
    order_queues(&door, &topic, QueueOrder::Force).await
}

/// Gives an operator's order about queues; the answer is how they are then.
async fn order_queues(door: &Door, topic: &str, order: QueueOrder) -> Response {
    let broker = match broker(door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    match broker.order_queues(topic, order) {
        Ok(after) => match durable(&broker, after).await {
            Ok(()) => shown_queues(&broker, topic),
            Err(response) => *response,
        },
        Err(why) if why.code() == ErrorCode::UnknownTopicOrPartition => {
            refused(StatusCode::NOT_FOUND, "not-found", why.message())
        }
        Err(why) => refused(StatusCode::BAD_REQUEST, "not-possible", why.message()),
    }
}

/// Which decisions are asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Wanted {
    /// Only those about this group.
    group: Option<String>,
    /// The oldest behind this number; left out: the latest.
    after: Option<u64>,
    /// At most so many, and never more than 1,000.
    limit: Option<usize>,
    /// How long to wait for the first one, at most 60,000 milliseconds; 0 if left out.
    wait_ms: Option<u64>,
}

async fn decided(State(door): State<Door>, Query(wanted): Query<Wanted>) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let wait = Duration::from_millis(wanted.wait_ms.unwrap_or(0)).min(WAIT_MAX);
    let deadline = tokio::time::Instant::now() + wait;
    let limit = wanted.limit.unwrap_or(ADMIN_ROWS_MAX).min(ADMIN_ROWS_MAX);
    loop {
        // Registered before the look, so that a decision in between is not missed.
        let news = broker.decided.notified();
        tokio::pin!(news);
        news.as_mut().enable();
        let found = decisions::list(&broker, wanted.group.as_deref(), wanted.after, limit);
        if !found.decisions.is_empty() || tokio::time::Instant::now() >= deadline {
            return Json(found).into_response();
        }
        tokio::select! {
            () = news => {}
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}
