//! What tools and metrics are shown.

use anabranch_wire::ErrorCode;

use super::harness::{Bench, at, classic, modern, read_assignment, simple, t};
use super::*;

#[test]
fn tools_see_groups_of_every_kind() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench
        .consumer(&ConsumerHeartbeat {
            group_id: "modern".into(),
            ..modern("m", &["t"])
        })
        .unwrap();
    bench.send_commit(&OffsetCommit {
        group_id: "simple".into(),
        ..simple(t(), at(0, 1))
    });
    let leads = JoinGroup {
        group_id: "workers".into(),
        protocol_type: "connect".into(),
        ..classic("", "x", &[])
    };
    bench.join(&leads);
    let rows = |states: &[&str], types: &[&str]| -> Vec<(String, String, &str, &str)> {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let rows = bench.coordinator.list(&owned(states), &owned(types));
        rows.into_iter()
            .map(|row| (row.group_id, row.protocol_type, row.state, row.group_type))
            .collect()
    };
    let row = |id: &str, protocol: &str, state: &'static str, kind: &'static str| {
        (id.to_owned(), protocol.to_owned(), state, kind)
    };
    let all = [
        row("g", "consumer", "Stable", "Classic"),
        row("modern", "consumer", "Stable", "Consumer"),
        row("simple", "", "Empty", "Classic"),
        row("workers", "connect", "CompletingRebalance", "Classic"),
    ];
    assert_eq!(rows(&[], &[]), all);
    assert_eq!(rows(&["sTABLE"], &[]), all[..2]);
    assert_eq!(rows(&[], &["consumer"]), all[1..2]);
    assert_eq!(rows(&["dead"], &[]), []);

    let shown = bench.coordinator.describe(&bench.topics, "g");
    assert_eq!(
        (shown.state, shown.protocol_type.as_str(), shown.protocol.as_str()),
        ("Stable", "consumer", "range")
    );
    let member = &shown.members[0];
    assert_eq!(
        (&member.member_id, member.client_host.as_str()),
        (&a.member_id, "/127.0.0.1")
    );
    assert_eq!(
        read_assignment(&member.assignment),
        [("t".to_owned(), vec![0, 1])]
    );
    assert_eq!(
        protocol::Subscription::parse(&member.metadata).unwrap().topics,
        ["t"]
    );
    assert_eq!(
        bench.coordinator.describe(&bench.topics, "modern").members.len(),
        1,
        "older tools see it, too"
    );
    let nobody = bench.coordinator.describe(&bench.topics, "nobody");
    assert_eq!((nobody.state, nobody.exists), ("Dead", false));
    let workers = bench.coordinator.describe(&bench.topics, "workers");
    assert_eq!(
        (workers.state, workers.protocol.as_str()),
        ("CompletingRebalance", "")
    );

    let modern = bench
        .coordinator
        .describe_consumer(&bench.topics, "modern")
        .unwrap();
    assert_eq!(
        (modern.state, modern.assignor, modern.epoch),
        ("Stable", "uniform", 1)
    );
    assert_eq!(
        modern.members[0].assignment,
        [(bench.topics.id("t"), "t".to_owned(), vec![0, 1])]
    );
    assert_eq!(modern.members[0].target, modern.members[0].assignment);
    let refused = bench
        .coordinator
        .describe_consumer(&bench.topics, "g")
        .unwrap_err();
    assert_eq!(
        refused.code(),
        ErrorCode::GroupIdNotFound,
        "so that tools ask by DescribeGroups"
    );
}

#[test]
fn members_are_shown_with_their_silence() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.enter("", "range", &["t"]);
    bench.pass(2_000);
    bench.heartbeat(&a.member_id, a.generation_id);
    bench.pass(500);
    let views = bench.coordinator.members(bench.now, "g");
    let seen: Vec<_> = views
        .iter()
        .map(|view| (view.partitions, view.state, view.silent_ms))
        .collect();
    assert_eq!(
        seen,
        [(Some(2), "waiting", Some(500)), (Some(0), "waiting", Some(2_500))]
    );
}
