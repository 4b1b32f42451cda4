//! The description of the API for other programs, `docs/openapi.json`: made from the types that are sent and the routes that
//! are served, and held against the file, so that neither has anything that the other has not.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::model::{self, Decisions, Order, Queues};
use super::{events, groups, messages, routes, topics};

/// What one path does with one method.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: fn(&mut SchemaGenerator) -> Vec<Value>,
    body: Option<fn(&mut SchemaGenerator) -> Schema>,
    answer: fn(&mut SchemaGenerator) -> Schema,
}

fn get<A: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "get",
        path,
        summary,
        query: |_| Vec::new(),
        body: None,
        answer: SchemaGenerator::subschema_for::<A>,
    }
}

fn post<A: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "post",
        ..get::<A>(path, summary)
    }
}

impl Operation {
    fn query<Q: JsonSchema>(self) -> Self {
        Self {
            query: parameters::<Q>,
            ..self
        }
    }

    fn body<B: JsonSchema>(self) -> Self {
        Self {
            body: Some(SchemaGenerator::subschema_for::<B>),
            ..self
        }
    }
}

/// The fields of a struct as parameters of a query. Without descriptions of types that nobody but the query has.
fn parameters<Q: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Value> {
    let schema = Q::json_schema(generator).to_value();
    let fields = schema["properties"].as_object().expect("a query is a struct");
    let parameter = |(name, field): (&String, &Value)| {
        let mut schema = field.clone();
        let description = schema
            .as_object_mut()
            .and_then(|schema| schema.remove("description"));
        json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema })
    };
    fields.iter().map(parameter).collect()
}

fn operations() -> Vec<Operation> {
    vec![
        get::<model::Overview>("/api/v1/overview", "All topics and groups, with rates and what is unread")
            .query::<routes::Rows>(),
        get::<model::Group>("/api/v1/groups/{group}", "A group: members, partitions, who holds which slots")
            .query::<groups::How>(),
        get::<model::Offsets>("/api/v1/groups/{group}/offsets", "What a group has committed"),
        get::<Decisions>("/api/v1/groups/{group}/plan", "What the planner would decide now; nothing happens"),
        get::<model::Topic>("/api/v1/topics/{topic}", "A topic: partitions, sizes, configurations, readers")
            .query::<topics::Part>(),
        get::<model::Messages>("/api/v1/topics/{topic}/messages", "Records of a partition")
            .query::<messages::Wanted>(),
        get::<Queues>("/api/v1/topics/{topic}/queues", "A topic in queue mode"),
        get::<Decisions>("/api/v1/decisions", "What was decided and refused, waiting for the first if asked to")
            .query::<routes::Wanted>(),
        get::<String>(
            "/api/v1/events",
            "All of it as it changes, as server-sent events: `overview` (Overview) every second, `group` (Group) every second and \
             after a decision, `gone` (a group's id), `decisions` (Decisions)",
        )
        .query::<events::Watch>(),
        get::<model::Counters>("/api/v1/counters", "What was counted since the process began"),
        post::<Decisions>("/api/v1/groups/{group}/split", "Has the planner divide a partition further").body::<Order>(),
        post::<Decisions>("/api/v1/groups/{group}/merge", "Has the shares of a partition flow together").body::<Order>(),
        post::<Decisions>("/api/v1/groups/{group}/pause", "Has the planner leave a group alone"),
        post::<Decisions>("/api/v1/groups/{group}/resume", "Has the planner go on with a group"),
        post::<model::Reset>(
            "/api/v1/groups/{group}/reset",
            "Sets the committed offsets of a group without members, or says what that would do",
        )
        .body::<model::ResetOrder>(),
        post::<Queues>("/api/v1/topics/{topic}/queues/wish", "Says how many queues a topic is to have")
            .body::<model::QueueWish>(),
        post::<Queues>("/api/v1/topics/{topic}/queues/force", "Takes queues away without waiting until they are read"),
    ]
}

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = json!({});
    for operation in operations() {
        paths[operation.path][operation.method] = described(&operation, &mut generator);
    }
    generator.subschema_for::<model::Refusal>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Anabranch administration API",
            "version": "1",
            "description": "Reading needs no credentials. Orders (POST) are taken from this machine, and from elsewhere with the token of \
                            the setting admin.token.file; never from web pages of another origin. Requests whose Host is no address, no \
                            localhost, no name without a dot and not in the setting admin.hosts are answered with 421. Fields that a \
                            reader does not know are to be ignored.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let names = operation.path.split(['{', '}']).skip(1).step_by(2);
    let mut parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend((operation.query)(generator));
    let kind = match operation.path {
        "/api/v1/events" => "text/event-stream",
        _ => "application/json",
    };
    let refusal = json!({
        "description": "Why not",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Refusal" } } },
    });
    let answer = (operation.answer)(generator);
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "Done", "content": { kind: { "schema": answer } } },
            "default": refusal,
        },
    });
    if operation.method == "post" {
        described["security"] = json!([{}, { "token": [] }]);
    }
    if let Some(body) = operation.body {
        let schema = body(generator);
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    described
}

#[test]
fn every_route_is_described_and_every_description_has_a_route() {
    let described: BTreeSet<(&str, &str)> = operations().iter().map(|one| (one.method, one.path)).collect();
    let reads = routes::reads().into_iter().map(|(path, _)| ("get", path));
    let orders = routes::orders().into_iter().map(|(path, _)| ("post", path));
    let served: BTreeSet<(&str, &str)> = reads.chain(orders).collect();
    assert_eq!(described, served);
    assert_eq!(described.len(), operations().len(), "a path is described twice");
}

#[test]
fn the_description_of_the_api_is_the_file() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let made = format!("{:#}\n", document());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        made == kept,
        "docs/openapi.json is not what the server serves; run `cargo xtask docs`"
    );
}

/// Without words for its fields the file would be of no use.
#[test]
fn every_field_has_words() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "{name} has no words");
        for (field, words) in schema["properties"].as_object().into_iter().flatten() {
            assert!(words["description"].is_string(), "{name}.{field} has no words");
        }
    }
}
