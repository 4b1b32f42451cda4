//! Static members at the barrier (KIP-345, KIP-814).

use anabranch_wire::ErrorCode;

use super::tests::{connect, plan};
use crate::group::JoinGroup;
use crate::group::harness::Bench;

fn named(member: &str, instance: &str) -> JoinGroup {
    JoinGroup {
        version: 9,
        instance_id: Some(instance.into()),
        ..connect(member)
    }
}

#[test]
fn a_static_member_comes_back_unnoticed() {
    let mut bench = Bench::new(&[]);
    let a = bench.join(&named("", "i"));
    let led = plan(&mut bench, &a, &[(&a.member_id, "for i")]);
    assert_eq!(bench.sync_answer(led).assignment, "for i");
    let back = bench.join(&named("", "i"));
    assert_ne!(back.member_id, a.member_id);
    assert_eq!(
        (back.generation_id, back.skip_assignment),
        (a.generation_id, true),
        "the plan holds"
    );
    assert_eq!(
        bench.sync(&back.member_id, back.generation_id).assignment,
        "for i"
    );
    assert_eq!(
        bench.join(&named(&a.member_id, "i")).error,
        ErrorCode::FencedInstanceId
    );
    let older = bench.join(&JoinGroup {
        version: 5,
        ..named("", "i")
    });
    assert_ne!(
        older.leader, older.member_id,
        "an older client must not make a plan nobody waits for"
    );
    bench.restart();
    assert_eq!(
        bench.sync(&older.member_id, older.generation_id).assignment,
        "for i"
    );
    assert_eq!(bench.leave("", Some("i")).members[0].1, ErrorCode::None);
}

#[test]
fn a_static_member_that_does_not_rejoin_stays_and_another_leads() {
    let mut bench = Bench::new(&[]);
    let a = bench.join(&named("", "i"));
    let led = plan(&mut bench, &a, &[]);
    assert_eq!(bench.sync_answer(led).error, ErrorCode::None);
    let waiting = bench.send_join(&connect(""));
    for _ in 0..4 {
        assert_eq!(bench.answer(waiting), None);
        assert_eq!(bench.heartbeat(&a.member_id, 1), ErrorCode::RebalanceInProgress);
        bench.pass(5_000);
    }
    let b = bench.join_answer(waiting);
    assert_eq!(
        (&b.leader, b.members.len()),
        (&b.member_id, 2),
        "whoever is there leads; the plan counts both"
    );
    let led = plan(&mut bench, &b, &[(&a.member_id, "kept for a")]);
    assert_eq!(bench.sync_answer(led).error, ErrorCode::None);
    let back = bench.join(&JoinGroup {
        member_id: a.member_id.clone(),
        ..named("", "i")
    });
    assert_eq!(
        bench.sync(&a.member_id, back.generation_id).assignment,
        "kept for a"
    );
}
