//! Which APIs there are, and which versions of them this broker serves.
//!
//! One table, [`Api`] per line: key, name, first flexible version, versions served. What is served is coherent with
//! one Kafka release (4.1), since some clients infer the broker's release from the ranges (kafka-python does). Old
//! versions stay as long as Kafka 4 keeps them: kafkajs, aiokafka and sarama live there.
//!
//! APIs without served versions have structs only: nobody can call them, and they are not advertised.

use std::fmt;
use std::ops::RangeInclusive;

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Api {
    /// The key.
    pub key: ApiKey,
    /// Kafka's name for it.
    pub name: &'static str,
    /// First version with compact lengths and tagged fields; `i16::MAX` if there is none.
    pub flexible: i16,
    /// Versions that are answered; `None` if the API is not served.
    pub served: Option<RangeInclusive<i16>>,
}

macro_rules! apis {
    ($($key:literal $name:ident $flexible:tt $served:tt)*) => {
        /// The key of an API; APIs between brokers and those that nobody here serves are left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {
            $(#[doc = concat!("Key ", $key, ", `", stringify!($name), "`.")] $name = $key,)*
        }

        /// The table, ascending by key.
        static APIS: &[Api] = &[$(Api {
            key: ApiKey::$name,
            name: stringify!($name),
            flexible: apis!(@flexible $flexible),
            served: apis!(@served $served),
        },)*];

        impl ApiKey {
            /// The API with this number, if it is one that is known here.
            pub const fn from_i16(number: i16) -> Option<Self> {
                match number {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            fn row(self) -> usize {
                const NUMBERS: &[i16] = &[$($key),*];
                NUMBERS.iter().position(|number| *number == self.number()).unwrap_or_default()
            }
        }
    };
    (@flexible -) => { i16::MAX };
    (@flexible $first:literal) => { $first };
    (@served -) => { None };
    (@served ($min:literal $max:literal)) => { Some($min..=$max) };
}

apis! {
    // key, name, first flexible version, versions served
    0 Produce 9 (3 13)
    1 Fetch 12 (4 17)
    2 ListOffsets 6 (1 10)
    3 Metadata 9 (0 13)
    8 OffsetCommit 8 (2 9)
    9 OffsetFetch 6 (1 9)
    10 FindCoordinator 3 (0 6)
    11 JoinGroup 6 (0 9)
    12 Heartbeat 4 (0 4)
    13 LeaveGroup 4 (0 5)
    14 SyncGroup 4 (0 5)
    15 DescribeGroups 5 (0 6)
    16 ListGroups 3 (0 5)
    17 SaslHandshake - -
    18 ApiVersions 3 (0 4)
    19 CreateTopics 5 (2 7)
    20 DeleteTopics 4 (1 6)
    21 DeleteRecords 2 (0 2)
    22 InitProducerId 2 (0 5)
    23 OffsetForLeaderEpoch 4 (2 4)
    24 AddPartitionsToTxn 3 -
    25 AddOffsetsToTxn 3 -
    26 EndTxn 3 -
    28 TxnOffsetCommit 3 -
    29 DescribeAcls 2 (1 3)
    30 CreateAcls 2 (1 3)
    31 DeleteAcls 2 (1 3)
    32 DescribeConfigs 4 (1 4)
    33 AlterConfigs 2 (0 2)
    35 DescribeLogDirs 2 (1 4)
    36 SaslAuthenticate 2 -
    37 CreatePartitions 2 (0 3)
    42 DeleteGroups 2 (0 2)
    43 ElectLeaders 2 (0 2)
    44 IncrementalAlterConfigs 1 (0 1)
    45 AlterPartitionReassignments 0 (0 1)
    46 ListPartitionReassignments 0 (0 0)
    47 OffsetDelete - (0 0)
    48 DescribeClientQuotas 1 (0 1)
    49 AlterClientQuotas 1 (0 1)
    50 DescribeUserScramCredentials 0 (0 0)
    60 DescribeCluster 0 (0 2)
    61 DescribeProducers 0 (0 0)
    65 DescribeTransactions 0 (0 0)
    66 ListTransactions 0 (0 1)
    68 ConsumerGroupHeartbeat 0 (0 1)
    69 ConsumerGroupDescribe 0 (0 1)
    71 GetTelemetrySubscriptions 0 -
    72 PushTelemetry 0 -
    74 ListConfigResources 0 (0 1)
    75 DescribeTopicPartitions 0 (0 0)
}

/// Every API with structs here, served or not, ascending by key.
pub fn all() -> &'static [Api] {
    APIS
}

/// What an ApiVersions response lists: the served APIs, ascending by key, with the versions to show.
pub fn advertised() -> impl Iterator<Item = (ApiKey, RangeInclusive<i16>)> {
    APIS.iter().filter_map(|api| Some((api.key, api.advertised()?)))
}

impl Api {
    /// The versions to show in an ApiVersions response.
    ///
    /// Produce is shown from version 0 on, though 0 to 2 are refused: librdkafka before 2.x takes a higher minimum for
    /// a broker without compression. Kafka 4 does the same (KAFKA-18659).
    pub fn advertised(&self) -> Option<RangeInclusive<i16>> {
        let served = self.served.clone()?;
        Some(if self.key == ApiKey::Produce {
            0..=*served.end()
        } else {
            served
        })
    }

    /// Whether requests of this version are answered.
    pub fn serves(&self, version: i16) -> bool {
        self.served
            .as_ref()
            .is_some_and(|served| served.contains(&version))
    }

    /// Version of the request header: 2 (with tagged fields) in flexible versions, else 1.
    pub fn request_header_version(&self, version: i16) -> i16 {
        if version >= self.flexible { 2 } else { 1 }
    }

    /// Version of the response header: 1 (with tagged fields) in flexible versions, else 0. ApiVersions stays at 0,
    /// since its response must be readable before the client knows the broker's versions (KIP-511).
    pub fn response_header_version(&self, version: i16) -> i16 {
        i16::from(version >= self.flexible && self.key != ApiKey::ApiVersions)
    }
}

impl ApiKey {
    /// As [`ApiKey::from_i16`], for numbers that the derive macro finds in attributes; an unknown one fails the build.
    pub(crate) const fn from_number(number: i16) -> Self {
        match Self::from_i16(number) {
            Some(key) => key,
            None => panic!("no API has the key in the attribute"),
        }
    }

    /// The number on the wire.
    pub const fn number(self) -> i16 {
        self as i16
    }

    /// The line of the table.
    pub fn api(self) -> &'static Api {
        &APIS[self.row()]
    }

    /// Kafka's name for it.
    pub fn name(self) -> &'static str {
        self.api().name
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ascends_and_finds_itself() {
        assert!(APIS.is_sorted_by_key(|api| api.key.number()));
        for api in APIS {
            assert_eq!(api.key.api().key, api.key);
            assert_eq!(ApiKey::from_i16(api.key.number()), Some(api.key));
        }
        assert_eq!(ApiKey::from_i16(4), None);
        assert_eq!(ApiKey::from_i16(-1), None);
    }

    #[test]
    fn produce_is_shown_from_0_and_served_from_3() {
        let api = ApiKey::Produce.api();
        assert_eq!(api.advertised(), Some(0..=13));
        assert_eq!(
            (api.serves(2), api.serves(3), api.serves(13), api.serves(14)),
            (false, true, true, false)
        );
    }

    #[test]
    fn what_is_not_served_is_not_shown() {
        assert!(advertised().all(|(key, _)| key != ApiKey::EndTxn && key != ApiKey::SaslHandshake));
        assert!(!ApiKey::EndTxn.api().serves(3));
        assert!(advertised().count() > 40);
    }

    #[test]
    fn header_versions() {
        let versions = |key: ApiKey, version| {
            (
                key.api().request_header_version(version),
                key.api().response_header_version(version),
            )
        };
        assert_eq!(versions(ApiKey::Metadata, 8), (1, 0));
        assert_eq!(versions(ApiKey::Metadata, 9), (2, 1));
        assert_eq!(versions(ApiKey::ApiVersions, 3), (2, 0));
        assert_eq!(versions(ApiKey::OffsetDelete, 0), (1, 0));
    }
}
