//! One setting: what it is called, what it takes, and how text becomes its value.

use std::time::Duration;

use super::Settings;
use super::value::{self, NamedAddress};

/// One setting.
pub struct Item {
    /// The name in the file, in `--set` and for `config explain`.
    pub name: &'static str,
    /// The flag of `anabranch serve` and the placeholder of its value, if the setting has a flag of its own.
    pub flag: Option<Flag>,
    /// The same setting's names in Kafka's `server.properties`.
    pub kafka_names: &'static [&'static str],
    /// What values it takes.
    pub kind: Kind,
    /// The default, as one would write it.
    pub default: &'static str,
    /// One line for lists and `--help`.
    pub summary: &'static str,
    /// What one should know before one changes it.
    pub details: &'static str,
    pub(super) set: fn(&mut Settings, &Item, &[String]) -> Result<(), String>,
    pub(super) get: fn(&Settings) -> String,
}

/// The flag of a setting.
pub struct Flag {
    /// Without the leading `--`.
    pub long: &'static str,
    /// The placeholder of the value in `--help`.
    pub value_name: &'static str,
}

/// What values a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A path of the file system.
    Path,
    /// One `HOST:PORT`, or `none`.
    Address,
    /// One or more `[NAME://]HOST:PORT`.
    Listeners,
    /// Names of hosts, or `none`.
    Names,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A duration in milliseconds between the two bounds, both included.
    DurationMs(u64, u64),
    /// A size in bytes between the two bounds, both included.
    SizeBytes(u64, u64),
    /// A whole number between the two bounds, both included.
    Count(u64, u64),
    /// `true` or `false`.
    Bool,
}

impl Kind {
    /// Whether several values may be given.
    pub fn is_list(&self) -> bool {
        matches!(self, Kind::Listeners | Kind::Names)
    }

    /// Type and range in words.
    pub fn describe(&self) -> String {
        match self {
            Kind::Path => "path".to_owned(),
            Kind::Address => "HOST:PORT, or none".to_owned(),
            Kind::Listeners => "one or more [NAME://]HOST:PORT".to_owned(),
            Kind::Names => "names of hosts, or none".to_owned(),
            Kind::OneOf(words) => format!("one of {}", words.join(", ")),
            Kind::DurationMs(min, max) => {
                let (min, max) = (value::format_duration_ms(*min), value::format_duration_ms(*max));
                format!("duration from {min} to {max} (milliseconds, or a unit: 10s)")
            }
            Kind::SizeBytes(min, max) => {
                let (min, max) = (value::format_size_bytes(*min), value::format_size_bytes(*max));
                format!("size from {min} to {max} (bytes, or a unit: 64MiB)")
            }
            Kind::Count(min, max) => format!("number from {min} to {max}"),
            Kind::Bool => "true or false".to_owned(),
        }
    }
}

impl Item {
    /// The environment variable of this setting.
    pub fn env(&self) -> String {
        format!(
            "{}{}",
            super::ENV_PREFIX,
            self.name.to_ascii_uppercase().replace('.', "_")
        )
    }

    /// The value that `settings` has for this item, as one would write it.
    pub fn value(&self, settings: &Settings) -> String {
        (self.get)(settings)
    }

    /// The value as Kafka's tools write it: bytes and milliseconds as bare numbers, listeners with a protocol.
    pub(super) fn plain_value(&self, settings: &Settings) -> String {
        let text = self.value(settings);
        let number = match self.kind {
            Kind::SizeBytes(..) => value::parse_size_bytes(&text).ok(),
            Kind::DurationMs(..) => value::parse_duration_ms(&text).ok(),
            _ => None,
        };
        match (number, self.kind) {
            (Some(number), _) => number.to_string(),
            (None, Kind::Listeners) if text == "none" => String::new(),
            (None, Kind::Listeners) => {
                let addresses = text.split(',').map(|one| {
                    if one.contains("://") {
                        one.to_owned()
                    } else {
                        format!("PLAINTEXT://{one}")
                    }
                });
                addresses.collect::<Vec<_>>().join(",")
            }
            (None, _) => text,
        }
    }

    pub(super) fn one<'a>(&self, texts: &'a [String]) -> Result<&'a str, String> {
        match texts {
            [text] if !text.is_empty() => Ok(text),
            [] | [_] => Err(format!("the value is empty; expected: {}", self.kind.describe())),
            [..] => Err(format!("takes one value, not {}", texts.len())),
        }
    }

    pub(super) fn choose<T: Copy>(
        &self,
        texts: &[String],
        all: &[T],
        name: fn(&T) -> &'static str,
    ) -> Result<T, String> {
        let text = self.one(texts)?;
        let chosen = all.iter().find(|one| name(one).eq_ignore_ascii_case(text));
        chosen
            .copied()
            .ok_or_else(|| format!("\"{text}\" is not {}", self.kind.describe()))
    }

    pub(super) fn duration(&self, texts: &[String]) -> Result<Duration, String> {
        let ms = value::parse_duration_ms(self.one(texts)?)?;
        self.in_range(ms, &value::format_duration_ms(ms))
            .map(Duration::from_millis)
    }

    pub(super) fn size(&self, texts: &[String]) -> Result<u64, String> {
        let bytes = value::parse_size_bytes(self.one(texts)?)?;
        self.in_range(bytes, &value::format_size_bytes(bytes))
    }

    pub(super) fn memory(&self, texts: &[String]) -> Result<usize, String> {
        self.size(texts)
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(super) fn count(&self, texts: &[String]) -> Result<u64, String> {
        let text = self.one(texts)?;
        let wrong = || format!("\"{text}\" is not a {}", self.kind.describe());
        let count = text.parse().map_err(|_| wrong())?;
        self.in_range(count, text)
    }

    pub(super) fn boolean(&self, texts: &[String]) -> Result<bool, String> {
        let text = self.one(texts)?.to_ascii_lowercase();
        text.parse()
            .map_err(|_| format!("\"{text}\" is not true or false"))
    }

    fn in_range(&self, value: u64, text: &str) -> Result<u64, String> {
        match self.kind {
            Kind::DurationMs(min, max) | Kind::SizeBytes(min, max) | Kind::Count(min, max)
                if !(min..=max).contains(&value) =>
            {
                Err(format!(
                    "{text} is out of range; expected: {}",
                    self.kind.describe()
                ))
            }
            _ => Ok(value),
        }
    }

    /// Names of hosts in lower case; `*` is one, too.
    pub(super) fn names(&self, texts: &[String]) -> Result<Vec<String>, String> {
        if matches!(texts, [text] if text == "none") {
            return Ok(Vec::new());
        }
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        match texts.iter().find(|text| *text != "*" && !is_name(text)) {
            Some(odd) => Err(format!(
                "\"{odd}\" is not the name of a host; leave out scheme and port"
            )),
            None => Ok(texts.iter().map(|text| text.to_ascii_lowercase()).collect()),
        }
    }

    pub(super) fn named_addresses(&self, texts: &[String]) -> Result<Vec<NamedAddress>, String> {
        let mut addresses = Vec::new();
        for text in texts {
            addresses.push(text.parse::<NamedAddress>()?);
        }
        Ok(addresses)
    }
}
