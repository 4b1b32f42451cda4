//! Where settings come from: a TOML file, the environment, flags. Each gives [`Entry`]s, text with its origin.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::{ENV_PREFIX, OTHER_VARIABLES, kafka};

/// What the program has read, from the weakest source to the strongest.
#[derive(Debug, Default)]
pub struct Sources {
    /// The data folder to use if nobody names one.
    pub default_data: String,
    /// The configuration file: its path as the operator wrote it, and its text.
    pub file: Option<(String, String)>,
    /// The environment, whole; only names of settings are looked at.
    pub env: Vec<(String, String)>,
    /// Flags: the setting's name, the values, and the flag as it was written.
    pub flags: Vec<(String, Vec<String>, String)>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file, at a line and column that count from 1.
    File {
        /// Path as the operator wrote it.
        path: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// An environment variable of this name.
    Env(String),
    /// A flag, as it was written.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
            Origin::Env(name) => write!(f, "environment variable {name}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// One thing that is wrong with the settings, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct SettingError {
    /// Where the value stands.
    pub origin: Origin,
    /// What is wrong with it and what to write instead.
    pub message: String,
}

/// Everything that is wrong with the settings, one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SettingErrors(
    /// At least one error.
    pub Vec<SettingError>,
);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// One assignment of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) texts: Vec<String>,
    pub(super) origin: Origin,
}

/// The entries of a TOML document. Tables nest by dots: `[log] level = 1` and `log.level = 1` are one.
pub(super) fn read_toml(path: &str, text: &str) -> Result<Vec<Entry>, Vec<SettingError>> {
    let place = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Origin::File {
            path: path.to_owned(),
            line,
            column,
        }
    };
    let table = DeTable::parse(text).map_err(|error| {
        let origin = place(error.span().map_or(0, |span| span.start));
        vec![SettingError {
            origin,
            message: format!("not valid TOML: {}", error.message().trim()),
        }]
    })?;
    let mut reader = TomlReader {
        text,
        place: &place,
        entries: Vec::new(),
        errors: Vec::new(),
    };
    reader.table("", None, table.get_ref());
    if reader.errors.is_empty() {
        Ok(reader.entries)
    } else {
        Err(reader.errors)
    }
}

struct TomlReader<'a> {
    text: &'a str,
    place: &'a dyn Fn(usize) -> Origin,
    entries: Vec<Entry>,
    errors: Vec<SettingError>,
}

impl TomlReader<'_> {
    fn same_line(&self, a: usize, b: usize) -> bool {
        self.text.get(a..b).is_some_and(|between| !between.contains('\n'))
    }

    /// Recursion is bounded: the TOML parser refuses deep nesting. `start` is where the table's own key begins.
    fn table(&mut self, prefix: &str, start: Option<usize>, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            let own = key.span().start;
            // A dotted key begins with its first part, which stands on the same line.
            let begin = start.filter(|start| self.same_line(*start, own)).unwrap_or(own);
            let origin = (self.place)(begin);
            match value.get_ref() {
                DeValue::Table(inner) => self.table(&name, Some(begin), inner),
                DeValue::Array(array) => {
                    let texts: Option<Vec<String>> = array.iter().map(|one| scalar(one.get_ref())).collect();
                    match texts {
                        Some(texts) => self.entries.push(Entry { name, texts, origin }),
                        None => self.errors.push(SettingError {
                            origin,
                            message: format!("{name}: the elements of a list are plain values"),
                        }),
                    }
                }
                plain => {
                    let texts = scalar(plain).into_iter().collect();
                    self.entries.push(Entry { name, texts, origin });
                }
            }
        }
    }
}

/// The text of a plain value; `None` for a list or a table.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let plain = i64::from_str_radix(number.as_str(), number.radix());
            Some(plain.map_or_else(|_| number.to_string(), |number| number.to_string()))
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// The entries of the environment, Kafka's names first, so that our own win over them.
pub(super) fn read_env(env: &[(String, String)]) -> Vec<Entry> {
    let entry = |name: String, variable: &str, text: &str| Entry {
        name,
        texts: vec![text.to_owned()],
        origin: Origin::Env(variable.to_owned()),
    };
    let mut entries: Vec<Entry> = env
        .iter()
        .filter_map(|(variable, text)| Some(entry(kafka::name_from_env(variable)?, variable, text)))
        .collect();
    entries.extend(env.iter().filter_map(|(variable, text)| {
        let rest = variable.strip_prefix(ENV_PREFIX)?;
        let ours = !OTHER_VARIABLES.contains(&variable.as_str()) && !kafka::is_service_link(rest);
        ours.then(|| entry(rest.to_ascii_lowercase().replace('_', "."), variable, text))
    }));
    entries
}
