//! ApiVersions: what this broker speaks (KIP-35, KIP-511, KIP-584).
//!
//! Features are shown as a Kafka 4.1 shows them, as far as the broker keeps the promise: `transaction.version` 2 would
//! make clients rely on transactions of the second kind, so it is not finalised.

use std::sync::Arc;

use anabranch_core::group::elastic::ClientSoftware;
use anabranch_core::ids::Lsn;
use anabranch_wire::ErrorCode;
use anabranch_wire::api;
use anabranch_wire::frame::encode_response;
use anabranch_wire::msg::api_versions::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use anabranch_wire::msg::{ApiVersionsRequest, ApiVersionsResponse};

use super::groups::caller;
use crate::broker::Broker;
use crate::connection::{Close, Pending, Reply};
use crate::dispatch::Call;

/// Features: name, lowest and highest level known, level in force.
const FEATURES: [(&str, i16, i16, i16); 2] = [
    // 27 is the level of Kafka 4.1.
    ("metadata.version", 7, 27, 27),
    // 1: consumer groups of KIP-848.
    ("group.version", 0, 1, 1),
];

pub(crate) fn handle(call: Call<'_>, request: ApiVersionsRequest) -> Result<Pending, Close> {
    if call.version() >= 3 {
        let (name, version) = (request.client_software_name, request.client_software_version);
        let Some(software) = ClientSoftware::new(&name, &version) else {
            let error_code = call.code(ErrorCode::InvalidRequest);
            return call.now(&ApiVersionsResponse {
                error_code,
                ..Default::default()
            });
        };
        tracing::debug!(peer = %call.peer.addr, client = ?call.header.client_id, %software, "client software");
        call.peer.software = Some(software);
    }
    call.broker.introduced(&caller(&call));
    call.now(&answer(ErrorCode::None, call.version()))
}

/// The answer to a version that we do not know: in version 0, with the list, so that the client can try again.
pub(crate) fn unsupported(broker: &Arc<Broker>, correlation_id: i32) -> Result<Pending, Close> {
    broker.code(ErrorCode::UnsupportedVersion);
    let response = answer(ErrorCode::UnsupportedVersion, 0);
    match encode_response(correlation_id, &response, 0) {
        Ok(chunks) => Ok(Pending::Ready(Reply {
            chunks,
            after: Lsn(0),
            permit: None,
        })),
        Err(_) => Err(Close::Unanswerable),
    }
}

fn answer(error: ErrorCode, version: i16) -> ApiVersionsResponse {
    let api_keys = api::advertised().map(|(key, versions)| ApiVersion {
        api_key: key.number(),
        min_version: *versions.start(),
        max_version: *versions.end(),
    });
    // A minimum of 0 cannot be read by clients before version 4 (KAFKA-17011).
    let shown = FEATURES.iter().filter(|(_, min, ..)| version >= 4 || *min > 0);
    ApiVersionsResponse {
        error_code: error.code(),
        api_keys: api_keys.collect(),
        supported_features: shown
            .map(|&(name, min_version, max_version, _)| SupportedFeatureKey {
                name: name.to_owned(),
                min_version,
                max_version,
            })
            .collect(),
        finalized_features_epoch: 0,
        finalized_features: FEATURES
            .iter()
            .map(|&(name, _, _, level)| FinalizedFeatureKey {
                name: name.to_owned(),
                max_version_level: level,
                min_version_level: level,
            })
            .collect(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_ascending_and_transactions_of_the_second_kind_are_not_promised() {
        let answer = answer(ErrorCode::None, 4);
        assert!(
            answer
                .api_keys
                .windows(2)
                .all(|pair| pair[0].api_key < pair[1].api_key)
        );
        assert!(
            answer
                .api_keys
                .iter()
                .all(|api| api.min_version <= api.max_version)
        );
        assert!(
            answer
                .finalized_features
                .iter()
                .all(|feature| feature.name != "transaction.version")
        );
        assert!(
            answer
                .supported_features
                .iter()
                .any(|feature| feature.name == "group.version")
        );
    }

    #[test]
    fn old_clients_are_spared_features_whose_minimum_is_zero() {
        let answer = answer(ErrorCode::None, 3);
        assert!(
            answer
                .supported_features
                .iter()
                .all(|feature| feature.min_version > 0)
        );
    }
}
