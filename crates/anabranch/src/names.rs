//! What members are called in texts for people: their ids are longer than a screen is wide.
//!
//! A member goes by its client id if no other member of the group has the same; else, and when it is gone, by that and the
//! end of its own id.

use std::sync::LazyLock;

use anabranch_server::admin::model::Group;
use regex::{Captures, Regex};

use crate::top::words::cut;

/// Letters of an id that tell members with one client id apart.
const END: usize = 6;

/// An id as brokers make it: the client id and a UUID. `None` only if the expression were wrong, which a test would see.
static MEMBER_ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    Regex::new(&format!(r"([\w.\-]+)-{uuid}")).ok()
});

/// The name of a member.
pub(crate) fn name_of(group: &Group, member: &str) -> String {
    let found = group.members.iter().find(|one| one.member == member);
    let client_id = found.map(|found| found.client_id.as_str()).unwrap_or_default();
    let same = group.members.iter().filter(|one| one.client_id == client_id);
    match client_id {
        "" => short(member),
        _ if same.count() == 1 => client_id.to_owned(),
        _ => with_end(client_id, member),
    }
}

/// A text with names in the place of ids.
pub(crate) fn with_names(group: &Group, text: &str) -> String {
    let members = group.members.iter();
    let text = members.fold(text.to_owned(), |text, one| {
        text.replace(&one.member, &name_of(group, &one.member))
    });
    short(&text)
}

/// A text with the ids in it, of whomever, made short.
fn short(text: &str) -> String {
    let Some(ids) = MEMBER_ID.as_ref() else {
        return text.to_owned();
    };
    let name = |id: &Captures<'_>| with_end(id.get(1).map_or("", |client_id| client_id.as_str()), &id[0]);
    ids.replace_all(text, name).into_owned()
}

fn with_end(client_id: &str, member: &str) -> String {
    let length = member.chars().count();
    let end: String = member.chars().skip(length.saturating_sub(END)).collect();
    format!("{}..{end}", cut(client_id, 12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_server::admin::model::{Elastic, Member, MemberState};

    const FIRST: &str = "app-577190b5-4703-d08e-3ae0-31457d114271";
    const SECOND: &str = "app-66af0abd-d731-9544-2777-eb5fcd205f1d";

    fn group(members: &[(&str, &str)]) -> Group {
        let member = |(id, client_id): &(&str, &str)| Member {
            member: (*id).to_owned(),
            client_id: (*client_id).to_owned(),
            host: String::new(),
            software: String::new(),
            state: MemberState::Idle,
            since_ms: 0,
            rate: None,
            ineligible: None,
        };
        Group {
            group: "g".to_owned(),
            state: "Stable".to_owned(),
            protocol: "classic".to_owned(),
            elastic: Elastic {
                mode: "off".to_owned(),
                eligible: true,
                reason: None,
                paused: false,
            },
            members: members.iter().map(member).collect(),
            partitions: Vec::new(),
        }
    }

    #[test]
    fn a_client_id_is_enough_unless_several_have_it() {
        let one = group(&[(FIRST, "app")]);
        assert_eq!(name_of(&one, FIRST), "app");
        let two = group(&[(FIRST, "app"), (SECOND, "app")]);
        assert_eq!(name_of(&two, FIRST), "app..114271");
        assert_eq!(name_of(&two, SECOND), "app..205f1d");
        let nameless = group(&[("x-1", ""), ("x-2", "")]);
        assert_eq!(name_of(&nameless, "x-1"), "x-1");
    }

    #[test]
    fn members_that_are_gone_are_named_by_their_ids() {
        let one = group(&[(FIRST, "app")]);
        assert_eq!(
            with_names(&one, &format!("40 for {FIRST} and 41 for {SECOND}; id 1-2-3")),
            "40 for app and 41 for app..205f1d; id 1-2-3"
        );
    }
}
