//! What a check found.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// It will go wrong some day, or is slow.
    Warning,
    /// It is wrong.
    Error,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// What was seen and what it means, in lower case and without a full stop.
    pub(super) message: String,
    /// What to do about it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Finding {
        Finding {
            check,
            level,
            message: message.into(),
            remedy: None,
        }
    }

    pub(super) fn good(check: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Good, message)
    }

    pub(super) fn note(check: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(check, Level::Note, message)
    }

    pub(super) fn warning(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Level::Warning, message).remedy(remedy)
    }

    pub(super) fn error(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Level::Error, message).remedy(remedy)
    }

    #[must_use]
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedy = Some(remedy.into());
        self
    }

    /// One line, and one more with what to do.
    pub(super) fn text(&self) -> String {
        let level = match self.level {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "ERROR",
        };
        let mut text = format!("{level:<8} {:<10} {}\n", self.check, self.message);
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("{:<19} -> {remedy}\n", ""));
        }
        text
    }
}
