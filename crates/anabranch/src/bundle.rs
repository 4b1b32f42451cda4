//! `anabranch bundle`: one archive with what a person needs who is to find a fault, and no record and no secret.
//!
//! Everything is asked for, and what is not to be had is named in `missing.txt` in the place of the file: a bundle is made
//! when something is wrong, so nothing that is wrong may prevent it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anabranch_server::settings::{self, ITEMS, Resolved};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Admin, AdminApi, ApiError, TopicDescription, Wanted};
use crate::doctor::Subject;
use crate::failure::{Failure, Outcome, reason};
use crate::output::{self, Format};
use crate::top::series::samples;
use crate::{doctor, time};

const EXAMPLES: &str = "\
Examples:
  anabranch bundle                                   writes anabranch-bundle-DATE.tar.gz
  anabranch bundle -o /tmp/bundle.tar.gz --config /etc/anabranch.toml
  tar -xzf anabranch-bundle-DATE.tar.gz              unpack it: look at it before you send it";

const README: &str = "\
What this archive has, to find out what is wrong with a broker.

  version.json     this program, its Kafka client, the operating system
  settings.json    all settings and where each came from; values that may be secret are left out
  doctor.json      what `anabranch doctor` found
  cluster.json     the cluster as a client sees it
  topics.json      topics, their partitions, and settings of their own
  groups/*.json    groups with members, positions and shares
  decisions.json   the latest decisions of the broker about groups
  metrics.txt      its metrics
  missing.txt      what was not to be had, and why

It has no keys and values of records. It has names of topics, groups, clients and hosts: read it before you send it.
";

/// Groups that are described; the metrics have all of them.
const GROUPS_MAX: usize = 200;

/// Decisions that are taken along.
const DECISIONS: u32 = 1_000;

/// Words in names of settings whose values are nobody's business.
const SECRETS: [&str; 8] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "jaas",
    "private",
    "key.pem",
];

/// What stands in the place of a secret.
const REMOVED: &str = "(removed)";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The archive to write [default: anabranch-bundle-DATE.tar.gz in this folder].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) subject: Subject,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    files: Vec<String>,
    missing: Vec<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let now = time::format_time_ms(time::now_ms());
    let stamp: String = now
        .chars()
        .take(19)
        .filter(|letter| *letter != '-' && *letter != ':')
        .collect();
    let stem = format!("anabranch-bundle-{stamp}Z");
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{stem}.tar.gz")));
    // Before anything is gathered: it would be a pity to find out at the end.
    let file = create(&path)?;
    let mut bundle = Bundle::default();
    gather(&mut bundle, &args.subject);
    let missing: Vec<String> = bundle.missing.clone();
    let files = bundle.write(file, &stem).map_err(|error| {
        let _ = std::fs::remove_file(&path);
        Failure::failed(format!("cannot write {}: {}", path.display(), reason(&error)))
    })?;
    let written = Written {
        file: path.display().to_string(),
        files,
        missing,
    };
    match format {
        Format::Json => output::print_json(&written),
        Format::Text => output::print(&text(&written)),
    }
}

fn create(path: &Path) -> Outcome<File> {
    File::create_new(path).map_err(|error| {
        let failure = Failure::failed(format!("cannot create {}: {}", path.display(), reason(&error)));
        failure.hint("-o FILE names another place; a file that exists is not overwritten")
    })
}

fn text(written: &Written) -> String {
    let mut text = String::new();
    for file in &written.files {
        text.push_str(&format!("  {file}\n"));
    }
    for missing in &written.missing {
        text.push_str(&format!("  missing: {missing}\n"));
    }
    text.push_str(&format!(
        "wrote {}: no records, no secrets, but names of topics, groups, clients and hosts; read it before you send it\n",
        written.file
    ));
    text
}

/// The files of the archive, in order, and what could not be had.
#[derive(Debug, Default)]
struct Bundle {
    files: Vec<(String, Vec<u8>)>,
    missing: Vec<String>,
}

impl Bundle {
    fn json(&mut self, name: &str, value: &impl Serialize) {
        match serde_json::to_vec_pretty(value) {
            Ok(bytes) => self.files.push((name.to_owned(), bytes)),
            Err(error) => self.missing.push(format!("{name}: {error}")),
        }
    }

    fn take(&mut self, name: &str, found: Outcome<impl Serialize>) {
        match found {
            Ok(value) => self.json(name, &value),
            Err(failure) => self.missing.push(format!("{name}: {}", failure.message)),
        }
    }

    /// Writes all of it; returns the names.
    fn write(mut self, file: File, stem: &str) -> std::io::Result<Vec<String>> {
        self.files.insert(0, ("README.txt".to_owned(), README.into()));
        if !self.missing.is_empty() {
            let lines = self.missing.join("\n") + "\n";
            self.files.push(("missing.txt".to_owned(), lines.into_bytes()));
        }
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        let mut names = Vec::new();
        for (name, bytes) in self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(u64::try_from(time::now_ms() / 1_000).unwrap_or(0));
            archive.append_data(&mut header, format!("{stem}/{name}"), bytes.as_slice())?;
            names.push(name);
        }
        let mut file = archive.into_inner()?.finish()?;
        file.flush()?;
        Ok(names)
    }
}

fn gather(bundle: &mut Bundle, subject: &Subject) {
    bundle.json("version.json", &version());
    match subject.settings() {
        Ok(resolved) => {
            bundle.json("settings.json", &shown(&resolved));
            let report = doctor::examine(&resolved, subject);
            bundle.json("doctor.json", &report);
        }
        Err(failure) => {
            let missing = format!("settings.json, doctor.json: {}", failure.message);
            bundle.missing.push(missing);
        }
    }
    match Admin::connect(&subject.connection) {
        Ok(admin) => {
            bundle.take("cluster.json", cluster(&admin));
            bundle.take("topics.json", topics(&admin));
        }
        Err(failure) => bundle
            .missing
            .push(format!("cluster.json, topics.json: {}", failure.message)),
    }
    match subject.admin.open() {
        Ok(api) => ask(bundle, &api),
        Err(failure) => bundle.missing.push(format!(
            "groups, decisions.json, metrics.txt: {}",
            failure.message
        )),
    }
}

/// What only the broker's HTTP listener knows.
fn ask(bundle: &mut Bundle, api: &AdminApi) {
    let metrics = match api.metrics() {
        Ok(metrics) => metrics,
        Err(failure) => {
            bundle.missing.push(format!(
                "groups, decisions.json, metrics.txt: {}",
                failure.message
            ));
            return;
        }
    };
    let members = samples(&metrics).filter(|sample| sample.name == "kafka_consumergroup_members");
    let groups: Vec<String> = members
        .map(|sample| sample.label("consumergroup").to_owned())
        .collect();
    for (number, group) in groups.iter().take(GROUPS_MAX).enumerate() {
        // A name may have letters that no file name may have.
        bundle.take(&format!("groups/{number:03}.json"), api.group(group));
    }
    if groups.len() > GROUPS_MAX {
        bundle.missing.push(format!(
            "groups: {} more than {GROUPS_MAX}",
            groups.len() - GROUPS_MAX
        ));
    }
    let wanted = Wanted {
        limit: DECISIONS,
        ..Wanted::default()
    };
    bundle.take("decisions.json", api.decisions(wanted));
    bundle
        .files
        .push(("metrics.txt".to_owned(), metrics.into_bytes()));
}

fn version() -> Value {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    json!({
        "anabranch": env!("CARGO_PKG_VERSION"),
        "librdkafka": rdkafka::util::get_rdkafka_version().1,
        "system": text(system.sysname()),
        "release": text(system.release()),
        "machine": text(system.machine()),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "time": time::format_time_ms(time::now_ms()),
    })
}

/// All settings with their origins, without secrets.
fn shown(resolved: &Resolved) -> Vec<Value> {
    let own = ITEMS
        .iter()
        .map(|item| (item.name.to_owned(), item.value(&resolved.settings)));
    let kafka = settings::broker_keys().map(|(name, default)| {
        let value = resolved.settings.server.broker.get(name).cloned();
        (
            name.to_owned(),
            value.unwrap_or_else(|| default.unwrap_or("-").to_owned()),
        )
    });
    let setting = |(name, value): (String, String)| {
        let origin = resolved.origin(&name).to_string();
        let value = redacted(is_secret(&name), value);
        json!({ "name": name, "value": value, "from": origin })
    };
    own.chain(kafka).map(setting).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRETS.iter().any(|word| name.contains(word))
}

fn redacted(is_secret: bool, value: String) -> String {
    if is_secret { REMOVED.to_owned() } else { value }
}

fn cluster(admin: &Admin) -> Outcome<Value> {
    let (id, nodes, controller) = admin.describe_cluster()?;
    Ok(json!({ "cluster_id": id, "nodes": nodes, "controller": controller }))
}

fn topics(admin: &Admin) -> Outcome<Vec<Value>> {
    let names = admin.topic_names()?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let configs = admin.topic_configs(&names)?;
    let described = admin.describe_topics(&names)?;
    let topic = |(name, found): (String, Result<TopicDescription, ApiError>)| {
        let Ok(found) = found else {
            return json!({ "topic": name });
        };
        let own = configs
            .iter()
            .find(|(other, _)| *other == name)
            .and_then(|(_, own)| own.as_ref().ok());
        let own = own.into_iter().flatten().filter(|entry| entry.of_topic);
        let own = own.map(|entry| json!({ "name": entry.name, "value": redacted(is_secret(&entry.name), entry.value.clone()) }));
        json!({
            "topic": name,
            "id": found.id,
            "internal": found.internal,
            "partitions": found.partitions.len(),
            "settings": own.collect::<Vec<Value>>(),
        })
    };
    Ok(described.into_iter().map(topic).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_whose_names_smell_of_secrets_are_removed() {
        for name in [
            "ssl.keystore.password",
            "sasl.jaas.config",
            "http.token",
            "API_SECRET",
            "tls.key.pem",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["listen", "durability", "log.retention.ms", "elastic.mode"] {
            assert!(!is_secret(name), "{name}");
        }
        assert_eq!(redacted(true, "x".to_owned()), REMOVED);
        assert_eq!(redacted(false, "x".to_owned()), "x");
    }
}
