//! Configuration keys with Kafka's names: what exists, what a value may be, where an effective value comes from.
//!
//! ```text
//! topic::KEYS   broker::KEYS   group::KEYS     one row a key: name, type, default, check, effect, text
//!      |              |             |
//!      +------- find / check -------+          unknown keys and bad values are refused here, with a suggestion
//!                     |
//!              resolve::candidates             all values that apply, strongest first: the first is in force,
//!                     |                        the others are the "synonyms" of DescribeConfigs
//!              settings::{Topic,Broker}Settings  typed values for the code that decides
//! ```
//!
//! A key is in a table only if tools or applications set it. Some have nothing to act on in this broker (a shared log
//! has no segments per topic, a single node has no replicas); they are accepted, since refusing them would break
//! programs that create topics, and say so in their text and in [`ConfigKey::effect`].
//!
//! Values are kept as the strings that came. No value is ever a file name, a class or an address to connect to.

pub mod broker;
mod elastic;
pub mod group;
mod resolve;
pub mod settings;
mod suggest;
pub mod topic;
mod value;

pub use resolve::{Candidate, Layers, Source, Values, candidates, effective};
pub(crate) use settings::Reader;
pub use settings::{BrokerSettings, ConsumerGroupSettings, TimestampType, TopicSettings};
pub use value::Check;
pub(crate) use value::words_of;

use crate::Refused;
use anabranch_wire::ErrorCode;

/// The type of a value, with the numbers of DescribeConfigs v3+ (KIP-569).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean = 1,
    /// Text, or one of a few words.
    String = 2,
    /// A signed 32-bit number.
    Int = 3,
    /// A signed 16-bit number.
    Short = 4,
    /// A signed 64-bit number.
    Long = 5,
    /// A decimal fraction.
    Double = 6,
    /// Words separated by commas.
    List = 7,
    /// A class name; no key of ours has it.
    Class = 8,
    /// A secret: never shown.
    Password = 9,
}

/// What a key does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What its text says.
    Full,
    /// It is stored and shown, and nothing follows from it; the text says why.
    AcceptedOnly,
}

/// Whether a key can be changed while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// By AlterConfigs, at once.
    Dynamic,
    /// Only in the configuration the broker starts with.
    ReadOnly,
}

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// Kafka's name.
    pub name: &'static str,
    /// The type of the value.
    pub kind: ConfigType,
    /// The value when nothing is configured; `None` if there is none (another key then decides).
    pub default: Option<&'static str>,
    /// What a value must satisfy beyond its type.
    pub check: Check,
    /// Whether it has the effect that its name promises.
    pub effect: Effect,
    /// Whether it can be changed while the broker runs.
    pub update: Update,
    /// The broker keys that give this one its value when it is not set, strongest first, each with the factor that
    /// converts its unit (hours to milliseconds).
    pub synonyms: &'static [(&'static str, i64)],
    /// What it means, for people; complete sentences.
    pub doc: &'static str,
}

impl ConfigKey {
    /// A dynamic key with full effect and no synonyms.
    const fn new(
        name: &'static str,
        kind: ConfigType,
        default: Option<&'static str>,
        check: Check,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            check,
            effect: Effect::Full,
            update: Update::Dynamic,
            synonyms: &[],
            doc,
        }
    }

    const fn accepted_only(mut self) -> Self {
        self.effect = Effect::AcceptedOnly;
        self
    }

    const fn read_only(mut self) -> Self {
        self.update = Update::ReadOnly;
        self
    }

    const fn from(mut self, synonyms: &'static [(&'static str, i64)]) -> Self {
        self.synonyms = synonyms;
        self
    }

    /// Whether the value must never be shown.
    pub fn is_sensitive(&self) -> bool {
        self.kind == ConfigType::Password
    }

    /// Checks a value; the refusal names the key, the value and what is allowed.
    pub fn check(&self, value: &str) -> Result<(), Refused> {
        if value.len() > crate::limits::CONFIG_VALUE_BYTES_MAX {
            let most = crate::limits::CONFIG_VALUE_BYTES_MAX;
            let message = format!(
                "the value of `{}` has {} bytes; {most} are allowed",
                self.name,
                value.len()
            );
            return Err(Refused::new(ErrorCode::InvalidConfig, message));
        }
        value::check(self.kind, self.check, value).map_err(|allowed| {
            let message = format!("`{value}` is not a value of `{}`: {allowed}", self.name);
            Refused::new(ErrorCode::InvalidConfig, message)
        })
    }
}

/// The kinds of resource that have configurations here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A topic.
    Topic,
    /// The broker.
    Broker,
    /// A group (KIP-848).
    Group,
}

impl Scope {
    /// All keys of the scope, in name order.
    pub fn keys(self) -> &'static [ConfigKey] {
        match self {
            Self::Topic => topic::KEYS,
            Self::Broker => broker::KEYS,
            Self::Group => group::KEYS,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::Group => "group",
        }
    }
}

/// The key of that name, if the scope has one.
pub fn lookup(scope: Scope, name: &str) -> Option<&'static ConfigKey> {
    let keys = scope.keys();
    keys.binary_search_by(|key| key.name.cmp(name))
        .ok()
        .and_then(|at| keys.get(at))
}

/// The key of that name, or INVALID_CONFIG with the nearest one as a suggestion.
pub fn find(scope: Scope, name: &str) -> Result<&'static ConfigKey, Refused> {
    lookup(scope, name).ok_or_else(|| {
        let hint = suggest::hint(scope, name);
        let noun = scope.noun();
        Refused::new(
            ErrorCode::InvalidConfig,
            format!("`{name}` is not a {noun} configuration{hint}"),
        )
    })
}

#[cfg(test)]
#[path = "config_test.rs"]
mod tests;
