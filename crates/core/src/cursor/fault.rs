//! Planted faults: each breaks one rule on purpose, so that tests can show that they would notice.
//!
//! A fault is set in [`super::Live`], or for all cursors with `Coordinator::plant`, and is asked for at exactly the rule
//! it breaks. Those that lie outside of the coordinator are broken by the simulator's broker. Without the cargo feature
//! `planted-faults` (off by default) and outside of tests there is no place to set one ([`Planted`] is empty), and the
//! questions compile to nothing.

/// The fault that is planted, if one is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    #[cfg(any(test, feature = "planted-faults"))]
    fault: Option<Fault>,
}

impl Planted {
    /// This one, or none.
    #[cfg(any(test, feature = "planted-faults"))]
    pub(crate) const fn new(fault: Option<Fault>) -> Self {
        Self { fault }
    }

    /// Whether it is this one. Always false in the shipped program.
    #[inline]
    pub(crate) fn is(self, fault: Fault) -> bool {
        self.any() == Some(fault)
    }

    /// Which one it is. Always none in the shipped program.
    #[inline]
    pub(crate) const fn any(self) -> Option<Fault> {
        #[cfg(any(test, feature = "planted-faults"))]
        return self.fault;
        #[cfg(not(any(test, feature = "planted-faults")))]
        None
    }
}

/// One list, so that whoever goes through all faults misses none.
macro_rules! faults {
    (
        cursor { $($(#[$meta:meta])* $name:ident,)* }
        around { $($(#[$around_meta:meta])* $around:ident,)* }
    ) => {
        /// One rule, broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[$meta])* $name,)*
            $($(#[$around_meta])* $around,)*
        }

        impl Fault {
            /// All rules of the cursor itself.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Rules around the cursor, which only a whole broker can break.
            pub const AROUND: &[Self] = &[$(Self::$around,)*];
        }
    };
}

faults! {
    cursor {
        /// Slots in transit from a held chain can be granted.
        GrantBeforeFence,
        /// A successor's id is smaller than those before it.
        SmallerId,
        /// A release ignores what was handed out.
        ReleaseIgnoresServed,
        /// A release ignores the committed position.
        ReleaseIgnoresPosition,
        /// Slots in transit forget that they began behind the release point.
        TransitForgetsFrom,
        /// Commits of a dead chain move its position.
        DeadCommitMoves,
        /// Commits of a dead chain open its fences.
        DeadCommitOpensFence,
        /// Gained slots begin at the receiver's own release point.
        MergeAtReceiver,
        /// A slot that is released is in no transit.
        ReleaseLosesSlot,
        /// A commit in an old slice is read as one in the tail.
        OldCommitInTail,
        /// After a give-up or a death slots in transit go on at the release point.
        GrantAtReleasePoint,
        /// A member that is granted slots anew keeps its old slice id, and commits of its older assignments count. Either
        /// alone is harmless: the other catches it.
        SameIdAtRegrant,
        /// Positions go back.
        BackwardCommit,
        /// A slice that has a successor is read no more.
        RetiredAtOnce,
        /// Fences and ends are judged by numbers, not by records.
        FenceByNumber,
        /// Plain at the highest resume point.
        PlainAtHighest,
        /// Plain at the lowest resume point.
        PlainAtLowest,
        /// A restart forgets that and how far slices were handed out.
        CeilingLost,
        /// OffsetFetch answers with the tail.
        FetchAnswersTail,
        /// Outsiders see the positions of held chains only.
        OutsiderSeesHeldOnly,
        /// A read behind the end of a slice goes on at the same number in the next.
        PositionCarried,
        /// Reads of what was handed out before are not noticed.
        RewindUnmarked,
        /// A restart does not mark the chains that were read.
        MarkLostAtRestart,
        /// A rewind mark is cleared by the first commit in the fresh slice, whatever the evidence.
        MarkClearedEarly,
        /// After a restart fences open before what was handed out is known again.
        SettlesBlind,
        /// The latest position is taken as evidence, whatever is asked for.
        LatestIsEvidence,
        /// What is handed out is not noted when it is looked up.
        ServedNotReserved,
        /// An empty slice between two others stays. Costs room, not safety.
        EmptySlicesStay,
    }
    around {
        /// The owner of a partition that is divided for the first time is not asked to give it up, and goes on reading it whole.
        OwnerNotAsked,
        /// Answers leave before what they tell is durable: slice ids, grants, what was handed out.
        AnswersBeforeDurable,
        /// A slice that has changed since it was read is answered with what was read, which nobody has reserved.
        ReadUnchecked,
    }
}
