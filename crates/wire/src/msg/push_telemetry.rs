//! PushTelemetry: client metrics.

use bytes::Bytes;

use crate::prim::{Message, Uuid};

/// Metrics of a client, in OTLP (KIP-714).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 72, versions(0..=0), flexible(0..))]
pub struct PushTelemetryRequest {
    pub client_instance_id: Uuid,
    pub subscription_id: i32,
    pub terminating: bool,
    pub compression_type: i8,
    pub metrics: Bytes,
}

/// Success or failure.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 72, versions(0..=0), flexible(0..))]
pub struct PushTelemetryResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
}
