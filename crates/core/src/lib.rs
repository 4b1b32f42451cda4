//! Every decision of the broker, as pure state machines: time and chance are arguments, and nothing here does IO.

pub mod ids;
