//! "Sometimes" events: a simulator that never meets the interesting situations proves nothing. Each is counted, and a
//! run over enough seeds fails if one of them never happened.

use std::collections::BTreeMap;

macro_rules! sights {
    ($($name:ident: $text:literal,)*) => {
        /// An interesting situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Sight {
            $(#[doc = $text] $name,)*
        }

        impl Sight {
            /// All of them, in the order of the table.
            pub const ALL: &[Sight] = &[$(Sight::$name,)*];

            /// What has happened.
            pub fn text(self) -> &'static str {
                match self {
                    $(Sight::$name => $text,)*
                }
            }
        }
    };
}

sights! {
    CrashWithEntriesQueued: "crash with entries queued that no group had taken",
    CrashInWrite: "crash in the middle of writing a group",
    CrashBeforeSync: "crash between the write of a group and its sync",
    CrashInSnapshot: "crash while a snapshot was written",
    CrashBeforeRename: "crash between a snapshot's content and its name",
    CrashInMaintenance: "crash while segments were freed or packed",
    CrashInRoll: "crash while a segment was sealed or the next one prepared",
    CrashInRecovery: "crash during recovery",
    CrashInRebalance: "crash while members of a group were moving towards their targets",
    ShutDownInOrder: "the broker was closed in good order and started again",
    UnackedLost: "entries that nobody was told of were lost in a crash",
    UnackedSurvived: "entries that nobody was told of survived a crash",
    SnapshotUsed: "recovery began at a snapshot",
    SyncFailed: "a sync failed and the store stopped",
    SyncFailedFull: "a sync failed with several entries in the group",
    WriteFailed: "a write failed and the store stopped",
    DiskFull: "the disk was full when a segment was needed",
    DiskFreed: "entries that had waited for space were committed later",
    ProduceRefusedForSpace: "a produce was refused since the disk was almost full",
    SegmentSealed: "a segment was sealed",
    SegmentFreed: "a segment was freed",
    SegmentPacked: "a segment was packed",
    GroupOfMany: "a commit group held ten entries or more",
    ReadFromDisk: "a fetch was read from disk",
    FetchParked: "a fetch waited for records",
    AnswerLost: "a request was executed and its answer lost",
    RequestLost: "a request was lost on the way",
    LateRequest: "a request of a broken connection was executed after its client had come back",
    DuplicateAnswered: "a batch that came again got its old offset",
    DuplicateAfterRestart: "a batch from before a restart came again and got its old offset",
    OutOfOrderRefused: "a batch was refused since the one before it was missing",
    RefusedForEver: "a producer gave a batch up after a final refusal",
    TopicDeleted: "a topic was deleted",
    TopicReborn: "a topic was created under the name of a deleted one",
    TopicGrown: "a topic got partitions while a group read it",
    RecordsDeleted: "records were deleted up to an offset",
    RetentionDeleted: "retention deleted records",
    OffsetOutOfRange: "a member found its position deleted",
    OutsiderRead: "an outsider read records again",
    OffsetsReset: "the offsets of an empty group were set back",
    OffsetsDeleted: "offsets were deleted",
    MemberExpelled: "a member was expelled for its silence",
    LateCommitRefused: "a commit of somebody who is no longer a member was refused",
    OldEpochCommitted: "a commit under an older epoch was accepted for what was held then",
    OldEpochRefused: "a commit under an older epoch was refused: what it names had been given up",
    StaticReplaced: "a static member came back under its instance id",
    MemberLeft: "a member left in good order",
    PositionKept: "an eager member went on where it was in a partition that it got back",
    PositionPutOff: "a member that asked where to begin was told to ask again",
    StartChecked: "a member compared the position that it was told with the ends of the partition",
    FetchedBelow: "a member fetched below what it held",
    HeaderEndBehindRecord: "a member's position went on to the end of a batch's header, behind its last record",
    RecordCommittedAhead: "a commit covered a record that was in work",
    BatchCommittedAhead: "a commit covered records that were taken and not begun",
    CommitResent: "a member sent an old commit again",
    RequestDoubled: "a request was sent twice",
    SoughtBack: "a member went back to a record that it had before",
    SoughtBeginning: "a member went back to where the partition begins",
    SoughtAhead: "a member passed records over",
    MemberRested: "a member read nothing for a while",
    ZombieCommitted: "a member that had been expelled and did not know it committed",
    Resubscribed: "a member gave its subscription up and took it again at once",
    CommitInsisted: "a member that had been expelled and was one again committed what it had done before",
    ZombieFetched: "a member that had been expelled and did not know it fetched",
    StrangeClient: "a group had a member whose client must not be given shares",
    Twins: "a group had members that cannot be told apart",
    ClientClockWrong: "a member's clock was fast or slow",
    ProducerClockWrong: "a producer's clock was set wrong",
    MixedProtocols: "a group had members of both protocols",
    WaitedForRelease: "a member waited for partitions that another had still to release",
    EpochFenced: "a member was told that its epoch is not the present one",
    Split: "a share was divided for a member without work",
    Stolen: "a member that had drained its share took from another",
    Isolated: "a hot key was given a share of its own",
    Merged: "slots without a holder were given to a member",
    Folded: "shares of a quiet partition flowed together",
    MadePlain: "a divided partition at one member was to become plain",
    Divided: "a cursor was divided",
    Released: "slots left a member that went on reading",
    FenceOpened: "a fence opened on the evidence of commits",
    TransitReturned: "slots whose fence did not open went back",
    ChainOfMany: "a member's chain had three slices or more",
    PlainAgain: "a divided cursor became plain where that was exact",
    DivisionReset: "a division was ended by a reset",
    IdsRetired: "slice ids were retired",
    ReadOvertaken: "a slice was not any more what it was when it was read, and was read again",
    RecalledAfterRestart: "what had been handed out before a restart was read again",
    StoredElsewhere: "a record was stored in another partition than the one it was sent to",
    QueuesReadAhead: "the read queue count of a topic went up",
    QueuesWritten: "the write queue count followed",
    QueuesDraining: "the write queue count of a topic went down",
    QueuesGone: "the read queue count followed, since everything was read",
    QueuesPostponed: "queues could not go, since a group had not read them",
    QueuesTurned: "a change of queue counts was turned around before it was over",
    QueuesOrdered: "an operator wanted another number of queues, or not to wait",
    QueueModeLeft: "a topic left queue mode or came back to it",
    RestartInQueuePhase: "the broker was started again while queue counts were changing",
    RestartWhileDivided: "the broker was started again while a partition was divided",
    RestartWhileSlotsMove: "the broker was started again while slots were between members",
    RestartBeforeDivision: "the broker was started again between the decision to divide and the division",
    WallJumpedAhead: "the wall clock jumped ahead",
    WallJumpedBack: "the wall clock jumped back",
    ClientPaused: "a client stood still and went on later",
    ClientDied: "a client died",
}

/// How often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    counts: BTreeMap<Sight, u64>,
}

impl Sights {
    /// It has happened.
    pub fn note(&mut self, sight: Sight) {
        *self.counts.entry(sight).or_default() += 1;
    }

    /// How often it has happened.
    pub fn count(&self, sight: Sight) -> u64 {
        self.counts.get(&sight).copied().unwrap_or(0)
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (sight, count) in &other.counts {
            *self.counts.entry(*sight).or_default() += count;
        }
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<Sight> {
        Sight::ALL
            .iter()
            .copied()
            .filter(|sight| self.count(*sight) == 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_not_missing() {
        let mut sights = Sights::default();
        assert_eq!(sights.missing().len(), Sight::ALL.len());
        sights.note(Sight::DiskFull);
        let mut sum = sights.clone();
        sum.add(&sights);
        assert_eq!(sum.count(Sight::DiskFull), 2);
        assert!(!sum.missing().contains(&Sight::DiskFull));
    }
}
