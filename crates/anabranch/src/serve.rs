//! `anabranch serve`: starts the broker, says where everything is, and ends it when told to.
//!
//! ```text
//! settings -> logging -> tokio runtime -> Server::start -> the lines at the start
//!                                              |
//!                                    systemd is told as well, if it is there
//!                                              |
//!                 SIGTERM or SIGINT -> Running::shutdown -> exit 0
//!                 a second one      -> exit at once, 128 + signal: as safe as a crash, which is safe
//! ```

use std::io::{self, IsTerminal};

use anabranch_server::settings::{LogFormat, LogLevel, NamedAddress, Origin, Resolved, Settings};
use anabranch_server::{Config, Durability, Running, Server};
use sd_notify::NotifyState;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome, reason};
use crate::output::{self, Format};
use crate::sourcing::{SettingFlags, Sourcing};

const EXAMPLES: &str = "\
Examples:
  anabranch serve                                            for clients on this machine
  anabranch serve --listen 0.0.0.0:9092 --data /srv/kafka    for clients on the network
  anabranch serve --config /etc/anabranch.toml --set num.partitions=3

All settings: `anabranch config list`. Stop with Ctrl-C or SIGTERM; a second one ends it at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: SettingFlags,
    #[command(flatten)]
    sourcing: Sourcing,
}

/// Threads that serve connections: the broker's work is short, and the disk has threads of its own.
const WORKERS: usize = 2;

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let resolved = args.sourcing.resolve(&args.flags)?;
    start_logging(resolved.settings.log_level, resolved.settings.log_format);
    for warning in &resolved.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("anabranch")
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    runtime.block_on(serve(&resolved, format))
}

async fn serve(resolved: &Resolved, format: Format) -> Outcome {
    let settings = &resolved.settings;
    let config = Config {
        http_required: *resolved.origin("http") != Origin::Default,
        ..settings.config()
    };
    // Before the server starts, so that no moment is left in which a signal would end the process unclean.
    let mut signals =
        Signals::new().map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?;
    let running = Server::start(config)
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    let started = Started::new(settings, &running);
    match format {
        Format::Text => output::print(&started.text(settings))?,
        Format::Json => output::print(&format!("{}\n", started.json()))?,
    }
    tokio::spawn(check_names(advertised(settings)));
    tell_manager(&[NotifyState::Ready, NotifyState::Status(&started.status())]);
    let signal = tokio::select! {
        signal = signals.next() => signal,
        failure = running.failed() => return Err(Failure::failed(failure.to_string())),
    };
    tell_manager(&[NotifyState::Stopping]);
    tracing::info!("{} received: shutting down; once more ends at once", signal.name);
    tokio::select! {
        ended = running.shutdown() => {
            ended.map_err(|failure| Failure::failed(failure.to_string()))?;
            tracing::info!("shut down in good order");
            Ok(())
        }
        again = signals.next() => std::process::exit(128 + again.number),
    }
}

/// The addresses that clients are told, as they were set.
fn advertised(settings: &Settings) -> Vec<String> {
    let told = settings
        .listen
        .iter()
        .filter_map(|listener| settings.advertised(listener));
    told.map(ToString::to_string).collect()
}

/// Warns of names that nobody can go to, by what this machine knows of names: clients connect, are told such a name, and fail.
async fn check_names(addresses: Vec<String>) {
    for address in addresses {
        if tokio::net::lookup_host(&address).await.is_err() {
            tracing::warn!(
                "clients are told {address}, a name that this machine cannot resolve: if they cannot either, they connect once and then fail; `advertise` sets it"
            );
        }
    }
}

/// Tells the service manager that started this process (`Type=notify`, see sd_notify(3)); nothing where there is none. The
/// broker serves as well untold, so a failure is only worth a warning.
fn tell_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot tell the service manager: {}", reason(&error));
    }
}

fn start_logging(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// A signal that came.
struct Came {
    name: &'static str,
    number: i32,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Came {
        tokio::select! {
            _ = self.terminate.recv() => Came { name: "SIGTERM", number: SignalKind::terminate().as_raw_value() },
            _ = self.interrupt.recv() => Came { name: "SIGINT", number: SignalKind::interrupt().as_raw_value() },
        }
    }
}

/// What a broker that has started says about itself.
#[derive(Debug, Serialize)]
struct Started {
    event: &'static str,
    version: &'static str,
    kafka: Vec<Listening>,
    http: Option<String>,
    data: String,
    durability: &'static str,
    pid: u32,
}

#[derive(Debug, Serialize)]
struct Listening {
    address: String,
    /// `None`: each client is told the address that it dialled.
    advertised: Option<String>,
}

impl Started {
    fn new(settings: &Settings, running: &Running) -> Started {
        let listening = |(address, listener): (&std::net::SocketAddr, &NamedAddress)| Listening {
            address: address.to_string(),
            advertised: settings.advertised(listener).map(ToString::to_string),
        };
        Started {
            event: "started",
            version: env!("CARGO_PKG_VERSION"),
            kafka: running
                .addresses()
                .iter()
                .zip(&settings.listen)
                .map(listening)
                .collect(),
            http: running.http_address().map(|address| address.to_string()),
            // Whoever reads this later need not know where the process was started.
            data: std::path::absolute(&settings.server.data_dir)
                .unwrap_or_else(|_| settings.server.data_dir.clone())
                .display()
                .to_string(),
            durability: match settings.server.durability {
                Durability::Durable => "durable",
                Durability::Relaxed => "relaxed",
            },
            pid: std::process::id(),
        }
    }

    /// One line for `systemctl status`.
    fn status(&self) -> String {
        let addresses = self.kafka.iter().map(|one| one.address.as_str());
        format!(
            "serving Kafka clients at {}",
            addresses.collect::<Vec<_>>().join(", ")
        )
    }

    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn text(&self, settings: &Settings) -> String {
        let mut text = format!("anabranch {} is ready (pid {})\n", self.version, self.pid);
        for listening in &self.kafka {
            let told = match &listening.advertised {
                Some(address) => format!("clients are told {address}"),
                None => "clients are told the address that they dialled".to_owned(),
            };
            text.push_str(&format!("  kafka       {}   {told}\n", listening.address));
        }
        if let Some(address) = &self.http {
            text.push_str(&format!(
                "  http        {address}   the console; /api/v1 /metrics /healthz /readyz\n"
            ));
        }
        text.push_str(&format!("  data        {}\n", self.data));
        let meaning = match settings.server.durability {
            Durability::Durable => "acknowledged messages are on disk and survive a power cut",
            Durability::Relaxed => "acknowledged messages survive a crash of the process, not a power cut",
        };
        text.push_str(&format!("  durability  {}: {meaning}\n", self.durability));
        text.push_str("  stop        Ctrl-C or SIGTERM; a second one ends it at once\n");
        text
    }
}
