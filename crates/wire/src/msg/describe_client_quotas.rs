//! DescribeClientQuotas: reading quotas.
//!
//! Match types: 0 exact, 1 default, 2 any.

use crate::prim::Message;

/// A filter of entities (KIP-546).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 48, versions(0..=1), flexible(1..))]
pub struct DescribeClientQuotasRequest {
    pub components: Vec<ComponentData>,
    pub strict: bool,
}

/// Element of [`DescribeClientQuotasRequest::components`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ComponentData {
    pub entity_type: String,
    pub match_type: i8,
    #[kafka(nullable)]
    pub r#match: Option<String>,
}

/// The quotas that match.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 48, versions(0..=1), flexible(1..))]
pub struct DescribeClientQuotasResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    #[kafka(nullable)]
    pub entries: Option<Vec<EntryData>>,
}

/// Element of [`DescribeClientQuotasResponse::entries`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EntryData {
    pub entity: Vec<EntityData>,
    pub values: Vec<ValueData>,
}

/// Element of [`EntryData::entity`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EntityData {
    pub entity_type: String,
    #[kafka(nullable)]
    pub entity_name: Option<String>,
}

/// Element of [`EntryData::values`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ValueData {
    pub key: String,
    pub value: f64,
}
