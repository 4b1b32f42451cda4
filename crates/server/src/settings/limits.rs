//! The reference page of limits: core's table of bounds, and the settings that change them.

use anabranch_core::limits::{ALL, Limit};

use super::value::{format_duration_ms, format_size_bytes};
use super::{kafka, table};

const INTRODUCTION: &str = "\
# Limits

<!-- Made by `anabranch config limits`; a test holds this page against the table of limits. -->

What a client can make the broker spend has a bound, which is checked before the memory or the time is spent. What lies
beyond is refused with an error of the protocol, shortened (a wait, say), left in the socket until there is room, or
costs the connection. A limit with a setting can be changed ([all settings](config.md)); the others are fixed.
";

/// The page, in Markdown.
pub fn limits_page() -> String {
    let mut page = String::from(INTRODUCTION);
    let mut group = "";
    for limit in ALL {
        if limit.group != group {
            group = limit.group;
            page.push_str(&format!(
                "\n## {group}\n\n| limit | value | setting | why |\n|---|---|---|---|\n"
            ));
        }
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            limit.name,
            value(limit),
            limit.key.map(setting).unwrap_or_default(),
            limit.reason
        ));
    }
    page
}

/// A value with its unit, the way people write it.
fn value(limit: &Limit) -> String {
    match limit.unit {
        "bytes" => format_size_bytes(limit.default),
        "bytes per second" => format!("{} per second", format_size_bytes(limit.default)),
        "milliseconds" => format_duration_ms(limit.default),
        unit => format!("{} {unit}", grouped(limit.default)),
    }
}

/// A number with commas: `100,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A link to where the setting is explained.
fn setting(name: &str) -> String {
    let anchor = match table::find(name) {
        Some(item) => item.name.replace('.', ""),
        None => "broker-wide-kafka-settings".to_owned(),
    };
    debug_assert!(
        table::find(name).is_some() || kafka::key(name).is_some(),
        "{name}"
    );
    format!("[`{name}`](config.md#{anchor})")
}

#[cfg(test)]
mod tests {
    use super::super::value::{parse_duration_ms, parse_size_bytes};
    use super::*;

    /// What the table of limits says is what a broker without configuration does: the setting exists and its default is
    /// the limit.
    #[test]
    fn each_configurable_limit_is_the_default_of_its_setting() {
        for limit in ALL {
            let Some(name) = limit.key else { continue };
            let default = match (table::find(name), kafka::key(name)) {
                (Some(item), _) => item.default,
                (None, Some(key)) => key.default.unwrap(),
                (None, None) => panic!("{}: there is no setting {name}", limit.name),
            };
            let number: u64 = match limit.unit {
                "bytes" => parse_size_bytes(default).unwrap(),
                "milliseconds" if name.ends_with(".minutes") => default.parse::<u64>().unwrap() * 60_000,
                "milliseconds" => parse_duration_ms(default).unwrap(),
                _ => default.parse().unwrap(),
            };
            assert_eq!(number, limit.default, "{name}");
        }
    }

    #[test]
    fn values_are_for_people() {
        assert_eq!(
            [1, 999, 1_000, 1_234_567].map(grouped),
            ["1", "999", "1,000", "1,234,567"]
        );
        let page = limits_page();
        assert!(
            page.contains(
                "| `connections.max` | 20,000 connections | [`max.connections`](config.md#maxconnections) |"
            ),
            "{page}"
        );
        assert!(page.contains("| `request.bytes.max` | 100 MiB |"), "{page}");
    }
}
