//! Elastic groups: who shall read what, decided from what is still to be read.
//!
//! # Find your way
//!
//! ```text
//!   Snapshot  ------->  plan  ------->  Plan { decisions, refusals, uncounted }
//!  (snapshot.rs)      (plan.rs)                      |
//!                         |  asks                    +-->  DecisionLog (log.rs)
//!                         v
//!                 decide(&Inputs) -> Outcome      the same question later: the same answer
//!                         |
//!        +--------+-------+------+--------+
//!     divide    grant         balance    calm
//!        |        |
//!        +--> cut: weigh, deal            where the slots of a share are dealt
//! ```
//!
//! - **What is cut, and where**: `divide.rs` chooses the victim, [`cut`] deals its slots. A minute is enough for both.
//! - **What is moved**: [`Move`]s. The planner knows nothing of slices, positions and fences; the coordinator turns each move
//!   into operations of the cursor.
//! - **Why something was done, or not**: [`Decision`] and [`Refusal`]: reason codes, a sentence ([`Decision::sentence`]), and
//!   the [`Inputs`]. [`decide`] of the recorded inputs gives the recorded outcome.
//!
//! # Rules
//!
//! 1. Nothing happens on fetch activity alone. A plan is made when a member joins, has drained its share, leaves or dies, and
//!    every `elastic.interval.ms`.
//! 2. Slots without a holder are given away first, whatever else is true: no cooldown, no threshold, no pause stops them.
//! 3. Whole partitions are placed before shares are cut ([`Inputs::Balance`]).
//! 4. Members without work then get a part of the share with the most records still to be processed ([`Inputs::Divide`]).
//!    Slots leave by *release* where that leads anywhere, since it interrupts nobody; where most was handed out already,
//!    commits are rare or a fence did not open before, the owner gives its share up once and gets its own part back.
//! 5. Live members keep their shares. These flow together only after a long quiet ([`Inputs::Fold`], [`Inputs::Plain`]).
//! 6. One partition changes at most once in a plan.
//!
//! Each change but a return lowers the sum of squares of the members' loads, or gives slots without a holder one, or lowers
//! the number of shares of a partition with nothing to read. So in a world that stands still planning comes to an end.
//! Returns cannot keep it going: a share whose fence did not open is divided by give-up the next time.
//!
//! All is pure: no clock, no chance, ordered maps only.

mod balance;
mod calm;
mod codec;
mod counts;
pub mod cut;
mod decision;
mod divide;
mod gather;
mod grant;
mod inputs;
mod log;
mod plan;
mod settings;
mod snapshot;
mod text;
mod totals;

#[cfg(test)]
mod calm_test;
#[cfg(test)]
mod claims_test;
#[cfg(test)]
mod codec_test;
#[cfg(test)]
mod cut_test;
#[cfg(test)]
mod faults_test;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod log_test;
#[cfg(test)]
mod obstacles_test;
#[cfg(test)]
mod storm_test;
#[cfg(test)]
mod world_test;

pub use counts::{Precision, SlotCounts};
pub use decision::{
    Change, Decision, How, Kind, Move, Outcome, PassedOver, Refusal, ShareChange, Why, WhyNot,
};
pub use inputs::{
    BALANCE_ITEMS_MAX, BALANCE_MEMBERS_MAX, BalanceInputs, CANDIDATES_MAX, Candidate, DivideInputs,
    DivideRules, Facts, FoldInputs, FoldShare, GrantInputs, Inputs, Item, ItemTopic, Load, NEEDY_MAX, Needy,
    PartitionRef, PlainInputs, RECEIVERS_MAX, Receiver, ReturnInputs,
};
pub use log::{DecisionLog, Ended, Entry, Noted, Settled};
pub use plan::{Plan, Uncounted, plan};
pub use settings::{CommitEvidence, ElasticKeys, ElasticSettings, GroupElasticSettings, Mode};
pub use snapshot::{
    Commits, DividedView, Eligibility, Loose, MemberId, MemberState, MemberView, PartitionView, PlainView,
    Reading, ShareCounts, ShareView, Snapshot, TopicView, Transit,
};
pub use totals::{Durations, HANDOVER_BOUNDS_MS, Totals};

/// Answers a question of the planner: pure, so that a recorded question has the recorded answer.
pub fn decide(inputs: &Inputs) -> Outcome {
    match inputs {
        Inputs::Divide(inputs) => divide::decide(inputs),
        Inputs::Grant(inputs) => grant::decide(inputs),
        Inputs::Return(inputs) => calm::decide_return(inputs),
        Inputs::Balance(inputs) => balance::decide(inputs),
        Inputs::Fold(inputs) => calm::decide_fold(inputs),
        Inputs::Plain(inputs) => calm::decide_plain(inputs),
    }
}

impl Decision {
    /// What the recorded inputs lead to today.
    pub fn replay(&self) -> Outcome {
        decide(&self.inputs)
    }
}

impl Refusal {
    /// What the recorded inputs lead to today.
    pub fn replay(&self) -> Outcome {
        decide(&self.inputs)
    }
}
