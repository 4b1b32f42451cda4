//! `anabranch produce`: sends lines of files or standard input, and counts what was acknowledged.
//!
//! ```text
//! files, stdin -> input::Records -> send -> librdkafka's queue ... acknowledgement -> Tally
//!                    (main thread)            (its own threads)
//! ```
//!
//! The exit code is the promise: 0 means that every record that was read is acknowledged.

mod input;
mod tally;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use rdkafka::bindings as sys;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header as KafkaHeader, Headers, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::util::Timeout;

use self::input::{Input, Reading, Records};
pub(crate) use self::tally::Tally;
use self::tally::{Summary, no_topic};
use crate::client::{Connection, DEBUG_PRODUCE, Silence, metadata, no_broker, setup_error};
use crate::failure::{Failure, Outcome, reason};
use crate::number::number;
use crate::output::Format;
use crate::record::{Header, Record};

const EXAMPLES: &str = "\
Examples:
  anabranch produce orders < orders.txt                      one record a line, byte for byte
  anabranch produce orders --input kv --key-separator , orders.csv
  anabranch produce orders --input json                      {\"key\":\"k\",\"value\":\"v\"}
  echo hello | anabranch produce orders -k greeting -H lang=en -z zstd";

/// How long a record may wait for its acknowledgement.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Memory for records that wait, in KiB; full means that reading pauses.
const QUEUE_KIB: &str = "65536";

/// How many records go by between two updates of the progress line.
const PROGRESS_RECORDS: u64 = 4096;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The topic to send to.
    topic: String,
    /// Files to send; - is standard input, which is also the default.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What a line is: lines, json, or kv for key and value.
    #[arg(
        long,
        value_enum,
        default_value = "lines",
        value_name = "lines|json|kv",
        hide_possible_values = true
    )]
    input: Input,
    /// What separates key and value [kv only]; \t is a tab.
    #[arg(short = 'K', long, value_name = "TEXT", default_value = ":")]
    key_separator: String,
    /// The key of records that have none.
    #[arg(short, long)]
    key: Option<String>,
    /// The partition of all records, instead of one chosen by the key.
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = number("the number of a partition", 0i32..))]
    partition: Option<i32>,
    /// A header of all records; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<Header>,
    /// Compression: none, gzip, snappy, lz4 or zstd.
    #[arg(short = 'z', long, value_name = "CODEC", default_value = "none", hide_possible_values = true,
          value_parser = ["none", "gzip", "snappy", "lz4", "zstd"])]
    compression: String,
    /// Who must have a record before it counts: all, 1 (the leader), or 0 (nobody).
    #[arg(long, value_name = "all|1|0", default_value = "all", hide_possible_values = true,
          value_parser = ["all", "-1", "1", "0"], allow_hyphen_values = true)]
    acks: String,
    /// Never write a record twice, however often the connection breaks.
    #[arg(long)]
    idempotent: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

fn header(text: &str) -> Result<Header, String> {
    let (key, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok(Header {
        key: key.to_owned(),
        value: Some(value.as_bytes().to_vec()),
    })
}

type Sender = Arc<ThreadedProducer<Tally>>;

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    crate::topic::check_name(&args.topic)?;
    let reading = reading(args)?;
    let sources = open(&args.files)?;
    let begin = Instant::now();
    let producer: Sender = Arc::new(connect(args)?);
    refuse_unknown(&producer, args)?;
    finish_on_interrupt(&producer, args.topic.clone(), begin, format)?;
    let progress = Progress::new(&args.files);
    let read = send_all(&producer, args, &reading, sources, &progress);
    // Ends for certain: a record that nobody acknowledges is given up after the delivery timeout.
    let flushed = producer.flush(Timeout::Never);
    progress.clear();
    let summary = Summary::new(&args.topic, producer.context(), begin.elapsed());
    summary.print(format)?;
    if let Err(error) = flushed {
        producer.context().refused(&error);
    }
    producer
        .context()
        .verdict(&args.topic, args.connection.broker())?;
    read
}

fn reading(args: &Args) -> Outcome<Reading> {
    let separator = unescape(&args.key_separator);
    if separator.is_empty() {
        return Err(Failure::usage("--key-separator must not be empty"));
    }
    Ok(Reading {
        input: args.input,
        separator,
    })
}

/// `\t`, `\n`, `\r`, `\0` and `\\` in a separator that was typed.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let next = if c == '\\' { chars.clone().next() } else { None };
        let escaped = match next {
            Some('t') => Some(b'\t'),
            Some('n') => Some(b'\n'),
            Some('r') => Some(b'\r'),
            Some('0') => Some(0),
            Some('\\') => Some(b'\\'),
            _ => None,
        };
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                chars.next();
            }
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Opens all files before the first record is sent: a wrong name must not leave half of the work done.
fn open(files: &[PathBuf]) -> Outcome<Vec<(String, Box<dyn BufRead>)>> {
    let stdin = || -> (String, Box<dyn BufRead>) {
        (
            "standard input".to_owned(),
            Box::new(BufReader::with_capacity(1 << 18, io::stdin())),
        )
    };
    if files.is_empty() {
        return Ok(vec![stdin()]);
    }
    let mut sources = Vec::new();
    for path in files {
        if path.as_os_str() == "-" {
            sources.push(stdin());
            continue;
        }
        let cannot =
            |error: io::Error| Failure::failed(format!("cannot read {}: {}", path.display(), reason(&error)));
        let file = File::open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_dir() {
            return Err(Failure::failed(format!(
                "cannot read {}: it is a folder",
                path.display()
            )));
        }
        sources.push((
            path.display().to_string(),
            Box::new(BufReader::with_capacity(1 << 18, file)) as Box<dyn BufRead>,
        ));
    }
    Ok(sources)
}

fn connect(args: &Args) -> Outcome<ThreadedProducer<Tally>> {
    if args.idempotent && !matches!(args.acks.as_str(), "all" | "-1") {
        return Err(Failure::usage("--idempotent needs --acks all"));
    }
    let mut config = args.connection.config()?;
    let own = [
        ("acks", args.acks.as_str()),
        ("compression.type", args.compression.as_str()),
        (
            "enable.idempotence",
            if args.idempotent { "true" } else { "false" },
        ),
        ("queue.buffering.max.kbytes", QUEUE_KIB),
        ("debug", DEBUG_PRODUCE),
        // In a cluster not every broker has heard of a new topic; one that is not there after this will not come.
        ("topic.metadata.propagation.max.ms", "5000"),
        // Only the broker knows how large a record may be.
        ("message.max.bytes", "1000000000"),
        // The partitioner that all Kafka clients but librdkafka use: same key, same partition, whoever sends.
        ("partitioner", "murmur2_random"),
    ];
    for (name, value) in own {
        if config.get(name).is_none() {
            config.set(name, value);
        }
    }
    if config.get("message.timeout.ms").is_none() {
        config.set("message.timeout.ms", DELIVERY_TIMEOUT.as_millis().to_string());
    }
    config.set_log_level(RDKafkaLogLevel::Debug);
    config
        .create_with_context(Tally::default())
        .map_err(|error| Failure::usage(setup_error(&error)))
}

/// Ends it before anything is read if the topic is not there and nothing will change that: librdkafka would wait for the news
/// of it (`topic.metadata.propagation.max.ms`), which only in a cluster of several brokers can be under way.
fn refuse_unknown(producer: &Sender, args: &Args) -> Outcome {
    if args.connection.may_create_topics() {
        return Ok(());
    }
    let (broker, timeout) = (args.connection.broker(), args.connection.timeout());
    let reason = || producer.context().last_connection_error();
    let metadata = match metadata(producer.client(), Some(&args.topic), broker, timeout, reason) {
        Ok(metadata) => metadata,
        Err(Silence::Foreign(failure)) => return Err(failure),
        // A broker that does not answer is found, and told about, with the first record.
        Err(Silence::Failed(_)) => {
            let failure = reason().and_then(|reason| no_broker(broker, &reason));
            return failure.map_or(Ok(()), Err);
        }
    };
    let unknown = sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    let is_unknown = metadata
        .topics()
        .iter()
        .any(|topic| topic.error() == Some(unknown));
    if is_unknown && metadata.brokers().len() == 1 {
        return Err(no_topic(&args.topic));
    }
    Ok(())
}

/// On Ctrl-C: waits for the acknowledgements of what was sent, says how much that was, and ends.
fn finish_on_interrupt(producer: &Sender, topic: String, begin: Instant, format: Format) -> Outcome {
    let mut signals =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
            .map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?;
    let producer = Arc::clone(producer);
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = producer.flush(Duration::from_secs(5));
            let _ = Summary::new(&topic, producer.context(), begin.elapsed()).print(format);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn send_all(
    producer: &Sender,
    args: &Args,
    reading: &Reading,
    sources: Vec<(String, Box<dyn BufRead>)>,
    progress: &Progress,
) -> Outcome {
    let mut sent = 0;
    for (name, source) in sources {
        let mut records = Records::new(reading.clone(), name, source);
        while let Some((record, taken)) = records.next()? {
            send(producer, args, &record)?;
            sent += 1;
            progress.add(taken, sent);
            if producer.context().is_hopeless() {
                producer.context().give_up();
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Hands one record to librdkafka; waits while its queue is full.
fn send(producer: &Sender, args: &Args, record: &Record) -> Outcome {
    let mut headers = OwnedHeaders::new_with_capacity(args.headers.len() + record.headers.len());
    for header in args.headers.iter().chain(&record.headers) {
        headers = headers.insert(KafkaHeader {
            key: &header.key,
            value: header.value.as_deref(),
        });
    }
    let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&args.topic);
    message.key = record.key.as_deref().or(args.key.as_deref().map(str::as_bytes));
    message.payload = record.value.as_deref();
    message.partition = args.partition;
    message.timestamp = record.timestamp_ms;
    message.headers = (headers.count() > 0).then_some(headers);
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                message = back;
                producer.poll(Duration::from_millis(20));
            }
            Err((error, _)) => {
                producer.context().refused(&error);
                return Ok(());
            }
        }
    }
}

/// The progress line on the terminal; nothing if there is none, or if someone types the records.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(files: &[PathBuf]) -> Progress {
        let from_stdin = files.is_empty() || files.iter().any(|path| path.as_os_str() == "-");
        if !io::stderr().is_terminal() || (from_stdin && io::stdin().is_terminal()) {
            return Progress(None);
        }
        let sizes = files
            .iter()
            .map(|path| std::fs::metadata(path).map(|metadata| metadata.len()));
        let total: Option<u64> = if from_stdin {
            None
        } else {
            sizes.sum::<io::Result<u64>>().ok()
        };
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{wide_bar} {msg}  {bytes}/{total_bytes}  {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(Some(bar))
    }

    fn add(&self, bytes: u64, sent: u64) {
        let Some(bar) = &self.0 else { return };
        bar.inc(bytes);
        if sent.is_multiple_of(PROGRESS_RECORDS) {
            bar.set_message(format!(
                "{} records, {}",
                HumanCount(sent),
                HumanBytes(bar.position())
            ));
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_may_be_escaped() {
        for (typed, bytes) in [
            (":", b":".as_slice()),
            ("\\t", b"\t"),
            ("\\0|", b"\0|"),
            ("\\\\", b"\\"),
            ("\\x", b"\\x"),
        ] {
            assert_eq!(unescape(typed), bytes, "{typed}");
        }
    }
}
