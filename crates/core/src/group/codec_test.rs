//! Changes and snapshots as bytes: they come back whole, and damaged ones are errors.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;

use super::elastic::{ClientFacts, ClientSoftware};
use super::state::{
    ClassicMember, Current, Generation, Held, Member, Partitions, Progress, Seat, Sharers, Sharing,
};
use super::*;
use crate::codec::CodecError;
use crate::cursor::{ChainState, Cursor, CursorChange, Edit, Plain, SliceId};
use crate::elastic::{Ended, Settled};
use crate::ids::TopicId;

fn id() -> impl Strategy<Value = TopicId> {
    (0..3u8).prop_map(|number| TopicId([number; 16]))
}

fn name() -> impl Strategy<Value = String> {
    "[a-zä]{0,5}"
}

fn partitions() -> impl Strategy<Value = Partitions> {
    prop::collection::btree_map(id(), prop::collection::btree_set(0..9i32, 1..4), 0..3)
}

fn held() -> impl Strategy<Value = Held> {
    prop::collection::btree_map(id(), prop::collection::btree_map(0..9i32, 0..9i32, 1..4), 0..3)
}

fn current() -> impl Strategy<Value = Current> {
    let progress = prop_oneof![
        Just(Progress::Stable),
        Just(Progress::Unrevoked),
        Just(Progress::Unreleased)
    ];
    (-2..9i32, -2..9i32, progress, held(), held()).prop_map(|(epoch, previous_epoch, progress, a, r)| {
        Current {
            epoch,
            previous_epoch,
            progress,
            assigned: a,
            revoking: r,
        }
    })
}

fn client() -> impl Strategy<Value = ClientFacts> {
    let software = prop::option::of(("[a-z]{1,5}", "[0-9]{1,3}"));
    (software, any::<i16>(), any::<bool>()).prop_map(|(software, join_version, asks_position)| ClientFacts {
        software: software.and_then(|(name, version)| ClientSoftware::new(&name, &version)),
        join_version,
        asks_position,
    })
}

fn member() -> impl Strategy<Value = Member> {
    let texts = (name(), name(), name());
    let options = (
        prop::option::of(name()),
        prop::option::of(name()),
        prop::option::of(name()),
    );
    let classic = prop::option::of((any::<i32>(), prop::collection::vec(name(), 0..3)));
    let rest = (
        any::<i32>(),
        prop::collection::btree_set(name(), 0..4),
        classic,
        client(),
    );
    (texts, options, rest).prop_map(
        |((member_id, client_id, client_host), (i, r, x), (ms, topics, classic, client))| Member {
            member_id,
            instance_id: i,
            rack_id: r,
            client_id,
            client_host,
            client,
            rebalance_timeout_ms: ms,
            topics,
            regex: x.clone(),
            assignor: x,
            classic: classic.map(|(session_timeout_ms, protocols)| ClassicMember {
                session_timeout_ms,
                protocols,
            }),
        },
    )
}

fn generation() -> impl Strategy<Value = Generation> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..5).prop_map(Bytes::from);
    let seat = (
        prop::option::of(name()),
        any::<i32>(),
        prop::collection::vec((name(), bytes()), 0..3),
        bytes(),
    )
        .prop_map(|(instance_id, ms, protocols, assignment)| Seat {
            instance_id,
            client_id: "c".into(),
            client_host: "h".into(),
            rebalance_timeout_ms: ms,
            session_timeout_ms: 7,
            protocols,
            assignment,
        });
    let members = prop::collection::btree_map(name(), seat, 0..3);
    (
        any::<i32>(),
        any::<bool>(),
        name(),
        prop::option::of(name()),
        members,
    )
        .prop_map(
            |(generation, settled, protocol_type, protocol, members)| Generation {
                generation,
                settled,
                protocol_type,
                leader: protocol.clone(),
                protocol,
                members,
            },
        )
}

fn cursor() -> impl Strategy<Value = Cursor> {
    (
        any::<i64>(),
        any::<i32>(),
        name(),
        any::<i64>(),
        prop::option::of(any::<i64>()),
    )
        .prop_map(|(offset, leader_epoch, metadata, commit_ms, expires_ms)| {
            Cursor::Plain(Plain {
                offset,
                leader_epoch,
                metadata,
                commit_ms,
                expires_ms,
            })
        })
}

fn sharers() -> impl Strategy<Value = Sharers> {
    let sharing = prop_oneof![Just(Sharing::Holds), Just(Sharing::Yields)];
    prop::collection::btree_map(name(), sharing, 0..3)
}

/// Some changes of divided cursors; all kinds are tested where they are made.
fn edit() -> impl Strategy<Value = CursorChange> {
    let plain = |offset| Plain {
        offset,
        ..Plain::default()
    };
    let chain = SliceId::FIRST;
    let edit = prop_oneof![
        any::<i64>().prop_map(move |offset| Edit::Divide { kept: plain(offset) }),
        any::<i64>().prop_map(move |offset| Edit::Plain { plain: plain(offset) }),
        Just(Edit::State {
            chain,
            state: ChainState::Dead
        }),
    ];
    (any::<u64>(), edit).prop_map(|(version, edit)| CursorChange { version, edit })
}

fn change() -> impl Strategy<Value = GroupChange> {
    let group = || "[gh]";
    let since = || prop::option::of(any::<i64>());
    prop_oneof![
        (group(), any::<i32>(), any::<bool>(), any::<u64>(), since()).prop_map(
            |(group, epoch, modern, topics_hash, empty_since_ms)| GroupChange::Consumer {
                group,
                epoch,
                modern,
                topics_hash,
                empty_since_ms
            }
        ),
        (group(), member()).prop_map(|(group, member)| GroupChange::Member { group, member }),
        (group(), name(), partitions()).prop_map(|(group, member_id, partitions)| GroupChange::Target {
            group,
            member_id,
            partitions
        }),
        (group(), name(), current()).prop_map(|(group, member_id, current)| GroupChange::Current {
            group,
            member_id,
            current
        }),
        (group(), name()).prop_map(|(group, member_id)| GroupChange::MemberGone { group, member_id }),
        (group(), generation(), since()).prop_map(|(group, generation, empty_since_ms)| {
            GroupChange::Generation {
                group,
                generation,
                empty_since_ms,
            }
        }),
        (group(), prop::collection::vec((id(), 0..9i32, cursor()), 0..4))
            .prop_map(|(group, cursors)| GroupChange::Cursors { group, cursors }),
        (group(), prop::collection::vec((id(), 0..9i32), 0..4))
            .prop_map(|(group, partitions)| GroupChange::CursorsGone { group, partitions }),
        (group(), id(), 0..9i32, sharers()).prop_map(|(group, topic, partition, sharers)| {
            GroupChange::Shared {
                group,
                topic,
                partition,
                sharers,
            }
        }),
        (group(), id(), 0..9i32, prop::collection::vec(edit(), 0..4)).prop_map(
            |(group, topic, partition, changes)| GroupChange::CursorEdits {
                group,
                topic,
                partition,
                changes
            }
        ),
        (group(), any::<bool>()).prop_map(|(group, paused)| GroupChange::Paused { group, paused }),
        (group(), any::<u64>(), settled()).prop_map(|(group, number, settled)| GroupChange::Settled {
            group,
            number,
            settled
        }),
        group().prop_map(|group| GroupChange::Gone { group }),
    ]
}

fn settled() -> impl Strategy<Value = Settled> {
    let ended = prop_oneof![Just(Ended::Done), Just(Ended::Undone), Just(Ended::Overtaken)];
    (ended, any::<u64>()).prop_map(|(ended, handover_ms)| Settled { ended, handover_ms })
}

proptest! {
    #[test]
    fn changes_come_back(change in change()) {
        let bytes = change.encode();
        prop_assert_eq!(GroupChange::decode(&bytes), Ok(change));
    }

    #[test]
    fn every_cut_and_every_addition_is_an_error(change in change()) {
        let bytes = change.encode();
        for len in 0..bytes.len() {
            prop_assert!(GroupChange::decode(&bytes[..len]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert!(GroupChange::decode(&longer).is_err());
    }

    #[test]
    fn garbage_is_an_error_or_a_change_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), tag in 1..12u8) {
        let _ = GroupChange::decode(&bytes);
        let framed = [&[1, tag][..], &bytes].concat();
        let _ = GroupChange::decode(&framed);
        let _ = Coordinator::snapshot_decode(GroupSettings::default(), &framed);
    }

    /// Whatever order changes come in, applying them never fails, and a snapshot carries what they led to.
    #[test]
    fn any_run_of_changes_can_be_applied_and_snapshot(changes in prop::collection::vec(change(), 0..12)) {
        let mut coordinator = Coordinator::new(GroupSettings::default());
        for change in &changes {
            coordinator.apply(change);
        }
        let bytes = coordinator.snapshot_encode();
        let back = Coordinator::snapshot_decode(GroupSettings::default(), &bytes).unwrap();
        prop_assert_eq!(back.snapshot_encode(), bytes);
    }
}

#[test]
fn a_newer_format_is_named_as_such() {
    let mut bytes = GroupChange::Gone { group: "g".into() }.encode();
    bytes[0] = 9;
    assert!(matches!(
        GroupChange::decode(&bytes),
        Err(CodecError::Newer {
            found: 9,
            known: 1,
            ..
        })
    ));
    bytes[0] = 1;
    bytes[1] = 99;
    assert!(matches!(
        GroupChange::decode(&bytes),
        Err(CodecError::UnknownTag { tag: 99, .. })
    ));
}

#[test]
fn the_index_of_owners_never_loses_somebody_elses_entry() {
    let group = || "g".to_owned();
    let held = Held::from([(TopicId([1; 16]), [(0, 1)].into())]);
    let mut coordinator = Coordinator::new(GroupSettings::default());
    for id in ["a", "b"] {
        let member = Member {
            member_id: id.into(),
            ..Member::default()
        };
        coordinator.apply(&GroupChange::Member {
            group: group(),
            member,
        });
        let current = Current {
            assigned: held.clone(),
            ..Current::default()
        };
        coordinator.apply(&GroupChange::Current {
            group: group(),
            member_id: id.into(),
            current,
        });
    }
    coordinator.apply(&GroupChange::MemberGone {
        group: group(),
        member_id: "a".into(),
    });
    let owners = &coordinator.groups()["g"].consumer().unwrap().owners;
    assert_eq!(owners[&(TopicId([1; 16]), 0)], BTreeSet::from(["b".to_owned()]));
}
