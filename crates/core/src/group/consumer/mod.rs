//! Groups whose assignment the broker makes: one member state machine for both protocols.
//!
//! - `group`: members come and go, the group epoch grows, the target assignment is made anew.
//! - `reconcile`: one step of one member towards its target; pure.
//! - `heartbeat`: members of the consumer protocol (KIP-848).
//! - `classic`: members of the classic protocol, without a client leader and without a barrier; `rejoin`: when such a
//!   member has to join again.
//! - `subscription`: from names and regular expressions to topics.

#[cfg(test)]
mod assignor_test;
mod classic;
#[cfg(test)]
mod classic_test;
mod group;
mod heartbeat;
#[cfg(test)]
mod heartbeat_test;
#[cfg(test)]
mod lifecycle_test;
mod reconcile;
mod rejoin;
#[cfg(test)]
mod static_test;
mod subscription;

pub(super) use classic::by_name;
pub(super) use heartbeat::LEAVE_FOR_A_WHILE;
pub(super) use subscription::Regexes;
