//! What an unknown key was probably meant to be.

use super::{Scope, lookup};

/// Settings of Apache Kafka that people carry over and that have no meaning here, each with what to do instead.
#[rustfmt::skip] // one key a line
const FOREIGN: &[(&str, &str)] = &[
    ("authorizer.class.name", "there are no access control lists yet: leave it out"),
    ("controlled.shutdown.enable", "a single node has nobody to hand over to: leave it out"),
    ("controller.listener.names", "there are no controllers to configure: leave it out"),
    ("controller.quorum.bootstrap.servers", "there are no controllers to configure: leave it out"),
    ("controller.quorum.voters", "there are no controllers to configure: leave it out"),
    ("inter.broker.listener.name", "there are no other brokers: leave it out"),
    ("listener.security.protocol.map", "listeners have no names: leave it out"),
    ("log.message.format.version", "record batches always have format 2: leave it out"),
    ("message.downconversion.enable", "record batches are never converted: leave it out"),
    ("message.format.version", "record batches always have format 2: leave it out"),
    ("message.timestamp.difference.max.ms", "use message.timestamp.before.max.ms and message.timestamp.after.max.ms"),
    ("metadata.log.dir", "the broker's state is in the data folder: leave it out"),
    ("process.roles", "one process does everything: leave it out"),
    ("zookeeper.connect", "there is no ZooKeeper: leave it out"),
];

/// The end of the sentence "`name` is not a topic configuration…", a suggestion if there is one.
pub(super) fn hint(scope: Scope, name: &str) -> String {
    if let Some((_, instead)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
        return format!(": {instead}");
    }
    if scope == Scope::Topic && lookup(Scope::Broker, name).is_some() {
        let of_topic = Scope::Topic
            .keys()
            .iter()
            .find(|key| key.synonyms.iter().any(|(broker, _)| *broker == name));
        return match of_topic {
            Some(key) => format!(
                "; it is a broker configuration, the one of topics is `{}`",
                key.name
            ),
            None => "; it is a broker configuration".to_owned(),
        };
    }
    if scope == Scope::Broker
        && let Some((broker, _)) = lookup(Scope::Topic, name).and_then(|key| key.synonyms.first())
    {
        return format!("; it is a topic configuration, its default for all topics is `{broker}`");
    }
    match nearest(scope, name) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

fn nearest(scope: Scope, name: &str) -> Option<&'static str> {
    // A typing error or two, or a tenth of a long name; names from the wire are cut, so that the work is bounded.
    let name: String = name.chars().take(100).collect();
    let near_enough = 2.max(name.chars().count() / 5);
    let distances = scope
        .keys()
        .iter()
        .map(|key| (distance(&name, key.name), key.name));
    distances
        .filter(|(distance, _)| *distance <= near_enough)
        .min()
        .map(|(_, near)| near)
}

/// Levenshtein distance: the fewest characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (to, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = *cell;
            left = replaced.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("x", "x", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn hints_lead_to_the_right_key() {
        assert_eq!(
            hint(Scope::Topic, "retention.mss"),
            "; did you mean `retention.ms`?"
        );
        assert!(hint(Scope::Topic, "log.retention.hours").contains("`retention.ms`"));
        assert!(hint(Scope::Topic, "node.id").contains("broker configuration"));
        assert!(hint(Scope::Broker, "max.message.bytes").contains("`message.max.bytes`"));
        assert!(hint(Scope::Broker, "zookeeper.connect").contains("no ZooKeeper"));
        assert_eq!(hint(Scope::Topic, "colour.of.the.sky"), "");
        assert_eq!(hint(Scope::Topic, &"x".repeat(100_000)), "");
    }
}
