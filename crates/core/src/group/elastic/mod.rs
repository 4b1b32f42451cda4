//! Elastic groups: several members of a group share one partition.
//!
//! - `shares`: which members hold a shared partition, how one that was held whole comes to be shared, and what
//!   becomes of it when members leave.
//!
//! What each of them reads of the partition is the cursor's matter ([`crate::cursor`]).

mod shares;
#[cfg(test)]
mod shares_test;
