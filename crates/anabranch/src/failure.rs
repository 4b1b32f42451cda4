//! How a command fails: what went wrong, what to do about it, and the exit code that a script sees.

use std::fmt;
use std::io;

use anabranch_server::is_unresolved_name;

/// Exit codes; documented in `docs/cli.md` and in `anabranch --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command was understood and did not succeed.
    Failed = 1,
    /// The command line or a setting is wrong.
    Usage = 2,
    /// A topic, group or setting that was named does not exist.
    NotFound = 3,
    /// No broker answered.
    Unreachable = 4,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong, in lower case and without a full stop.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The reader of the output went away (`| head`): nothing to report.
    pub(crate) quiet: bool,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            message: message.into(),
            hint: None,
            quiet: false,
        }
    }

    /// The command did not succeed.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Failed, message)
    }

    /// The command line or a setting is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Something that was named does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(Exit::NotFound, message)
    }

    /// No broker answered.
    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Unreachable, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// What the system says of an error, as part of a sentence: without the number that only programmers know.
pub(crate) fn reason(error: &io::Error) -> String {
    if is_unresolved_name(error) {
        return "the host name cannot be resolved".to_owned();
    }
    let text = error.to_string();
    uncapitalised(text.split(" (os error").next().unwrap_or_default())
}

/// The text as it stands within a sentence.
pub(crate) fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writing the output failed. A reader that has seen enough is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let failure = Failure::failed(format!("cannot write the output: {}", reason(&error)));
        Failure {
            quiet: error.kind() == io::ErrorKind::BrokenPipe,
            ..failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(reason(&missing), "no such file or directory");
        assert_eq!(reason(&io::Error::other("")), "");
    }
}
