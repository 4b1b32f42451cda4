//! The bytes of [`GroupChange`] and of a snapshot of all groups, in the building blocks of [`crate::codec`].
//!
//! A change is its format version (`uvar`), a tag (`u8`), and the fields in the order of their declaration. A
//! snapshot is its format version, the number of changes and each change as a section. Maps and sets are lists in
//! ascending order.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::change::{GroupChange, Groups, apply, rebuild};
use super::elastic::ClientFacts;
use super::state::{
    ClassicMember, Current, Generation, Held, Member, Partitions, Progress, Seat, Sharers, Sharing,
};
use crate::codec::{CodecError, Decoder, Encoder};
use crate::cursor::{Cursor, CursorChange, SliceIds, SliceIdsChange};
use crate::elastic::{Decision, DecisionLog, Refusal, Settled};
use crate::ids::TopicId;
use crate::limits::{DECISIONS_PER_GROUP_BYTES_MAX, DECISIONS_PER_GROUP_MAX};

/// Format version of changes and snapshots.
const VERSION: u64 = 1;

type Read<T> = Result<T, CodecError>;

impl GroupChange {
    /// The change as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::new();
        self.put(&mut e);
        e.into_bytes()
    }

    /// Reads a change back. Every byte is checked: the bytes may come from a damaged file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut d = Decoder::new(bytes);
        let change = Self::get(&mut d)?;
        d.finish()?;
        Ok(change)
    }

    /// Writes the change behind other values.
    pub fn put(&self, e: &mut Encoder) {
        e.uvar(VERSION);
        match self {
            Self::Consumer {
                group,
                epoch,
                modern,
                topics_hash,
                empty_since_ms,
            } => {
                start(e, 1, group);
                e.ivar(i64::from(*epoch));
                e.bool(*modern);
                e.uvar(*topics_hash);
                e.opt(*empty_since_ms, Encoder::ivar);
            }
            Self::Member { group, member } => {
                start(e, 2, group);
                put_member(e, member);
            }
            Self::Target {
                group,
                member_id,
                partitions,
            } => {
                start(e, 3, group);
                e.str(member_id);
                put_partitions(e, partitions);
            }
            Self::Current {
                group,
                member_id,
                current,
            } => {
                start(e, 4, group);
                e.str(member_id);
                put_current(e, current);
            }
            Self::MemberGone { group, member_id } => {
                start(e, 5, group);
                e.str(member_id);
            }
            Self::Generation {
                group,
                generation,
                empty_since_ms,
            } => {
                start(e, 6, group);
                put_generation(e, generation);
                e.opt(*empty_since_ms, Encoder::ivar);
            }
            Self::Cursors { group, cursors } => {
                start(e, 7, group);
                e.list(cursors, |e, (topic, partition, cursor)| {
                    e.id(&topic.0);
                    e.ivar(i64::from(*partition));
                    cursor.put(e);
                });
            }
            Self::CursorsGone { group, partitions } => {
                start(e, 8, group);
                e.list(partitions, |e, (topic, partition)| {
                    e.id(&topic.0);
                    e.ivar(i64::from(*partition));
                });
            }
            Self::Gone { group } => start(e, 9, group),
            Self::Shared {
                group,
                topic,
                partition,
                sharers,
            } => {
                start(e, 10, group);
                e.id(&topic.0);
                e.ivar(i64::from(*partition));
                put_sharers(e, sharers);
            }
            Self::CursorEdits {
                group,
                topic,
                partition,
                changes,
            } => {
                start(e, 11, group);
                e.id(&topic.0);
                e.ivar(i64::from(*partition));
                e.list(changes, |e, change| change.put(e));
            }
            Self::SliceIds {
                group,
                topic,
                partition,
                changes,
            } => {
                start(e, 12, group);
                e.id(&topic.0);
                e.ivar(i64::from(*partition));
                e.list(changes, |e, change| change.put(e));
            }
            Self::Decided { group, decision } => {
                start(e, 13, group);
                e.bytes(&decision.encode());
            }
            Self::Refused { group, refusal } => {
                start(e, 14, group);
                e.bytes(&refusal.encode());
            }
            Self::Settled {
                group,
                number,
                settled,
            } => {
                start(e, 15, group);
                e.uvar(*number);
                settled.put(e);
            }
            Self::Paused { group, paused } => {
                start(e, 16, group);
                e.bool(*paused);
            }
        }
    }

    /// Reads a change that other values may follow.
    pub fn get(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        check_version(d, "a group change")?;
        let at = d.position();
        let tag = d.u8()?;
        let group = d.string()?;
        Ok(match tag {
            1 => Self::Consumer {
                group,
                epoch: d.ivar32()?,
                modern: d.bool()?,
                topics_hash: d.uvar()?,
                empty_since_ms: d.opt(Decoder::ivar)?,
            },
            2 => Self::Member {
                group,
                member: get_member(d)?,
            },
            3 => Self::Target {
                group,
                member_id: d.string()?,
                partitions: get_partitions(d)?,
            },
            4 => Self::Current {
                group,
                member_id: d.string()?,
                current: get_current(d)?,
            },
            5 => Self::MemberGone {
                group,
                member_id: d.string()?,
            },
            6 => Self::Generation {
                group,
                generation: get_generation(d)?,
                empty_since_ms: d.opt(Decoder::ivar)?,
            },
            7 => Self::Cursors {
                group,
                cursors: d.list(|d| Ok::<_, CodecError>((TopicId(d.id()?), d.ivar32()?, Cursor::get(d)?)))?,
            },
            8 => Self::CursorsGone {
                group,
                partitions: d.list(|d| Ok::<_, CodecError>((TopicId(d.id()?), d.ivar32()?)))?,
            },
            9 => Self::Gone { group },
            10 => Self::Shared {
                group,
                topic: TopicId(d.id()?),
                partition: d.ivar32()?,
                sharers: get_sharers(d)?,
            },
            11 => Self::CursorEdits {
                group,
                topic: TopicId(d.id()?),
                partition: d.ivar32()?,
                changes: d.list(CursorChange::get)?,
            },
            12 => Self::SliceIds {
                group,
                topic: TopicId(d.id()?),
                partition: d.ivar32()?,
                changes: d.list(SliceIdsChange::get)?,
            },
            13 => Self::Decided {
                group,
                decision: Box::new(Decision::decode(d.bytes()?)?),
            },
            14 => Self::Refused {
                group,
                refusal: Box::new(Refusal::decode(d.bytes()?)?),
            },
            15 => Self::Settled {
                group,
                number: d.uvar()?,
                settled: Settled::get(d)?,
            },
            16 => Self::Paused {
                group,
                paused: d.bool()?,
            },
            tag => {
                return Err(CodecError::UnknownTag {
                    at,
                    tag: u64::from(tag),
                    what: "group change",
                });
            }
        })
    }
}

/// The pools of slice ids, by partition.
pub(crate) type Pools = BTreeMap<(TopicId, i32), SliceIds>;

/// What the planner decided, by group.
pub(crate) type Decisions = BTreeMap<String, DecisionLog>;

/// All groups, pools and decisions as bytes.
pub(crate) fn encode_groups(groups: &Groups, pools: &Pools, decisions: &Decisions) -> Vec<u8> {
    let mut e = Encoder::new();
    e.uvar(VERSION);
    e.list(rebuild(groups), |e, change| e.section(|e| change.put(e)));
    e.list(pools, |e, ((topic, partition), pool)| {
        e.id(&topic.0);
        e.ivar(i64::from(*partition));
        pool.put(e);
    });
    e.list(decisions, |e, (group, log)| {
        e.str(group);
        log.put(e);
    });
    e.into_bytes()
}

/// Groups, pools and decisions from bytes.
pub(crate) fn decode_groups(bytes: &[u8]) -> Read<(Groups, Pools, Decisions)> {
    let mut d = Decoder::new(bytes);
    check_version(&mut d, "a snapshot of groups")?;
    let mut groups = Groups::new();
    d.list(|d| {
        let mut section = d.section()?;
        let change = GroupChange::get(&mut section)?;
        section.finish()?;
        apply(&mut groups, &change);
        Ok::<_, CodecError>(())
    })?;
    let pools = get_map(&mut d, |d| {
        let key = (TopicId(d.id()?), d.ivar32()?);
        Ok((key, SliceIds::get_from(d)?))
    })?;
    let decisions = get_map(&mut d, |d| {
        let group = d.string()?;
        let log = DecisionLog::get(d, DECISIONS_PER_GROUP_MAX, DECISIONS_PER_GROUP_BYTES_MAX)?;
        Ok((group, log))
    })?;
    d.finish()?;
    Ok((groups, pools, decisions))
}

fn check_version(d: &mut Decoder<'_>, what: &'static str) -> Read<()> {
    match d.uvar()? {
        1..=VERSION => Ok(()),
        0 => Err(d.invalid("a format version is 0")),
        found => Err(CodecError::Newer {
            what,
            found,
            known: VERSION,
        }),
    }
}

fn start(e: &mut Encoder, tag: u8, group: &str) {
    e.u8(tag);
    e.str(group);
}

fn put_opt_str(e: &mut Encoder, value: Option<&String>) {
    e.opt(value, |e, value| e.str(value));
}

fn get_opt_str(d: &mut Decoder<'_>) -> Read<Option<String>> {
    d.opt(Decoder::string)
}

/// A list whose keys must ascend, so that equal maps have equal bytes.
fn get_map<K: Ord, V>(
    d: &mut Decoder<'_>,
    get: impl FnMut(&mut Decoder<'_>) -> Read<(K, V)>,
) -> Read<BTreeMap<K, V>> {
    let pairs = d.list(get)?;
    if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(d.invalid("the keys of the map before do not ascend"));
    }
    Ok(pairs.into_iter().collect())
}

fn put_partitions(e: &mut Encoder, partitions: &Partitions) {
    e.list(partitions, |e, (topic, partitions)| {
        e.id(&topic.0);
        e.list(partitions, |e, partition| e.ivar(i64::from(*partition)));
    });
}

fn get_partitions(d: &mut Decoder<'_>) -> Read<Partitions> {
    get_map(d, |d| {
        let topic = TopicId(d.id()?);
        let set: BTreeSet<i32> = get_map(d, |d| Ok((d.ivar32()?, ())))?.into_keys().collect();
        Ok((topic, set))
    })
}

fn put_held(e: &mut Encoder, held: &Held) {
    e.list(held, |e, (topic, partitions)| {
        e.id(&topic.0);
        e.list(partitions, |e, (partition, epoch)| {
            e.ivar(i64::from(*partition));
            e.ivar(i64::from(*epoch));
        });
    });
}

fn get_held(d: &mut Decoder<'_>) -> Read<Held> {
    get_map(d, |d| {
        let topic = TopicId(d.id()?);
        Ok((topic, get_map(d, |d| Ok((d.ivar32()?, d.ivar32()?)))?))
    })
}

fn put_member(e: &mut Encoder, member: &Member) {
    e.str(&member.member_id);
    put_opt_str(e, member.instance_id.as_ref());
    put_opt_str(e, member.rack_id.as_ref());
    e.str(&member.client_id);
    e.str(&member.client_host);
    member.client.put(e);
    e.ivar(i64::from(member.rebalance_timeout_ms));
    e.list(&member.topics, |e, topic| e.str(topic));
    put_opt_str(e, member.regex.as_ref());
    put_opt_str(e, member.assignor.as_ref());
    e.opt(member.classic.as_ref(), |e, classic| {
        e.ivar(i64::from(classic.session_timeout_ms));
        e.list(&classic.protocols, |e, name| e.str(name));
    });
}

fn get_member(d: &mut Decoder<'_>) -> Read<Member> {
    Ok(Member {
        member_id: d.string()?,
        instance_id: get_opt_str(d)?,
        rack_id: get_opt_str(d)?,
        client_id: d.string()?,
        client_host: d.string()?,
        client: ClientFacts::get(d)?,
        rebalance_timeout_ms: d.ivar32()?,
        topics: get_map(d, |d| Ok((d.string()?, ())))?.into_keys().collect(),
        regex: get_opt_str(d)?,
        assignor: get_opt_str(d)?,
        classic: d.opt(|d| {
            Ok::<_, CodecError>(ClassicMember {
                session_timeout_ms: d.ivar32()?,
                protocols: d.list(Decoder::string)?,
            })
        })?,
    })
}

fn put_current(e: &mut Encoder, current: &Current) {
    e.ivar(i64::from(current.epoch));
    e.ivar(i64::from(current.previous_epoch));
    e.u8(match current.progress {
        Progress::Stable => 0,
        Progress::Unrevoked => 1,
        Progress::Unreleased => 2,
    });
    put_held(e, &current.assigned);
    put_held(e, &current.revoking);
}

fn get_current(d: &mut Decoder<'_>) -> Read<Current> {
    Ok(Current {
        epoch: d.ivar32()?,
        previous_epoch: d.ivar32()?,
        progress: match d.u8()? {
            0 => Progress::Stable,
            1 => Progress::Unrevoked,
            2 => Progress::Unreleased,
            _ => return Err(d.invalid("the byte before is no progress of a member")),
        },
        assigned: get_held(d)?,
        revoking: get_held(d)?,
    })
}

fn put_sharers(e: &mut Encoder, sharers: &Sharers) {
    e.list(sharers, |e, (member_id, sharing)| {
        e.str(member_id);
        e.bool(*sharing == Sharing::Yields);
    });
}

fn get_sharers(d: &mut Decoder<'_>) -> Read<Sharers> {
    get_map(d, |d| {
        let member_id = d.string()?;
        let yields = d.bool()?;
        Ok((member_id, if yields { Sharing::Yields } else { Sharing::Holds }))
    })
}

fn put_generation(e: &mut Encoder, generation: &Generation) {
    e.ivar(i64::from(generation.generation));
    e.bool(generation.settled);
    e.str(&generation.protocol_type);
    put_opt_str(e, generation.protocol.as_ref());
    put_opt_str(e, generation.leader.as_ref());
    e.list(&generation.members, |e, (id, seat)| {
        e.str(id);
        put_opt_str(e, seat.instance_id.as_ref());
        e.str(&seat.client_id);
        e.str(&seat.client_host);
        e.ivar(i64::from(seat.rebalance_timeout_ms));
        e.ivar(i64::from(seat.session_timeout_ms));
        e.list(&seat.protocols, |e, (name, metadata)| {
            e.str(name);
            e.bytes(metadata);
        });
        e.bytes(&seat.assignment);
    });
}

fn get_generation(d: &mut Decoder<'_>) -> Read<Generation> {
    Ok(Generation {
        generation: d.ivar32()?,
        settled: d.bool()?,
        protocol_type: d.string()?,
        protocol: get_opt_str(d)?,
        leader: get_opt_str(d)?,
        members: get_map(d, |d| Ok((d.string()?, get_seat(d)?)))?,
    })
}

fn get_seat(d: &mut Decoder<'_>) -> Read<Seat> {
    Ok(Seat {
        instance_id: get_opt_str(d)?,
        client_id: d.string()?,
        client_host: d.string()?,
        rebalance_timeout_ms: d.ivar32()?,
        session_timeout_ms: d.ivar32()?,
        protocols: d.list(|d| Ok::<_, CodecError>((d.string()?, Bytes::copy_from_slice(d.bytes()?))))?,
        assignment: Bytes::copy_from_slice(d.bytes()?),
    })
}
