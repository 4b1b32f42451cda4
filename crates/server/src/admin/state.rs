//! What the handlers of the administration API share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_core::limits::{ADMIN_ROWS_MAX, ADMIN_STREAMS_MAX, ADMIN_VIEWS_MAX};
use axum::extract::FromRef;
use tokio::sync::Semaphore;

use super::guard::Guard;
use super::model::{Group, Overview};
use super::overview;
use super::rates::Rates;
use super::routes::Door;
use crate::broker::Broker;

/// A view is computed once in so long a time, however many ask for it.
const FRESH: Duration = Duration::from_millis(400);

/// How a group is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) group: String,
    /// Only partitions of this topic.
    pub(super) topic: Option<String>,
    /// How many bands of slots; 0: none.
    pub(super) bands: usize,
}

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Admin(Arc<Inner>);

struct Inner {
    door: Door,
    guard: Arc<Guard>,
    rates: Mutex<Rates>,
    overview: Mutex<Option<(Instant, Arc<Overview>)>>,
    groups: Mutex<Vec<(Instant, Wish, Arc<Group>)>>,
    streams: Arc<Semaphore>,
}

impl Admin {
    pub(crate) fn new(door: Door, guard: Guard) -> Self {
        Self(Arc::new(Inner {
            door,
            guard: Arc::new(guard),
            rates: Mutex::default(),
            overview: Mutex::default(),
            groups: Mutex::default(),
            streams: Arc::new(Semaphore::new(ADMIN_STREAMS_MAX)),
        }))
    }

    pub(crate) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.0.guard)
    }

    pub(super) fn door(&self) -> &Door {
        &self.0.door
    }

    pub(super) fn streams(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.streams)
    }

    /// The overview of everything, at most [`FRESH`] old.
    pub(super) fn overview(&self, broker: &Arc<Broker>) -> Arc<Overview> {
        let mut kept = self.0.overview.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, overview)) = &*kept
            && at.elapsed() < FRESH
        {
            return Arc::clone(overview);
        }
        let overview = Arc::new(self.overview_of(broker, "", ADMIN_ROWS_MAX));
        *kept = Some((Instant::now(), Arc::clone(&overview)));
        overview
    }

    /// The overview of what has `part` in its name.
    pub(super) fn overview_of(&self, broker: &Arc<Broker>, part: &str, rows_max: usize) -> Overview {
        let mut rates = self.0.rates.lock().unwrap_or_else(PoisonError::into_inner);
        overview::take(broker, &mut rates, part, rows_max)
    }

    /// A view of a group that is still fresh.
    pub(super) fn group_kept(&self, wish: &Wish) -> Option<Arc<Group>> {
        let kept = self.0.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = kept.iter().filter(|(at, _, _)| at.elapsed() < FRESH);
        fresh
            .find(|(_, of, _)| of == wish)
            .map(|(_, _, group)| Arc::clone(group))
    }

    /// Keeps a view of a group for those who ask next.
    pub(super) fn keep_group(&self, wish: Wish, group: &Arc<Group>) {
        let mut kept = self.0.groups.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(at, of, _)| at.elapsed() < FRESH && *of != wish);
        if kept.len() < ADMIN_VIEWS_MAX {
            kept.push((Instant::now(), wish, Arc::clone(group)));
        }
    }
}

impl FromRef<Admin> for Door {
    fn from_ref(admin: &Admin) -> Self {
        Arc::clone(&admin.0.door)
    }
}
