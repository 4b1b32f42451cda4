//! Which plan a group gets, from what its members ask for.

use anabranch_wire::ErrorCode;

use crate::group::harness::{Bench, alive, classic, modern, subscription};
use crate::group::{Assignor, ConsumerHeartbeat, JoinGroup};

#[test]
fn the_assignor_is_what_most_members_ask_for() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "RoundRobinAssigner", &["t"]);
    assert_eq!(bench.coordinator.assignor("g"), Assignor::RoundRobin);
    bench.consumer(&modern("m", &["t"])).unwrap();
    assert_eq!(
        bench.coordinator.assignor("g"),
        Assignor::RoundRobin,
        "who asks for nothing does not count"
    );
    let range = ConsumerHeartbeat {
        assignor: Some("range".into()),
        ..modern("n", &["t"])
    };
    let n = bench.consumer(&range).unwrap();
    assert_eq!(
        bench.coordinator.assignor("g"),
        Assignor::Range,
        "an even vote goes to the simpler one"
    );
    bench.leave(&a.member_id, None);
    let epoch = bench.coordinator.groups()["g"].consumer().unwrap().epoch;
    let changes = ConsumerHeartbeat {
        assignor: Some("uniform".into()),
        ..alive("n", n.member_epoch, None)
    };
    bench.consumer(&changes).unwrap();
    assert_eq!(bench.coordinator.assignor("g"), Assignor::Sticky);
    assert!(bench.coordinator.groups()["g"].consumer().unwrap().epoch > epoch);
}

/// What was said last, and not before, about anything but who has joined.
fn said(bench: &mut Bench) -> Option<String> {
    let notices = std::mem::take(&mut bench.notices).into_iter();
    notices
        .map(|notice| notice.text)
        .rfind(|text| !text.contains(" joined from "))
}

#[test]
fn unknown_assignors_get_the_nearest_or_a_leader_of_their_own() {
    let mut bench = Bench::new(&[("t", 2)]);
    let with = |name: &str, data: Option<&[u8]>| JoinGroup {
        protocols: vec![(name.into(), subscription(&["t"], &[], data))],
        ..classic("", "", &[])
    };
    let answer = bench.join(&with("mine", None));
    assert_eq!((answer.error, answer.leader.as_str()), (ErrorCode::None, ""));
    assert_eq!(
        answer.protocol_name.as_deref(),
        Some("mine"),
        "the member's own name is given back"
    );
    assert!(said(&mut bench).unwrap().contains("\"mine\""));
    // Into a group that the broker assigns, nobody brings an assignor that needs its own leader...
    assert_eq!(
        bench.join(&with("theirs", Some(b"data"))).error,
        ErrorCode::InconsistentGroupProtocol
    );
    // ...unless it can do with a known one.
    let mut either = with("theirs", Some(b"data"));
    either
        .protocols
        .push(("range".into(), subscription(&["t"], &[], None)));
    assert_eq!(bench.join(&either).error, ErrorCode::None);
    assert!(said(&mut bench).unwrap().contains("\"theirs\""));
    bench.join(&either);
    assert!(
        said(&mut bench).unwrap().contains("\"range\" assigns"),
        "the plan is another now"
    );
    bench.join(&either);
    assert_eq!(said(&mut bench), None, "what was said is not said again");
    let other_type = JoinGroup {
        protocol_type: "connect".into(),
        ..with("range", None)
    };
    assert_eq!(
        bench.join(&other_type).error,
        ErrorCode::InconsistentGroupProtocol
    );
    // In a group of their own they have a leader.
    for (group, name, data) in [("h", "theirs", Some(&b"data"[..])), ("s", "stream", None)] {
        let request = JoinGroup {
            group_id: group.into(),
            ..with(name, data)
        };
        let answer = bench.join(&request);
        assert_eq!(
            (answer.error, &answer.leader),
            (ErrorCode::None, &answer.member_id),
            "{name}"
        );
        assert_eq!(answer.members.len(), 1);
    }
}
