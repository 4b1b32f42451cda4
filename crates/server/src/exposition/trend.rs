//! What one look cannot tell: since when an offset stands still, how fast a group works, how old its oldest record is.
//!
//! [`Trends`] compares a scrape with those before it. It reads no clock and no disk: the moment comes with the scrape, and
//! what must be read from the disk comes in later ([`Trends::learn`]), for the next scrape. It remembers one entry for each
//! committed offset that there is, and nothing of what is gone.

use std::collections::BTreeMap;

use anabranch_core::ids::{LogId, Now, Offset};

use super::scrape::{Group, Place, Scrape};

/// The speed of a group is taken over at least so long: members commit every five seconds by default.
const WINDOW_MS: u64 = 15_000;

/// What is unread, and comes in meanwhile, is to be read within so long by the desired number of members.
pub(super) const DRAIN_S: f64 = 60.0;

/// A partition of a topic.
type Key = (String, i32);

/// What scrapes leave for those that follow.
#[derive(Debug, Default)]
pub(crate) struct Trends {
    groups: BTreeMap<String, OfGroup>,
}

#[derive(Debug, Default)]
struct OfGroup {
    places: BTreeMap<Key, OfPlace>,
    speed: Speed,
    /// Share of the hottest slot among the unread records of a topic, as last counted.
    hottest: BTreeMap<String, f64>,
}

/// A committed offset over time.
#[derive(Clone, Copy, Debug)]
struct OfPlace {
    committed: Offset,
    /// Since when it has been there with records behind it and members to read them, monotonic milliseconds; `None` if these
    /// or those are missing.
    since_ms: Option<u64>,
    /// The newest timestamp of the batch at that offset, or at an earlier one.
    known: Option<(Offset, i64)>,
}

/// How fast records come and are worked off, over all topics of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Speed {
    before: Option<Sample>,
    arrivals_per_s: f64,
    /// Records that a member works off while there is work; `None` until that was seen.
    member_per_s: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ms: u64,
    places: usize,
    committed: i64,
    end: i64,
    lag: i64,
}

/// What is to be known about a batch, from the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) group: String,
    pub(super) key: Key,
    pub(super) log: LogId,
    pub(super) from: Offset,
    pub(super) end: Offset,
}

/// What follows from a scrape and those before it.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// By group and topic.
    pub(super) topics: BTreeMap<(String, String), OfTopic>,
    /// Members that each group should have, unless it has committed nothing.
    pub(super) desired: BTreeMap<String, u64>,
    /// What was not in memory.
    pub(super) wanted: Vec<Wanted>,
}

/// What is told about a topic of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OfTopic {
    is_unread: bool,
    oldest_s: Option<f64>,
    /// For how long a committed offset has not moved that should.
    pub(super) stuck_s: f64,
    pub(super) hottest: Option<f64>,
}

impl Trends {
    /// Compares a scrape with those before it. `timestamp` gives the newest timestamp of the batch at an offset of a log, if
    /// that is in memory.
    pub(super) fn look(
        &mut self,
        now: Now,
        scrape: &Scrape,
        timestamp: impl Fn(&Place) -> Option<i64>,
    ) -> Outlook {
        let mut former = std::mem::take(&mut self.groups);
        let mut outlook = Outlook::default();
        for group in &scrape.groups {
            let before = former.remove(&group.id).unwrap_or_default();
            let mut trend = OfGroup {
                places: BTreeMap::new(),
                speed: before.speed.after(now.mono_ms, group),
                hottest: before.hottest,
            };
            for place in &group.places {
                let key = (place.topic.clone(), place.partition);
                let before = before.places.get(&key).copied();
                let one = OfPlace::after(before, now.mono_ms, group, place, &timestamp);
                let seen = outlook.topics.entry((group.id.clone(), key.0.clone()));
                let hottest = trend.hottest.get(&key.0).copied();
                let topic = seen.or_insert_with(|| OfTopic {
                    hottest,
                    ..OfTopic::default()
                });
                if place.lag > 0 {
                    topic.add(&one, now);
                    if one.known.is_none_or(|(offset, _)| offset < place.from()) {
                        outlook.wanted.extend(Wanted::of(group, place));
                    }
                }
                trend.places.insert(key, one);
            }
            let desired = trend.speed.desired(group);
            outlook
                .desired
                .extend(desired.map(|desired| (group.id.clone(), desired)));
            self.groups.insert(group.id.clone(), trend);
        }
        outlook
    }

    /// Takes in the newest timestamp of the batch at an offset.
    pub(super) fn learn(&mut self, wanted: &Wanted, timestamp: i64) {
        let group = self.groups.get_mut(&wanted.group);
        if let Some(place) = group.and_then(|group| group.places.get_mut(&wanted.key)) {
            place.known = Some((wanted.from, timestamp));
        }
    }

    /// Takes in the hottest slots of a group's topics in the place of what was known of them.
    pub(super) fn learn_hottest(&mut self, group: &str, shares: BTreeMap<String, f64>) {
        if let Some(group) = self.groups.get_mut(group) {
            group.hottest = shares;
        }
    }
}

impl OfPlace {
    fn after(
        before: Option<Self>,
        now_ms: u64,
        group: &Group,
        place: &Place,
        timestamp: impl Fn(&Place) -> Option<i64>,
    ) -> Self {
        let is_waiting = place.lag > 0 && group.members > 0;
        let stood = before.filter(|before| is_waiting && before.committed == place.committed);
        let older = before.and_then(|before| before.known);
        // An offset that went back has older records before it.
        let older = older.filter(|(offset, _)| *offset <= place.from());
        let known = match older {
            Some((offset, _)) if offset == place.from() => older,
            _ if place.lag == 0 => None,
            _ => timestamp(place).map(|at| (place.from(), at)).or(older),
        };
        Self {
            committed: place.committed,
            since_ms: is_waiting.then(|| stood.and_then(|before| before.since_ms).unwrap_or(now_ms)),
            known,
        }
    }
}

impl OfTopic {
    /// A partition with unread records.
    fn add(&mut self, place: &OfPlace, now: Now) {
        let since_ms = place.since_ms.unwrap_or(now.mono_ms);
        let stuck_s = now.mono_ms.saturating_sub(since_ms) as f64 / 1e3;
        self.stuck_s = self.stuck_s.max(stuck_s);
        // A timestamp is the producer's word: it may lie in the future.
        let age = place
            .known
            .map(|(_, at)| now.wall_ms.saturating_sub(at).max(0) as f64 / 1e3);
        self.oldest_s = self.oldest_s.into_iter().chain(age).reduce(f64::max);
        self.is_unread = true;
    }

    /// Age of the oldest unread record; 0 if there is none, `None` if that is not known yet.
    pub(super) fn lag_s(&self) -> Option<f64> {
        match self.is_unread {
            true => self.oldest_s,
            false => Some(0.0),
        }
    }
}

impl Wanted {
    fn of(group: &Group, place: &Place) -> Option<Self> {
        Some(Self {
            group: group.id.clone(),
            key: (place.topic.clone(), place.partition),
            log: place.log?,
            from: place.from(),
            end: place.end,
        })
    }
}

impl Speed {
    fn after(self, now_ms: u64, group: &Group) -> Self {
        let sum = |value: fn(&Place) -> i64| group.places.iter().map(value).fold(0, i64::saturating_add);
        let now = Sample {
            at_ms: now_ms,
            places: group.places.len(),
            committed: sum(|place| place.committed),
            end: sum(|place| place.end),
            lag: sum(|place| place.lag),
        };
        let Some(before) = self.before else {
            return Self {
                before: Some(now),
                ..self
            };
        };
        let (took_ms, came) = (now_ms.saturating_sub(before.at_ms), now.end - before.end);
        let worked = now.committed - before.committed;
        // Offsets that were reset, that are new or gone, say nothing about speed.
        if came < 0 || worked < 0 || before.places != now.places {
            return Self {
                before: Some(now),
                ..self
            };
        }
        if took_ms < WINDOW_MS {
            return self;
        }
        let took_s = took_ms as f64 / 1e3;
        let working = group.members.saturating_sub(group.idle.unwrap_or(0));
        let mut member_per_s = self.member_per_s;
        // With nothing left to do, a group is as fast as its producers: that says nothing about what it could do.
        if before.lag > 0 && now.lag > 0 && worked > 0 && working > 0 {
            let measured = worked as f64 / took_s / working as f64;
            member_per_s = Some(member_per_s.map_or(measured, |old| (old + measured) / 2.0));
        }
        Self {
            before: Some(now),
            arrivals_per_s: came as f64 / took_s,
            member_per_s,
        }
    }

    /// How many members would read what is there, and what comes, within [`DRAIN_S`]; no more than find work. Without a
    /// measured speed as many as there are, and one if there is none.
    fn desired(&self, group: &Group) -> Option<u64> {
        if group.places.is_empty() {
            return None;
        }
        let lag = group
            .places
            .iter()
            .map(|place| place.lag)
            .fold(0, i64::saturating_add);
        let work = self.arrivals_per_s * DRAIN_S + lag as f64;
        if work <= 0.0 {
            return Some(0);
        }
        let wanted = match self.member_per_s {
            Some(speed) => (work / (speed * DRAIN_S)).ceil() as u64,
            None => group.members as u64,
        };
        Some(wanted.clamp(1, group.room.max(1)))
    }
}

#[cfg(test)]
#[path = "trend_test.rs"]
mod tests;
