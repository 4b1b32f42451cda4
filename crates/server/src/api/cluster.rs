//! The cluster of one: DescribeCluster, FindCoordinator.

use anabranch_wire::ErrorCode;
use anabranch_wire::msg::describe_cluster::DescribeClusterBroker;
use anabranch_wire::msg::find_coordinator::Coordinator;
use anabranch_wire::msg::{
    DescribeClusterRequest, DescribeClusterResponse, FindCoordinatorRequest, FindCoordinatorResponse,
};

use super::{CLUSTER_OPERATIONS, operations};
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// Key type of FindCoordinator: consumer groups, and all that use the group protocol.
const GROUP: i8 = 0;

/// Endpoint type of DescribeCluster: brokers, as opposed to controllers.
const BROKERS: i8 = 1;

pub(crate) fn describe(call: Call<'_>, request: DescribeClusterRequest) -> Result<Pending, Close> {
    let mut response = DescribeClusterResponse {
        endpoint_type: request.endpoint_type,
        cluster_id: call.broker.cluster_id.clone(),
        ..Default::default()
    };
    if request.endpoint_type != BROKERS {
        response.error_code = call.code(ErrorCode::MismatchedEndpointType);
        response.error_message = Some("this is a broker; ask it for brokers".to_owned());
        return call.now(&response);
    }
    let node_id = call.broker.node_id;
    response.controller_id = node_id;
    response.cluster_authorized_operations =
        operations(request.include_cluster_authorized_operations, CLUSTER_OPERATIONS);
    response.brokers = vec![DescribeClusterBroker {
        broker_id: node_id,
        host: call.peer.advertised.host.clone(),
        port: i32::from(call.peer.advertised.port),
        ..Default::default()
    }];
    call.now(&response)
}

pub(crate) fn find_coordinator(call: Call<'_>, request: FindCoordinatorRequest) -> Result<Pending, Close> {
    let find = |key: String| coordinator(&call, key, request.key_type);
    if call.version() >= 4 {
        let coordinators = request.coordinator_keys.into_iter().map(find).collect();
        return call.now(&FindCoordinatorResponse {
            coordinators,
            ..Default::default()
        });
    }
    let found = find(request.key);
    call.now(&FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Default::default()
    })
}

fn coordinator(call: &Call<'_>, key: String, key_type: i8) -> Coordinator {
    let refuse = |key, code: ErrorCode, message: &str| Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code: call.code(code),
        error_message: Some(message.to_owned()),
        ..Default::default()
    };
    match key_type {
        GROUP => Coordinator {
            key,
            node_id: call.broker.node_id,
            host: call.peer.advertised.host.clone(),
            port: i32::from(call.peer.advertised.port),
            ..Default::default()
        },
        1 => refuse(
            key,
            ErrorCode::TransactionalIdAuthorizationFailed,
            "this broker has no transactions",
        ),
        2 => refuse(key, ErrorCode::InvalidRequest, "this broker has no share groups"),
        _ => refuse(key, ErrorCode::InvalidRequest, "unknown type of coordinator"),
    }
}
