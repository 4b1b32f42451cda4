//! How the text of a setting becomes a value: addresses, listeners, sizes, durations.
//!
//! All sources deliver text (a TOML number is written out again), so that one value is spelled the same way in a
//! file, in the environment and on the command line. Errors are phrases that finish the sentence "KEY: ...".

use std::fmt;
use std::str::FromStr;

/// The address of a socket as a person writes it: a host name or an IP address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Host name, IPv4 address, or IPv6 address without brackets.
    pub host: String,
    /// Port; 0 lets the system choose one.
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    /// Reads `HOST:PORT` or `[IPV6]:PORT`. An empty host means every interface, as in Kafka.
    fn from_str(text: &str) -> Result<HostPort, String> {
        let wrong = |why: &str| format!("\"{text}\" is not HOST:PORT ({why}), for example 127.0.0.1:9092");
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest
                .split_once("]:")
                .ok_or_else(|| wrong("the port is missing"))?,
            None => text
                .rsplit_once(':')
                .ok_or_else(|| wrong("the port is missing"))?,
        };
        if host.contains(|c: char| c.is_whitespace() || c == '/' || c == ',') {
            return Err(wrong("the host has a character that no host name has"));
        }
        if host.contains(':') && !text.starts_with('[') {
            return Err(wrong("an IPv6 address goes in brackets"));
        }
        let port = port
            .parse()
            .map_err(|_| wrong("the port is a number from 0 to 65535"))?;
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        Ok(HostPort {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// An address with the name of the listener it belongs to: `HOST:PORT` or, as in Kafka, `NAME://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAddress {
    /// The listener's name in upper case; `None` if none was given.
    pub name: Option<String>,
    /// The address itself.
    pub address: HostPort,
}

impl FromStr for NamedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedAddress, String> {
        let Some((name, address)) = text.split_once("://") else {
            return Ok(NamedAddress {
                name: None,
                address: text.parse()?,
            });
        };
        let name = name.to_ascii_uppercase();
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            return Err(format!(
                "\"{text}\": a listener's name has letters, digits, _ and - only"
            ));
        }
        if name == "SSL" || name.starts_with("SASL_") {
            return Err(format!(
                "\"{text}\": this version has plaintext listeners only, no TLS and no SASL"
            ));
        }
        Ok(NamedAddress {
            name: Some(name),
            address: address.parse()?,
        })
    }
}

impl fmt::Display for NamedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}://{}", self.address),
            None => self.address.fmt(f),
        }
    }
}

/// A unit and how many of the base unit it is.
type Unit = (&'static str, u64);

/// Units of a size; the base unit is one byte. The first that divides a value evenly is used to print it.
const SIZE_UNITS: &[Unit] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Units of a duration; the base unit is one millisecond.
const DURATION_UNITS: &[Unit] = &[
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads a size in bytes: a number, or a number with a unit such as `64MiB`.
pub fn parse_size_bytes(text: &str) -> Result<u64, String> {
    parse_quantity(text, SIZE_UNITS)
        .ok_or_else(|| format!("\"{text}\" is not a size; write bytes, or a unit: 64MiB, 1GB"))
}

/// Reads a duration in milliseconds: a number, or a number with a unit such as `10s`.
pub fn parse_duration_ms(text: &str) -> Result<u64, String> {
    parse_quantity(text, DURATION_UNITS).ok_or_else(|| {
        format!("\"{text}\" is not a duration; write milliseconds, or a unit: 500ms, 10s, 5min, 1h, 7d")
    })
}

/// Writes a size the way [`parse_size_bytes`] reads it.
pub fn format_size_bytes(bytes: u64) -> String {
    let binary = SIZE_UNITS
        .iter()
        .filter(|(name, _)| name.len() == 3 || *name == "B");
    format_quantity(bytes, binary)
}

/// Writes a duration the way [`parse_duration_ms`] reads it.
pub fn format_duration_ms(ms: u64) -> String {
    format_quantity(ms, DURATION_UNITS.iter())
}

fn parse_quantity(text: &str, units: &[Unit]) -> Option<u64> {
    let text = text.trim();
    let digits = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '_')
            .len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.replace('_', "").parse().ok()?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Some(number);
    }
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1;
    number.checked_mul(factor)
}

fn format_quantity<'a>(value: u64, mut units: impl Iterator<Item = &'a Unit>) -> String {
    match units.find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{} {name}", value / factor),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_back() {
        for (text, host, port) in [
            ("127.0.0.1:9092", "127.0.0.1", 9092),
            ("broker.example:0", "broker.example", 0),
            ("[::1]:9092", "::1", 9092),
        ] {
            let read: HostPort = text.parse().unwrap();
            assert_eq!((read.host.as_str(), read.port), (host, port));
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(":9092".parse::<HostPort>().unwrap().host, "0.0.0.0");
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, why) in [
            ("localhost", "the port is missing"),
            ("localhost:kafka", "the port is a number"),
            ("localhost:70000", "the port is a number"),
            ("::1:9092", "an IPv6 address goes in brackets"),
            ("[::1]", "the port is missing"),
            ("http://x:1", "the host has a character"),
        ] {
            let error = text.parse::<HostPort>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn listener_names_are_kafkas() {
        let named: NamedAddress = "plaintext_host://:29092".parse().unwrap();
        assert_eq!(named.to_string(), "PLAINTEXT_HOST://0.0.0.0:29092");
        assert!(
            "SASL_SSL://:9092"
                .parse::<NamedAddress>()
                .unwrap_err()
                .contains("no TLS")
        );
        assert!("a b://:9092".parse::<NamedAddress>().is_err());
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(parse_size_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size_bytes("1 GB"), Ok(1_000_000_000));
        assert_eq!(parse_size_bytes("1_048_576"), Ok(1 << 20));
        assert!(parse_size_bytes("99999999999TiB").is_err());
        assert!(parse_size_bytes("-1").is_err());
        assert_eq!(parse_duration_ms("5min"), Ok(300_000));
        assert_eq!(parse_duration_ms("250"), Ok(250));
        assert!(parse_duration_ms("5 fortnights").is_err());
        assert_eq!(format_size_bytes(64 << 20), "64 MiB");
        assert_eq!(format_size_bytes(1000), "1000 B");
        assert_eq!(format_duration_ms(90_000), "90 s");
        assert_eq!(format_duration_ms(0), "0");
    }
}
