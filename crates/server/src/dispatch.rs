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
    pub(crate) header: RequestHeader,
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
        let header = incoming.header.clone();
        self.broker.shared.metrics.request(header.api_key.number());
        tracing::trace!(peer = %peer.addr, api = ?header.api_key, version = header.api_version, "request");
        route(
            Call {
                broker: &self.broker,
                peer,
                header,
            },
            incoming,
        )
    }
}

/// Names the client, so that whoever reads the log knows which one to update.
fn refused(peer: &Peer, error: &FrameError) -> Close {
    match &peer.software {
        Some((name, version)) => Close::Hostile(format!("{error}; the client is {name} {version}")),
        None => Close::Hostile(error.to_string()),
    }
}

fn run<R: Request>(
    call: Call<'_>,
    incoming: Incoming,
    handle: fn(Call<'_>, R) -> Result<Pending, Close>,
) -> Result<Pending, Close> {
    match incoming.decode::<R>() {
        Ok(request) => handle(call, request),
        Err(error) => {
            let RequestHeader {
                api_version,
                client_id,
                ..
            } = &call.header;
            let client = client_id.as_deref().unwrap_or("unnamed");
            let name = R::NAME;
            Err(Close::Hostile(format!(
                "malformed {name} version {api_version} of client {client:?}: {error}"
            )))
        }
    }
}

fn route(call: Call<'_>, incoming: Incoming) -> Result<Pending, Close> {
    use ApiKey as Key;
    use api::{absent, api_versions, cluster};
    match call.header.api_key {
        Key::FindCoordinator => run(call, incoming, cluster::find_coordinator),
        Key::ApiVersions => run(call, incoming, api_versions::handle),
        Key::DescribeCluster => run(call, incoming, cluster::describe),
        Key::DescribeAcls => run(call, incoming, absent::describe_acls),
        Key::CreateAcls => run(call, incoming, absent::create_acls),
        Key::DeleteAcls => run(call, incoming, absent::delete_acls),
        Key::DescribeClientQuotas => run(call, incoming, absent::describe_client_quotas),
        Key::AlterClientQuotas => run(call, incoming, absent::alter_client_quotas),
        Key::DescribeUserScramCredentials => run(call, incoming, absent::describe_user_scram_credentials),
        Key::ListTransactions => run(call, incoming, absent::list_transactions),
        Key::DescribeTransactions => run(call, incoming, absent::describe_transactions),
        key => Err(Close::Hostile(format!("{key:?} is not served"))),
    }
}
