//! Exhaustive exploration of the real cursor, with small models of clients around it.
//!
//! # What is explored
//!
//! One group on one partition: the cursor itself, no model of it, called as the server calls it. Around it a log of two to
//! four records, two or three clients with buffers, work, and requests, answers and commits on their way, and a planner
//! that may decide any move at any moment. A setting says what clients do (commit after or ahead of their work, by record
//! or by batch; stand at the end of an answer or behind their last record; take late answers) and how often what may go
//! wrong does (give-ups, leaves, silent deaths, expulsions of clients that go on, crashes of the broker, seeks, skips,
//! restarts, foreign fetches, duplicates, losses). Every order of events is gone through.
//!
//! One to three of the 4096 slots have records; the others lie with a member that is gone, and stay there. The cursor begins
//! divided: one member has all slots that have records in one slice, the other none. The way back to plain is taken where it
//! is exact, and divides again at once. Not here, since it is not the cursor's: who is a member, what is durable before
//! it is seen, commits of plain offsets. That is the coordinator's and the simulator's.
//!
//! # When two worlds are the same
//!
//! A world is kept as 128 bits of a hash over all that can still matter (`key`): ids and epochs count by their order,
//! closed ids only if somebody may name them, and what readers find out by searching in vain is known at once.
//!
//! # What is checked
//!
//! After each event: every slot is in one place (I1); what counts as done was processed (I2); no two members have records of
//! one slot, and each processes a slot's records in order (I3); ids grow along chains and mean something (I4); outsiders see
//! the lowest (I5); positions do not go back (I7); only the tail of a chain may be empty (F4). When all worlds were seen:
//! from each the goal, everything processed and committed, can be reached (I6).
//!
//! A check that cannot fail proves nothing. So each planted fault ([`crate::cursor::Fault`]) is explored as well, and must
//! break the check that it is meant to break; so must clients that are never divided for what they do.
//!
//! # Bounds
//!
//! Every test run: the settings of `settings::small`, complete; the faults, by the shortest way, but for two that are found
//! only after many worlds; a few random walks through a world of three members and eight records that is too large to be
//! seen whole. `cargo xtask explore` runs `settings::large` and the two besides, up to 3,000,000 worlds each, and more walks,
//! and prints how many were seen.
//!
//! # Where what is
//!
//! `model` settings and the world · `client` a client · `acts` what can happen · `happen` what it does · `check` what must
//! hold · `key` when worlds are the same · `search` through all of them · `walk` at random · `settings`, `runs` what is run.

mod acts;
mod check;
mod client;
mod happen;
mod key;
mod model;
mod runs;
mod search;
mod settings;
mod walk;
