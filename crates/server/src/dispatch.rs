//! From a frame to its handler, and back from an answer to a frame.
//!
//! ```text
//! frame -> header -> (unknown API: close | unsupported version: close, or the answer of KIP-511)
//!       -> body as a struct of the API -> api::*::handle(Call, request)
//!                                            |  Call::now     the answer depends on nothing
//!                                            |  Call::after   it leaves once a log entry is durable
//!                                            |  Call::later   a future: a parked fetch, a join
//!                                            |  Call::silent  acks = 0
//! ```
//!
//! A request that cannot be decoded ends the connection, as in Kafka: what follows it cannot be trusted.

use std::sync::Arc;

use anabranch_core::group::Connection;
use anabranch_core::ids::Lsn;
use anabranch_wire::ErrorCode;
use anabranch_wire::api::ApiKey;
use anabranch_wire::frame::{FrameError, Incoming, RequestHeader, encode_response};
use anabranch_wire::prim::{Message, Request};
use bytes::Bytes;

use crate::api;
use crate::broker::Broker;
use crate::budget::Permit;
use crate::connection::{Close, Peer, Pending, Reply, Service};
use crate::shutdown::Phase;

/// One request on its way.
pub(crate) struct Call<'a> {
    pub(crate) broker: &'a Arc<Broker>,
    pub(crate) peer: &'a mut Peer,
    pub(crate) header: &'a RequestHeader,
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyTo {
    correlation_id: i32,
    version: i16,
}

impl ReplyTo {
    /// Makes the frame.
    pub(crate) fn encode<R: Message>(self, response: &R, after: Lsn) -> Result<Reply, Close> {
        match encode_response(self.correlation_id, response, self.version) {
            Ok(chunks) => Ok(Reply {
                chunks,
                after,
                permit: None,
            }),
            Err(error) => {
                tracing::error!(api = R::NAME, version = self.version, %error, "an answer cannot be encoded");
                Err(Close::Unanswerable)
            }
        }
    }
}

impl Call<'_> {
    /// The version of the request.
    pub(crate) fn version(&self) -> i16 {
        self.header.api_version
    }

    /// Where the answer goes.
    pub(crate) fn reply_to(&self) -> ReplyTo {
        ReplyTo {
            correlation_id: self.header.correlation_id,
            version: self.header.api_version,
        }
    }

    /// Whether the server ends, so that nothing new is begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.broker.shared.shutdown.phase() >= Phase::Draining
    }

    /// Counts an error and gives its number for the answer.
    pub(crate) fn code(&self, code: ErrorCode) -> i16 {
        self.broker.code(code)
    }

    /// Answers with what depends on nothing.
    pub(crate) fn now<R: Message>(&self, response: &R) -> Result<Pending, Close> {
        self.after(response, Lsn(0))
    }

    /// Answers once the entry `after` is durable.
    pub(crate) fn after<R: Message>(&self, response: &R, after: Lsn) -> Result<Pending, Close> {
        self.reply_to().encode(response, after).map(Pending::Ready)
    }

    /// Sends nothing, but holds the request's memory until the entry is durable.
    pub(crate) fn silent(&self, after: Lsn) -> Result<Pending, Close> {
        Ok(Pending::Ready(Reply {
            after,
            ..Reply::default()
        }))
    }

    /// Answers when the future has come to an end, with the memory that the answer holds.
    pub(crate) fn later<R, F>(&self, future: F) -> Result<Pending, Close>
    where
        R: Message,
        F: Future<Output = (R, Lsn, Option<Permit>)> + Send + 'static,
    {
        let to = self.reply_to();
        Ok(Pending::Later(Box::pin(async move {
            let (response, after, permit) = future.await;
            let reply = to.encode(&response, after)?;
            Ok(Reply { permit, ..reply })
        })))
    }

    /// Answers with what `work` makes on a thread that may wait for the disk, or take its time otherwise. Few run at
    /// once, so that what they hold in memory is bounded, too; the others wait for their turn.
    pub(crate) fn on_thread<R: Message + Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Pending, Close> {
        let to = self.reply_to();
        let turns = Arc::clone(&self.broker.turns);
        Ok(Pending::Later(Box::pin(async move {
            let turn = turns.acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                work()
            });
            match done.await {
                Ok(response) => to.encode(&response, Lsn(0)),
                Err(error) => {
                    tracing::error!(api = R::NAME, %error, "a request was interrupted");
                    Err(Close::Unanswerable)
                }
            }
        })))
    }
}

/// The broker's front.
pub(crate) struct Dispatch {
    broker: Arc<Broker>,
}

impl Dispatch {
    pub(crate) fn new(broker: Arc<Broker>) -> Self {
        Self { broker }
    }
}

impl Service for Dispatch {
    fn call(&self, peer: &mut Peer, frame: Bytes) -> Result<Pending, Close> {
        let incoming = match Incoming::parse(frame) {
            Ok(incoming) => incoming,
            Err(FrameError::UnsupportedVersion {
                api_key: ApiKey::ApiVersions,
                correlation_id,
                ..
            }) => {
                return api::api_versions::unsupported(&self.broker, correlation_id);
            }
            Err(error) => return Err(refused(peer, &error)),
        };
        let header = &incoming.header;
        self.broker.shared.metrics.request(header.api_key.number());
        tracing::trace!(peer = %peer.addr, api = ?header.api_key, version = header.api_version, "request");
        route(
            Call {
                broker: &self.broker,
                peer,
                header,
            },
            &incoming,
        )
    }

    fn closed(&self, connection: Connection) {
        self.broker.connection_closed(connection);
    }
}

/// Names the client, so that whoever reads the log knows which one to update.
fn refused(peer: &Peer, error: &FrameError) -> Close {
    match &peer.software {
        Some(software) => Close::Hostile(format!("{error}; the client is {software}")),
        None => Close::Hostile(error.to_string()),
    }
}

fn run<R: Request>(
    call: Call<'_>,
    incoming: &Incoming,
    handle: fn(Call<'_>, R) -> Result<Pending, Close>,
) -> Result<Pending, Close> {
    match incoming.decode::<R>() {
        Ok(request) => handle(call, request),
        Err(error) => {
            let RequestHeader {
                api_version,
                client_id,
                ..
            } = call.header;
            let client = client_id.as_deref().unwrap_or("unnamed");
            let name = R::NAME;
            Err(Close::Hostile(format!(
                "malformed {name} version {api_version} of client {client:?}: {error}"
            )))
        }
    }
}

fn route(call: Call<'_>, incoming: &Incoming) -> Result<Pending, Close> {
    use ApiKey as Key;
    use api::{
        absent, api_versions, cluster, configs, consumer_groups, fetch, groups, list_offsets, log_dirs,
        metadata, offsets, partitions, produce, producers, topics,
    };
    match call.header.api_key {
        Key::Produce => run(call, incoming, produce::handle),
        Key::Fetch => run(call, incoming, fetch::handle),
        Key::ListOffsets => run(call, incoming, list_offsets::handle),
        Key::Metadata => run(call, incoming, metadata::handle),
        Key::OffsetCommit => run(call, incoming, offsets::commit),
        Key::OffsetFetch => run(call, incoming, offsets::fetch),
        Key::OffsetDelete => run(call, incoming, offsets::delete),
        Key::FindCoordinator => run(call, incoming, cluster::find_coordinator),
        Key::JoinGroup => run(call, incoming, groups::join),
        Key::Heartbeat => run(call, incoming, groups::heartbeat),
        Key::LeaveGroup => run(call, incoming, groups::leave),
        Key::SyncGroup => run(call, incoming, groups::sync),
        Key::DescribeGroups => run(call, incoming, groups::describe),
        Key::ListGroups => run(call, incoming, groups::list),
        Key::DeleteGroups => run(call, incoming, groups::delete),
        Key::ConsumerGroupHeartbeat => run(call, incoming, consumer_groups::heartbeat),
        Key::ConsumerGroupDescribe => run(call, incoming, consumer_groups::describe),
        Key::ApiVersions => run(call, incoming, api_versions::handle),
        Key::CreateTopics => run(call, incoming, topics::create),
        Key::DeleteTopics => run(call, incoming, topics::delete),
        Key::CreatePartitions => run(call, incoming, topics::create_partitions),
        Key::DeleteRecords => run(call, incoming, topics::delete_records),
        Key::InitProducerId => run(call, incoming, producers::init),
        Key::DescribeProducers => run(call, incoming, producers::describe),
        Key::OffsetForLeaderEpoch => run(call, incoming, list_offsets::for_leader_epoch),
        Key::DescribeConfigs => run(call, incoming, configs::describe),
        Key::AlterConfigs => run(call, incoming, configs::alter),
        Key::IncrementalAlterConfigs => run(call, incoming, configs::incremental_alter),
        Key::ListConfigResources => run(call, incoming, configs::list_resources),
        Key::DescribeLogDirs => run(call, incoming, log_dirs::handle),
        Key::DescribeCluster => run(call, incoming, cluster::describe),
        Key::DescribeTopicPartitions => run(call, incoming, partitions::describe),
        Key::AlterPartitionReassignments => run(call, incoming, partitions::alter_reassignments),
        Key::ListPartitionReassignments => run(call, incoming, partitions::list_reassignments),
        Key::ElectLeaders => run(call, incoming, partitions::elect_leaders),
        Key::DescribeAcls => run(call, incoming, absent::describe_acls),
        Key::CreateAcls => run(call, incoming, absent::create_acls),
        Key::DeleteAcls => run(call, incoming, absent::delete_acls),
        Key::DescribeClientQuotas => run(call, incoming, absent::describe_client_quotas),
        Key::AlterClientQuotas => run(call, incoming, absent::alter_client_quotas),
        Key::DescribeUserScramCredentials => run(call, incoming, absent::describe_user_scram_credentials),
        Key::ListTransactions => run(call, incoming, absent::list_transactions),
        Key::DescribeTransactions => run(call, incoming, absent::describe_transactions),
        // Without served versions, so that the header of such a request is refused already.
        key @ (Key::SaslHandshake
        | Key::SaslAuthenticate
        | Key::AddPartitionsToTxn
        | Key::AddOffsetsToTxn
        | Key::EndTxn
        | Key::TxnOffsetCommit
        | Key::GetTelemetrySubscriptions
        | Key::PushTelemetry) => Err(Close::Hostile(format!("{key:?} is not served"))),
    }
}
