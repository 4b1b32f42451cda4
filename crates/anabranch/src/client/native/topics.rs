//! Topics, their configuration, and the nodes that hold them.

use std::ffi::{CString, c_char, c_int};

use rdkafka::bindings as sys;
use rdkafka::metadata::Metadata;
use serde::Serialize;

use super::memory::{Guard, copy_text, lent, topic_error};
use super::{Admin, ApiError, c_text, memory};
use crate::client::{Silence, metadata};
use crate::failure::{Failure, Outcome};

/// A topic to create.
#[derive(Debug, Clone)]
pub(crate) struct NewTopic {
    /// Its name.
    pub(crate) name: String,
    /// How many partitions; `None` leaves it to the broker.
    pub(crate) partitions: Option<i32>,
    /// How many replicas; `None` leaves it to the broker.
    pub(crate) replicas: Option<i32>,
    /// Settings of its own.
    pub(crate) config: Vec<(String, String)>,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Node {
    pub(crate) id: i32,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What the broker says about a topic.
#[derive(Debug, Clone)]
pub(crate) struct TopicDescription {
    pub(crate) name: String,
    /// The id, in the base 64 of Kafka's tools.
    pub(crate) id: String,
    pub(crate) internal: bool,
    pub(crate) partitions: Vec<PartitionDescription>,
}

/// What the broker says about a partition.
#[derive(Debug, Clone)]
pub(crate) struct PartitionDescription {
    pub(crate) partition: i32,
    /// `None` while there is no leader.
    pub(crate) leader: Option<i32>,
    pub(crate) replicas: Vec<i32>,
    pub(crate) in_sync: Vec<i32>,
}

/// The result for each name of a request.
pub(super) type PerName<T = ()> = Vec<(String, Result<T, ApiError>)>;

impl Admin {
    /// The names of all topics.
    pub(crate) fn topic_names(&self) -> Outcome<Vec<String>> {
        let metadata = self.metadata()?;
        let topics = metadata.topics().iter();
        Ok(topics.map(|topic| topic.name().to_owned()).collect())
    }

    /// The nodes at the addresses that clients are told, whether these lead anywhere or not: the answer of the broker that
    /// was named. [`Admin::describe_cluster`] goes to one of these addresses instead.
    pub(crate) fn told_nodes(&self) -> Outcome<Vec<Node>> {
        let metadata = self.metadata()?;
        let nodes = metadata.brokers().iter().map(|broker| Node {
            id: broker.id(),
            host: broker.host().to_owned(),
            port: u16::try_from(broker.port()).unwrap_or(0),
        });
        Ok(nodes.collect())
    }

    fn metadata(&self) -> Outcome<Metadata> {
        let reason = || {
            self.note_connection_errors();
            self.client.context().last_error()
        };
        metadata(&self.client, None, &self.broker, self.timeout, reason).map_err(|silence| match silence {
            Silence::Foreign(failure) => failure,
            Silence::Failed(error) => {
                self.note_connection_errors();
                let code = error.rdkafka_error_code().map_or(-1, |code| code as i32);
                self.request_failed(&ApiError {
                    code,
                    text: error.to_string(),
                })
            }
        })
    }

    /// Creates topics; each succeeds or fails by itself.
    pub(crate) fn create_topics(&self, topics: &[NewTopic]) -> Outcome<PerName> {
        let guards: Vec<Guard<_>> = topics.iter().map(new_topic).collect::<Outcome<_>>()?;
        let mut objects: Vec<*mut _> = guards.iter().map(Guard::get).collect();
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATETOPICS;
        self.request(
            operation,
            // SAFETY: the array holds live objects, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_CreateTopics(rk, objects.as_mut_ptr(), objects.len(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_CreateTopics_result(event), 0);
                topic_results(
                    sys::rd_kafka_CreateTopics_result_topics(result, &mut count),
                    count,
                )
            },
        )
    }

    /// Deletes topics; each succeeds or fails by itself.
    pub(crate) fn delete_topics(&self, names: &[String]) -> Outcome<PerName> {
        let mut guards = Vec::new();
        for name in names {
            let name = c_text(name)?;
            // SAFETY: the name lives during the call; the guard owns the new object.
            guards.push(unsafe {
                Guard::new(
                    sys::rd_kafka_DeleteTopic_new(name.as_ptr()),
                    sys::rd_kafka_DeleteTopic_destroy,
                )?
            });
        }
        let mut objects: Vec<*mut _> = guards.iter().map(Guard::get).collect();
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETETOPICS,
            // SAFETY: the array holds live objects, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_DeleteTopics(rk, objects.as_mut_ptr(), objects.len(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DeleteTopics_result(event), 0);
                topic_results(
                    sys::rd_kafka_DeleteTopics_result_topics(result, &mut count),
                    count,
                )
            },
        )
    }

    /// Raises a topic's number of partitions to `total`.
    pub(crate) fn create_partitions(&self, name: &str, total: usize) -> Outcome<PerName> {
        let name = c_text(name)?;
        let mut reason = [0; 256];
        // SAFETY: name and buffer live during the call; the guard owns the new object.
        let partitions = unsafe {
            let new = sys::rd_kafka_NewPartitions_new(
                name.as_ptr(),
                total,
                reason.as_mut_ptr().cast(),
                reason.len(),
            );
            Guard::new(new, sys::rd_kafka_NewPartitions_destroy)?
        };
        let mut objects = [partitions.get()];
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATEPARTITIONS,
            // SAFETY: the array holds a live object, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_CreatePartitions(rk, objects.as_mut_ptr(), objects.len(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_CreatePartitions_result(event), 0);
                topic_results(
                    sys::rd_kafka_CreatePartitions_result_topics(result, &mut count),
                    count,
                )
            },
        )
    }

    /// Describes topics; an unknown one is an error of its own.
    pub(crate) fn describe_topics(&self, names: &[String]) -> Outcome<PerName<TopicDescription>> {
        let names: Vec<CString> = names.iter().map(|name| c_text(name)).collect::<Outcome<_>>()?;
        let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: the names live during the call, which copies them; the guard owns the collection.
        let collection = unsafe {
            let new = sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            Guard::new(new, sys::rd_kafka_TopicCollection_destroy)?
        };
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
            // SAFETY: the collection is live, and librdkafka copies it before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_DescribeTopics(rk, collection.get(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DescribeTopics_result(event), 0);
                let topics = lent(
                    sys::rd_kafka_DescribeTopics_result_topics(result, &mut count),
                    count,
                );
                topics.iter().map(|topic| describe_topic(*topic)).collect()
            },
        )
    }

    /// The cluster's id, its nodes, and the id of the controller.
    pub(crate) fn describe_cluster(&self) -> Outcome<(String, Vec<Node>, Option<i32>)> {
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER,
            // SAFETY: client, options and queue are live for the call.
            |rk, options, queue| unsafe { sys::rd_kafka_DescribeCluster(rk, options, queue) },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DescribeCluster_result(event), 0);
                let nodes = lent(
                    sys::rd_kafka_DescribeCluster_result_nodes(result, &mut count),
                    count,
                );
                let controller = sys::rd_kafka_DescribeCluster_result_controller(result);
                (
                    copy_text(sys::rd_kafka_DescribeCluster_result_cluster_id(result)),
                    nodes.iter().map(|one| node(*one)).collect(),
                    (!controller.is_null()).then(|| sys::rd_kafka_Node_id(controller)),
                )
            },
        )
    }
}

fn new_topic(topic: &NewTopic) -> Outcome<Guard<sys::rd_kafka_NewTopic_t>> {
    let name = c_text(&topic.name)?;
    let mut reason = [0; 256];
    let (partitions, replicas) = (topic.partitions.unwrap_or(-1), topic.replicas.unwrap_or(-1));
    // SAFETY: name and buffer live during the call; the object is null or ours, and the guard takes it.
    let object = unsafe {
        sys::rd_kafka_NewTopic_new(
            name.as_ptr(),
            partitions,
            replicas,
            reason.as_mut_ptr(),
            reason.len(),
        )
    };
    if object.is_null() {
        // SAFETY: librdkafka has written a string that ends with a zero byte.
        let reason = unsafe { copy_text(reason.as_ptr()) };
        return Err(Failure::usage(format!("topic \"{}\": {reason}", topic.name)));
    }
    // SAFETY: the object was just made and nobody else frees it.
    let object = unsafe { Guard::new(object, sys::rd_kafka_NewTopic_destroy)? };
    for (key, value) in &topic.config {
        let (name, value) = (c_text(key)?, c_text(value)?);
        // SAFETY: the object is live; the strings live during the call, which copies them.
        let code = unsafe {
            sys::rd_kafka_NewTopic_set_config(object.get(), name.as_ptr(), value.as_ptr()) as c_int
        };
        if code != 0 {
            return Err(Failure::usage(format!(
                "topic setting {key}: the Kafka client library refused it"
            )));
        }
    }
    Ok(object)
}

/// # Safety
/// `array` is null or holds `count` live results.
unsafe fn topic_results(array: *mut *const sys::rd_kafka_topic_result_t, count: usize) -> PerName {
    // SAFETY: the caller vouches for the array; names and errors are copied.
    unsafe {
        let one = |result: &*const sys::rd_kafka_topic_result_t| {
            let name = copy_text(sys::rd_kafka_topic_result_name(*result));
            (name, topic_error(*result).map_or(Ok(()), Err))
        };
        lent(array, count).iter().map(one).collect()
    }
}

/// # Safety
/// `topic` is live.
unsafe fn describe_topic(
    topic: *const sys::rd_kafka_TopicDescription_t,
) -> (String, Result<TopicDescription, ApiError>) {
    // SAFETY: the caller vouches for the topic, and with it for all that it lends; everything is copied.
    unsafe {
        let name = copy_text(sys::rd_kafka_TopicDescription_name(topic));
        if let Some(error) = memory::api_error(sys::rd_kafka_TopicDescription_error(topic)) {
            return (name, Err(error));
        }
        let mut count = 0;
        let partitions = lent(
            sys::rd_kafka_TopicDescription_partitions(topic, &mut count),
            count,
        );
        let id = sys::rd_kafka_TopicDescription_topic_id(topic);
        let id = if id.is_null() {
            String::new()
        } else {
            copy_text(sys::rd_kafka_Uuid_base64str(id))
                .replace('+', "-")
                .replace('/', "_")
        };
        let description = TopicDescription {
            name: name.clone(),
            id,
            internal: sys::rd_kafka_TopicDescription_is_internal(topic) != 0,
            partitions: partitions.iter().map(|one| describe_partition(*one)).collect(),
        };
        (name, Ok(description))
    }
}

/// # Safety
/// `partition` is live.
unsafe fn describe_partition(partition: *const sys::rd_kafka_TopicPartitionInfo_t) -> PartitionDescription {
    // SAFETY: the caller vouches for the partition, and with it for the nodes that it lends; all is copied.
    unsafe {
        let leader = sys::rd_kafka_TopicPartitionInfo_leader(partition);
        let (mut replica_count, mut in_sync_count) = (0, 0);
        let replicas = sys::rd_kafka_TopicPartitionInfo_replicas(partition, &mut replica_count);
        let in_sync = sys::rd_kafka_TopicPartitionInfo_isr(partition, &mut in_sync_count);
        let ids = |nodes: &[*const sys::rd_kafka_Node_t]| nodes.iter().map(|one| node(*one).id).collect();
        PartitionDescription {
            partition: sys::rd_kafka_TopicPartitionInfo_partition(partition),
            leader: (!leader.is_null()).then(|| sys::rd_kafka_Node_id(leader)),
            replicas: ids(lent(replicas, replica_count)),
            in_sync: ids(lent(in_sync, in_sync_count)),
        }
    }
}

/// # Safety
/// `object` is live.
unsafe fn node(object: *const sys::rd_kafka_Node_t) -> Node {
    // SAFETY: the caller vouches for the node; its host is copied.
    unsafe {
        Node {
            id: sys::rd_kafka_Node_id(object),
            host: copy_text(sys::rd_kafka_Node_host(object)),
            port: sys::rd_kafka_Node_port(object),
        }
    }
}
