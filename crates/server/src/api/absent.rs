//! Honest answers to what is not there: access rules, quotas, SCRAM users, transactions.
//!
//! Tools ask for these while they look around; a clear code lets them hide the feature, where a closed connection
//! would blank the whole page.

use anabranch_wire::ErrorCode;
use anabranch_wire::msg::alter_client_quotas::{EntityData, EntryResult};
use anabranch_wire::msg::create_acls::AclCreationResult;
use anabranch_wire::msg::delete_acls::DeleteAclsFilterResult;
use anabranch_wire::msg::describe_transactions::TransactionState;
use anabranch_wire::msg::describe_user_scram_credentials::DescribeUserScramCredentialsResult;
use anabranch_wire::msg::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, CreateAclsRequest, CreateAclsResponse,
    DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest, DescribeAclsResponse,
    DescribeClientQuotasRequest, DescribeClientQuotasResponse, DescribeTransactionsRequest,
    DescribeTransactionsResponse, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    ListTransactionsRequest, ListTransactionsResponse,
};

use crate::connection::{Close, Pending};
use crate::dispatch::Call;

const NO_ACLS: &str = "this broker has no access control: everybody may do everything";
const NO_QUOTAS: &str = "this broker has no client quotas";
const NO_SCRAM: &str = "this broker has no SCRAM users";

/// The states that a transaction can have, by Kafka's names.
const TRANSACTION_STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

pub(crate) fn describe_acls(call: Call<'_>, _request: DescribeAclsRequest) -> Result<Pending, Close> {
    call.now(&DescribeAclsResponse {
        error_code: call.code(ErrorCode::SecurityDisabled),
        error_message: Some(NO_ACLS.to_owned()),
        ..Default::default()
    })
}

pub(crate) fn create_acls(call: Call<'_>, request: CreateAclsRequest) -> Result<Pending, Close> {
    let error_code = call.code(ErrorCode::SecurityDisabled);
    let refuse = |_| AclCreationResult {
        error_code,
        error_message: Some(NO_ACLS.to_owned()),
    };
    let results = request.creations.iter().map(refuse).collect();
    call.now(&CreateAclsResponse {
        results,
        ..Default::default()
    })
}

pub(crate) fn delete_acls(call: Call<'_>, request: DeleteAclsRequest) -> Result<Pending, Close> {
    let error_code = call.code(ErrorCode::SecurityDisabled);
    let refuse = |_| DeleteAclsFilterResult {
        error_code,
        error_message: Some(NO_ACLS.to_owned()),
        ..Default::default()
    };
    let filter_results = request.filters.iter().map(refuse).collect();
    call.now(&DeleteAclsResponse {
        filter_results,
        ..Default::default()
    })
}

pub(crate) fn describe_client_quotas(
    call: Call<'_>,
    _request: DescribeClientQuotasRequest,
) -> Result<Pending, Close> {
    call.now(&DescribeClientQuotasResponse {
        entries: Some(Vec::new()),
        ..Default::default()
    })
}

pub(crate) fn alter_client_quotas(
    call: Call<'_>,
    request: AlterClientQuotasRequest,
) -> Result<Pending, Close> {
    let error_code = call.code(ErrorCode::UnsupportedVersion);
    let entries = request.entries.into_iter().map(|entry| EntryResult {
        error_code,
        error_message: Some(NO_QUOTAS.to_owned()),
        entity: entry
            .entity
            .into_iter()
            .map(|entity| EntityData {
                entity_type: entity.entity_type,
                entity_name: entity.entity_name,
            })
            .collect(),
    });
    call.now(&AlterClientQuotasResponse {
        entries: entries.collect(),
        ..Default::default()
    })
}

pub(crate) fn describe_user_scram_credentials(
    call: Call<'_>,
    request: DescribeUserScramCredentialsRequest,
) -> Result<Pending, Close> {
    let error_code = call.code(ErrorCode::ResourceNotFound);
    let results = request
        .users
        .into_iter()
        .flatten()
        .map(|user| DescribeUserScramCredentialsResult {
            user: user.name,
            error_code,
            error_message: Some(NO_SCRAM.to_owned()),
            ..Default::default()
        });
    call.now(&DescribeUserScramCredentialsResponse {
        results: results.collect(),
        ..Default::default()
    })
}

pub(crate) fn list_transactions(call: Call<'_>, request: ListTransactionsRequest) -> Result<Pending, Close> {
    let mut unknown_state_filters = request.state_filters;
    unknown_state_filters.retain(|state| !TRANSACTION_STATES.contains(&state.as_str()));
    call.now(&ListTransactionsResponse {
        unknown_state_filters,
        ..Default::default()
    })
}

pub(crate) fn describe_transactions(
    call: Call<'_>,
    request: DescribeTransactionsRequest,
) -> Result<Pending, Close> {
    let error_code = call.code(ErrorCode::TransactionalIdNotFound);
    let transaction_states = request
        .transactional_ids
        .into_iter()
        .map(|transactional_id| TransactionState {
            error_code,
            transactional_id,
            ..Default::default()
        });
    call.now(&DescribeTransactionsResponse {
        transaction_states: transaction_states.collect(),
        ..Default::default()
    })
}
