//! The table of settings: each is one [`Item`], and everything else derives from it.
//!
//! The parser, the flags of `anabranch serve`, the environment names, `anabranch config explain` and the reference
//! page are all made from [`ITEMS`]. To add a setting, add a field to [`super::Settings`] and an item here.

use std::time::Duration;

use super::item::{Flag, Item, Kind};
use super::value::{self, HostPort};
use super::{LogFormat, LogLevel, durability_name};
use crate::config::Durability;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const HOUR_MS: u64 = 3_600_000;

fn format_duration(duration: Duration) -> String {
    value::format_duration_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn format_size(bytes: u64) -> String {
    value::format_size_bytes(bytes)
}

/// Looks a setting up by its own name or by its name in Kafka.
pub fn find(name: &str) -> Option<&'static Item> {
    ITEMS
        .iter()
        .find(|item| item.name == name || item.kafka_names.contains(&name))
}

/// All settings of the server itself, in the order in which people read about them.
pub static ITEMS: &[Item] = &[
    Item {
        name: "data",
        flag: Some(Flag {
            long: "data",
            value_name: "DIR",
        }),
        kafka_names: &["log.dirs", "log.dir"],
        kind: Kind::Path,
        default: "$XDG_DATA_HOME/anabranch",
        summary: "folder that keeps messages, topics, groups and offsets",
        details: "Made if it does not exist. One process at a time may use it. Where $XDG_DATA_HOME is not set, the \
                  default is ~/.local/share/anabranch; without a home folder, ./anabranch-data.",
        set: |settings, item, texts| {
            settings.server.data_dir = item.one(texts)?.into();
            Ok(())
        },
        get: |settings| settings.server.data_dir.display().to_string(),
    },
    Item {
        name: "listen",
        flag: Some(Flag {
            long: "listen",
            value_name: "[NAME://]HOST:PORT",
        }),
        kafka_names: &["listeners"],
        kind: Kind::Listeners,
        default: "127.0.0.1:9092",
        summary: "where Kafka clients connect; may be given several times",
        details: "The default serves this machine only; 0.0.0.0:9092 serves every network interface. Port 0 lets the \
                  system choose. A name is only needed to give each listener an address of its own to advertise. \
                  Listeners named CONTROLLER are skipped: there is no controller to talk to.",
        set: |settings, item, texts| {
            let mut listen = item.named_addresses(texts)?;
            listen.retain(|one| one.name.as_deref() != Some("CONTROLLER"));
            if listen.is_empty() {
                return Err("at least one listener is needed".to_owned());
            }
            settings.listen = listen;
            Ok(())
        },
        get: |settings| super::join(&settings.listen),
    },
    Item {
        name: "advertise",
        flag: Some(Flag {
            long: "advertise",
            value_name: "[NAME://]HOST:PORT",
        }),
        kafka_names: &["advertised.listeners"],
        kind: Kind::Listeners,
        default: "none",
        summary: "address told to clients, if not the one they dialled",
        details: "A Kafka client asks the address it was given, and then connects to the one it is told. By default it \
                  is told the address that it dialled, which is right wherever the first connection works. Set this \
                  when clients reach the broker through a forwarded port or another name. HOST:PORT holds for every \
                  listener; NAME://HOST:PORT for the listener of that name.",
        set: |settings, item, texts| {
            let none = matches!(texts, [text] if text == "none");
            settings.advertise = if none {
                Vec::new()
            } else {
                item.named_addresses(texts)?
            };
            Ok(())
        },
        get: |settings| match settings.advertise.as_slice() {
            [] => "none".to_owned(),
            addresses => super::join(addresses),
        },
    },
    Item {
        name: "http",
        flag: Some(Flag {
            long: "http",
            value_name: "HOST:PORT",
        }),
        kafka_names: &[],
        kind: Kind::Address,
        default: "127.0.0.1:9099",
        summary: "where the console, its API, metrics and health answer; none turns them off",
        details: "/ is the console, /api/v1 its API, /metrics is for Prometheus; /healthz answers as long as the process \
                  lives, /readyz once clients are served and until a shutdown begins. Everyone who reaches this port can read, \
                  messages included: open it to machines you trust. Orders are taken from this machine only, unless \
                  admin.token.file is set. If the default address is in use, the broker starts without it and warns; an \
                  address that was set must be free.",
        set: |settings, item, texts| {
            let text = item.one(texts)?;
            settings.server.http = if text == "none" {
                None
            } else {
                let address = text.parse::<HostPort>();
                Some(
                    address
                        .map_err(|why| format!("{why}; none turns it off"))?
                        .to_string(),
                )
            };
            Ok(())
        },
        get: |settings| settings.server.http.clone().unwrap_or_else(|| "none".to_owned()),
    },
    Item {
        name: "admin.hosts",
        flag: None,
        kafka_names: &[],
        kind: Kind::Names,
        default: "none",
        summary: "names under which browsers may reach the console",
        details: "A web page of somebody else can have a name of its own lead to this machine and so have a browser here read the \
                  console for it (DNS rebinding). So the console and its API answer only to addresses, localhost, names \
                  without a dot, and the names listed here: broker.example.com, say, if a proxy serves it under that name. * \
                  answers to every name. /metrics and the health paths are not restricted.",
        set: |settings, item, texts| {
            settings.server.admin_hosts = item.names(texts)?;
            Ok(())
        },
        get: |settings| match settings.server.admin_hosts.as_slice() {
            [] => "none".to_owned(),
            hosts => hosts.join(","),
        },
    },
    Item {
        name: "admin.token.file",
        flag: None,
        kafka_names: &[],
        kind: Kind::Path,
        default: "none",
        summary: "file with the token that lets orders in from other machines",
        details: "Splitting, merging, pausing and resetting over HTTP is for this machine alone, until this names a file with one \
                  line: then it is for everyone who sends it (Authorization: Bearer TOKEN). 16 to 1,024 characters without \
                  spaces; `openssl rand -hex 32` makes a good one. It is read when the broker starts. Requests that came through a \
                  proxy need it as well, wherever the proxy is. The port speaks plain HTTP: let a proxy with TLS stand before it \
                  where others can listen.",
        set: |settings, item, texts| {
            let text = item.one(texts)?;
            settings.server.admin_token_file = (text != "none").then(|| text.into());
            Ok(())
        },
        get: |settings| match &settings.server.admin_token_file {
            None => "none".to_owned(),
            Some(path) => path.display().to_string(),
        },
    },
    Item {
        name: "durability",
        flag: Some(Flag {
            long: "durability",
            value_name: "MODE",
        }),
        kafka_names: &[],
        kind: Kind::OneOf(&["durable", "relaxed"]),
        default: "durable",
        summary: "when a message counts as written: durable or relaxed",
        details: "durable: an acknowledgement follows the disk's confirmation (fdatasync), so that an acknowledged \
                  message survives a crash of the machine and a power cut. relaxed: an acknowledgement follows the \
                  write to the operating system; a crash of the process loses nothing, a power cut may lose the last \
                  moments.",
        set: |settings, item, texts| {
            settings.server.durability = item.choose(
                texts,
                &[Durability::Durable, Durability::Relaxed],
                durability_name,
            )?;
            Ok(())
        },
        get: |settings| durability_name(&settings.server.durability).to_owned(),
    },
    Item {
        name: "log.level",
        flag: Some(Flag {
            long: "log-level",
            value_name: "LEVEL",
        }),
        kafka_names: &[],
        kind: Kind::OneOf(&["error", "warn", "info", "debug", "trace"]),
        default: "info",
        summary: "how much is logged: error, warn, info, debug or trace",
        details: "Logs go to standard error. debug has a line for each connection and group change, trace one for each \
                  request.",
        set: |settings, item, texts| {
            settings.log_level = item.choose(texts, LogLevel::ALL, LogLevel::name)?;
            Ok(())
        },
        get: |settings| settings.log_level.name().to_owned(),
    },
    Item {
        name: "log.format",
        flag: Some(Flag {
            long: "log-format",
            value_name: "FORMAT",
        }),
        kafka_names: &[],
        kind: Kind::OneOf(&["text", "json"]),
        default: "text",
        summary: "how log lines look: text or json",
        details: "json writes one object a line with timestamp, level, target, message and fields.",
        set: |settings, item, texts| {
            settings.log_format = item.choose(texts, LogFormat::ALL, LogFormat::name)?;
            Ok(())
        },
        get: |settings| settings.log_format.name().to_owned(),
    },
    Item {
        name: "shutdown.timeout.ms",
        flag: None,
        kafka_names: &[],
        kind: Kind::DurationMs(0, 600_000),
        default: "10s",
        summary: "longest time that a shutdown waits for requests in flight",
        details: "SIGTERM and Ctrl-C stop accepting, answer what is in flight, and end. What is not answered after this \
                  time is cut off; nothing acknowledged is lost by that. Keep it below the patience of whoever stops \
                  the process (Kubernetes waits 30 s).",
        set: |settings, item, texts| {
            settings.server.limits.shutdown_timeout = item.duration(texts)?;
            Ok(())
        },
        get: |settings| format_duration(settings.server.limits.shutdown_timeout),
    },
    Item {
        name: "node.id",
        flag: None,
        kafka_names: &["broker.id"],
        kind: Kind::Count(0, i32::MAX as u64),
        default: "1",
        summary: "node id shown to clients",
        details: "Only what clients see: nothing is stored under it.",
        set: |settings, item, texts| {
            settings.server.node_id = i32::try_from(item.count(texts)?).unwrap_or(i32::MAX);
            Ok(())
        },
        get: |settings| settings.server.node_id.to_string(),
    },
    Item {
        name: "wal.segment.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(MIB, 16 * GIB),
        default: "128MiB",
        summary: "size of one write-ahead segment file",
        details: "Space is set aside and given back in units of it. Larger segments mean less housekeeping, smaller ones give space back sooner. Topics have no segments of their own, so log.segment.bytes does not change this.",
        set: |settings, item, texts| {
            settings.server.storage.segment_bytes = item.size(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.storage.segment_bytes),
    },
    Item {
        name: "cache.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(MIB, 1024 * GIB),
        default: "128MiB",
        summary: "memory for recently written messages",
        details: "Consumers that keep up are served from it without touching the disk.",
        set: |settings, item, texts| {
            settings.server.storage.cache_bytes = item.memory(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.storage.cache_bytes as u64),
    },
    Item {
        name: "wal.direct.io",
        flag: None,
        kafka_names: &[],
        kind: Kind::Bool,
        default: "true",
        summary: "write past the operating system's page cache where the file system allows it",
        details: "Faster with durable acknowledgements, and consumers that read old messages do not push producers aside. Turn it off only to work round a faulty file system.",
        set: |settings, item, texts| {
            settings.server.storage.direct_io = item.boolean(texts)?;
            Ok(())
        },
        get: |settings| settings.server.storage.direct_io.to_string(),
    },
    Item {
        name: "disk.free.min.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(0, 1024 * 1024 * GIB),
        default: "256MiB",
        summary: "free disk space below which messages are refused",
        details: "Producers then get a storage error until there is space again; reading, deleting and committing go on.",
        set: |settings, item, texts| {
            settings.server.storage.free_bytes_min = item.size(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.storage.free_bytes_min),
    },
    Item {
        name: "log.retention.check.interval.ms",
        flag: None,
        kafka_names: &[],
        kind: Kind::DurationMs(100, 24 * HOUR_MS),
        default: "5min",
        summary: "how often messages beyond their retention are removed",
        details: "",
        set: |settings, item, texts| {
            settings.server.storage.retention_interval = item.duration(texts)?;
            Ok(())
        },
        get: |settings| format_duration(settings.server.storage.retention_interval),
    },
    Item {
        name: "socket.request.max.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(64 * 1024, GIB),
        default: "100MiB",
        summary: "largest request",
        details: "A larger one costs the client its connection, before memory is set aside for it.",
        set: |settings, item, texts| {
            settings.server.limits.request_bytes_max = item.memory(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.limits.request_bytes_max as u64),
    },
    Item {
        name: "queued.max.request.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(MIB, 1024 * GIB),
        default: "256MiB",
        summary: "memory for the requests of all connections together",
        details: "Beyond it nothing more is read from the sockets until requests are done; clients notice a slower broker, not an error.",
        set: |settings, item, texts| {
            settings.server.limits.request_budget_bytes = item.memory(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.limits.request_budget_bytes as u64),
    },
    Item {
        name: "queued.max.response.bytes",
        flag: None,
        kafka_names: &[],
        kind: Kind::SizeBytes(MIB, 1024 * GIB),
        default: "256MiB",
        summary: "memory for the fetch answers of all connections together",
        details: "Answers beyond it wait until clients have taken earlier ones.",
        set: |settings, item, texts| {
            settings.server.limits.response_budget_bytes = item.memory(texts)?;
            Ok(())
        },
        get: |settings| format_size(settings.server.limits.response_budget_bytes as u64),
    },
    Item {
        name: "max.connections",
        flag: None,
        kafka_names: &[],
        kind: Kind::Count(1, 10_000_000),
        default: "20000",
        summary: "connections in total",
        details: "A connection beyond it is closed at once. Each costs a file descriptor: see `ulimit -n`.",
        set: |settings, item, texts| {
            settings.server.limits.connections_max =
                usize::try_from(item.count(texts)?).unwrap_or(usize::MAX);
            Ok(())
        },
        get: |settings| settings.server.limits.connections_max.to_string(),
    },
    Item {
        name: "max.connections.per.ip",
        flag: None,
        kafka_names: &[],
        kind: Kind::Count(1, 10_000_000),
        default: "20000",
        summary: "connections from one address",
        details: "",
        set: |settings, item, texts| {
            settings.server.limits.connections_per_ip_max =
                usize::try_from(item.count(texts)?).unwrap_or(usize::MAX);
            Ok(())
        },
        get: |settings| settings.server.limits.connections_per_ip_max.to_string(),
    },
    Item {
        name: "connections.max.idle.ms",
        flag: None,
        kafka_names: &[],
        kind: Kind::DurationMs(1000, 7 * 24 * HOUR_MS),
        default: "10min",
        summary: "a connection without a request for this long is closed",
        details: "Clients open a new one when they need it.",
        set: |settings, item, texts| {
            settings.server.limits.idle_timeout = item.duration(texts)?;
            Ok(())
        },
        get: |settings| format_duration(settings.server.limits.idle_timeout),
    },
    Item {
        name: "request.stall.timeout.ms",
        flag: None,
        kafka_names: &[],
        kind: Kind::DurationMs(100, HOUR_MS),
        default: "10s",
        summary: "a request that stops arriving for this long costs the connection",
        details: "",
        set: |settings, item, texts| {
            settings.server.limits.stall_timeout = item.duration(texts)?;
            Ok(())
        },
        get: |settings| format_duration(settings.server.limits.stall_timeout),
    },
    Item {
        name: "response.write.timeout.ms",
        flag: None,
        kafka_names: &[],
        kind: Kind::DurationMs(100, HOUR_MS),
        default: "30s",
        summary: "an answer that the client does not take for this long costs the connection",
        details: "",
        set: |settings, item, texts| {
            settings.server.limits.write_timeout = item.duration(texts)?;
            Ok(())
        },
        get: |settings| format_duration(settings.server.limits.write_timeout),
    },
];
