//! What a group has read of a partition.
//!
//! A cursor belongs to a group and a partition, and is more than a number: today it is *plain*, one offset, as in
//! Kafka. Later a cursor can also be divided among members; everything that touches a cursor therefore matches on
//! the enum, and nothing outside this type assumes that there is exactly one offset.

use crate::ids::Offset;

/// A group's position in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// One committed offset for the whole partition.
    Plain(Plain),
}

/// The fields of a plain cursor, as a client committed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    /// The offset of the next record the group wants; -1 if a client committed "none".
    pub offset: Offset,
    /// Leader epoch of the last record read, or -1 if the client did not say (KIP-320).
    pub leader_epoch: i32,
    /// The client's own note, kept as it came (at most `GroupSettings::offset_metadata_bytes_max` bytes).
    pub metadata: String,
    /// Wall clock of the commit, milliseconds since 1970 UTC.
    pub commit_ms: i64,
    /// Wall clock after which the cursor may be dropped, if the client asked for a retention of its own
    /// (OffsetCommit v2 to v4).
    pub expires_ms: Option<i64>,
}

impl Cursor {
    /// What somebody who is no member of the group sees as the committed position.
    pub fn outside_view(&self) -> &Plain {
        match self {
            Self::Plain(plain) => plain,
        }
    }

    /// Whether the cursor may be dropped at `now_ms`, given that the group needs it no longer since `idle_since_ms`
    /// (both wall clock) and keeps unused cursors for `retention_ms`.
    ///
    /// A retention named by the client replaces the group's, as in Kafka.
    pub fn is_expired(&self, now_ms: i64, idle_since_ms: Option<i64>, retention_ms: i64) -> bool {
        let Self::Plain(plain) = self;
        match plain.expires_ms {
            Some(at) => now_ms >= at,
            None => {
                let from = idle_since_ms.map_or(plain.commit_ms, |idle| idle.max(plain.commit_ms));
                now_ms.saturating_sub(from) >= retention_ms
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed_at(commit_ms: i64, expires_ms: Option<i64>) -> Cursor {
        Cursor::Plain(Plain {
            offset: 7,
            leader_epoch: -1,
            metadata: String::new(),
            commit_ms,
            expires_ms,
        })
    }

    #[test]
    fn retention_counts_from_the_later_of_commit_and_idleness() {
        let cursor = committed_at(1_000, None);
        assert!(!cursor.is_expired(1_099, None, 100));
        assert!(cursor.is_expired(1_100, None, 100));
        assert!(!cursor.is_expired(1_100, Some(1_050), 100));
        assert!(cursor.is_expired(1_150, Some(1_050), 100));
        assert!(
            cursor.is_expired(1_100, Some(500), 100),
            "idle since before the commit: the commit counts"
        );
    }

    #[test]
    fn a_clients_own_retention_replaces_the_groups() {
        let cursor = committed_at(1_000, Some(1_010));
        assert!(!cursor.is_expired(1_009, None, 1));
        assert!(cursor.is_expired(1_010, None, 1_000_000));
    }

    #[test]
    fn a_clock_at_its_end_does_not_overflow() {
        assert!(committed_at(i64::MIN, None).is_expired(i64::MAX, None, 100));
    }
}
