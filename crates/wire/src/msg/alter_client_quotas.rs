//! AlterClientQuotas: changing quotas.

use crate::prim::Message;

/// Quotas to set or remove (KIP-546).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 49, versions(0..=1), flexible(1..))]
pub struct AlterClientQuotasRequest {
    pub entries: Vec<EntryData>,
    pub validate_only: bool,
}

/// Element of [`AlterClientQuotasRequest::entries`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EntryData {
    pub entity: Vec<EntityData>,
    pub ops: Vec<OpData>,
}

/// Element of [`EntryData::entity`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EntityData {
    pub entity_type: String,
    #[kafka(nullable)]
    pub entity_name: Option<String>,
}

/// Element of [`EntryData::ops`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OpData {
    pub key: String,
    pub value: f64,
    pub remove: bool,
}

/// Success or failure of each entity.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 49, versions(0..=1), flexible(1..))]
pub struct AlterClientQuotasResponse {
    pub throttle_time_ms: i32,
    pub entries: Vec<EntryResult>,
}

/// Element of [`AlterClientQuotasResponse::entries`]. The schema calls it `EntryData` too; it is not that of the request.
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EntryResult {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub entity: Vec<EntityData>,
}
