//! What an elastic group goes by: typed values of the `elastic.*` keys.

use crate::config::{Layers, Reader, Scope, Source, Values, lookup};

/// How a topic follows the size of its groups (`elastic.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The unread records of a partition are divided by key: what holds unless something else is set.
    Slices,
    /// The number of queues follows the largest group; nothing is divided.
    Queues,
    /// Not at all.
    Off,
}

/// Which commit proves that records are done (`elastic.commit.evidence`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitEvidence {
    /// The distinct one before the newest: for clients that commit ahead of their work.
    #[default]
    Previous,
    /// The newest: for clients whose commit means done.
    Latest,
}

impl CommitEvidence {
    /// How many commits with progress it takes until what was handed out is proven.
    pub fn commits(self) -> u64 {
        match self {
            Self::Previous => 2,
            Self::Latest => 1,
        }
    }
}

/// What one topic goes by in one group: the group's value of a key if it has one, else the topic's, else the broker's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticSettings {
    /// `elastic.mode`.
    pub mode: Mode,
    /// `elastic.commit.evidence`.
    pub evidence: CommitEvidence,
    /// `elastic.slices.max`: members that share one partition.
    pub slices_max: u32,
    /// `elastic.split.min.remaining`, records.
    pub split_min_remaining: u64,
    /// `elastic.split.cooldown.ms`, milliseconds.
    pub split_cooldown_ms: u64,
    /// `elastic.steal.min.remaining`, records.
    pub steal_min_remaining: u64,
    /// `elastic.steal.min.ms`, milliseconds of work.
    pub steal_min_ms: u64,
    /// `elastic.merge.delay.ms`, milliseconds.
    pub merge_delay_ms: u64,
    /// `elastic.fence.timeout.ms`, milliseconds.
    pub fence_timeout_ms: u64,
    /// `elastic.watchdog.commit.ms`, milliseconds.
    pub watchdog_commit_ms: u64,
    /// `elastic.watchdog.fetch.ms`, milliseconds.
    pub watchdog_fetch_ms: u64,
}

/// What a group goes by as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupElasticSettings {
    /// `elastic.interval.ms`, milliseconds.
    pub interval_ms: u64,
    /// `elastic.balance.cooldown.ms`, milliseconds.
    pub balance_cooldown_ms: u64,
}

/// The keys of a topic with its overrides in a group with others, to be read one by one.
#[derive(Clone, Copy, Debug)]
pub struct ElasticKeys<'a> {
    group: &'a Values,
    of_group: Reader<'a>,
    of_topic: Reader<'a>,
}

impl<'a> ElasticKeys<'a> {
    /// Keys with these overrides of the topic, and these of the group, which go before them.
    pub fn new(topic: &'a Values, group: &'a Values, layers: Layers<'a>) -> Self {
        Self {
            group,
            of_group: Reader {
                scope: Scope::Group,
                own: Some((group, Source::Group)),
                layers,
            },
            of_topic: Reader {
                scope: Scope::Topic,
                own: Some((topic, Source::Topic)),
                layers,
            },
        }
    }

    /// A value that an older version stored and this one refuses counts as not set.
    fn reader(&self, key: &str) -> &Reader<'a> {
        let is_set = |value: &String| lookup(Scope::Group, key).is_some_and(|key| key.check(value).is_ok());
        match self.group.get(key) {
            Some(value) if is_set(value) => &self.of_group,
            _ => &self.of_topic,
        }
    }

    fn text(&self, key: &str) -> String {
        self.reader(key).text(key).trim().to_owned()
    }

    fn count(&self, key: &str) -> u64 {
        self.reader(key).count(key)
    }

    /// `elastic.mode`. That a topic is in queue mode is not a group's to say; it can only be off for the group, which then
    /// does not count.
    pub fn mode(&self) -> Mode {
        let mode = mode(&self.text("elastic.mode"));
        match (self.mode_of_topic(), mode) {
            (Mode::Queues, Mode::Slices) => Mode::Queues,
            _ => mode,
        }
    }

    /// The same for the topic, whatever the group says.
    pub fn mode_of_topic(&self) -> Mode {
        mode(self.of_topic.text("elastic.mode").trim())
    }

    /// `elastic.commit.evidence`.
    pub fn evidence(&self) -> CommitEvidence {
        match self.text("elastic.commit.evidence").as_str() {
            "latest" => CommitEvidence::Latest,
            _ => CommitEvidence::Previous,
        }
    }

    /// All of them.
    pub fn all(&self) -> ElasticSettings {
        ElasticSettings {
            mode: self.mode(),
            evidence: self.evidence(),
            slices_max: u32::try_from(self.count("elastic.slices.max")).unwrap_or(u32::MAX),
            split_min_remaining: self.count("elastic.split.min.remaining"),
            split_cooldown_ms: self.count("elastic.split.cooldown.ms"),
            steal_min_remaining: self.count("elastic.steal.min.remaining"),
            steal_min_ms: self.count("elastic.steal.min.ms"),
            merge_delay_ms: self.count("elastic.merge.delay.ms"),
            fence_timeout_ms: self.count("elastic.fence.timeout.ms"),
            watchdog_commit_ms: self.count("elastic.watchdog.commit.ms"),
            watchdog_fetch_ms: self.count("elastic.watchdog.fetch.ms"),
        }
    }
}

impl GroupElasticSettings {
    /// The settings of a group with these overrides.
    pub fn new(group: &Values, layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Group,
            own: Some((group, Source::Group)),
            layers,
        };
        Self {
            interval_ms: read.count("elastic.interval.ms"),
            balance_cooldown_ms: read.count("elastic.balance.cooldown.ms"),
        }
    }
}

impl Default for ElasticSettings {
    /// As it is unless somebody sets something.
    fn default() -> Self {
        let none = Values::new();
        ElasticKeys::new(&none, &none, nothing_set(&none)).all()
    }
}

impl Default for GroupElasticSettings {
    fn default() -> Self {
        let none = Values::new();
        Self::new(&none, nothing_set(&none))
    }
}

fn mode(text: &str) -> Mode {
    match text {
        "slices" => Mode::Slices,
        "queues" => Mode::Queues,
        _ => Mode::Off,
    }
}

fn nothing_set(none: &Values) -> Layers<'_> {
    Layers {
        broker: none,
        cluster: none,
        fixed: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn the_narrower_scope_wins() {
        let (none, fixed) = (Values::new(), values(&[("elastic.split.min.remaining", "10")]));
        let layers = Layers {
            broker: &none,
            cluster: &none,
            fixed: &fixed,
        };
        let topic = values(&[("elastic.split.min.remaining", "20"), ("elastic.mode", "off")]);
        let group = values(&[("elastic.split.min.remaining", "30"), ("elastic.mode", "slices")]);
        let least = |topic: &Values, group: &Values| {
            let settings = ElasticKeys::new(topic, group, layers).all();
            (settings.split_min_remaining, settings.mode)
        };
        assert_eq!(least(&none, &none), (10, Mode::Slices));
        assert_eq!(least(&topic, &none), (20, Mode::Off));
        assert_eq!(least(&topic, &group), (30, Mode::Slices));
        assert_eq!(least(&none, &group), (30, Mode::Slices));
    }

    #[test]
    fn queue_mode_is_the_topics_to_say() {
        let none = Values::new();
        let mode = |text: &str| values(&[("elastic.mode", text)]);
        let both = |topic, group| ElasticKeys::new(&mode(topic), &mode(group), nothing_set(&none)).mode();
        assert_eq!(both("queues", "slices"), Mode::Queues);
        assert_eq!(both("queues", "off"), Mode::Off, "a group that does not count");
        assert_eq!(both("slices", "off"), Mode::Off);
        assert_eq!(
            ElasticKeys::new(&mode("slices"), &mode("queues"), nothing_set(&none)).mode_of_topic(),
            Mode::Slices
        );
    }

    #[test]
    fn defaults_are_those_of_the_keys() {
        let settings = ElasticSettings::default();
        assert_eq!(settings.mode, Mode::Slices);
        assert_eq!(settings.split_min_remaining, 1000);
        assert_eq!(settings.slices_max, 64);
        assert_eq!(settings.evidence, CommitEvidence::Previous);
        assert_eq!(GroupElasticSettings::default().interval_ms, 1000);
    }

    #[test]
    fn a_value_that_an_older_version_stored_and_this_one_refuses_counts_as_the_default() {
        let none = Values::new();
        let odd = values(&[("elastic.mode", "sometimes"), ("elastic.slices.max", "many")]);
        let settings = ElasticKeys::new(&odd, &odd, nothing_set(&none)).all();
        assert_eq!((settings.mode, settings.slices_max), (Mode::Slices, 64));
    }
}
