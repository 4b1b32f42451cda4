//! Offsets of partitions by time or place, and lists of partitions.

use rdkafka::bindings as sys;

use super::memory::{Guard, copy_text, lent, partition_error};
use super::{Admin, ApiError, c_text};
use crate::failure::Outcome;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicPartition {
    pub(crate) topic: String,
    pub(crate) partition: i32,
}

/// What is known of one partition.
#[derive(Debug, Clone)]
pub(crate) struct PartitionOffset {
    pub(crate) at: TopicPartition,
    /// The offset; negative if there is none.
    pub(crate) offset: i64,
    /// Why there is none.
    pub(crate) error: Option<ApiError>,
}

/// Which offset of a partition is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetSpec {
    /// The first that is still there.
    Earliest,
    /// The one that the next message gets.
    Latest,
    /// The first whose message is not older than this time, in milliseconds since 1970.
    AtTime(i64),
}

impl OffsetSpec {
    /// Kafka's number for it.
    fn number(self) -> i64 {
        match self {
            OffsetSpec::Earliest => sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
            OffsetSpec::Latest => sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
            OffsetSpec::AtTime(ms) => ms.max(0),
        }
    }
}

impl Admin {
    /// Looks offsets up, each partition with a wish of its own. A time behind the last message gives a negative offset.
    pub(crate) fn list_offsets(
        &self,
        wishes: &[(TopicPartition, OffsetSpec)],
    ) -> Outcome<Vec<PartitionOffset>> {
        if wishes.is_empty() {
            return Ok(Vec::new());
        }
        let wishes: Vec<_> = wishes
            .iter()
            .map(|(at, spec)| (at.clone(), spec.number()))
            .collect();
        let list = make_list(&wishes)?;
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS,
            // SAFETY: the list is live, and librdkafka copies it before it returns.
            |rk, options, queue| unsafe { sys::rd_kafka_ListOffsets(rk, list.get(), options, queue) },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_ListOffsets_result(event), 0);
                let infos = lent(sys::rd_kafka_ListOffsets_result_infos(result, &mut count), count);
                let one = |info: &*const sys::rd_kafka_ListOffsetsResultInfo_t| {
                    copy_partition(sys::rd_kafka_ListOffsetsResultInfo_topic_partition(*info))
                };
                infos.iter().map(one).collect()
            },
        )
    }
}

/// A C list of partitions with an offset each.
pub(super) fn make_list(
    partitions: &[(TopicPartition, i64)],
) -> Outcome<Guard<sys::rd_kafka_topic_partition_list_t>> {
    let size = i32::try_from(partitions.len()).unwrap_or(i32::MAX);
    // SAFETY: a new list is ours; the guard frees it.
    let list = unsafe {
        Guard::new(
            sys::rd_kafka_topic_partition_list_new(size),
            sys::rd_kafka_topic_partition_list_destroy,
        )?
    };
    for (at, offset) in partitions {
        let topic = c_text(&at.topic)?;
        // SAFETY: the list is live and copies the name; the element that is returned lies in the list and is written
        // before the list grows again.
        unsafe {
            let element = sys::rd_kafka_topic_partition_list_add(list.get(), topic.as_ptr(), at.partition);
            (*element).offset = *offset;
        }
    }
    Ok(list)
}

/// Copies a C list of partitions.
///
/// # Safety
/// `list` is null or a live list.
pub(super) unsafe fn copy_list(list: *const sys::rd_kafka_topic_partition_list_t) -> Vec<PartitionOffset> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a live list has `cnt` elements from `elems` on; each is copied.
    unsafe {
        let count = usize::try_from((*list).cnt).unwrap_or(0);
        (0..count).map(|i| copy_partition((*list).elems.add(i))).collect()
    }
}

/// # Safety
/// `partition` is live.
unsafe fn copy_partition(partition: *const sys::rd_kafka_topic_partition_t) -> PartitionOffset {
    // SAFETY: the caller vouches for the partition; only single fields are read, and the name is copied.
    unsafe {
        let topic = copy_text((*partition).topic);
        PartitionOffset {
            at: TopicPartition {
                topic,
                partition: (*partition).partition,
            },
            offset: (*partition).offset,
            error: partition_error(partition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_survive_the_way_through_c() {
        let at = |topic: &str, partition| TopicPartition {
            topic: topic.to_owned(),
            partition,
        };
        let wishes = [
            (at("orders", 0), 7),
            (at("orders", 1), -1),
            (at("übergänge", 2), i64::MAX),
        ];
        let list = make_list(&wishes).unwrap();
        // SAFETY: the list is live until its guard drops.
        let copied = unsafe { copy_list(list.get()) };
        let copied: Vec<_> = copied.into_iter().map(|one| (one.at, one.offset)).collect();
        assert_eq!(copied, wishes);
        // SAFETY: null is allowed.
        assert!(unsafe { copy_list(std::ptr::null()) }.is_empty());
        assert!(make_list(&[(at("a\0b", 0), 0)]).is_err());
    }

    #[test]
    fn wishes_have_kafkas_numbers() {
        let numbers = [
            OffsetSpec::Earliest,
            OffsetSpec::Latest,
            OffsetSpec::AtTime(5),
            OffsetSpec::AtTime(-5),
        ];
        assert_eq!(numbers.map(OffsetSpec::number), [-2, -1, 5, 0]);
    }
}
