//! State changes as values, and their bytes in the journal.

use crate::codec::{CodecError, Decoder, Encoder};
use crate::config::{Scope, Values};
use crate::group::GroupChange;
use crate::ids::{LogId, Offset, TopicId};
use crate::queues::{Decision, Queues};

/// The format version that commands are written in.
const VERSION: u8 = 1;

/// A resource that has configurations of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The topic of this name.
    Topic(String),
    /// All brokers: what tools call the cluster-wide default.
    ClusterDefault,
    /// This broker.
    Broker,
    /// The group of this id.
    Group(String),
}

impl Resource {
    /// Whose keys it has.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Topic(_) => Scope::Topic,
            Self::ClusterDefault | Self::Broker => Scope::Broker,
            Self::Group(_) => Scope::Group,
        }
    }
}

/// One change of the durable state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A topic comes into being.
    CreateTopic {
        /// Its name.
        name: String,
        /// Its identity.
        id: TopicId,
        /// The log of each partition, in partition order.
        logs: Vec<LogId>,
        /// What is set on it.
        configs: Values,
        /// Wall clock in milliseconds.
        created_ms: i64,
    },
    /// A topic goes, with its logs.
    DeleteTopic {
        /// Its identity.
        id: TopicId,
        /// Wall clock in milliseconds.
        deleted_ms: i64,
    },
    /// A topic gets further partitions.
    CreatePartitions {
        /// Its identity.
        id: TopicId,
        /// The logs of the new partitions, in partition order.
        logs: Vec<LogId>,
    },
    /// What is set on a resource, as a whole.
    SetConfigs {
        /// The resource.
        resource: Resource,
        /// All that is set on it from now on.
        configs: Values,
    },
    /// The records of a log below an offset are gone.
    AdvanceLogStart {
        /// The log.
        log: LogId,
        /// The first offset that exists.
        offset: Offset,
    },
    /// Producer ids below this one may be in use.
    AllocateProducerIds {
        /// The first id that has never been handed out.
        upto: i64,
    },
    /// A change of a group.
    Group(GroupChange),
    /// The clock that retention goes by.
    SetRetentionClock {
        /// Wall clock in milliseconds.
        clock_ms: i64,
    },
    /// The queues of a topic changed.
    SetQueues {
        /// The topic.
        id: TopicId,
        /// Its queues from now on; `None`: it is not in queue mode.
        queues: Option<Queues>,
        /// What was decided.
        decision: Box<Decision>,
    },
    /// The next entry is a batch that was addressed to another partition than the one in which it is stored. Said of those
    /// that have a sequence number, since that counts where they were addressed. If it names the partition of the log itself
    /// it says nothing, and takes back what the entry before it may have said.
    Addressed {
        /// The log in which it is stored.
        log: LogId,
        /// The partition that it was addressed to.
        partition: i32,
    },
}

impl Command {
    /// The bytes for the journal.
    pub fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::new();
        e.u8(VERSION);
        match self {
            Self::CreateTopic {
                name,
                id,
                logs,
                configs,
                created_ms,
            } => {
                e.u8(1);
                e.str(name);
                e.id(&id.0);
                put_logs(&mut e, logs);
                e.str_map(configs);
                e.ivar(*created_ms);
            }
            Self::DeleteTopic { id, deleted_ms } => {
                e.u8(2);
                e.id(&id.0);
                e.ivar(*deleted_ms);
            }
            Self::CreatePartitions { id, logs } => {
                e.u8(3);
                e.id(&id.0);
                put_logs(&mut e, logs);
            }
            Self::SetConfigs { resource, configs } => {
                e.u8(4);
                put_resource(&mut e, resource);
                e.str_map(configs);
            }
            Self::AdvanceLogStart { log, offset } => {
                e.u8(5);
                e.uvar(u64::from(log.0));
                e.ivar(*offset);
            }
            Self::AllocateProducerIds { upto } => {
                e.u8(6);
                e.ivar(*upto);
            }
            Self::Group(change) => {
                e.u8(7);
                change.put(&mut e);
            }
            Self::SetRetentionClock { clock_ms } => {
                e.u8(8);
                e.ivar(*clock_ms);
            }
            Self::SetQueues { id, queues, decision } => {
                e.u8(9);
                e.id(&id.0);
                e.opt(queues.as_ref(), |e, queues| queues.put(e));
                decision.put(&mut e);
            }
            Self::Addressed { log, partition } => {
                e.u8(10);
                e.uvar(u64::from(log.0));
                e.ivar(i64::from(*partition));
            }
        }
        e.into_bytes()
    }

    /// Reads a command from the journal.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut d = Decoder::new(bytes);
        let version = d.u8()?;
        if version != VERSION {
            let (found, known) = (u64::from(version), u64::from(VERSION));
            return Err(CodecError::Newer {
                what: "a journal entry",
                found,
                known,
            });
        }
        let command = Self::get(&mut d)?;
        d.finish()?;
        Ok(command)
    }

    fn get(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        let at = d.position();
        Ok(match d.u8()? {
            1 => Self::CreateTopic {
                name: d.string()?,
                id: TopicId(d.id()?),
                logs: get_logs(d)?,
                configs: d.str_map()?,
                created_ms: d.ivar()?,
            },
            2 => Self::DeleteTopic {
                id: TopicId(d.id()?),
                deleted_ms: d.ivar()?,
            },
            3 => Self::CreatePartitions {
                id: TopicId(d.id()?),
                logs: get_logs(d)?,
            },
            4 => Self::SetConfigs {
                resource: get_resource(d)?,
                configs: d.str_map()?,
            },
            5 => Self::AdvanceLogStart {
                log: LogId(d.uvar32()?),
                offset: d.ivar()?,
            },
            6 => Self::AllocateProducerIds { upto: d.ivar()? },
            7 => Self::Group(GroupChange::get(d)?),
            8 => Self::SetRetentionClock { clock_ms: d.ivar()? },
            9 => Self::SetQueues {
                id: TopicId(d.id()?),
                queues: d.opt(Queues::get)?,
                decision: Box::new(Decision::get(d)?),
            },
            10 => Self::Addressed {
                log: LogId(d.uvar32()?),
                partition: d.ivar32()?,
            },
            tag => {
                return Err(CodecError::UnknownTag {
                    at,
                    tag: u64::from(tag),
                    what: "journal entry",
                });
            }
        })
    }
}

pub(super) fn put_logs(e: &mut Encoder, logs: &[LogId]) {
    e.list(logs, |e, log| e.uvar(u64::from(log.0)));
}

pub(super) fn get_logs(d: &mut Decoder<'_>) -> Result<Vec<LogId>, CodecError> {
    d.list(|d| d.uvar32().map(LogId))
}

fn put_resource(e: &mut Encoder, resource: &Resource) {
    match resource {
        Resource::Topic(name) => {
            e.u8(1);
            e.str(name);
        }
        Resource::ClusterDefault => e.u8(2),
        Resource::Broker => e.u8(3),
        Resource::Group(id) => {
            e.u8(4);
            e.str(id);
        }
    }
}

fn get_resource(d: &mut Decoder<'_>) -> Result<Resource, CodecError> {
    let at = d.position();
    Ok(match d.u8()? {
        1 => Resource::Topic(d.string()?),
        2 => Resource::ClusterDefault,
        3 => Resource::Broker,
        4 => Resource::Group(d.string()?),
        tag => {
            return Err(CodecError::UnknownTag {
                at,
                tag: u64::from(tag),
                what: "resource",
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_has_the_bytes_of_the_format_page() {
        let page = include_str!("../../../../docs/format/state.md");
        let row = |(command, words): (Command, &str)| {
            let hex: Vec<String> = command
                .encode()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("| {words} | `{}` |", hex.join(" "))
        };
        let rows: Vec<String> = samples::every_kind().into_iter().map(row).collect();
        assert!(
            page.contains(&rows.join("\n")),
            "docs/format/state.md lacks these rows:\n{}",
            rows.join("\n")
        );
    }

    #[test]
    fn a_newer_version_and_an_unknown_kind_are_told_apart() {
        let newer = Command::decode(&[2, 1]).unwrap_err();
        assert!(newer.to_string().contains("start a newer version"), "{newer}");
        let unknown = Command::decode(&[1, 99]).unwrap_err();
        assert_eq!(unknown.to_string(), "byte 1: 99 is not a kind of journal entry");
        assert!(Command::decode(&[]).is_err());
    }

    #[test]
    fn trailing_bytes_and_every_cut_are_errors() {
        for (command, _) in samples::every_kind() {
            let mut bytes = command.encode();
            for cut in 0..bytes.len() {
                assert!(
                    Command::decode(&bytes[..cut]).is_err(),
                    "{command:?} cut at {cut}"
                );
            }
            bytes.push(0);
            assert_eq!(
                Command::decode(&bytes),
                Err(CodecError::Trailing { left: 1 }),
                "{command:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn commands_come_back(command in samples::any_command()) {
            prop_assert_eq!(Command::decode(&command.encode()), Ok(command));
        }

        #[test]
        fn garbage_does_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..80)) {
            let _ = Command::decode(&bytes);
            bytes[0] = VERSION;
            if let Ok(command) = Command::decode(&bytes) {
                prop_assert_eq!(command.encode(), bytes, "one value has one form");
            }
        }
    }
}
