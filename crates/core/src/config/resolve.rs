//! Where an effective value comes from.

use super::{ConfigKey, Scope, lookup};
use std::collections::BTreeMap;

/// Overrides of one resource: key to value.
pub type Values = BTreeMap<String, String>;

/// Where a value was set, with the numbers of DescribeConfigs v1+.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    /// On the topic.
    Topic = 1,
    /// On this broker, while it runs.
    Broker = 2,
    /// For all brokers, while they run.
    ClusterDefault = 3,
    /// In the configuration the broker started with.
    Static = 4,
    /// Nowhere: the default of the key.
    Default = 5,
    /// On the group.
    Group = 8,
}

/// The broker's values, by layer.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Set on this broker while it runs.
    pub broker: &'a Values,
    /// Set for all brokers while they run.
    pub cluster: &'a Values,
    /// Set at the start.
    pub fixed: &'a Values,
}

/// One value that applies to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The key under which it was set: the key itself, or one of its synonyms.
    pub name: &'static str,
    /// The value as it was set.
    pub raw: String,
    /// The same in the unit of the key that was asked for.
    pub value: String,
    /// Where it was set.
    pub source: Source,
}

/// All values that apply to a key, strongest first. `own` are the overrides of the topic or group that the key belongs
/// to; for a broker key it is `None`. Empty for a key that has no value at all.
pub fn candidates(
    key: &'static ConfigKey,
    own: Option<(&Values, Source)>,
    layers: Layers<'_>,
) -> Vec<Candidate> {
    applying(key, own, layers).collect()
}

/// The value in force; empty if the key has none.
pub fn effective(key: &'static ConfigKey, own: Option<(&Values, Source)>, layers: Layers<'_>) -> String {
    let strongest = applying(key, own, layers).next();
    strongest.map(|first| first.value).unwrap_or_default()
}

/// Looked for one by one, since most who ask want only the first.
fn applying<'a>(
    key: &'static ConfigKey,
    own: Option<(&'a Values, Source)>,
    layers: Layers<'a>,
) -> impl Iterator<Item = Candidate> + 'a {
    let layers = [
        (layers.broker, Source::Broker),
        (layers.cluster, Source::ClusterDefault),
        (layers.fixed, Source::Static),
    ];
    let (of_key, of_broker) = (
        own.is_none().then_some((key.name, 1)),
        key.synonyms.iter().copied(),
    );
    let own = own.map(|(values, source)| found(key.name, 1, values, source));
    let layered = of_key
        .into_iter()
        .chain(of_broker)
        .flat_map(move |(name, factor)| {
            layers
                .into_iter()
                .map(move |(values, source)| found(name, factor, values, source))
        });
    let set = own.into_iter().chain(layered).flatten();
    set.chain(std::iter::once_with(move || default_of(key)).flatten())
}

/// The default is shown under the broker key that defines it, as Kafka does.
fn default_of(key: &'static ConfigKey) -> Option<Candidate> {
    let of_synonym = key.synonyms.iter().rev().find_map(|(name, factor)| {
        let default = lookup(Scope::Broker, name)?.default?;
        Some((*name, *factor, default))
    });
    let (name, factor, raw) = of_synonym.or(key.default.map(|default| (key.name, 1, default)))?;
    Some(Candidate {
        name,
        raw: raw.to_owned(),
        value: scaled(raw, factor),
        source: Source::Default,
    })
}

fn found(name: &'static str, factor: i64, values: &Values, source: Source) -> Option<Candidate> {
    values.get(name).map(|raw| Candidate {
        name,
        raw: raw.clone(),
        value: scaled(raw, factor),
        source,
    })
}

/// A value in a unit `factor` times as fine; -1 means "no bound" in every unit.
fn scaled(raw: &str, factor: i64) -> String {
    if factor == 1 {
        return raw.to_owned();
    }
    match raw.trim().parse::<i64>() {
        Ok(-1) | Err(_) => raw.to_owned(),
        Ok(number) => number.saturating_mul(factor).to_string(),
    }
}
