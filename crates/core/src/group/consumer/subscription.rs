//! From what a member subscribes to, to the topics there are.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};

use crate::Refused;
use crate::group::settings::GroupSettings;
use crate::group::state::Member;
use crate::group::topics::Topics;
use crate::ids::TopicId;
use anabranch_wire::ErrorCode;

/// Compiled regular expressions with the topics they match at present. Volatile: both can be made again from the
/// pattern, and the matches are dropped whenever the topics change.
#[derive(Debug, Default)]
pub(crate) struct Regexes {
    by_pattern: BTreeMap<String, (Option<Regex>, Option<BTreeSet<TopicId>>)>,
}

impl Regexes {
    /// Refuses a pattern that is no regular expression or too large.
    pub(crate) fn check(pattern: &str, settings: &GroupSettings) -> Result<(), Refused> {
        let refused = |reason: String| Refused::new(ErrorCode::InvalidRegularExpression, reason);
        if pattern.len() > settings.regex_bytes_max {
            let (len, max) = (pattern.len(), settings.regex_bytes_max);
            return Err(refused(format!(
                "the regular expression has {len} bytes, at most {max} are allowed"
            )));
        }
        compile(pattern, settings)
            .map(|_| ())
            .map_err(|error| refused(format!("the regular expression cannot be used: {error}")))
    }

    /// The topics whose whole name matches. A pattern that cannot be compiled matches nothing: it was checked when
    /// it came, but a limit may have been lowered since.
    fn matches(
        &mut self,
        pattern: &str,
        topics: &dyn Topics,
        settings: &GroupSettings,
    ) -> &BTreeSet<TopicId> {
        let (regex, matches) = self
            .by_pattern
            .entry(pattern.to_owned())
            .or_insert_with(|| (compile(pattern, settings).ok(), None));
        matches.get_or_insert_with(|| {
            let mut found = BTreeSet::new();
            if let Some(regex) = regex {
                topics.each(&mut |topic| {
                    if regex.is_match(topic.name) {
                        found.insert(topic.id);
                    }
                });
            }
            found
        })
    }

    /// How many patterns are kept.
    pub(crate) fn len(&self) -> usize {
        self.by_pattern.len()
    }

    /// Forgets patterns that nobody uses.
    pub(crate) fn prune(&mut self, used: &BTreeSet<&str>) {
        self.by_pattern
            .retain(|pattern, _| used.contains(pattern.as_str()));
    }

    /// Forgets the matches, since topics came or went.
    pub(crate) fn refresh(&mut self) {
        for (_, matches) in self.by_pattern.values_mut() {
            *matches = None;
        }
    }

    /// The existing topics that a member subscribes to.
    pub(crate) fn resolve(
        &mut self,
        member: &Member,
        topics: &dyn Topics,
        settings: &GroupSettings,
    ) -> BTreeSet<TopicId> {
        let mut ids: BTreeSet<TopicId> = member
            .topics
            .iter()
            .filter_map(|name| topics.by_name(name))
            .map(|topic| topic.id)
            .collect();
        if let Some(pattern) = &member.regex {
            ids.extend(self.matches(pattern, topics, settings));
        }
        ids
    }
}

/// Kafka matches the whole name. The bare pattern must be valid, too, so that it cannot break out of the frame.
fn compile(pattern: &str, settings: &GroupSettings) -> Result<Regex, regex::Error> {
    build(pattern, settings)?;
    build(&format!("^(?:{pattern})$"), settings)
}

fn build(pattern: &str, settings: &GroupSettings) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(settings.regex_compiled_bytes_max)
        .dfa_size_limit(settings.regex_compiled_bytes_max)
        .build()
}
