//! What an operator may set, where the values come from, and how they are explained.
//!
//! ```text
//!  defaults < TOML file < environment < flags          each source: text with its origin   (source)
//!        \________ one list of entries ________/
//!                        |  names: own, Kafka's, or a broker-wide Kafka setting            (table, kafka)
//!                        |  text -> value                                                  (value)
//!                        v
//!   Settings for the server + origin of each value for `config list` and `config explain`  (resolve, reference)
//! ```
//!
//! Nothing here reads the environment, the file system or the clock: the program hands over what it has read, so that
//! each rule of precedence is a test. An unknown name is an error with the nearest known one. All errors are reported
//! at once, each with its place.

mod item;
mod kafka;
mod limits;
mod reference;
mod resolve;
mod source;
mod suggest;
mod table;
mod value;

use std::fmt;

use anabranch_core::config::{Scope, lookup};

use crate::config::{Advertised, Config, Durability, Listener};

pub use item::{Flag, Item, Kind};
pub use kafka::{KAFKA_ENV_PREFIX, broker_keys};
pub use limits::limits_page;
pub use reference::{explain, reference_page};
pub use resolve::{Resolved, resolve};
pub use source::{Origin, SettingError, SettingErrors, Sources};
pub use suggest::nearest;
pub use table::{ITEMS, find};
pub use value::{
    HostPort, NamedAddress, format_duration_ms, format_size_bytes, parse_duration_ms, parse_size_bytes,
};

/// What the name of every environment variable for a setting begins with.
pub const ENV_PREFIX: &str = "ANABRANCH_";

/// Names the settings file where no flag does.
pub const CONFIG_VARIABLE: &str = "ANABRANCH_CONFIG";

/// Names the broker for client commands where no flag does.
pub const BOOTSTRAP_VARIABLE: &str = "ANABRANCH_BOOTSTRAP";

/// Names the broker's HTTP listener for client commands where no flag does.
pub const ADMIN_VARIABLE: &str = "ANABRANCH_ADMIN";

/// The variables that begin like a setting and are none: a broker is started with them as without.
pub const OTHER_VARIABLES: &[&str] = &[CONFIG_VARIABLE, BOOTSTRAP_VARIABLE, ADMIN_VARIABLE];

/// Everything that an operator may set, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the server is started with, except for listeners and broker-wide Kafka settings, which follow below.
    pub server: Config,
    /// Where Kafka clients connect; at least one.
    pub listen: Vec<NamedAddress>,
    /// Addresses told to clients, for one listener or all; empty: the address that the client dialled.
    pub advertise: Vec<NamedAddress>,
    /// How much is logged.
    pub log_level: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
}

impl Settings {
    /// The address to tell clients that came through `listener`; `None`: the one they dialled.
    ///
    /// An address of the listener's own name goes before one without a name.
    pub fn advertised(&self, listener: &NamedAddress) -> Option<&HostPort> {
        let named = |one: &&NamedAddress| one.name.is_some() && one.name == listener.name;
        let for_all = |one: &&NamedAddress| one.name.is_none();
        let chosen = self
            .advertise
            .iter()
            .find(named)
            .or_else(|| self.advertise.iter().find(for_all));
        chosen.map(|one| &one.address)
    }

    /// What the server is started with.
    pub fn config(&self) -> Config {
        let listener = |one: &NamedAddress| {
            let advertise = self.advertised(one).cloned();
            Listener {
                bind: one.address.to_string(),
                advertise: advertise.map(|HostPort { host, port }| Advertised { host, port }),
            }
        };
        let mut config = Config {
            listeners: self.listen.iter().map(listener).collect(),
            ..self.server.clone()
        };
        config.broker.extend(self.shown_to_clients());
        config
    }

    /// Own settings under Kafka's names, so that administration tools that ask for the broker's configuration see what
    /// is in force.
    fn shown_to_clients(&self) -> impl Iterator<Item = (String, String)> {
        let names = |item: &'static Item| std::iter::once(item.name).chain(item.kafka_names.iter().copied());
        let keys = ITEMS
            .iter()
            .flat_map(move |item| names(item).map(move |name| (item, name)));
        keys.filter_map(|(item, name)| {
            let key = lookup(Scope::Broker, name)?;
            let value = item.plain_value(self);
            let differs = key.default != Some(value.as_str());
            (differs && key.check(&value).is_ok()).then(|| (name.to_owned(), value))
        })
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures that someone must look at.
    Error,
    /// And what is unusual.
    Warn,
    /// And what an operator wants to know of a normal day.
    Info,
    /// And connections and group changes.
    Debug,
    /// And single requests.
    Trace,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The word for a durability in files and flags.
fn durability_name(durability: &Durability) -> &'static str {
    match durability {
        Durability::Durable => "durable",
        Durability::Relaxed => "relaxed",
    }
}

impl LogLevel {
    /// All levels, from few lines to many.
    pub const ALL: &[LogLevel] = &[
        LogLevel::Error,
        LogLevel::Warn,
        LogLevel::Info,
        LogLevel::Debug,
        LogLevel::Trace,
    ];

    /// The word for it in files and flags.
    pub fn name(&self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

impl LogFormat {
    /// All formats.
    pub const ALL: &[LogFormat] = &[LogFormat::Text, LogFormat::Json];

    /// The word for it in files and flags.
    pub fn name(&self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

fn join<T: fmt::Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(",")
}
