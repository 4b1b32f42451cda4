//! What the owner of the store chooses; everything has a default that suits a small machine.

use std::time::Duration;

use crate::error::OpenError;
use crate::format::BLOCK_BYTES;

/// When an entry counts as committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the operating system confirmed that its group is on stable storage. Survives a power cut.
    #[default]
    Durable,
    /// After its group was handed to the operating system. Survives the end of the process, but a power cut may
    /// lose the newest entries; those that remain are a prefix of what was appended.
    Relaxed,
}

/// Options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment file, in bytes: a multiple of 4 KiB from 64 KiB to 2 GiB. Default 64 MiB. May change between
    /// two starts; existing segments keep their size.
    pub segment_bytes: u64,
    /// Most bytes of recently written groups that stay in memory for readers at the tail. Default 128 MiB. Memory is
    /// used only as data comes.
    pub cache_bytes: usize,
    /// Most bytes read from disk that stay in memory: what was read ahead of readers, and what they may want next. Default
    /// 32 MiB. Memory is used only as data is read.
    pub read_cache_bytes: usize,
    /// Most bytes of index entries of sealed segments in memory. Default 16 MiB.
    pub index_cache_bytes: usize,
    /// When an entry counts as committed.
    pub durability: Durability,
    /// Whether segments are written and read past the page cache where the file system can. Default true.
    pub direct_io: bool,
    /// Whether, while commit groups are small, a fresh segment file is written with zeros before it is used, so that
    /// commits overwrite existing blocks. Default true.
    pub preformat: bool,
    /// Bytes of sealed segments behind the newest snapshot at which the next one is due, so that a start has a bounded part
    /// of the log to replay: this much, and the segment that is being written. Default 512 MiB.
    pub snapshot_log_bytes: u64,
    /// With less than that, a snapshot is due after this time if a segment was sealed since the last one, so that old
    /// segments can be freed. Default 10 s.
    pub snapshot_interval: Duration,
    /// How many freed segment files are kept to be used again. Default 4.
    pub spare_segments: usize,
    /// Free space below which [`Space::low`](crate::Space::low) is set, in bytes. Default: one segment.
    pub free_bytes_min: Option<u64>,
    /// Segments whose share of live bytes is below this are packed, in percent from 0 (never) to 90. Default 50.
    pub pack_live_percent: u32,
    /// The cluster id of a folder that is created now; `None` draws one. An existing folder keeps its own.
    pub cluster_id: Option<[u8; 16]>,
    /// Wall clock in milliseconds since 1970 UTC, noted when the folder is created.
    pub now_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            cache_bytes: 128 << 20,
            read_cache_bytes: 32 << 20,
            index_cache_bytes: 16 << 20,
            durability: Durability::Durable,
            direct_io: true,
            preformat: true,
            snapshot_log_bytes: 512 << 20,
            snapshot_interval: Duration::from_secs(10),
            spare_segments: 4,
            free_bytes_min: None,
            pack_live_percent: 50,
            cluster_id: None,
            now_ms: 0,
        }
    }
}

/// Smallest and largest segment. The upper bound keeps positions within 32 bits.
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(2 << 30);
/// A group of this size syncs in about 1.5 ms on a fast disk; more would only add to the latency.
const GROUP_BYTES_MAX: u64 = 4 << 20;
/// Highest share of live bytes that packing may ask for: above it, copying costs more than it frees.
const PACK_LIVE_PERCENT_MAX: u32 = 90;

impl Options {
    /// Most bytes that one commit group gathers; a single larger entry makes a group of its own.
    pub(crate) fn group_bytes_max(&self) -> usize {
        usize::try_from(GROUP_BYTES_MAX.min(self.segment_bytes / 4)).unwrap_or(usize::MAX)
    }

    /// Free space below which the store calls itself low on space.
    pub(crate) fn free_bytes_min(&self) -> u64 {
        self.free_bytes_min.unwrap_or(self.segment_bytes)
    }

    /// Refuses values that cannot work.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let refuse = |name, problem: String| Err(OpenError::Option { name, problem });
        if !SEGMENT_BYTES.contains(&self.segment_bytes) {
            return refuse(
                "segment_bytes",
                format!(
                    "{} is outside {} to {} bytes",
                    self.segment_bytes,
                    SEGMENT_BYTES.start(),
                    SEGMENT_BYTES.end()
                ),
            );
        }
        if !self.segment_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return refuse(
                "segment_bytes",
                format!("{} is not a multiple of {BLOCK_BYTES}", self.segment_bytes),
            );
        }
        if self.pack_live_percent > PACK_LIVE_PERCENT_MAX {
            return refuse(
                "pack_live_percent",
                format!("{} is above {PACK_LIVE_PERCENT_MAX}", self.pack_live_percent),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_accepted() {
        Options::default().check().unwrap();
        assert_eq!(Options::default().group_bytes_max(), 4 << 20);
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        let refused = |options: Options| options.check().unwrap_err().to_string();
        assert!(
            refused(Options {
                segment_bytes: 4096,
                ..Options::default()
            })
            .contains("segment_bytes")
        );
        assert!(
            refused(Options {
                segment_bytes: 100_000,
                ..Options::default()
            })
            .contains("multiple")
        );
        assert!(
            refused(Options {
                segment_bytes: 3 << 30,
                ..Options::default()
            })
            .contains("segment_bytes")
        );
        assert!(
            refused(Options {
                pack_live_percent: 95,
                ..Options::default()
            })
            .contains("pack_live_percent")
        );
    }
}
