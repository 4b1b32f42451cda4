//! `anabranch consume`: prints records of a topic, from a place, for a while, in a layout.
//!
//! ```text
//! without a group:  position::plan (where to start, where the end is now) -> assign -> records -> layout -> stdout
//! with a group:     subscribe -> the group's partitions ............................-> records -> layout -> stdout
//!                                                      what was printed and flushed is committed
//! ```
//!
//! Ctrl-C ends in good order: the output is complete, the group is left, and so nobody waits for a dead member.

mod layout;
mod position;
mod printed;
mod unreadable;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use self::layout::Layout;
use self::position::{From, Plan};
use self::printed::Printed;
use self::unreadable::Unreadable;
use crate::client::{Admin, Connection, DEBUG_FETCH, as_clause, no_answer, setup_error, text_of};
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::{self, Format};

const EXAMPLES: &str = "\
Examples:
  anabranch consume orders                             everything, and then what comes
  anabranch consume orders --from -10 -e               the last 10 of each partition
  anabranch consume orders --from @-1h -n 5 --output json
  anabranch consume orders --from end -g billing       as a member of a group
  anabranch consume orders -f '%p/%o %k: %s\\n'         %t topic, %T time, %h headers, %S size";

/// How long one wait for a record lasts, and so how soon a signal is noticed.
const POLL: Duration = Duration::from_millis(100);

/// How often a member of a group commits what it has printed.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The topic to read.
    topic: String,
    /// Where to start: start, end, an offset, @TIME, or -N for the last N of each partition.
    #[arg(
        short = 'o',
        long,
        value_name = "POSITION",
        default_value = "start",
        allow_hyphen_values = true
    )]
    from: From,
    /// Stop after this many records.
    #[arg(short = 'n', long, visible_short_alias = 'c', value_name = "N", allow_negative_numbers = true,
          value_parser = number("a whole number of records", 0u64..))]
    count: Option<u64>,
    /// Stop at the end of the topic as it is now, instead of waiting for more.
    #[arg(short = 'e', long)]
    until_end: bool,
    /// Only this partition; may be given several times.
    #[arg(short, long = "partition", value_name = "N", conflicts_with = "group",
          allow_negative_numbers = true, value_parser = number("the number of a partition", 0i32..))]
    partitions: Vec<i32>,
    /// Read as a member of this group, and commit what was printed.
    #[arg(short, long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    group: Option<String>,
    /// What is printed: value, json, kv, raw, or a format like '%k %s\n'.
    #[arg(short = 'f', long, value_name = "LAYOUT", default_value = "value")]
    output: String,
    /// What separates key and value in the layout kv.
    #[arg(short = 'K', long, value_name = "TEXT", default_value = ":")]
    key_separator: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let layout = match format {
        Format::Json => Layout::Json,
        Format::Text => Layout::parse(&args.output, &args.key_separator).map_err(Failure::usage)?,
    };
    crate::topic::check_name(&args.topic)?;
    if args.group.is_some() && !matches!(args.from, From::Start | From::End) {
        return Err(Failure::usage(
            "with --group, --from is start or end, for partitions without a committed offset",
        )
        .hint("`anabranch group reset` moves a group's offsets"));
    }
    if args.count == Some(0) {
        return Ok(());
    }
    let mut reader = Reader::start(args, layout)?;
    let read = reader.read().and_then(|()| reader.all_was_read());
    let closed = reader.close();
    read.and(closed)
}

/// A consumer with what it has still to do.
struct Reader<'a> {
    args: &'a Args,
    layout: Layout,
    consumer: BaseConsumer<Printed>,
    /// Partitions whose end has not been reached; only kept where there is an end to reach.
    remaining: Option<BTreeSet<i32>>,
    /// Where each partition ended at the start; empty for a group, which does not know its partitions beforehand.
    plan: Plan,
    out: BufWriter<io::Stdout>,
    interrupted: Arc<AtomicBool>,
    count: u64,
    committed_at: Instant,
    down_since: Option<Instant>,
    unreadable: Unreadable,
}

impl<'a> Reader<'a> {
    fn start(args: &'a Args, layout: Layout) -> Outcome<Reader<'a>> {
        let admin = Admin::connect(&args.connection)?;
        let plan = position::plan(&admin, &args.topic, &args.partitions, args.from)?;
        let consumer = connect(args)?;
        let remaining = match &args.group {
            Some(_) => {
                consumer
                    .subscribe(&[&args.topic])
                    .map_err(|error| failed("subscribe", &error))?;
                None
            }
            None => {
                consumer
                    .assign(&assignment(args, &plan)?)
                    .map_err(|error| failed("assign", &error))?;
                args.until_end.then(|| plan.unfinished())
            }
        };
        Ok(Reader {
            args,
            layout,
            consumer,
            remaining,
            plan,
            out: BufWriter::with_capacity(1 << 16, io::stdout()),
            interrupted: crate::interrupt::flag()?,
            count: 0,
            committed_at: Instant::now(),
            down_since: None,
            unreadable: Unreadable::default(),
        })
    }

    /// Prints records until there is a reason to stop.
    fn read(&mut self) -> Outcome {
        loop {
            if self.remaining.as_ref().is_some_and(BTreeSet::is_empty) {
                return Ok(());
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return self.was_interrupted();
            }
            let consumer = &self.consumer;
            let polled = match consumer.poll(Duration::ZERO) {
                Some(polled) => Some(polled),
                None => {
                    self.out.flush()?;
                    consumer.context().flushed();
                    output::check_reader()?;
                    consumer.poll(POLL)
                }
            };
            match polled {
                Some(Ok(message)) => {
                    self.down_since = None;
                    print(&mut self.out, &self.layout, &message)?;
                    let (partition, offset) = (message.partition(), message.offset());
                    self.consumer.context().printed(partition, offset + 1);
                    self.count += 1;
                    if Some(self.count) == self.args.count {
                        return Ok(());
                    }
                    if offset + 1 >= self.plan.end(partition) {
                        self.reached_end(partition);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    self.down_since = None;
                    self.reached_end(partition);
                }
                Some(Err(error)) => self.consider(&error)?,
                None => {}
            }
            self.consider_refusals()?;
            self.group_end();
            self.commit_sometimes()?;
        }
    }

    fn reached_end(&mut self, partition: i32) {
        if let Some(remaining) = &mut self.remaining {
            remaining.remove(&partition);
        }
        self.consumer.context().at_end(partition);
    }

    /// A member of a group is at the end when it has partitions, or has been told that it gets none, and all of them
    /// are at their ends.
    fn group_end(&mut self) {
        if self.args.until_end && self.args.group.is_some() && self.consumer.context().all_at_end() {
            self.remaining = Some(BTreeSet::new());
        }
    }

    /// A partition that the broker cannot read is left; the others are read on, if there are any.
    fn consider_refusals(&mut self) -> Outcome {
        for (partition, refused) in self.consumer.context().refused() {
            if self.unreadable.add(partition, refused) {
                let all = match &self.args.group {
                    Some(_) => self.consumer.context().assigned_count(),
                    None => self.plan.starts().count(),
                };
                if self.unreadable.count() >= all {
                    return self.all_was_read();
                }
                output::say(&format!(
                    "{}; reading the other partitions",
                    self.cannot_read().message
                ));
            }
            self.reached_end(partition);
        }
        Ok(())
    }

    fn cannot_read(&self) -> Failure {
        self.unreadable
            .failure(&self.args.topic, self.args.group.is_some())
    }

    /// That nothing was left because the broker could not read it, unless there is as much as was asked for.
    fn all_was_read(&self) -> Outcome {
        if self.unreadable.is_empty() || Some(self.count) == self.args.count {
            Ok(())
        } else {
            Err(self.cannot_read())
        }
    }

    fn was_interrupted(&self) -> Outcome {
        if self.args.count.is_none() && !self.args.until_end {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "interrupted after {}",
            output::plural(self.count, "record")
        )))
    }

    /// Decides whether an error ends the run. librdkafka goes on by itself where it can.
    fn consider(&mut self, error: &KafkaError) -> Outcome {
        let topic = &self.args.topic;
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => Err(
                Failure::not_found(format!("topic \"{topic}\" does not exist any more")),
            ),
            Some(
                RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Resolve,
            ) => self.broker_is_down(),
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                Err(Failure::failed(format!(
                    "the place to read from in topic \"{topic}\" is gone: older records were deleted"
                )))
            }
            _ => Err(failed("read", error)),
        }
    }

    fn broker_is_down(&mut self) -> Outcome {
        let broker = self.args.connection.broker();
        let reason = self.consumer.context().last_error();
        let since = match self.down_since {
            Some(since) => since,
            None => {
                output::say(&format!(
                    "lost the broker {broker}, trying again: {}",
                    reason.as_deref().unwrap_or("the connection was closed")
                ));
                Instant::now()
            }
        };
        self.down_since = Some(since);
        let waits_for_an_end = self.args.until_end || self.args.count.is_some();
        let timeout = self.args.connection.timeout();
        if waits_for_an_end && since.elapsed() >= timeout {
            Err(no_answer(broker, timeout, reason))
        } else {
            Ok(())
        }
    }

    fn commit_sometimes(&mut self) -> Outcome {
        if self.args.group.is_some() && self.committed_at.elapsed() >= COMMIT_INTERVAL {
            self.out.flush()?;
            self.consumer.context().flushed();
            self.commit(CommitMode::Async)?;
            self.committed_at = Instant::now();
        }
        Ok(())
    }

    fn commit(&self, mode: CommitMode) -> Outcome {
        let offsets = self.consumer.context().to_commit(&self.args.topic);
        if offsets.count() == 0 {
            return Ok(());
        }
        self.consumer
            .commit(&offsets, mode)
            .map_err(|error| failed("commit", &error))
    }

    /// Completes the output, commits it, and leaves the group.
    fn close(mut self) -> Outcome {
        self.out.flush()?;
        self.consumer.context().flushed();
        if self.args.group.is_some() {
            self.commit(CommitMode::Sync)
        } else {
            Ok(())
        }
    }
}

fn connect(args: &Args) -> Outcome<BaseConsumer<Printed>> {
    let mut config = args.connection.config()?;
    let reset = match (&args.group, args.from) {
        (None, _) => "error",
        (Some(_), From::End) => "latest",
        (Some(_), _) => "earliest",
    };
    let own = [
        ("enable.partition.eof", "true"),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", reset),
        ("queued.max.messages.kbytes", "65536"),
        // With a full queue librdkafka waits a second before it asks for more, which a queue of small records is in no time.
        ("fetch.queue.backoff.ms", "20"),
        ("debug", DEBUG_FETCH),
    ];
    for (name, value) in own {
        if config.get(name).is_none() {
            config.set(name, value);
        }
    }
    config.set_log_level(RDKafkaLogLevel::Debug);
    // Without a group of its own the consumer neither joins nor commits; the library just wants a name.
    config.set("group.id", args.group.as_deref().unwrap_or("anabranch-consume"));
    config
        .create_with_context(Printed::new(&args.topic))
        .map_err(|error| Failure::usage(setup_error(&error)))
}

fn assignment(args: &Args, plan: &Plan) -> Outcome<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (partition, start) in plan.starts() {
        if args.until_end && start >= plan.end(partition) {
            continue;
        }
        list.add_partition_offset(&args.topic, partition, Offset::Offset(start))
            .map_err(|error| failed("assign", &error))?;
    }
    Ok(list)
}

fn print(out: &mut impl Write, layout: &Layout, message: &BorrowedMessage<'_>) -> Outcome {
    layout.write(out, &crate::client::received(message))?;
    Ok(())
}

fn failed(doing: &str, error: &KafkaError) -> Failure {
    let text = error
        .rdkafka_error_code()
        .map_or_else(|| error.to_string(), |code| as_clause(&text_of(code)));
    Failure::failed(format!("cannot {doing}: {text}"))
}
