//! One group: its members, partitions and shares, and where the work is.

use std::cmp::Reverse;
use std::sync::Arc;

use anabranch_core::elastic::Reading;
use anabranch_core::group::CountWanted;
use anabranch_core::group::Topics;
use anabranch_core::ids::TopicId;
use anabranch_engine::counting::{CountTask, Counted};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::model::Group;
use super::routes::{broker, refused};
use super::state::{Admin, Wish};
use super::view;
use crate::broker::Broker;

/// Partitions that are shown by bands in one answer: those that are divided, then those with the most to read.
const BANDED_MAX: usize = 16;

/// How the group is to be shown.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct How {
    /// Only partitions of this topic.
    topic: Option<String>,
    /// In how many bands of slots the records that are left are to be told, at most 512; of at most 16 partitions. None if left out.
    bands: Option<usize>,
}

pub(super) async fn group(
    State(admin): State<Admin>,
    Path(group): Path<String>,
    Query(how): Query<How>,
) -> Response {
    let broker = match broker(admin.door()) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let wish = Wish {
        group,
        topic: how.topic,
        bands: how.bands.unwrap_or(0),
    };
    match take(&admin, &broker, &wish).await {
        Some(group) => Json(&*group).into_response(),
        None => no_group(&wish.group),
    }
}

pub(super) fn no_group(group: &str) -> Response {
    let text = format!("there is no group {group:?} whose partitions the broker assigns");
    refused(StatusCode::NOT_FOUND, "not-found", &text)
}

/// A group as it is now; what is left of divided partitions, and of those shown by bands, is counted. Bands are for
/// people and may be a moment old.
pub(super) async fn take(admin: &Admin, broker: &Arc<Broker>, wish: &Wish) -> Option<Arc<Group>> {
    if wish.bands > 0
        && let Some(kept) = admin.group_kept(wish)
    {
        return Some(kept);
    }
    let banded = banded(broker, wish);
    let mut tasks = broker.count_tasks_of(&wish.group);
    tasks.extend(broker.count_tasks(banded.iter().filter_map(|one| one.count)));
    let counted = count(broker, tasks).await.unwrap_or_default();
    let banded = banded.into_iter().map(|one| one.key).collect();
    let group = Arc::new(view::group(broker, wish, &counted, &banded)?);
    if wish.bands > 0 {
        admin.keep_group(wish.clone(), &group);
    }
    Some(group)
}

/// Counts what is left of partitions, on a thread of its own.
pub(super) async fn count(broker: &Arc<Broker>, tasks: Vec<CountTask>) -> Option<Counted> {
    if tasks.is_empty() {
        return Some(Counted::default());
    }
    let broker = Arc::clone(broker);
    let counted = tokio::task::spawn_blocking(move || broker.count(&tasks)).await;
    counted.ok()?.ok()
}

/// A partition that is shown by bands.
struct Banded {
    key: (TopicId, i32),
    /// What is to be counted for that; of a divided partition it is counted anyway.
    count: Option<CountWanted>,
}

fn banded(broker: &Broker, wish: &Wish) -> Vec<Banded> {
    let looked = (wish.bands > 0).then(|| broker.look_at(&wish.group, &Counted::default()));
    let Some((snapshot, _)) = looked.flatten() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (topic, view) in &snapshot.topics {
        if wish.topic.as_ref().is_some_and(|wanted| *wanted != view.name) {
            continue;
        }
        for (partition, view) in &view.partitions {
            let is_divided = matches!(view.reading, Reading::Divided(_));
            all.push(((!is_divided, Reverse(view.remaining())), (*topic, *partition)));
        }
    }
    all.sort_unstable();
    all.truncate(BANDED_MAX);
    broker.with(|core| {
        let (topics, groups) = (core.node().partitions(), core.node().groups());
        let one = |((is_plain, Reverse(remaining)), key): ((bool, Reverse<u64>), (TopicId, i32))| {
            let is_counted = is_plain && remaining > 0;
            let committed = is_counted.then(|| groups.committed(&wish.group, key)).flatten();
            Banded {
                key,
                count: committed.map(|committed| CountWanted {
                    topic: key.0,
                    partition: key.1,
                    from: committed.max(topics.log_start(key.0, key.1)),
                }),
            }
        };
        all.into_iter().map(one).collect()
    })
}
