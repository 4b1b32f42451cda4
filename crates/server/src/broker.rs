//! The broker: the state machine, the store, and what connects them.

use std::sync::Arc;

use anabranch_wire::ErrorCode;

use crate::connection::Shared;

/// What all handlers share.
pub(crate) struct Broker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cluster_id: String,
    pub(crate) node_id: i32,
}

impl Broker {
    /// Counts an error and gives its number.
    pub(crate) fn code(&self, code: ErrorCode) -> i16 {
        if code != ErrorCode::None {
            self.shared.metrics.error(code);
        }
        code.code()
    }
}
