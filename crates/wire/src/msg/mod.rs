//! The messages: one file per API, with its request, its response and the structs inside them.
//!
//! The structs are the specification. Their attributes say what lies on the wire in which version (see the
//! crate `anabranch-wire-derive`); names, versions, tags, nullability and defaults are those of Kafka 4.1's schemas, with
//! one exception: error messages in responses are null by default, as Kafka's broker sends them. Note that
//! other nullable fields without `default = null` are `Some(empty)` by default, as in Kafka.
//!
//! Structs inside a message are named as in the schema, so some names come twice: reach them through their module
//! ([`fetch::PartitionData`]). The messages themselves are also here ([`FetchRequest`]).
#![expect(
    missing_docs,
    reason = "field names are the protocol's own; what is peculiar stands with the struct"
)]

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod alter_client_quotas;
pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod api_versions;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod consumer_protocol;
pub mod create_acls;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_acls;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_acls;
pub mod describe_client_quotas;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod describe_user_scram_credentials;
pub mod elect_leaders;
pub mod end_txn;
pub mod fetch;
pub mod find_coordinator;
pub mod get_telemetry_subscriptions;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod push_telemetry;
pub mod sasl_authenticate;
pub mod sasl_handshake;
pub mod sync_group;
pub mod txn_offset_commit;

use crate::prim::Request;

/// Calls a macro with every API, ascending by key: `module: Request => Response;`, for code that treats all alike.
///
/// ```
/// macro_rules! count {
///     ($($module:ident: $request:ident => $response:ident;)*) => { [$(stringify!($module)),*].len() };
/// }
/// assert_eq!(anabranch_wire::with_messages!(count), anabranch_wire::api::all().len());
/// ```
#[macro_export]
macro_rules! with_messages {
    ($each:ident) => {
        $each! {
            produce: ProduceRequest => ProduceResponse;
            fetch: FetchRequest => FetchResponse;
            list_offsets: ListOffsetsRequest => ListOffsetsResponse;
            metadata: MetadataRequest => MetadataResponse;
            offset_commit: OffsetCommitRequest => OffsetCommitResponse;
            offset_fetch: OffsetFetchRequest => OffsetFetchResponse;
            find_coordinator: FindCoordinatorRequest => FindCoordinatorResponse;
            join_group: JoinGroupRequest => JoinGroupResponse;
            heartbeat: HeartbeatRequest => HeartbeatResponse;
            leave_group: LeaveGroupRequest => LeaveGroupResponse;
            sync_group: SyncGroupRequest => SyncGroupResponse;
            describe_groups: DescribeGroupsRequest => DescribeGroupsResponse;
            list_groups: ListGroupsRequest => ListGroupsResponse;
            sasl_handshake: SaslHandshakeRequest => SaslHandshakeResponse;
            api_versions: ApiVersionsRequest => ApiVersionsResponse;
            create_topics: CreateTopicsRequest => CreateTopicsResponse;
            delete_topics: DeleteTopicsRequest => DeleteTopicsResponse;
            delete_records: DeleteRecordsRequest => DeleteRecordsResponse;
            init_producer_id: InitProducerIdRequest => InitProducerIdResponse;
            offset_for_leader_epoch: OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse;
            add_partitions_to_txn: AddPartitionsToTxnRequest => AddPartitionsToTxnResponse;
            add_offsets_to_txn: AddOffsetsToTxnRequest => AddOffsetsToTxnResponse;
            end_txn: EndTxnRequest => EndTxnResponse;
            txn_offset_commit: TxnOffsetCommitRequest => TxnOffsetCommitResponse;
            describe_acls: DescribeAclsRequest => DescribeAclsResponse;
            create_acls: CreateAclsRequest => CreateAclsResponse;
            delete_acls: DeleteAclsRequest => DeleteAclsResponse;
            describe_configs: DescribeConfigsRequest => DescribeConfigsResponse;
            alter_configs: AlterConfigsRequest => AlterConfigsResponse;
            describe_log_dirs: DescribeLogDirsRequest => DescribeLogDirsResponse;
            sasl_authenticate: SaslAuthenticateRequest => SaslAuthenticateResponse;
            create_partitions: CreatePartitionsRequest => CreatePartitionsResponse;
            delete_groups: DeleteGroupsRequest => DeleteGroupsResponse;
            elect_leaders: ElectLeadersRequest => ElectLeadersResponse;
            incremental_alter_configs: IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse;
            alter_partition_reassignments: AlterPartitionReassignmentsRequest => AlterPartitionReassignmentsResponse;
            list_partition_reassignments: ListPartitionReassignmentsRequest => ListPartitionReassignmentsResponse;
            offset_delete: OffsetDeleteRequest => OffsetDeleteResponse;
            describe_client_quotas: DescribeClientQuotasRequest => DescribeClientQuotasResponse;
            alter_client_quotas: AlterClientQuotasRequest => AlterClientQuotasResponse;
            describe_user_scram_credentials: DescribeUserScramCredentialsRequest => DescribeUserScramCredentialsResponse;
            describe_cluster: DescribeClusterRequest => DescribeClusterResponse;
            describe_producers: DescribeProducersRequest => DescribeProducersResponse;
            describe_transactions: DescribeTransactionsRequest => DescribeTransactionsResponse;
            list_transactions: ListTransactionsRequest => ListTransactionsResponse;
            consumer_group_heartbeat: ConsumerGroupHeartbeatRequest => ConsumerGroupHeartbeatResponse;
            consumer_group_describe: ConsumerGroupDescribeRequest => ConsumerGroupDescribeResponse;
            get_telemetry_subscriptions: GetTelemetrySubscriptionsRequest => GetTelemetrySubscriptionsResponse;
            push_telemetry: PushTelemetryRequest => PushTelemetryResponse;
            list_config_resources: ListConfigResourcesRequest => ListConfigResourcesResponse;
            describe_topic_partitions: DescribeTopicPartitionsRequest => DescribeTopicPartitionsResponse;
        }
    };
}

macro_rules! declare {
    ($($module:ident: $request:ident => $response:ident;)*) => {$(
        pub use $module::{$request, $response};

        impl Request for $request {
            type Response = $response;
        }
    )*};
}

with_messages!(declare);

#[cfg(test)]
mod tests;
