//! Kafka's error codes: one table of number, name, whether a client retries, and meaning.
//!
//! Source of numbers and retriability: the protocol's error table (Apache Kafka 4.1, `Errors`).

use std::fmt;

macro_rules! error_codes {
    ($($code:literal $name:ident $retriable:literal $meaning:literal;)*) => {
        /// An error code of the Kafka protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $name = $code,)*
        }

        impl ErrorCode {
            /// The code for a number from the wire; `None` if Kafka 4.1 does not define it.
            pub fn from_i16(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Whether Kafka's clients treat the code as worth another try.
            pub fn is_retriable(self) -> bool {
                match self {
                    $(Self::$name => $retriable == 1,)*
                }
            }

            /// What the code means, for logs and error messages.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

impl ErrorCode {
    /// The number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// Whether this is success.
    pub fn is_ok(self) -> bool {
        self == Self::None
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the variants come out of a table, where none can be marked"
)]
impl Default for ErrorCode {
    fn default() -> Self {
        Self::None
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self:?}, {})", self.meaning(), self.code())
    }
}

error_codes! {
    -1 UnknownServerError 0 "unexpected failure on the server";
    0 None 0 "success";
    1 OffsetOutOfRange 0 "the offset lies outside the log";
    2 CorruptMessage 1 "the batch fails its checksum or is malformed";
    3 UnknownTopicOrPartition 1 "no such topic or partition here";
    4 InvalidFetchSize 0 "the fetch size is invalid";
    5 LeaderNotAvailable 1 "no leader at the moment";
    6 NotLeaderOrFollower 1 "this broker does not lead the partition";
    7 RequestTimedOut 1 "the request took longer than it was given";
    8 BrokerNotAvailable 0 "the broker is not available";
    9 ReplicaNotAvailable 1 "the replica is not available";
    10 MessageTooLarge 0 "the batch is larger than the topic allows";
    11 StaleControllerEpoch 0 "the controller has moved on";
    12 OffsetMetadataTooLarge 0 "the metadata of a commit is too long";
    13 NetworkException 1 "disconnected before an answer";
    14 CoordinatorLoadInProgress 1 "the coordinator is loading its state";
    15 CoordinatorNotAvailable 1 "the coordinator is not available";
    16 NotCoordinator 1 "this broker does not coordinate the group";
    17 InvalidTopicException 0 "the topic name is not allowed";
    18 RecordListTooLarge 0 "the record set is larger than a segment";
    19 NotEnoughReplicas 1 "fewer in-sync replicas than required";
    20 NotEnoughReplicasAfterAppend 1 "written, but to fewer replicas than required";
    21 InvalidRequiredAcks 0 "acks must be -1, 0 or 1";
    22 IllegalGeneration 0 "the generation is not the current one";
    23 InconsistentGroupProtocol 0 "the member shares no protocol with the group";
    24 InvalidGroupId 0 "the group id is empty or invalid";
    25 UnknownMemberId 0 "the coordinator does not know this member";
    26 InvalidSessionTimeout 0 "the session timeout lies outside the allowed range";
    27 RebalanceInProgress 0 "the group rebalances: rejoin";
    28 InvalidCommitOffsetSize 0 "the commit is too large";
    29 TopicAuthorizationFailed 0 "not authorised for the topic";
    30 GroupAuthorizationFailed 0 "not authorised for the group";
    31 ClusterAuthorizationFailed 0 "not authorised for the cluster";
    32 InvalidTimestamp 0 "the timestamp is out of the accepted range";
    33 UnsupportedSaslMechanism 0 "the mechanism is not offered";
    34 IllegalSaslState 0 "not valid in this state of authentication";
    35 UnsupportedVersion 0 "the version of the request is not supported";
    36 TopicAlreadyExists 0 "a topic of this name exists";
    37 InvalidPartitions 0 "the partition count is invalid";
    38 InvalidReplicationFactor 0 "the replication factor is invalid";
    39 InvalidReplicaAssignment 0 "the replica assignment is invalid";
    40 InvalidConfig 0 "a configuration is invalid";
    41 NotController 1 "this broker is not the controller";
    42 InvalidRequest 0 "the request is malformed or contradicts itself";
    43 UnsupportedForMessageFormat 0 "not possible with this record format";
    44 PolicyViolation 0 "a policy forbids it";
    45 OutOfOrderSequenceNumber 0 "a sequence number is missing before this batch";
    46 DuplicateSequenceNumber 0 "the sequence number was seen before";
    47 InvalidProducerEpoch 0 "the producer epoch is old";
    48 InvalidTxnState 0 "not valid in this state of the transaction";
    49 InvalidProducerIdMapping 0 "the producer id does not belong to the transactional id";
    50 InvalidTransactionTimeout 0 "the transaction timeout is out of range";
    51 ConcurrentTransactions 1 "another transaction of the producer is being completed";
    52 TransactionCoordinatorFenced 0 "the transaction coordinator is fenced";
    53 TransactionalIdAuthorizationFailed 0 "not authorised for the transactional id";
    54 SecurityDisabled 0 "security features are disabled";
    55 OperationNotAttempted 0 "not attempted, since another part failed";
    56 KafkaStorageError 1 "the disk failed for this log";
    57 LogDirNotFound 0 "no such log directory";
    58 SaslAuthenticationFailed 0 "authentication failed";
    59 UnknownProducerId 0 "the producer id is not known here";
    60 ReassignmentInProgress 0 "a reassignment is in progress";
    61 DelegationTokenAuthDisabled 0 "delegation tokens are disabled";
    62 DelegationTokenNotFound 0 "no such delegation token";
    63 DelegationTokenOwnerMismatch 0 "the token belongs to another principal";
    64 DelegationTokenRequestNotAllowed 0 "tokens are not allowed on this connection";
    65 DelegationTokenAuthorizationFailed 0 "not authorised for the token";
    66 DelegationTokenExpired 0 "the token has expired";
    67 InvalidPrincipalType 0 "the principal type is not supported";
    68 NonEmptyGroup 0 "the group has members";
    69 GroupIdNotFound 0 "no such group";
    70 FetchSessionIdNotFound 1 "no such fetch session";
    71 InvalidFetchSessionEpoch 1 "the fetch session epoch is wrong";
    72 ListenerNotFound 1 "no matching listener";
    73 TopicDeletionDisabled 0 "topic deletion is disabled";
    74 FencedLeaderEpoch 1 "the leader epoch is older than the broker's";
    75 UnknownLeaderEpoch 1 "the leader epoch is newer than the broker's";
    76 UnsupportedCompressionType 0 "the compression is not supported for this request";
    77 StaleBrokerEpoch 0 "the broker epoch has changed";
    78 OffsetNotAvailable 1 "the high watermark has not caught up yet";
    79 MemberIdRequired 0 "rejoin with the member id given";
    80 PreferredLeaderNotAvailable 1 "the preferred leader is not available";
    81 GroupMaxSizeReached 0 "the group has its maximum of members";
    82 FencedInstanceId 0 "another member holds this instance id";
    83 EligibleLeadersNotAvailable 1 "no eligible leader is available";
    84 ElectionNotNeeded 1 "the election is not needed";
    85 NoReassignmentInProgress 0 "no reassignment is in progress";
    86 GroupSubscribedToTopic 0 "the group is subscribed to the topic";
    87 InvalidRecord 0 "a record fails validation";
    88 UnstableOffsetCommit 1 "offsets of an open transaction are pending";
    89 ThrottlingQuotaExceeded 1 "the quota is exceeded";
    90 ProducerFenced 0 "a newer producer has the transactional id";
    91 ResourceNotFound 0 "no such resource";
    92 DuplicateResource 0 "the resource exists";
    93 UnacceptableCredential 0 "the credential is not acceptable";
    94 InconsistentVoterSet 0 "the voter sets differ";
    95 InvalidUpdateVersion 0 "the update version is invalid";
    96 FeatureUpdateFailed 0 "features could not be updated";
    97 PrincipalDeserializationFailure 0 "the principal could not be read";
    98 SnapshotNotFound 0 "no such snapshot";
    99 PositionOutOfRange 0 "the position is out of range";
    100 UnknownTopicId 1 "no topic has this id";
    101 DuplicateBrokerRegistration 0 "the broker id is registered";
    102 BrokerIdNotRegistered 0 "the broker id is not registered";
    103 InconsistentTopicId 1 "the topic id does not match the log's";
    104 InconsistentClusterId 0 "the cluster id differs";
    105 TransactionalIdNotFound 0 "no such transactional id";
    106 FetchSessionTopicIdError 1 "the fetch session mixes names and ids";
    107 IneligibleReplica 0 "the replica is not eligible";
    108 NewLeaderElected 0 "the leader has changed";
    109 OffsetMovedToTieredStorage 0 "the offset lies in tiered storage";
    110 FencedMemberEpoch 0 "the member epoch is fenced";
    111 UnreleasedInstanceId 0 "another member still holds the instance id";
    112 UnsupportedAssignor 0 "the assignor is not offered";
    113 StaleMemberEpoch 0 "the member epoch is old: heartbeat, then try again";
    114 MismatchedEndpointType 0 "the endpoint is of another type";
    115 UnsupportedEndpointType 0 "the endpoint type is not supported";
    116 UnknownControllerId 0 "no such controller";
    117 UnknownSubscriptionId 0 "the telemetry subscription is not known";
    118 TelemetryTooLarge 0 "the telemetry is too large";
    119 InvalidRegistration 0 "the registration is invalid";
    120 TransactionAbortable 0 "the transaction must be aborted";
    121 InvalidRecordState 0 "the record state does not allow it";
    122 ShareSessionNotFound 1 "no such share session";
    123 InvalidShareSessionEpoch 1 "the share session epoch is wrong";
    124 FencedStateEpoch 0 "the share state epoch is fenced";
    125 InvalidVoterKey 0 "the voter key does not match";
    126 DuplicateVoter 0 "the voter exists";
    127 VoterNotFound 0 "no such voter";
    128 InvalidRegularExpression 0 "the regular expression is invalid";
    129 RebootstrapRequired 0 "the client must bootstrap again";
}
