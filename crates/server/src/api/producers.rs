//! Idempotent producers: InitProducerId, DescribeProducers.

use anabranch_wire::ErrorCode;
use anabranch_wire::msg::describe_producers::{
    PartitionResponse, ProducerState, TopicRequest, TopicResponse,
};
use anabranch_wire::msg::{
    DescribeProducersRequest, DescribeProducersResponse, InitProducerIdRequest, InitProducerIdResponse,
};

use super::{check_partitions, each_once};
use crate::broker::Core;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

pub(crate) fn init(call: Call<'_>, request: InitProducerIdRequest) -> Result<Pending, Close> {
    if call.is_draining() {
        let error_code = call.code(ErrorCode::NotCoordinator);
        return call.now(&InitProducerIdResponse {
            error_code,
            producer_epoch: -1,
            ..Default::default()
        });
    }
    let (given, after) = call.broker.update(|update| {
        let (id, commands) = update
            .node_mut()
            .init_producer_id(request.transactional_id.as_deref())?;
        update.run(commands);
        Ok(id)
    });
    let response = match given.map_err(|refused: anabranch_core::Refused| refused.code()) {
        Ok(id) => InitProducerIdResponse {
            producer_id: id.id,
            producer_epoch: id.epoch,
            ..Default::default()
        },
        Err(error) => InitProducerIdResponse {
            error_code: call.code(error),
            producer_epoch: -1,
            ..Default::default()
        },
    };
    call.after(&response, after)
}

pub(crate) fn describe(call: Call<'_>, request: DescribeProducersRequest) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partition_indexes.len()))?;
    let mut seen = std::collections::BTreeSet::new();
    let mut topics = request.topics;
    topics.retain(|topic| seen.insert(topic.name.clone()));
    let topics = call.broker.with(|core| {
        let topic = |topic: TopicRequest| {
            let partitions = each_once(topic.partition_indexes);
            let partitions = partitions
                .map(|index| partition(&call, core, &topic.name, index))
                .collect();
            TopicResponse {
                name: topic.name,
                partitions,
            }
        };
        topics.into_iter().map(topic).collect()
    });
    call.now(&DescribeProducersResponse {
        topics,
        ..Default::default()
    })
}

fn partition(call: &Call<'_>, core: &Core, topic: &str, partition_index: i32) -> PartitionResponse {
    let log = core
        .node()
        .topic_by_name(topic)
        .and_then(|topic| topic.log(partition_index));
    let Some(log) = log.and_then(|log| core.node().log(log)) else {
        let error_code = call.code(ErrorCode::UnknownTopicOrPartition);
        return PartitionResponse {
            partition_index,
            error_code,
            ..Default::default()
        };
    };
    let producers = log.producers().into_iter().map(|producer| ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: i32::from(producer.epoch),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: -1,
        current_txn_start_offset: -1,
    });
    PartitionResponse {
        partition_index,
        active_producers: producers.collect(),
        ..Default::default()
    }
}
