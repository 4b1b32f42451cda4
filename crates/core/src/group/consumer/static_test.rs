//! Static members of both protocols (KIP-345): a restart under the same instance id disturbs nobody.

use anabranch_wire::ErrorCode;

use crate::group::harness::{Bench, alive, classic, modern};
use crate::group::{ConsumerHeartbeat, Heartbeat, JoinGroup};
use crate::ids::TopicId;

type Assignment = Option<Vec<(TopicId, Vec<i32>)>>;

fn code(bench: &mut Bench, request: &ConsumerHeartbeat) -> ErrorCode {
    bench
        .consumer(request)
        .map_or_else(|refused| refused.code(), |_| ErrorCode::None)
}

fn owns(bench: &Bench, partitions: &[i32]) -> Assignment {
    Some(vec![(bench.topics.id("t"), partitions.to_vec())])
}

fn named_classic(member: &str, instance: &str) -> JoinGroup {
    JoinGroup {
        version: 5,
        instance_id: Some(instance.into()),
        ..classic(member, "range", &["t"])
    }
}

#[test]
fn a_static_member_keeps_its_place_over_a_restart() {
    let mut bench = Bench::new(&[("t", 4)]);
    let named = |id: &str| ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..modern(id, &["t"])
    };
    let a = bench.consumer(&named("a1")).unwrap();
    let other = bench.consumer(&modern("b", &["t"])).unwrap();
    let a = bench.consumer(&alive("a1", a.member_epoch, None)).unwrap();
    let a = bench
        .consumer(&alive("a1", a.member_epoch, a.assignment))
        .unwrap();
    let other = bench.consumer(&alive("b", other.member_epoch, None)).unwrap();
    assert_eq!(
        code(&mut bench, &named("a2")),
        ErrorCode::UnreleasedInstanceId,
        "a1 is still there"
    );

    let bye = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..alive("a1", -2, None)
    };
    assert_eq!(bench.consumer(&bye).unwrap().member_epoch, -2);
    bench.pass(10_000);
    let quiet = bench.consumer(&alive("b", other.member_epoch, None)).unwrap();
    assert_eq!(
        (quiet.member_epoch, quiet.assignment),
        (other.member_epoch, None),
        "nobody else notices"
    );
    let back = bench.consumer(&named("a2")).unwrap();
    assert_eq!(back.assignment, owns(&bench, &[0, 1]), "it has what it had");
    assert_eq!(
        back.member_epoch, a.member_epoch,
        "without a new epoch of the group"
    );

    let zombie = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..alive("a1", a.member_epoch, None)
    };
    assert_eq!(code(&mut bench, &zombie), ErrorCode::FencedInstanceId);
    let stranger = ConsumerHeartbeat {
        instance_id: Some("j".into()),
        ..alive("a1", a.member_epoch, None)
    };
    assert_eq!(code(&mut bench, &stranger), ErrorCode::UnknownMemberId);
    let zombie_leaves = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..alive("a1", -1, None)
    };
    assert_eq!(code(&mut bench, &zombie_leaves), ErrorCode::FencedInstanceId);
    bench.check_fold();
}

#[test]
fn a_static_member_that_stays_away_loses_its_place() {
    let mut bench = Bench::new(&[("t", 1)]);
    let named = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..modern("a", &["t"])
    };
    bench.consumer(&named).unwrap();
    let bye = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..alive("a", -2, None)
    };
    bench.consumer(&bye).unwrap();
    bench.pass(45_000);
    assert!(bench.coordinator.groups()["g"].is_empty());
    assert_eq!(code(&mut bench, &bye), ErrorCode::UnknownMemberId);
}

#[test]
fn a_static_member_is_replaced_without_disturbing_anybody() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.join(&named_classic("", "i"));
    bench.sync(&a.member_id, a.generation_id);
    let (b, _) = bench.enter("", "range", &["t"]);
    let a = bench.join(&named_classic(&a.member_id, "i"));
    let held = bench.sync(&a.member_id, a.generation_id).assignment;
    let b = bench.enter(&b.member_id, "range", &["t"]).0;
    let epoch = bench.coordinator.groups()["g"].consumer().unwrap().epoch;

    let back = bench.join(&named_classic("", "i"));
    assert_ne!(back.member_id, a.member_id);
    assert!(back.member_id.starts_with("i-"));
    assert_eq!(
        bench.sync(&back.member_id, back.generation_id).assignment,
        held,
        "it has what it had"
    );
    assert_eq!(bench.coordinator.groups()["g"].consumer().unwrap().epoch, epoch);
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::None,
        "nobody else notices"
    );

    let zombie = Heartbeat {
        group_id: "g".into(),
        generation_id: a.generation_id,
        member_id: a.member_id.clone(),
        instance_id: Some("i".into()),
    };
    let (error, _) = bench
        .coordinator
        .heartbeat(bench.now, &bench.topics, &Bench::caller(), &zombie);
    assert_eq!(error, ErrorCode::FencedInstanceId);
    assert_eq!(
        bench.join(&named_classic(&a.member_id, "i")).error,
        ErrorCode::FencedInstanceId
    );
    assert_eq!(
        bench.join(&named_classic("x", "j")).error,
        ErrorCode::UnknownMemberId
    );
    bench.check_fold();
}
