//! FindCoordinator: finding the coordinator of a group or transaction.
//!
//! Version 4 takes several keys (KIP-699); 6 knows share groups (KIP-932).

use crate::prim::Message;

/// The keys whose coordinator is wanted.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 10, versions(0..=6), flexible(3..))]
pub struct FindCoordinatorRequest {
    #[kafka(versions(..=3))]
    pub key: String,
    #[kafka(versions(1..))]
    pub key_type: i8,
    #[kafka(versions(4..))]
    pub coordinator_keys: Vec<String>,
}

/// The broker that coordinates each key.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 10, versions(0..=6), flexible(3..))]
pub struct FindCoordinatorResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    #[kafka(versions(..=3))]
    pub error_code: i16,
    #[kafka(versions(1..=3), nullable, default = null, ignorable)]
    pub error_message: Option<String>,
    #[kafka(versions(..=3))]
    pub node_id: i32,
    #[kafka(versions(..=3))]
    pub host: String,
    #[kafka(versions(..=3))]
    pub port: i32,
    #[kafka(versions(4..))]
    pub coordinators: Vec<Coordinator>,
}

/// Element of [`FindCoordinatorResponse::coordinators`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct Coordinator {
    pub key: String,
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
}
