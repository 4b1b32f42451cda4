//! The reference page of all commands, made from the help texts themselves.

use clap::{Command, CommandFactory};

use crate::cli::Cli;

const INTRODUCTION: &str = "\
# Commands

<!-- Made by `anabranch reference`; a test holds this page against the help texts. -->

`anabranch serve` is the broker. The other commands are clients: they speak to any Kafka broker through librdkafka, so
what they can do, other clients can do as well. Only what the Kafka protocol has no words for, slices and decisions, comes
from the HTTP listener of an Anabranch broker. So does all that `top` shows.

## Rules that hold for all of them

- `--bootstrap HOST:PORT` (`-b`, also `--bootstrap-server` and `--brokers`) names the broker, else the environment
  variable `ANABRANCH_BOOTSTRAP`, else `127.0.0.1:9092`. Without a port, 9092 is meant.
- `--timeout DURATION` is how long to wait for the broker (10 s), `-X KEY=VALUE` sets a property of librdkafka.
- These three may stand before the command or behind it: `anabranch -b HOST:PORT topic list`. What stands behind is
  stronger.
- `--admin URL` names the broker's HTTP listener where slices and decisions are asked for, else the environment variable
  `ANABRANCH_ADMIN`, else `http://127.0.0.1:9099`. `group describe` works without it, and then shows no slices.
- `--format json` prints one JSON document on standard output, and errors as a JSON object on standard error:
  `{\"error\":\"...\",\"hint\":\"...\",\"exit_code\":3}`.
- Results go to standard output, everything said to a person to standard error. Progress is shown only on a terminal.
- A reader that goes away (`anabranch consume t | head`) ends a command without an error.

| exit code | meaning |
|---|---|
| 0 | done; for `produce`: every record that was read is acknowledged |
| 1 | the command was understood and did not succeed |
| 2 | the command line or a setting is wrong |
| 3 | a topic, group, partition, offset or setting that was named does not exist |
| 4 | no broker was reached, or it did not answer in time |
| 128 + n | ended by signal n: a second Ctrl-C, or one during `produce` |

## Byte for byte

`produce` takes a line as the value of a record: every byte between two newlines, also carriage returns, bytes that are
not UTF-8, and nothing at all (an empty value, not a null one). `consume` prints the value and a newline. So a file of
lines comes out as it went in, as long as it ends with a newline and the topic has one partition. `--output json` keeps
everything else as well: keys, headers, timestamps and nulls; bytes that are not UTF-8 stand there in base 64, and
`produce --input json` reads the same lines.

Keys choose partitions as in Kafka's own clients (murmur2), so the same key comes to the same partition whoever sends.

`consume --group` commits what it has printed, every second and at the end, and leaves the group when it ends, also by
Ctrl-C.

## What the demo checks

`demo` writes down what each of its members, ordinary librdkafka consumers, did with every record, and then checks it
record by record: each was delivered; first deliveries of a key rise one by one; a replay runs forward from where it
starts and never begins below a commit; no two members work on one key at the same time. A record that is delivered again
is counted, and is no fault: delivery is at least once. `--format json` prints all of it when it ends.

`demo --mode queues` has consumers join one by one and leave one by one while records flow. After each change it waits until the
queue counts of the topic are their number and each has one queue, and fails if that takes a minute; at the end each record
must have come, and no queue may hold anything unread.
";

/// The page, in Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    // A fixed width, so that the page does not depend on the terminal.
    let root = Cli::command().term_width(100);
    section(&mut page, "anabranch", &root);
    page
}

/// Flags that all commands share, explained once above.
const SHARED: &[&str] = &["bootstrap", "timeout", "properties", "format", "admin"];

fn section(page: &mut String, path: &str, command: &Command) {
    let shown = SHARED.iter().fold(command.clone(), |command, name| {
        let has = command.get_arguments().any(|arg| arg.get_id() == name);
        if has {
            command.mut_arg(name, |arg| arg.hide(true))
        } else {
            command
        }
    });
    let help = shown.bin_name(path).term_width(100).render_help().to_string();
    let level = "#".repeat(1 + path.split(' ').count());
    page.push_str(&format!(
        "\n{level} {path}\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        section(page, &format!("{path} {}", child.get_name()), child);
    }
}
