//! GetTelemetrySubscriptions: which client metrics to send.

use crate::prim::{Message, Uuid};

/// A client instance that asks (KIP-714); zero asks for an id.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 71, versions(0..=0), flexible(0..))]
pub struct GetTelemetrySubscriptionsRequest {
    pub client_instance_id: Uuid,
}

/// The subscription.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 71, versions(0..=0), flexible(0..))]
pub struct GetTelemetrySubscriptionsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub client_instance_id: Uuid,
    pub subscription_id: i32,
    pub accepted_compression_types: Vec<i8>,
    pub push_interval_ms: i32,
    pub telemetry_max_bytes: i32,
    pub delta_temporality: bool,
    pub requested_metrics: Vec<String>,
}
