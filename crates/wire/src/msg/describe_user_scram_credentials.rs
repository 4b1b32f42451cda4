//! DescribeUserScramCredentials: listing SCRAM users.

use crate::prim::Message;

/// The users; null or none means all (KIP-554).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 50, versions(0..=0), flexible(0..))]
pub struct DescribeUserScramCredentialsRequest {
    #[kafka(nullable)]
    pub users: Option<Vec<UserName>>,
}

/// Element of [`DescribeUserScramCredentialsRequest::users`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct UserName {
    pub name: String,
}

/// Mechanisms and iterations of each user.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 50, versions(0..=0), flexible(0..))]
pub struct DescribeUserScramCredentialsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub results: Vec<DescribeUserScramCredentialsResult>,
}

/// Element of [`DescribeUserScramCredentialsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeUserScramCredentialsResult {
    pub user: String,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub credential_infos: Vec<CredentialInfo>,
}

/// Element of [`DescribeUserScramCredentialsResult::credential_infos`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CredentialInfo {
    pub mechanism: i8,
    pub iterations: i32,
}
