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
