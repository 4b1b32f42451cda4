//! AlterConfigs, IncrementalAlterConfigs and DescribeConfigs.

use super::Node;
use crate::Refused;
use crate::config::{
    Candidate, ConfigKey, ConfigType, Layers, Scope, Source, Update, Values, candidates, effective, find,
    lookup,
};
use crate::limits;
use crate::meta::Command;
use crate::meta::Resource;
use anabranch_wire::ErrorCode;

/// What IncrementalAlterConfigs does to a key, with the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum AlterOp {
    /// Sets the value.
    Set = 0,
    /// Takes it back to what applies without it.
    Delete = 1,
    /// Adds words to a list.
    Append = 2,
    /// Removes words from a list.
    Subtract = 3,
}

impl AlterOp {
    /// The operation of that number, else INVALID_REQUEST.
    pub fn from_i8(number: i8) -> Result<Self, Refused> {
        match number {
            0 => Ok(Self::Set),
            1 => Ok(Self::Delete),
            2 => Ok(Self::Append),
            3 => Ok(Self::Subtract),
            _ => Err(Refused::new(
                ErrorCode::InvalidRequest,
                format!("{number} is not an operation on a config"),
            )),
        }
    }
}

/// One change of IncrementalAlterConfigs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterConfig {
    /// The key.
    pub name: String,
    /// What to do.
    pub op: AlterOp,
    /// With what; not for `Delete`.
    pub value: Option<String>,
}

/// One key, as DescribeConfigs shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: &'static str,
    /// The value in force; `None` if there is none, or it must not be shown.
    pub value: Option<String>,
    /// Where that was set.
    pub source: Source,
    /// Whether it cannot be changed while the broker runs.
    pub read_only: bool,
    /// Whether the value must not be shown.
    pub sensitive: bool,
    /// The type of the value.
    pub kind: ConfigType,
    /// What it means.
    pub doc: &'static str,
    /// All values that apply, strongest first.
    pub synonyms: Vec<Candidate>,
}

impl Node {
    /// The resource that a request names by Kafka's resource type: 2 topic, 4 broker, 32 group. INVALID_REQUEST for
    /// others, and for a broker that is not this one (the empty name means all).
    pub fn resource(&self, kind: i8, name: &str) -> Result<Resource, Refused> {
        match kind {
            2 => Ok(Resource::Topic(name.to_owned())),
            4 if name.is_empty() => Ok(Resource::ClusterDefault),
            4 if name == self.node_id().to_string() => Ok(Resource::Broker),
            4 => {
                let message = format!(
                    "broker `{name}` does not exist: use `{}`, or an empty name for all",
                    self.node_id()
                );
                Err(Refused::new(ErrorCode::InvalidRequest, message))
            }
            32 if name.is_empty() => Err(Refused::new(ErrorCode::InvalidRequest, "the group id is empty")),
            32 => Ok(Resource::Group(name.to_owned())),
            _ => {
                let message = format!(
                    "resources of type {kind} have no configurations here; use topic, broker or group"
                );
                Err(Refused::new(ErrorCode::InvalidRequest, message))
            }
        }
    }

    /// Decides about replacing all that is set on a resource (AlterConfigs). A missing value is an error.
    ///
    /// UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST.
    pub fn alter_configs(
        &self,
        resource: &Resource,
        all: &[(String, Option<String>)],
    ) -> Result<Vec<Command>, Refused> {
        self.overrides(resource)?;
        let mut values = Values::new();
        for (name, value) in all {
            let key = alterable(resource.scope(), name)?;
            set(&mut values, key, value.as_deref())?;
        }
        if values.len() != all.len() {
            return Err(Refused::new(
                ErrorCode::InvalidRequest,
                "a configuration is named twice",
            ));
        }
        self.changed(resource, values)
    }

    /// Decides about single changes to what is set on a resource (IncrementalAlterConfigs, KIP-339).
    ///
    /// UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST.
    pub fn incremental_alter_configs(
        &self,
        resource: &Resource,
        changes: &[AlterConfig],
    ) -> Result<Vec<Command>, Refused> {
        let mut values = self.overrides(resource)?.cloned().unwrap_or_default();
        if !super::duplicates(changes.iter().map(|change| change.name.as_str())).is_empty() {
            return Err(Refused::new(
                ErrorCode::InvalidRequest,
                "a configuration is named twice",
            ));
        }
        for change in changes {
            let key = alterable(resource.scope(), &change.name)?;
            match change.op {
                AlterOp::Set => set(&mut values, key, change.value.as_deref())?,
                AlterOp::Delete => {
                    values.remove(key.name);
                }
                AlterOp::Append | AlterOp::Subtract => {
                    let before = self.value_of(resource, key);
                    let list = edited(key, &before, change)?;
                    set(&mut values, key, Some(&list))?;
                }
            }
        }
        self.changed(resource, values)
    }

    /// What is set on a resource and what applies to it: all keys, or those named; names without a key are left out, as
    /// Kafka does. For the cluster-wide default only what is set. UNKNOWN_TOPIC_OR_PARTITION.
    pub fn describe_configs(
        &self,
        resource: &Resource,
        names: Option<&[String]>,
    ) -> Result<Vec<ConfigEntry>, Refused> {
        let own = self.overrides(resource)?;
        let scope = resource.scope();
        let named = |key: &&ConfigKey| names.is_none_or(|names| names.iter().any(|name| name == key.name));
        let listed = |key: &&ConfigKey| {
            *resource != Resource::ClusterDefault || own.is_some_and(|own| own.contains_key(key.name))
        };
        let keys = scope.keys().iter().filter(named).filter(listed);
        Ok(keys.map(|key| self.entry(resource, key)).collect())
    }

    fn entry(&self, resource: &Resource, key: &'static ConfigKey) -> ConfigEntry {
        let mut synonyms = self.candidates(resource, key);
        if key.is_sensitive() {
            synonyms.clear();
        }
        let first = synonyms.first();
        ConfigEntry {
            name: key.name,
            value: first.map(|first| first.value.clone()),
            source: first.map_or(Source::Default, |first| first.source),
            read_only: key.update == Update::ReadOnly,
            sensitive: key.is_sensitive(),
            kind: key.kind,
            doc: key.doc,
            synonyms,
        }
    }

    fn candidates(&self, resource: &Resource, key: &'static ConfigKey) -> Vec<Candidate> {
        let none = Values::new();
        let own = match resource {
            Resource::Topic(name) => Some((
                self.topic_by_name(name).map_or(&none, |topic| &topic.configs),
                Source::Topic,
            )),
            Resource::Group(id) => Some((self.state.group_configs(id).unwrap_or(&none), Source::Group)),
            Resource::ClusterDefault | Resource::Broker => None,
        };
        // What is set on this broker is nothing to all brokers.
        let layers = self.layers();
        let broker = if *resource == Resource::ClusterDefault {
            &none
        } else {
            layers.broker
        };
        candidates(key, own, Layers { broker, ..layers })
    }

    fn value_of(&self, resource: &Resource, key: &'static ConfigKey) -> String {
        self.candidates(resource, key)
            .into_iter()
            .next()
            .map(|first| first.value)
            .unwrap_or_default()
    }

    /// What is set on a resource; `None` if nothing is.
    fn overrides(&self, resource: &Resource) -> Result<Option<&Values>, Refused> {
        Ok(match resource {
            Resource::Topic(name) => Some(&self.existing(name)?.configs),
            Resource::ClusterDefault => Some(self.state.cluster_configs()),
            Resource::Broker => Some(self.state.broker_configs()),
            Resource::Group(id) => self.state.group_configs(id),
        })
    }

    fn changed(&self, resource: &Resource, configs: Values) -> Result<Vec<Command>, Refused> {
        if let Resource::Group(id) = resource {
            self.check_group(id, &configs)?;
        }
        if self
            .overrides(resource)?
            .map_or(configs.is_empty(), |before| *before == configs)
        {
            return Ok(Vec::new());
        }
        Ok(vec![Command::SetConfigs {
            resource: resource.clone(),
            configs,
        }])
    }

    /// Group values must lie between the bounds that the broker sets for them.
    fn check_group(&self, id: &str, configs: &Values) -> Result<(), Refused> {
        let max = limits::GROUP_CONFIGS_MAX;
        if self.state.group_configs(id).is_none() && self.state.configured_groups() >= max {
            let message =
                format!("{max} groups have configurations, which is the most; delete those of another group");
            return Err(Refused::new(ErrorCode::PolicyViolation, message));
        }
        for (name, value) in configs {
            let Some((_, what)) = name.split_once("consumer.") else {
                continue;
            };
            let bound = |side: &str| {
                let name = format!("group.consumer.{side}.{what}");
                let bound = lookup(Scope::Broker, &name).map(|key| effective(key, None, self.layers()));
                (bound.and_then(|bound| bound.parse::<i64>().ok()), name)
            };
            let (min, min_name) = bound("min");
            let (max, max_name) = bound("max");
            let value = value.trim().parse::<i64>().unwrap_or(0);
            if min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max) {
                let message = format!(
                    "`{value}` is not a value of `{name}`: the broker allows {} ({min_name}) to {} ({max_name})",
                    min.unwrap_or(0),
                    max.unwrap_or(i64::MAX),
                );
                return Err(Refused::new(ErrorCode::InvalidConfig, message));
            }
        }
        Ok(())
    }
}

fn alterable(scope: Scope, name: &str) -> Result<&'static ConfigKey, Refused> {
    let key = find(scope, name)?;
    if key.update == Update::ReadOnly {
        let message = format!(
            "`{name}` cannot be changed while the broker runs: set it in the configuration and start again"
        );
        return Err(Refused::new(ErrorCode::InvalidConfig, message));
    }
    Ok(key)
}

fn set(values: &mut Values, key: &'static ConfigKey, value: Option<&str>) -> Result<(), Refused> {
    let Some(value) = value else {
        return Err(Refused::new(
            ErrorCode::InvalidRequest,
            format!("`{}` has no value", key.name),
        ));
    };
    key.check(value)?;
    values.insert(key.name.to_owned(), value.trim().to_owned());
    Ok(())
}

/// A list with words added or removed; adding a word that is there, or removing one that is not, changes nothing.
fn edited(key: &ConfigKey, before: &str, change: &AlterConfig) -> Result<String, Refused> {
    if key.kind != ConfigType::List {
        let message = format!("`{}` is not a list: only SET and DELETE are possible", key.name);
        return Err(Refused::new(ErrorCode::InvalidConfig, message));
    }
    let Some(given) = &change.value else {
        return Err(Refused::new(
            ErrorCode::InvalidRequest,
            format!("`{}` has no value", key.name),
        ));
    };
    let given = crate::config::words_of(given);
    let mut words = crate::config::words_of(before);
    if change.op == AlterOp::Append {
        for word in given {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    } else {
        words.retain(|word| !given.contains(word));
    }
    Ok(words.join(","))
}

#[cfg(test)]
#[path = "configs_test.rs"]
mod tests;
