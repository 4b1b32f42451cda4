//! Gathers the settings of the broker from flags, environment and file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_server::settings::{self, CONFIG_VARIABLE, ITEMS, Resolved, Sources};
use clap::{ArgAction, ArgMatches, FromArgMatches};

use crate::failure::{Failure, Outcome, reason};

/// Where settings are taken from besides flags of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct Sourcing {
    /// Read settings from a TOML file.
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE, hide_env_values = true)]
    config: Option<PathBuf>,
    /// Set any setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// The flags that the table of settings defines, as they were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags(BTreeMap<&'static str, Vec<String>>);

impl clap::Args for SettingFlags {
    fn augment_args(mut command: clap::Command) -> clap::Command {
        for item in ITEMS {
            let Some(flag) = &item.flag else { continue };
            let action = if item.kind.is_list() {
                ArgAction::Append
            } else {
                ArgAction::Set
            };
            let help = format!("{} [default: {}]", capitalised(item.summary), item.default);
            let arg = clap::Arg::new(item.name)
                .long(flag.long)
                .value_name(flag.value_name);
            command = command.arg(arg.action(action).help(help));
        }
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, clap::Error> {
        let mut flags = BTreeMap::new();
        for item in ITEMS.iter().filter(|item| item.flag.is_some()) {
            if let Some(values) = matches.get_many::<String>(item.name) {
                flags.insert(item.name, values.cloned().collect());
            }
        }
        Ok(SettingFlags(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SettingFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Sourcing {
    /// No source but one file.
    pub(crate) fn of_file(file: &Path) -> Sourcing {
        Sourcing {
            config: Some(file.to_owned()),
            set: Vec::new(),
        }
    }

    /// The settings from all sources.
    pub(crate) fn resolve(&self, flags: &SettingFlags) -> Outcome<Resolved> {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        let env = std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let mut sources = Sources {
            env,
            flags: self.set_flags()?,
            ..self.file_alone()?
        };
        for item in ITEMS {
            let (Some(flag), Some(values)) = (&item.flag, flags.0.get(item.name)) else {
                continue;
            };
            sources
                .flags
                .push((item.name.to_owned(), values.clone(), format!("--{}", flag.long)));
        }
        finish(&sources)
    }

    /// The settings from the file, as if there were no other source.
    pub(crate) fn resolve_file_alone(&self) -> Outcome<Resolved> {
        finish(&self.file_alone()?)
    }

    fn file_alone(&self) -> Outcome<Sources> {
        let file = match &self.config {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format!(
                        "cannot read the configuration file {}: {}",
                        path.display(),
                        reason(&error)
                    ))
                    .hint("--config FILE, or the variable ANABRANCH_CONFIG, names it")
                })?;
                Some((path.display().to_string(), text))
            }
        };
        Ok(Sources {
            default_data: default_data(),
            file,
            ..Sources::default()
        })
    }

    fn set_flags(&self) -> Outcome<Vec<(String, Vec<String>, String)>> {
        let mut flags = Vec::new();
        for assignment in &self.set {
            let Some((name, value)) = assignment.split_once('=') else {
                return Err(Failure::usage(format!("--set {assignment}: expected KEY=VALUE")));
            };
            flags.push((
                name.trim().to_owned(),
                vec![value.to_owned()],
                // Without the value, which may be a secret: where a setting came from is told to others.
                format!("--set {}", name.trim()),
            ));
        }
        Ok(flags)
    }
}

fn finish(sources: &Sources) -> Outcome<Resolved> {
    settings::resolve(sources).map_err(|errors| {
        let count = errors.0.len() as u64;
        let text = errors.to_string();
        if count == 1 {
            Failure::usage(text)
        } else {
            let lines = text.replace('\n', "\n  ");
            Failure::usage(format!("{count} settings are wrong:\n  {lines}"))
        }
    })
}

/// The data folder of a user who names none: where the desktop's conventions put data of programs.
fn default_data() -> String {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let data_home = folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data_home = data_home.or_else(|| folder("HOME").map(|home| home.join(".local/share")));
    let data = data_home.map_or_else(|| PathBuf::from("anabranch-data"), |base| base.join("anabranch"));
    data.display().to_string()
}
