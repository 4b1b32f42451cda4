//! `anabranch group describe`, in the columns of Kafka's own tool, because scripts read them; slices stand behind.
//!
//! A partition that several members share has a row for each. Its offsets and its lag stand in the first of them only,
//! so that the sum of the column is the lag of the group.

use std::collections::BTreeMap;

use anabranch_server::admin::model;
use serde::Serialize;

use super::shares::{self, Part, Slices};
use super::{find, group_failure, no_group};
use crate::client::{Admin, GroupDescription, OffsetSpec, TopicPartition};
use crate::failure::Outcome;
use crate::output::{self, Format, Table, plural};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The groups to describe.
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
    /// Members instead of partitions.
    #[arg(long, conflicts_with = "state")]
    members: bool,
    /// State, coordinator and assignor instead of partitions.
    #[arg(long)]
    state: bool,
}

#[derive(Debug, Serialize)]
struct Group {
    group: String,
    state: String,
    r#type: String,
    assignor: String,
    coordinator: Option<String>,
    lag: i64,
    members: Vec<Member>,
    partitions: Vec<Partition>,
    /// Whether its partitions may be divided, if the broker can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    elastic: Option<model::Elastic>,
    /// What the administration API says about the group.
    #[serde(skip)]
    sliced: Option<model::Group>,
}

#[derive(Debug, Serialize)]
struct Member {
    consumer_id: String,
    instance_id: Option<String>,
    client_id: String,
    host: String,
    assignment: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Partition {
    topic: String,
    partition: i32,
    current_offset: Option<i64>,
    log_end_offset: Option<i64>,
    lag: Option<i64>,
    /// Positions in the list of members.
    #[serde(skip)]
    owners: Vec<usize>,
    /// The first of the owners.
    consumer_id: Option<String>,
    host: Option<String>,
    client_id: Option<String>,
    /// How the broker divides it, if it can tell.
    #[serde(flatten)]
    division: Option<Division>,
}

#[derive(Debug, Serialize)]
struct Division {
    form: model::Form,
    slices: Vec<model::Share>,
    transits: Vec<model::Transit>,
    loose: Vec<model::Loose>,
}

pub(crate) fn run(admin: &Admin, slices: &Slices, args: &Args, format: Format) -> Outcome {
    let mut failures = Vec::new();
    let mut groups = Vec::new();
    for name in &args.groups {
        match find(admin, name)? {
            Some(found) => groups.push(complete(admin, slices, found)?),
            None => failures.push(no_group(name)),
        }
    }
    match format {
        Format::Json => output::print_json(&groups)?,
        Format::Text => print_text(&groups, args)?,
    }
    crate::topic::merge(failures)
}

/// Adds committed offsets, the ends of the partitions, and slices.
fn complete(admin: &Admin, slices: &Slices, found: GroupDescription) -> Outcome<Group> {
    let committed = admin
        .committed(&found.group)?
        .map_err(|error| group_failure(&error, &found.group, "describe"))?;
    let mut rows: BTreeMap<TopicPartition, Partition> = BTreeMap::new();
    let row = |at: &TopicPartition| Partition {
        topic: at.topic.clone(),
        partition: at.partition,
        current_offset: None,
        log_end_offset: None,
        lag: None,
        owners: Vec::new(),
        consumer_id: None,
        host: None,
        client_id: None,
        division: None,
    };
    for one in committed.iter().filter(|one| one.offset >= 0) {
        rows.entry(one.at.clone())
            .or_insert_with(|| row(&one.at))
            .current_offset = Some(one.offset);
    }
    for (i, member) in found.members.iter().enumerate() {
        for at in &member.assignment {
            let row = rows.entry(at.clone()).or_insert_with(|| row(at));
            if row.owners.is_empty() {
                row.consumer_id = Some(member.consumer_id.clone());
                row.host = Some(member.host.clone());
                row.client_id = Some(member.client_id.clone());
            }
            row.owners.push(i);
        }
    }
    let wishes: Vec<_> = rows.keys().map(|at| (at.clone(), OffsetSpec::Latest)).collect();
    for end in admin.list_offsets(&wishes)? {
        if let Some(row) = rows.get_mut(&end.at).filter(|_| end.error.is_none()) {
            row.log_end_offset = Some(end.offset);
            row.lag = row.current_offset.map(|current| (end.offset - current).max(0));
        }
    }
    let sliced = slices.of_group(&found.group, &found.members);
    for one in sliced.iter().flat_map(|group| &group.partitions) {
        let at = TopicPartition {
            topic: one.topic.clone(),
            partition: one.partition,
        };
        if let Some(row) = rows.get_mut(&at) {
            divide(row, one);
        }
    }
    let member = |member: crate::client::GroupMember| Member {
        assignment: member
            .assignment
            .iter()
            .map(|at| format!("{}:{}", at.topic, at.partition))
            .collect(),
        consumer_id: member.consumer_id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        host: member.host,
    };
    Ok(Group {
        group: found.group,
        state: found.state,
        r#type: found.kind,
        assignor: found.assignor,
        coordinator: found.coordinator,
        lag: rows.values().filter_map(|row| row.lag).sum(),
        members: found.members.into_iter().map(member).collect(),
        partitions: rows.into_values().collect(),
        elastic: sliced.as_ref().map(|group| group.elastic.clone()),
        sliced,
    })
}

/// Adds how the broker divides a partition. The lag of a divided one is not the distance of two offsets: in front of the
/// committed one, members may be done with much of it.
fn divide(row: &mut Partition, known: &model::Partition) {
    if known.form == model::Form::Divided {
        row.lag = i64::try_from(known.lag).ok();
    }
    row.division = Some(Division {
        form: known.form,
        slices: known.shares.clone(),
        transits: known.transits.clone(),
        loose: known.loose.clone(),
    });
}

fn print_text(groups: &[Group], args: &Args) -> Outcome {
    for (i, group) in groups.iter().enumerate() {
        let table = if args.state {
            states(group)
        } else if args.members {
            members(group)
        } else {
            partitions(group)
        };
        let gap = if i == 0 { "" } else { "\n" };
        output::print(&format!("{gap}{}", table.render()))?;
        if group.members.is_empty() && !args.state {
            output::say(&format!("group {} has no active members", group.group));
        }
        if !args.state && !args.members && group.members.len() > 1 {
            output::say(&format!(
                "{}, lag {} in all",
                plural(group.members.len() as u64, "member"),
                group.lag
            ));
        }
    }
    Ok(())
}

fn partitions(group: &Group) -> Table {
    let mut headings = vec![
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ];
    if group.sliced.is_some() {
        headings.extend(shares::HEADINGS);
    }
    let mut table = Table::new(&headings);
    for row in &group.partitions {
        for (i, part) in parts_of(group, row).into_iter().enumerate() {
            let mut cells = vec![group.group.clone(), row.topic.clone(), row.partition.to_string()];
            cells.extend(if i == 0 {
                [row.current_offset, row.log_end_offset, row.lag].map(number)
            } else {
                [None; 3].map(number)
            });
            let member = part.member.as_ref();
            let known = member.and_then(|id| group.members.iter().find(|one| one.consumer_id == *id));
            cells.push(text(member));
            cells.push(text(known.map(|one| &one.host)));
            cells.push(text(known.map(|one| &one.client_id)));
            if group.sliced.is_some() {
                cells.extend(part.cells);
            }
            table.row(cells);
        }
    }
    let owns = |i: usize| group.partitions.iter().any(|row| row.owners.contains(&i));
    for (_, member) in group.members.iter().enumerate().filter(|(i, _)| !owns(*i)) {
        let mut cells = vec![group.group.clone()];
        cells.extend(std::iter::repeat_n("-".to_owned(), 5));
        cells.extend([
            member.consumer_id.clone(),
            member.host.clone(),
            member.client_id.clone(),
        ]);
        if let Some(sliced) = &group.sliced {
            let state = shares::state(sliced, &member.consumer_id);
            cells.extend(["-".to_owned(), "-".to_owned(), "-".to_owned(), state]);
        }
        table.row(cells);
    }
    table
}

/// The rows of a partition: its slices if the broker tells, else its owners; one without an owner if it has none.
fn parts_of(group: &Group, row: &Partition) -> Vec<Part> {
    let known = group.sliced.as_ref().and_then(|sliced| {
        let mut partitions = sliced.partitions.iter();
        let found = partitions.find(|one| one.topic == row.topic && one.partition == row.partition)?;
        Some(shares::parts(sliced, found))
    });
    if let Some(parts) = known.filter(|parts| !parts.is_empty()) {
        return parts;
    }
    let part = |member: Option<String>| Part {
        member,
        cells: std::array::from_fn(|_| "-".to_owned()),
    };
    if row.owners.is_empty() {
        return vec![part(None)];
    }
    let ids = row.owners.iter().filter_map(|i| group.members.get(*i));
    ids.map(|member| part(Some(member.consumer_id.clone()))).collect()
}

fn members(group: &Group) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
        "ASSIGNMENT",
    ]);
    for member in &group.members {
        table.row(vec![
            group.group.clone(),
            member.consumer_id.clone(),
            text(member.instance_id.as_ref()),
            member.host.clone(),
            member.client_id.clone(),
            member.assignment.len().to_string(),
            if member.assignment.is_empty() {
                "-".to_owned()
            } else {
                member.assignment.join(",")
            },
        ]);
    }
    table
}

fn states(group: &Group) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "COORDINATOR (ID)",
        "ASSIGNMENT-STRATEGY",
        "STATE",
        "#MEMBERS",
    ]);
    let assignor = if group.assignor.is_empty() {
        "-"
    } else {
        &group.assignor
    };
    table.row(vec![
        group.group.clone(),
        text(group.coordinator.as_ref()),
        assignor.to_owned(),
        group.state.clone(),
        group.members.len().to_string(),
    ]);
    table
}

fn number(value: Option<i64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn text(value: Option<&String>) -> String {
    value.map_or("-".to_owned(), String::clone)
}
