//! Explains settings to people: one setting on the terminal, all of them as the reference page.

use anabranch_core::config::{ConfigKey, Effect, Update};

use super::item::Item;
use super::table::{self, ITEMS};
use super::{ENV_PREFIX, KAFKA_ENV_PREFIX, Resolved, kafka};

/// Explains the setting `name`, with its value and origin in `resolved`; `None` if there is no such setting.
pub fn explain(name: &str, resolved: &Resolved) -> Option<String> {
    let Some(item) = table::find(name) else {
        if let Some(key) = kafka::key(name) {
            return Some(explain_key(key, resolved));
        }
        let why = kafka::without_effect(name)?;
        return Some(format!(
            "{name}\n  is accepted from Kafka's configuration and has no effect here: {why}.\n"
        ));
    };
    let mut text = format!("{}\n  {}\n\n", item.name, sentence(item.summary));
    for line in wrap(item.details, 76) {
        text.push_str(&format!("  {line}\n"));
    }
    let value = item.value(&resolved.settings);
    text.push_str(&format!(
        "\n  value        {value}  ({})\n",
        resolved.origin(item.name)
    ));
    text.push_str(&format!("  default      {}\n", item.default));
    text.push_str(&format!("  takes        {}\n", item.kind.describe()));
    if let Some(flag) = &item.flag {
        text.push_str(&format!("  flag         --{} {}\n", flag.long, flag.value_name));
    }
    text.push_str(&format!("  environment  {}\n", item.env()));
    text.push_str(&format!("  file         {}\n", toml_line(item)));
    if !item.kafka_names.is_empty() {
        text.push_str(&format!("  in Kafka     {}\n", item.kafka_names.join(", ")));
    }
    Some(text)
}

/// Explains a broker-wide Kafka setting.
fn explain_key(key: &ConfigKey, resolved: &Resolved) -> String {
    let mut text = format!("{}\n", key.name);
    for line in wrap(key.doc, 76) {
        text.push_str(&format!("  {line}\n"));
    }
    let default = key.default.unwrap_or("not set");
    let value = resolved
        .settings
        .server
        .broker
        .get(key.name)
        .map_or(default, String::as_str);
    text.push_str(&format!(
        "\n  value        {value}  ({})\n  default      {default}\n",
        resolved.origin(key.name)
    ));
    text.push_str(&format!("  set by       --set {}=VALUE\n", key.name));
    let env = key.name.to_ascii_uppercase().replace('.', "_");
    text.push_str(&format!(
        "  environment  {ENV_PREFIX}{env} or {KAFKA_ENV_PREFIX}{env}\n"
    ));
    text.push_str(&format!("  file         {} = ...\n", key.name));
    if key.update == Update::Dynamic {
        text.push_str("  can also be changed while the broker runs, by Kafka's tools\n");
    }
    text
}

/// The reference page of all settings, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("## Settings\n\n| setting | default | what it is |\n|---|---|---|\n");
    for item in ITEMS {
        let anchor = item.name.replace('.', "");
        page.push_str(&format!(
            "| [`{}`](#{anchor}) | `{}` | {} |\n",
            item.name, item.default, item.summary
        ));
    }
    for item in ITEMS {
        page.push_str(&section(item));
    }
    page.push_str(KAFKA_INTRODUCTION);
    for key in kafka::keys().filter(|key| key.effect == Effect::Full) {
        let default = key
            .default
            .map_or("not set".to_owned(), |default| format!("`{default}`"));
        page.push_str(&format!("| `{}` | {default} | {} |\n", key.name, key.doc));
    }
    let accepted = kafka::keys().filter(|key| key.effect == Effect::AcceptedOnly);
    let names: Vec<String> = accepted.map(|key| format!("`{}`", key.name)).collect();
    page.push_str(&format!(
        "\nAccepted without effect, with a warning that says why: {}.\n",
        names.join(", ")
    ));
    page
}

const KAFKA_INTRODUCTION: &str = "
## Broker-wide Kafka settings

These have Kafka's names and meaning, and are set like the others: in a file, by `--set`, in the environment. Topics
and groups may have values of their own where the text says so.

| setting | default | what it is |
|---|---|---|
";

const INTRODUCTION: &str = "\
# Configuration

<!-- Made by `anabranch config reference`; a test holds this page against the table of settings. -->

A value comes from the strongest source that names it: flags of `anabranch serve`, then the environment, then a TOML
file (`--config FILE` or `ANABRANCH_CONFIG`), then the default. An unknown name is an error that names the nearest
known one; all errors of all sources are reported at once.

- `anabranch config list` shows every setting with its value and where the value came from.
- `anabranch config explain KEY` explains one.
- `anabranch config check FILE` checks a file without starting anything.

In a file, names may be dotted or in tables: `log.level = \"debug\"` and `[log]` with `level = \"debug\"` are the same.
In the environment, `log.level` is `ANABRANCH_LOG_LEVEL`. On the command line, a setting without a flag of its own is
given by `--set KEY=VALUE`. The variables of Kafka's container image (`KAFKA_ADVERTISED_LISTENERS`,
`KAFKA_NUM_PARTITIONS` and so on) are understood; those that have no meaning here are named in a warning.

";

fn section(item: &Item) -> String {
    let mut text = format!(
        "\n### {}\n\n{} {}\n\n",
        item.name,
        sentence(item.summary),
        item.details
    );
    text.push_str(&format!(
        "- takes: {}\n- default: `{}`\n",
        item.kind.describe(),
        item.default
    ));
    if let Some(flag) = &item.flag {
        text.push_str(&format!("- flag: `--{} {}`\n", flag.long, flag.value_name));
    }
    text.push_str(&format!("- environment: `{}`\n", item.env()));
    if !item.kafka_names.is_empty() {
        let names: Vec<String> = item.kafka_names.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("- in Kafka: {}\n", names.join(", ")));
    }
    text
}

/// How the default would be written in a file.
fn toml_line(item: &Item) -> String {
    if item.kind.is_list() && item.default != "none" {
        format!("{} = [\"{}\"]", item.name, item.default)
    } else {
        format!("{} = \"{}\"", item.name, item.default)
    }
}

/// A summary as a sentence.
fn sentence(summary: &str) -> String {
    let mut chars = summary.chars();
    let first = chars
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// Breaks a text into lines of at most `width` characters, at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
