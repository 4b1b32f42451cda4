//! Derive macro for Kafka messages.
