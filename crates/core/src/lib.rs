//! Every decision of the broker, as pure state machines: time and chance are arguments, and nothing here does IO.

pub mod codec;
pub mod ids;
pub mod limits;
mod refused;

pub use refused::Refused;
