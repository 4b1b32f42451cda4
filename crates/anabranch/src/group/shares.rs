//! The slices of a group for `group describe`, where the broker can tell: an addition, never a condition.

use std::time::Duration;

use anabranch_server::admin::model::{self, Form};

use crate::client::{AdminApi, AdminUrl, Connection, GroupMember};
use crate::failure::Outcome;
use crate::names::name_of;
use crate::output;

/// How long a listener that nobody named may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where slices are asked for.
pub(super) struct Slices {
    /// `None`: nowhere, since nobody named a listener and the broker is on another machine than the usual one.
    api: Option<AdminApi>,
    /// Somebody named the listener, so not reaching it is worth a word.
    given: bool,
}

impl Slices {
    /// The listener that was named, else the usual one if the broker is on this machine, too.
    pub(super) fn of(admin: &AdminUrl, connection: &Connection) -> Outcome<Slices> {
        let given = admin.is_given();
        let api = if given || connection.is_local() {
            let api = admin.open()?;
            Some(if given { api } else { api.with_patience(PATIENCE) })
        } else {
            None
        };
        Ok(Slices { api, given })
    }

    /// The group as the broker's administration API shows it; `None` if there is none, or none for this broker.
    pub(super) fn of_group(&self, group: &str, members: &[GroupMember]) -> Option<model::Group> {
        let found = match self.api.as_ref()?.group(group) {
            Ok(found) => found,
            Err(failure) => {
                if self.given {
                    output::say(&format!("no slices are shown: {failure}"));
                }
                return None;
            }
        };
        // The usual listener may be that of another broker on this machine, with a group of the same name.
        let same = |one: &model::Member| members.iter().any(|other| other.consumer_id == one.member);
        (self.given || found.members.iter().any(same)).then_some(found)
    }
}

/// A part of a partition in the table: who has it, and the last four cells.
pub(super) struct Part {
    /// Id of the member; `None` if nobody holds the part.
    pub(super) member: Option<String>,
    /// SLICE, SLOTS, REMAINING, STATE.
    pub(super) cells: [String; 4],
}

/// The headings of [`Part::cells`].
pub(super) const HEADINGS: [&str; 4] = ["SLICE", "SLOTS", "REMAINING", "STATE"];

/// The parts of a partition, shares first.
pub(super) fn parts(group: &model::Group, partition: &model::Partition) -> Vec<Part> {
    let held = partition.shares.iter().map(|share| {
        let slice = match partition.form {
            Form::Plain => "-".to_owned(),
            Form::Divided => share.slice.to_string(),
        };
        let about = if share.remaining_exact { "" } else { "~" };
        let remaining = format!("{about}{}", share.remaining);
        Part {
            member: Some(share.member.clone()),
            cells: [
                slice,
                share.slots.to_string(),
                remaining,
                state(group, &share.member),
            ],
        }
    });
    let moving = partition.transits.iter().map(|transit| {
        let to = transit.to.as_deref();
        let to = to.map_or_else(|| "nobody yet".to_owned(), |to| name_of(group, to));
        Part {
            member: Some(transit.from.clone()),
            cells: cells(transit.slots, transit.remaining, format!("moving to {to}")),
        }
    });
    let loose = partition.loose.iter().map(|loose| {
        let to = loose.to.as_deref();
        let to = to.map_or_else(|| "a member".to_owned(), |to| name_of(group, to));
        Part {
            member: None,
            cells: cells(loose.slots, loose.remaining, format!("waiting for {to}")),
        }
    });
    held.chain(moving).chain(loose).collect()
}

fn cells(slots: u32, remaining: u64, state: String) -> [String; 4] {
    ["-".to_owned(), slots.to_string(), remaining.to_string(), state]
}

/// What a member is doing, in a word.
pub(super) fn state(group: &model::Group, member: &str) -> String {
    let found = group.members.iter().find(|one| one.member == member);
    found.map_or("-", |one| one.state.name()).to_owned()
}
