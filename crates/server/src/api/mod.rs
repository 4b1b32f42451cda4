//! One file per API or family of APIs: from the wire's structs to the core's methods and back, and nothing else.

pub(crate) mod absent;
pub(crate) mod api_versions;
pub(crate) mod cluster;
pub(crate) mod configs;
pub(crate) mod consumer_groups;
pub(crate) mod fetch;
pub(crate) mod groups;
pub(crate) mod list_offsets;
pub(crate) mod log_dirs;
pub(crate) mod metadata;
pub(crate) mod offsets;
pub(crate) mod partitions;
pub(crate) mod produce;
pub(crate) mod producers;
pub(crate) mod topics;

use anabranch_core::limits::{FETCH_PARTITIONS_MAX, TOPICS_PER_REQUEST_MAX};

use crate::connection::Close;

/// Ends the connection of a request that names more partitions than can exist: what it costs under the lock must not
/// grow with the size of a request alone.
pub(crate) fn check_partitions(counts: impl Iterator<Item = usize>) -> Result<(), Close> {
    let mut total = 0_usize;
    for count in counts {
        // A topic without partitions costs a lookup, too.
        total = total.saturating_add(count.max(1));
    }
    if total > FETCH_PARTITIONS_MAX {
        return Err(Close::Hostile(format!(
            "a request for more than {FETCH_PARTITIONS_MAX} partitions"
        )));
    }
    Ok(())
}

/// The same for topics, groups and other things with a name.
pub(crate) fn check_names(count: usize) -> Result<(), Close> {
    if count > TOPICS_PER_REQUEST_MAX {
        return Err(Close::Hostile(format!(
            "a request for more than {TOPICS_PER_REQUEST_MAX} names"
        )));
    }
    Ok(())
}

/// Leaves out what was there before: an answer must not be a multiple of what there is to tell.
pub(crate) fn each_once<T: Ord + Clone>(all: Vec<T>) -> impl Iterator<Item = T> {
    let mut seen = std::collections::BTreeSet::new();
    all.into_iter().filter(move |one| seen.insert(one.clone()))
}

/// Authorised operations when they were not asked for.
pub(crate) const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// All operations on the cluster, as bits: nobody is refused anything here.
pub(crate) const CLUSTER_OPERATIONS: i32 =
    bits(&[CREATE, ALTER, DESCRIBE, 9, DESCRIBE_CONFIGS, ALTER_CONFIGS, 12]);

/// All operations on a topic, as bits.
pub(crate) const TOPIC_OPERATIONS: i32 = bits(&[
    READ,
    4,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
]);

/// All operations on a group, as bits.
pub(crate) const GROUP_OPERATIONS: i32 = bits(&[READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

const READ: u8 = 3;
const CREATE: u8 = 5;
const DELETE: u8 = 6;
const ALTER: u8 = 7;
const DESCRIBE: u8 = 8;
const DESCRIBE_CONFIGS: u8 = 10;
const ALTER_CONFIGS: u8 = 11;

/// Bit n stands for the operation with number n in Kafka's `AclOperation`.
const fn bits(operations: &[u8]) -> i32 {
    let mut bits = 0;
    let mut rest = operations;
    while let Some((first, others)) = rest.split_first() {
        bits |= 1 << *first;
        rest = others;
    }
    bits
}

/// The operations to show, if they were asked for.
pub(crate) fn operations(asked: bool, all: i32) -> i32 {
    if asked { all } else { OPERATIONS_NOT_ASKED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_that_kafka_shows_without_an_authorizer() {
        assert_eq!(TOPIC_OPERATIONS, 3_576);
        assert_eq!(CLUSTER_OPERATIONS, 8_096);
        assert_eq!(GROUP_OPERATIONS, 3_400);
        assert_eq!(operations(false, TOPIC_OPERATIONS), i32::MIN);
    }
}
