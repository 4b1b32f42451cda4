//! A command line that is not understood: clap says why, in the form that was asked for.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::{Exit, Failure};
use crate::output::{self, Format};

/// What to say to somebody who names a Kafka address to a command that asks the HTTP listener.
const OVER_HTTP: &str = "this command asks the broker's HTTP listener: --admin http://HOST:9099 names it";

/// Prints what is wrong, or the help that was asked for.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help && wants_json(std::env::args_os()) {
        output::report(&failure(&error.render().to_string()), Format::Json);
    } else {
        // Nobody listening is no failure of its own.
        let _ = error.print();
        if !is_help && let Some(hint) = hint(&error.render().to_string()) {
            output::say(&format!("hint: {hint}"));
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

/// Whether the command line asks for JSON, as far as that can be said of one that is not understood.
fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.collect();
    let split = arguments
        .windows(2)
        .any(|two| two[0] == "--format" && two[1] == "json");
    split || arguments.iter().any(|one| one == "--format=json")
}

/// clap's message as one of ours: the sentence is the error, and what follows is how it is right.
fn failure(rendered: &str) -> Failure {
    let mut parts = rendered.trim().splitn(2, "\n\n");
    let first = parts.next().unwrap_or_default();
    let message = first.trim_start_matches("error: ").split_whitespace();
    let failure = Failure::usage(message.collect::<Vec<_>>().join(" "));
    let rest: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
    match hint(rendered) {
        Some(hint) => failure.hint(hint),
        None if rest.is_empty() => failure,
        None => failure.hint(rest.join(" ")),
    }
}

fn hint(rendered: &str) -> Option<&'static str> {
    let names_broker = ["'-b'", "'--bootstrap'", "'--bootstrap-server'"];
    let is_unexpected = |name: &&str| rendered.contains(&format!("unexpected argument {name}"));
    let is_over_http = ["decisions ", "top ", "health "].iter().any(|command| {
        rendered
            .lines()
            .any(|line| line.starts_with("Usage:") && line.contains(command))
    });
    (is_over_http && names_broker.iter().any(is_unexpected)).then_some(OVER_HTTP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = OsString> {
        line.split(' ')
            .map(OsString::from)
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn json_is_recognized_without_the_rest_being_right() {
        assert!(wants_json(words("anabranch topic --format json crate")));
        assert!(wants_json(words("anabranch --format=json tpoic")));
        assert!(!wants_json(words("anabranch produce json --format text")));
    }

    #[test]
    fn messages_are_a_sentence_and_a_hint() {
        let rendered = "error: the following required arguments were not provided:\n  <TOPIC>\n\nUsage: anabranch produce <TOPIC>\n\nFor more information, try '--help'.\n";
        let failure = failure(rendered);
        assert_eq!(
            failure.message,
            "the following required arguments were not provided: <TOPIC>"
        );
        assert_eq!(
            failure.hint.as_deref(),
            Some("Usage: anabranch produce <TOPIC> For more information, try '--help'.")
        );
        let rendered = "error: unexpected argument '-b' found\n\nUsage: anabranch decisions [OPTIONS]\n";
        assert_eq!(hint(rendered), Some(OVER_HTTP));
        assert_eq!(
            hint("error: unexpected argument '-b' found\n\nUsage: anabranch version\n"),
            None
        );
    }
}
