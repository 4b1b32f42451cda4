//! The store and the disk under it.

use std::sync::Arc;

use super::row::{Family, level, rows};
use super::scrape::Scrape;
use crate::broker::Broker;

rows! {
    SYNC: Histogram "anabranch_sync_seconds" [] "Time that the disk took to make bytes durable";
    COMMITS: Counter "anabranch_commits_total" [] "Groups of entries that became durable with one sync";
    STATE_BYTES: Counter "anabranch_state_bytes_total" [] "Bytes of changes of the broker's own state that were written: topics, groups, cursors, decisions";
    SEGMENTS: Gauge "anabranch_segments" [] "Files of the log in use";
    SPARE: Gauge "anabranch_spare_segments" [] "Files that wait to be used again";
    SEALED: Gauge "anabranch_sealed_segment_bytes" [] "Length of the files that are full";
    LIVE: Gauge "anabranch_live_bytes" [] "Bytes in them that somebody can still read";
    TAIL_CACHE: Gauge "anabranch_tail_cache_bytes" [] "Memory that holds the newest records";
    READ_CACHE: Gauge "anabranch_read_cache_bytes" [] "Memory that holds records read from the disk";
    SCAN_CACHE: Gauge "anabranch_scan_cache_bytes" [] "Memory that holds batches with their records found, for readers of slices";
    SLICE_READ: Counter "anabranch_slice_read_bytes_total" [] "Bytes of batches that the store gave for reading and counting slices";
    SLICE_OPENED: Counter "anabranch_slice_opened_bytes_total" [] "Bytes of records that were walked for that, decompressed";
    SLICE_DELIVERED: Counter "anabranch_slice_delivered_bytes_total" [] "Bytes of batches handed to readers of slices";
    DISK: Gauge "anabranch_disk_size_bytes" [] "Size of the file system that holds the data";
    FREE: Gauge "anabranch_disk_free_bytes" [] "Bytes free on it for this process";
    SHORT: Gauge "anabranch_disk_almost_full" [] "1 while produces are refused for want of space, else 0";
}

pub(super) fn families(broker: &Arc<Broker>, scrape: &Scrape) -> Vec<Family> {
    let metrics = &broker.shared.metrics;
    let usage = broker.store.usage();
    let slices = broker.scans.totals();
    let mut families = vec![
        SYNC.alone(&metrics.sync_time),
        COMMITS.alone(metrics.commit_groups.get()),
        STATE_BYTES.alone(scrape.state_bytes),
        SEGMENTS.with([(Vec::new(), level(usage.segments))]),
        SPARE.with([(Vec::new(), level(usage.spare_segments))]),
        SEALED.alone(usage.sealed_bytes),
        LIVE.alone(usage.live_bytes),
        TAIL_CACHE.with([(Vec::new(), level(usage.cache_bytes))]),
        READ_CACHE.with([(Vec::new(), level(usage.read_cache_bytes))]),
        SCAN_CACHE.with([(Vec::new(), level(broker.scans.bytes()))]),
        SLICE_READ.alone(slices.read),
        SLICE_OPENED.alone(slices.opened),
        SLICE_DELIVERED.alone(slices.delivered),
        SHORT.alone(i64::from(broker.is_short_of_space())),
    ];
    if let Some((size, free)) = broker.disk_space() {
        families.extend([DISK.alone(size), FREE.alone(free)]);
    }
    families
}
