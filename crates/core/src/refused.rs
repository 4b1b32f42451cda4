//! Why a request was refused.

use anabranch_wire::ErrorCode;
use std::fmt;

/// A refusal: the code that the client acts on, and a sentence for the person who reads its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    code: ErrorCode,
    message: String,
}

impl Refused {
    /// A refusal with its reason. The message names the thing and says what to do about it.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The Kafka error code to answer with.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The sentence for people, for APIs that carry one.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code.code())
    }
}

impl std::error::Error for Refused {}
