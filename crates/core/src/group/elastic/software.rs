//! What a client says about its software, and what is kept of it with the member.

use std::fmt;
use std::sync::Arc;

use crate::codec::{CodecError, Decoder, Encoder};
use crate::group::api::Caller;
use crate::group::state::Member;

/// Longest name and longest version of client software that are taken, bytes.
const SOFTWARE_BYTES_MAX: usize = 128;

/// Name and version of a client's software, as it says in ApiVersions 3 and newer (KIP-511).
///
/// Both are short words of letters, digits, dots and hyphens, so they can go into a log as they are. Shared, since it goes
/// along with each request of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSoftware(Arc<Words>);

#[derive(Debug, PartialEq, Eq)]
struct Words {
    name: String,
    version: String,
}

impl ClientSoftware {
    /// The software, or nothing if name or version is not a word as KIP-511 has it: at most 128 letters, digits, dots
    /// and hyphens, beginning and ending with a letter or digit.
    pub fn new(name: &str, version: &str) -> Option<Self> {
        let words = || Words {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        (is_word(name) && is_word(version)).then(|| Self(Arc::new(words())))
    }

    /// The name: "librdkafka".
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The version: "2.16.0". Any word: some clients say "unknown".
    pub fn version(&self) -> &str {
        &self.0.version
    }
}

impl fmt::Display for ClientSoftware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.version())
    }
}

fn is_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let ends_well = |end: Option<&u8>| end.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= SOFTWARE_BYTES_MAX
        && ends_well(bytes.first())
        && ends_well(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// Version of a client library: major, minor, patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The numbers at the beginning of `text`, behind an optional "v": "v1.60.1", "4.3.1-ccs", "3.0". What is missing
    /// counts as 0; without a first number there is no version.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = [0; 3];
        let mut rest = text;
        for (index, number) in numbers.iter_mut().enumerate() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            match rest[..digits].parse() {
                Ok(value) => *number = value,
                Err(_) if index == 0 => return None,
                Err(_) => break,
            }
            match rest[digits..].strip_prefix('.') {
                Some(more) => rest = more,
                None => break,
            }
        }
        let [major, minor, patch] = numbers;
        Some(Self(major, minor, patch))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// What is known of a member's client, beyond its client id and address. Durable: after a restart of the broker clients
/// go on without introducing themselves again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// Its software, if it said so.
    pub software: Option<ClientSoftware>,
    /// Version of the JoinGroup or ConsumerGroupHeartbeat with which it joined last.
    pub join_version: i16,
    /// Whether the member has asked where to begin in partitions of its assignment (OffsetFetch). One that never does
    /// keeps its positions elsewhere, and would not notice that it got a share.
    pub asks_position: bool,
}

impl ClientFacts {
    /// The facts about a member that joins, or changes what it wants, with a request of the given version. A connection
    /// on which the client did not introduce itself tells nothing new: then what is known of the member still holds, as
    /// long as client id and address are the same.
    pub(in crate::group) fn of(old: Option<&Member>, caller: &Caller, join_version: i16) -> Self {
        let same = |old: &&Member| old.client_id == caller.client_id && old.client_host == caller.host;
        let known = || old.filter(same).and_then(|old| old.client.software.clone());
        Self {
            software: caller.software.clone().or_else(known),
            join_version,
            asks_position: old.is_some_and(|old| old.client.asks_position),
        }
    }

    pub(in crate::group) fn put(&self, e: &mut Encoder) {
        e.opt(self.software.as_ref(), |e, software| {
            e.str(software.name());
            e.str(software.version());
        });
        e.ivar(i64::from(self.join_version));
        e.bool(self.asks_position);
    }

    pub(in crate::group) fn get(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        let software = d.opt(|d| Ok::<_, CodecError>((d.string()?, d.string()?)))?;
        let software = match software {
            None => None,
            Some((name, version)) => match ClientSoftware::new(&name, &version) {
                Some(software) => Some(software),
                None => return Err(d.invalid("the two strings before are no client software")),
            },
        };
        let version = d.ivar32()?;
        let Ok(join_version) = i16::try_from(version) else {
            return Err(d.invalid("the number before is no version of a request"));
        };
        Ok(Self {
            software,
            join_version,
            asks_position: d.bool()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn software_words_follow_the_pattern_of_kip_511() {
        for good in ["librdkafka", "2.16.0", "apache-kafka-java", "a"] {
            assert!(ClientSoftware::new(good, good).is_some(), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "a/b", "é", "a\nb", &"a".repeat(129)] {
            assert!(ClientSoftware::new(bad, "1").is_none(), "{bad}");
            assert!(ClientSoftware::new("a", bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn versions_are_the_numbers_at_the_beginning() {
        for (text, version) in [
            ("4.3.1", Version(4, 3, 1)),
            ("v1.60.1", Version(1, 60, 1)),
            ("3.9.1-ccs", Version(3, 9, 1)),
            ("2.8.2.redhat-00001", Version(2, 8, 2)),
            ("4.0.0-rc2", Version(4, 0, 0)),
            ("3", Version(3, 0, 0)),
            ("0.14", Version(0, 14, 0)),
            ("1.x", Version(1, 0, 0)),
        ] {
            assert_eq!(Version::parse(text), Some(version), "{text}");
        }
        for none in ["", "unknown", "v", ".1", "99999999999.1"] {
            assert_eq!(Version::parse(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn versions_come_back_as_they_are_written(a: u32, b: u32, c: u32) {
            let version = Version(a, b, c);
            prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
        }

        #[test]
        fn any_text_is_a_version_or_none(text in "\\PC*") {
            let _ = Version::parse(&text);
        }
    }
}
