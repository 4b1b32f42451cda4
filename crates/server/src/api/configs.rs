//! Configurations: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

use std::collections::BTreeSet;

use anabranch_core::Refused;
use anabranch_core::ids::Lsn;
use anabranch_core::meta::Command;
use anabranch_core::node::{AlterConfig, AlterOp, ConfigEntry};
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use anabranch_wire::msg::list_config_resources::ConfigResource;
use anabranch_wire::msg::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, ListConfigResourcesRequest,
    ListConfigResourcesResponse, alter_configs, incremental_alter_configs,
};

use super::check_partitions;
use crate::broker::Update;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// Kafka's numbers of resource types.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

pub(crate) fn describe(call: Call<'_>, request: DescribeConfigsRequest) -> Result<Pending, Close> {
    check_partitions(std::iter::once(request.resources.len()))?;
    let mut seen = BTreeSet::new();
    let mut resources = request.resources;
    resources.retain(|one| seen.insert((one.resource_type, one.resource_name.clone())));
    let mut latest = Lsn(0);
    let mut results = Vec::with_capacity(resources.len());
    for resource in resources {
        // One short look each: tools ask for hundreds at once, with all their texts.
        let (entries, after) = call.broker.update(|update| {
            let node = update.node();
            let found = node.resource(resource.resource_type, &resource.resource_name)?;
            node.describe_configs(&found, resource.configuration_keys.as_deref())
        });
        latest = latest.max(after);
        let shown = |one| entry(one, request.include_synonyms, request.include_documentation);
        results.push(described(
            &call,
            resource,
            entries.map(|all| all.into_iter().map(shown).collect()),
        ));
    }
    call.after(
        &DescribeConfigsResponse {
            results,
            ..Default::default()
        },
        latest,
    )
}

fn described(
    call: &Call<'_>,
    resource: DescribeConfigsResource,
    entries: Result<Vec<DescribeConfigsResourceResult>, Refused>,
) -> DescribeConfigsResult {
    let (configs, error_code, error_message) = match entries {
        Ok(configs) => (configs, 0, None),
        Err(refused) => (
            Vec::new(),
            call.code(refused.code()),
            Some(refused.message().to_owned()),
        ),
    };
    DescribeConfigsResult {
        error_code,
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        configs,
    }
}

fn entry(entry: ConfigEntry, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult {
    let synonym = |one: anabranch_core::config::Candidate| DescribeConfigsSynonym {
        name: one.name.to_owned(),
        value: Some(one.raw),
        source: one.source as i8,
    };
    DescribeConfigsResourceResult {
        name: entry.name.to_owned(),
        value: entry.value,
        read_only: entry.read_only,
        config_source: entry.source as i8,
        is_sensitive: entry.sensitive,
        synonyms: if synonyms {
            entry.synonyms.into_iter().map(synonym).collect()
        } else {
            Vec::new()
        },
        config_type: entry.kind as i8,
        documentation: documentation.then(|| entry.doc.to_owned()),
    }
}

/// Decides with `decide` and, unless this is a rehearsal, makes the change.
fn change(
    call: &Call<'_>,
    update: &mut Update<'_>,
    validate_only: bool,
    decide: impl FnOnce(&Update<'_>) -> Result<Vec<Command>, Refused>,
) -> (i16, Option<String>) {
    let decided = match call.is_draining() {
        true => Err(Refused::new(
            ErrorCode::NotController,
            "the broker is shutting down",
        )),
        false => decide(update),
    };
    match decided {
        Ok(commands) => {
            if !validate_only {
                update.run(commands);
            }
            (0, None)
        }
        Err(refused) => (call.code(refused.code()), Some(refused.message().to_owned())),
    }
}

pub(crate) fn alter(call: Call<'_>, request: AlterConfigsRequest) -> Result<Pending, Close> {
    check_partitions(request.resources.iter().map(|one| one.configs.len()))?;
    let (responses, after) = call.broker.update(|update| {
        let alter = |resource: alter_configs::AlterConfigsResource| {
            let all: Vec<_> = resource
                .configs
                .into_iter()
                .map(|config| (config.name, config.value))
                .collect();
            let (kind, name) = (resource.resource_type, resource.resource_name);
            let (error_code, error_message) = change(&call, update, request.validate_only, |update| {
                update
                    .node()
                    .alter_configs(&update.node().resource(kind, &name)?, &all)
            });
            alter_configs::AlterConfigsResourceResponse {
                error_code,
                error_message,
                resource_type: kind,
                resource_name: name,
            }
        };
        request.resources.into_iter().map(alter).collect()
    });
    call.after(
        &AlterConfigsResponse {
            responses,
            ..Default::default()
        },
        after,
    )
}

pub(crate) fn incremental_alter(
    call: Call<'_>,
    request: IncrementalAlterConfigsRequest,
) -> Result<Pending, Close> {
    check_partitions(request.resources.iter().map(|one| one.configs.len()))?;
    let (responses, after) = call.broker.update(|update| {
        let alter = |resource: incremental_alter_configs::AlterConfigsResource| {
            let (kind, name) = (resource.resource_type, resource.resource_name);
            let (error_code, error_message) = change(&call, update, request.validate_only, |update| {
                let changes = resource.configs.into_iter().map(|config| {
                    let op = AlterOp::from_i8(config.config_operation)?;
                    Ok(AlterConfig {
                        name: config.name,
                        op,
                        value: config.value,
                    })
                });
                let changes: Vec<_> = changes.collect::<Result<_, Refused>>()?;
                update
                    .node()
                    .incremental_alter_configs(&update.node().resource(kind, &name)?, &changes)
            });
            incremental_alter_configs::AlterConfigsResourceResponse {
                error_code,
                error_message,
                resource_type: kind,
                resource_name: name,
            }
        };
        request.resources.into_iter().map(alter).collect()
    });
    call.after(
        &IncrementalAlterConfigsResponse {
            responses,
            ..Default::default()
        },
        after,
    )
}

pub(crate) fn list_resources(call: Call<'_>, request: ListConfigResourcesRequest) -> Result<Pending, Close> {
    // Version 0 knows client metrics only, of which there are none.
    if call.version() == 0 {
        return call.now(&ListConfigResourcesResponse::default());
    }
    let mut types = request.resource_types;
    if types.is_empty() {
        types = vec![TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
    }
    if !types
        .iter()
        .all(|kind| matches!(*kind, TOPIC | BROKER | BROKER_LOGGER | CLIENT_METRICS | GROUP))
    {
        let error_code = call.code(ErrorCode::UnsupportedVersion);
        return call.now(&ListConfigResourcesResponse {
            error_code,
            ..Default::default()
        });
    }
    types.sort_unstable();
    types.dedup();
    let (config_resources, after) = call.broker.update(|update| {
        let mut all = Vec::new();
        for resource_type in types {
            let mut add = |name: &str| {
                all.push(ConfigResource {
                    resource_name: name.to_owned(),
                    resource_type,
                });
            };
            match resource_type {
                TOPIC => update.node().topics().for_each(|topic| add(&topic.name)),
                BROKER => add(&update.node().node_id().to_string()),
                GROUP => update.node().state().groups_with_configs().for_each(add),
                _ => {}
            }
        }
        all
    });
    call.after(
        &ListConfigResourcesResponse {
            config_resources,
            ..Default::default()
        },
        after,
    )
}
