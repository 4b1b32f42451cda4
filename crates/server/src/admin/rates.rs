//! Records per second, from looks at numbers that grow.
//!
//! Nothing is measured while nobody looks: each look leaves a sample behind, and a rate is what has changed since the
//! oldest sample of the last seconds.

use std::collections::{HashMap, VecDeque};

/// Samples are at least so far apart, and no rate is told over less, milliseconds.
const APART_MS: u64 = 900;
/// A rate is that of so long a time, milliseconds.
const WINDOW_MS: u64 = 5_000;
/// Samples that are older than this say nothing about now, milliseconds.
const STALE_MS: u64 = 15_000;

/// Numbers that only grow, but for a reset or a topic that is made anew.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// By topic: the sum of its end offsets.
    pub(super) topics: HashMap<String, i64>,
    /// By group: the sum of what it has done.
    pub(super) groups: HashMap<String, i64>,
}

/// The samples of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Rates {
    samples: VecDeque<(u64, Numbers)>,
}

/// Records per second by topic and group; what is not in it cannot be told yet.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) topics: HashMap<String, f64>,
    pub(super) groups: HashMap<String, f64>,
}

impl Rates {
    /// Takes the numbers of now and tells how fast they grow.
    pub(super) fn tell(&mut self, now_ms: u64, numbers: Numbers) -> Told {
        let too_old = |at_ms: u64| now_ms.saturating_sub(at_ms) > STALE_MS;
        if self.samples.back().is_some_and(|(at_ms, _)| too_old(*at_ms)) {
            self.samples.clear();
        }
        // One sample stays at the far edge of the window, so that a rate is always that of the whole window.
        while self
            .samples
            .get(1)
            .is_some_and(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= WINDOW_MS)
        {
            self.samples.pop_front();
        }
        let told = self
            .samples
            .front()
            .map_or_else(Told::default, |(at_ms, before)| {
                let elapsed_ms = now_ms.saturating_sub(*at_ms);
                Told {
                    topics: growth(&before.topics, &numbers.topics, elapsed_ms),
                    groups: growth(&before.groups, &numbers.groups, elapsed_ms),
                }
            });
        let newest = self.samples.back().map(|(at_ms, _)| *at_ms);
        if newest.is_none_or(|at_ms| now_ms.saturating_sub(at_ms) >= APART_MS) {
            self.samples.push_back((now_ms, numbers));
        }
        told
    }
}

fn growth(
    before: &HashMap<String, i64>,
    now: &HashMap<String, i64>,
    elapsed_ms: u64,
) -> HashMap<String, f64> {
    if elapsed_ms < APART_MS {
        return HashMap::new();
    }
    let rate = |(name, value): (&String, &i64)| {
        let grown = value.saturating_sub(*before.get(name)?).max(0);
        Some((name.clone(), grown as f64 * 1_000.0 / elapsed_ms as f64))
    };
    now.iter().filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(topic: i64) -> Numbers {
        Numbers {
            topics: HashMap::from([("t".to_owned(), topic)]),
            groups: HashMap::new(),
        }
    }

    #[test]
    fn a_rate_is_told_from_the_second_look_on() {
        let mut rates = Rates::default();
        assert!(rates.tell(0, numbers(10)).topics.is_empty());
        assert!(rates.tell(500, numbers(20)).topics.is_empty(), "too soon");
        assert_eq!(rates.tell(1_000, numbers(30)).topics["t"], 20.0);
        assert_eq!(rates.tell(2_000, numbers(30)).topics["t"], 10.0);
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut rates = Rates::default();
        for second in 0..60 {
            let value = if second < 30 { second * 1_000 } else { 30_000 };
            let told = rates.tell(second as u64 * 1_000, numbers(value));
            if second == 29 {
                assert_eq!(told.topics["t"], 1_000.0);
            }
            if second >= 36 {
                assert_eq!(told.topics["t"], 0.0, "second {second}");
            }
        }
        assert!(rates.samples.len() <= 8, "{}", rates.samples.len());
    }

    #[test]
    fn what_went_back_or_is_new_has_no_negative_rate() {
        let mut rates = Rates::default();
        rates.tell(0, numbers(100));
        assert_eq!(rates.tell(1_000, numbers(5)).topics["t"], 0.0);
        let new = Numbers {
            topics: HashMap::from([("u".to_owned(), 7)]),
            groups: HashMap::new(),
        };
        assert!(rates.tell(2_000, new).topics.is_empty());
    }

    #[test]
    fn a_long_pause_begins_anew() {
        let mut rates = Rates::default();
        rates.tell(0, numbers(0));
        assert!(rates.tell(100_000, numbers(1_000_000)).topics.is_empty());
    }
}
