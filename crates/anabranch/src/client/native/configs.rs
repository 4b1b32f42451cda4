//! Configuration of topics and brokers.

use rdkafka::bindings as sys;
use serde::Serialize;

use super::memory::{self, Guard, copy_text, entry_source, lent, resource_error};
use super::topics::PerName;
use super::{Admin, ApiError, c_text};
use crate::failure::{Failure, Outcome};

/// One configuration value of a topic.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ConfigEntry {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether it was set for this topic, and not for the broker or nowhere.
    pub(crate) of_topic: bool,
    /// Whether nobody set it.
    pub(crate) default: bool,
}

/// A change of one configuration value: set, or back to the broker's.
#[derive(Debug, Clone)]
pub(crate) struct ConfigChange {
    pub(crate) name: String,
    /// `None` removes the topic's own value.
    pub(crate) value: Option<String>,
}

/// Kafka's number for "set for this topic" among the origins of a configuration value.
const SOURCE_TOPIC: i32 = sys::rd_kafka_ConfigSource_t::RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG as i32;

/// Kafka's number for "nobody set it".
const SOURCE_DEFAULT: i32 = sys::rd_kafka_ConfigSource_t::RD_KAFKA_CONFIG_SOURCE_DEFAULT_CONFIG as i32;

impl Admin {
    /// The configuration of topics; an unknown one is an error of its own.
    pub(crate) fn topic_configs(&self, names: &[String]) -> Outcome<PerName<Vec<ConfigEntry>>> {
        let topic = sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC;
        self.describe_configs(topic, names)
    }

    /// One setting of a broker; `None` if the broker has no such setting or does not show it.
    pub(crate) fn broker_config(&self, id: i32, name: &str) -> Outcome<Option<String>> {
        let broker = sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_BROKER;
        let described = self.describe_configs(broker, &[id.to_string()])?;
        let mut entries = described
            .into_iter()
            .filter_map(|(_, entries)| entries.ok())
            .flatten();
        Ok(entries.find(|entry| entry.name == name).map(|entry| entry.value))
    }

    fn describe_configs(
        &self,
        kind: sys::rd_kafka_ResourceType_t,
        names: &[String],
    ) -> Outcome<PerName<Vec<ConfigEntry>>> {
        let guards: Vec<Guard<_>> = names
            .iter()
            .map(|name| resource(kind, name))
            .collect::<Outcome<_>>()?;
        let mut objects: Vec<*mut _> = guards.iter().map(Guard::get).collect();
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
            // SAFETY: the array holds live objects, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_DescribeConfigs(rk, objects.as_mut_ptr(), objects.len(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DescribeConfigs_result(event), 0);
                let resources = lent(
                    sys::rd_kafka_DescribeConfigs_result_resources(result, &mut count),
                    count,
                );
                resources
                    .iter()
                    .map(|resource| describe_resource(*resource))
                    .collect()
            },
        )
    }

    /// Changes settings of one topic, all or none.
    pub(crate) fn alter_topic(&self, name: &str, changes: &[ConfigChange]) -> Outcome<Result<(), ApiError>> {
        let resource = resource(sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC, name)?;
        for change in changes {
            let key = c_text(&change.name)?;
            let value = change.value.as_deref().map(c_text).transpose()?;
            let (operation, value) = match &value {
                Some(value) => (
                    sys::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET,
                    value.as_ptr(),
                ),
                None => {
                    let delete = sys::rd_kafka_AlterConfigOpType_t::RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE;
                    (delete, std::ptr::null())
                }
            };
            // SAFETY: key and value live during the call, which copies them; a returned error is freed by its guard.
            let refused = unsafe {
                let error = sys::rd_kafka_ConfigResource_add_incremental_config(
                    resource.get(),
                    key.as_ptr(),
                    operation,
                    value,
                );
                let refused = memory::api_error(error);
                if !error.is_null() {
                    sys::rd_kafka_error_destroy(error);
                }
                refused
            };
            if let Some(refused) = refused {
                return Err(Failure::usage(format!("{}: {}", change.name, refused.sentence())));
            }
        }
        let mut objects = [resource.get()];
        let results: PerName = self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS,
            // SAFETY: the array holds a live object, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_IncrementalAlterConfigs(
                    rk,
                    objects.as_mut_ptr(),
                    objects.len(),
                    options,
                    queue,
                );
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_IncrementalAlterConfigs_result(event), 0);
                let resources = lent(
                    sys::rd_kafka_IncrementalAlterConfigs_result_resources(result, &mut count),
                    count,
                );
                resources
                    .iter()
                    .map(|one| (String::new(), resource_error(*one).map_or(Ok(()), Err)))
                    .collect()
            },
        )?;
        Ok(results
            .into_iter()
            .map(|(_, result)| result)
            .find(Result::is_err)
            .unwrap_or(Ok(())))
    }
}

fn resource(
    kind: sys::rd_kafka_ResourceType_t,
    name: &str,
) -> Outcome<Guard<sys::rd_kafka_ConfigResource_t>> {
    let name = c_text(name)?;
    // SAFETY: the name lives during the call, which copies it; the guard owns the new object.
    unsafe {
        Guard::new(
            sys::rd_kafka_ConfigResource_new(kind, name.as_ptr()),
            sys::rd_kafka_ConfigResource_destroy,
        )
    }
}

/// # Safety
/// `resource` is live.
unsafe fn describe_resource(
    resource: *const sys::rd_kafka_ConfigResource_t,
) -> (String, Result<Vec<ConfigEntry>, ApiError>) {
    // SAFETY: the caller vouches for the resource, and with it for the entries that it lends; all is copied.
    unsafe {
        let name = copy_text(sys::rd_kafka_ConfigResource_name(resource));
        if let Some(error) = resource_error(resource) {
            return (name, Err(error));
        }
        let mut count = 0;
        let entries = lent(sys::rd_kafka_ConfigResource_configs(resource, &mut count), count);
        let entry = |entry: &*const sys::rd_kafka_ConfigEntry_t| {
            let source = entry_source(*entry);
            ConfigEntry {
                name: copy_text(sys::rd_kafka_ConfigEntry_name(*entry)),
                value: copy_text(sys::rd_kafka_ConfigEntry_value(*entry)),
                of_topic: source == SOURCE_TOPIC,
                default: source == SOURCE_DEFAULT,
            }
        };
        (name, Ok(entries.iter().map(entry).collect()))
    }
}
