//! Puts the sources on top of each other and checks the result.

use std::collections::BTreeMap;

use anabranch_core::config::{ConfigKey, Effect};

use super::item::Item;
use super::source::{self, Entry, Origin, SettingError, SettingErrors, Sources};
use super::table::{self, ITEMS};
use super::{LogFormat, LogLevel, Settings, kafka, suggest};
use crate::config::Config;

/// Settings with the origin of each.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The values.
    pub settings: Settings,
    /// What deserves a line in the log, but is no error.
    pub warnings: Vec<String>,
    origins: BTreeMap<String, Origin>,
}

impl Resolved {
    /// Where the value of the setting `name` came from.
    pub fn origin(&self, name: &str) -> &Origin {
        self.origins.get(name).unwrap_or(&Origin::Default)
    }

    /// Names of the settings that somebody set, in alphabetical order, with the origin of each.
    pub fn set_by_someone(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.origins.iter().map(|(name, origin)| (name.as_str(), origin))
    }
}

/// Reads all sources; later ones win: defaults, file, environment, flags.
///
/// # Errors
/// All that is wrong, in the order of the sources; a wrong value is an error even if a stronger source replaces it.
pub fn resolve(sources: &Sources) -> Result<Resolved, SettingErrors> {
    let mut building = Building::new(&sources.default_data);
    if let Some((path, text)) = &sources.file {
        match source::read_toml(path, text) {
            Ok(entries) => building.layer(entries),
            Err(errors) => building.errors.extend(errors),
        }
    }
    building.layer(source::read_env(&sources.env));
    let flag = |(name, texts, flag): &(String, Vec<String>, String)| Entry {
        name: name.clone(),
        texts: texts.clone(),
        origin: Origin::Flag(flag.clone()),
    };
    building.layer(sources.flags.iter().map(flag).collect());
    building.finish()
}

struct Building {
    settings: Settings,
    origins: BTreeMap<String, Origin>,
    warnings: Vec<String>,
    errors: Vec<SettingError>,
}

impl Building {
    fn new(default_data: &str) -> Building {
        let settings = Settings {
            server: Config {
                data_dir: default_data.into(),
                ..Config::default()
            },
            listen: Vec::new(),
            advertise: Vec::new(),
            log_level: LogLevel::Info,
            log_format: LogFormat::Text,
        };
        let mut building = Building {
            settings,
            origins: BTreeMap::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
        };
        for item in ITEMS.iter().filter(|item| item.name != "data") {
            building.assign(item, &[item.default.to_owned()], &Origin::Default);
        }
        building
    }

    /// Applies one source.
    fn layer(&mut self, entries: Vec<Entry>) {
        let mut seen: BTreeMap<String, Origin> = BTreeMap::new();
        for Entry { name, texts, origin } in entries {
            let canonical = table::find(&name)
                .map_or(name.as_str(), |item| item.name)
                .to_owned();
            let from_env = matches!(origin, Origin::Env(_));
            if let Some(first) = seen.insert(canonical, origin.clone())
                && !from_env
            {
                self.error(
                    &origin,
                    format!("{name} was already given ({first}); give it once"),
                );
                continue;
            }
            self.entry(&name, &texts, &origin);
        }
    }

    fn entry(&mut self, name: &str, texts: &[String], origin: &Origin) {
        if let Some(item) = table::find(name) {
            self.assign(item, texts, origin);
        } else if let Some(why) = kafka::without_effect(name) {
            self.warnings
                .push(format!("{origin}: {name} has no effect here: {why}"));
        } else if let Some(key) = kafka::key(name) {
            self.broker_key(key, texts, origin);
        } else {
            self.unknown(name, origin);
        }
    }

    fn broker_key(&mut self, key: &ConfigKey, texts: &[String], origin: &Origin) {
        if key.effect == Effect::AcceptedOnly {
            let why = key.doc.trim_start_matches("Accepted without effect: ");
            self.warnings
                .push(format!("{origin}: {} has no effect here: {why}", key.name));
        }
        match kafka::check(key, texts) {
            Ok(value) => {
                self.settings.server.broker.insert(key.name.to_owned(), value);
                self.origins.insert(key.name.to_owned(), origin.clone());
            }
            Err(message) => self.error(origin, message),
        }
    }

    fn assign(&mut self, item: &Item, texts: &[String], origin: &Origin) {
        let split = |text: &String| -> Vec<String> {
            let parts = text.split(',').map(|part| part.trim().to_owned());
            parts.filter(|part| !part.is_empty()).collect()
        };
        let texts = if item.kind.is_list() {
            texts.iter().flat_map(split).collect()
        } else {
            texts.to_vec()
        };
        match (item.set)(&mut self.settings, item, &texts) {
            Ok(()) if *origin == Origin::Default => {}
            Ok(()) => {
                self.origins.insert(item.name.to_owned(), origin.clone());
            }
            // A flag that says which setting it is of: `--listen`, `--set listen`.
            Err(message) if matches!(origin, Origin::Flag(flag) if flag.ends_with(item.name)) => {
                self.error(origin, message);
            }
            Err(message) => self.error(origin, format!("{}: {message}", item.name)),
        }
    }

    fn unknown(&mut self, name: &str, origin: &Origin) {
        let known = ITEMS
            .iter()
            .map(|item| item.name)
            .chain(kafka::keys().map(|key| key.name));
        let hint = match suggest::nearest(name, known) {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => "`anabranch config list` shows all settings".to_owned(),
        };
        match origin {
            Origin::Env(variable) if variable.starts_with(kafka::KAFKA_ENV_PREFIX) => {
                self.warnings.push(format!(
                    "{origin} is ignored: there is no setting \"{name}\"; {hint}"
                ));
            }
            _ => self.error(origin, format!("there is no setting \"{name}\"; {hint}")),
        }
    }

    fn error(&mut self, origin: &Origin, message: String) {
        self.errors.push(SettingError {
            origin: origin.clone(),
            message,
        });
    }

    /// Checks that concern several settings at once.
    fn finish(mut self) -> Result<Resolved, SettingErrors> {
        self.check_advertise();
        self.check_ports();
        if !self.errors.is_empty() {
            return Err(SettingErrors(self.errors));
        }
        let Building {
            settings,
            origins,
            warnings,
            ..
        } = self;
        Ok(Resolved {
            settings,
            warnings,
            origins,
        })
    }

    fn check_advertise(&mut self) {
        let origin = self.origins.get("advertise").cloned().unwrap_or(Origin::Default);
        let mut found = Vec::new();
        for one in &self.settings.advertise {
            if matches!(one.address.host.as_str(), "0.0.0.0" | "::") {
                found.push(format!(
                    "advertise: no client can connect to {}; name a host",
                    one.address
                ));
            }
            let listens = self.settings.listen.iter().any(|listen| listen.name == one.name);
            if let Some(name) = one
                .name
                .as_ref()
                .filter(|_| !listens && !self.settings.listen.is_empty())
            {
                let lone = self.settings.listen.len() == 1 && self.settings.listen[0].name.is_none();
                let hint = if lone {
                    "write HOST:PORT alone, or name the listener"
                } else {
                    "name one that listens"
                };
                found.push(format!("advertise: no listener is named {name}; {hint}"));
            }
        }
        for message in found {
            self.error(&origin, message);
        }
    }

    fn check_ports(&mut self) {
        let mut taken: Vec<String> = Vec::new();
        let listeners = self
            .settings
            .listen
            .iter()
            .map(|one| ("listen", one.address.to_string()));
        let all = listeners.chain(self.settings.server.http.iter().map(|one| ("http", one.clone())));
        let mut found = Vec::new();
        for (name, text) in all.filter(|(_, address)| !address.ends_with(":0")) {
            if taken.contains(&text) {
                found.push((
                    name,
                    format!("{name}: {text} is already used by another listener"),
                ));
            }
            taken.push(text);
        }
        for (name, message) in found {
            let origin = self.origins.get(name).cloned().unwrap_or(Origin::Default);
            self.error(&origin, message);
        }
    }
}

#[cfg(test)]
#[path = "resolve_test.rs"]
mod tests;
