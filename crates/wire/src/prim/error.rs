//! What can be wrong with bytes, and with values.

use crate::ErrorCode;

/// Bytes that are not the message they should be: which field, where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at byte {position}: {kind}")]
pub struct DecodeError {
    /// `Struct.field` that was being read.
    pub field: &'static str,
    /// Bytes from the start of the frame (behind its length prefix).
    pub position: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// The ways in which bytes can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The frame, or the tagged field, ends inside the value.
    #[error("needs {needed} bytes, {left} are left")]
    End {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// An array claims more elements than the remaining bytes can hold.
    #[error("an array of {count} elements cannot lie in {left} bytes")]
    Count {
        /// Elements claimed.
        count: u32,
        /// Bytes that are there.
        left: usize,
    },
    /// A length or count below -1.
    #[error("{0} is no length")]
    NegativeLength(i32),
    /// A string, array or struct is null where the version does not allow it.
    #[error("null is not allowed here")]
    Null,
    /// The text is not UTF-8.
    #[error("the text is not valid UTF-8")]
    Utf8,
    /// A variable-length integer with more bits than its type.
    #[error("a variable-length integer is too long")]
    Varint,
    /// A tag that is not above the one before it.
    #[error("tag {tag} comes after tag {before}; tags must ascend")]
    TagOrder {
        /// The tag.
        tag: u32,
        /// Its predecessor.
        before: u32,
    },
    /// A tagged field that is shorter than its stated size.
    #[error("the value of tag {tag} leaves {left} bytes of its size unread")]
    TagSize {
        /// The tag.
        tag: u32,
        /// Bytes left.
        left: usize,
    },
    /// Bytes behind the end of the message.
    #[error("{0} bytes follow the end of the message")]
    Trailing(usize),
    /// The message has no such version.
    #[error("version {0} does not exist")]
    Version(i16),
    /// The decoded elements would take more memory than allowed.
    #[error("the elements take more than {0} bytes of memory")]
    Memory(usize),
}

impl DecodeError {
    /// What to answer, where an answer can be framed: `UNSUPPORTED_VERSION` or `INVALID_REQUEST`.
    pub fn code(&self) -> ErrorCode {
        match self.kind {
            DecodeErrorKind::Version(_) => ErrorCode::UnsupportedVersion,
            _ => ErrorCode::InvalidRequest,
        }
    }
}

/// A value that the version cannot carry: a mistake of the caller, not of the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} in version {version}: {kind}")]
pub struct EncodeError {
    /// `Struct.field` that was being written.
    pub field: &'static str,
    /// The version to encode.
    pub version: i16,
    /// What is wrong with the value.
    pub kind: EncodeErrorKind,
}

/// The ways in which a value can be unfit for a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// The version lacks the field, the value is not the default, and the schema does not let it be dropped.
    #[error("the version lacks this field, and its value is not the default")]
    NotInVersion,
    /// Null where the version does not allow it.
    #[error("null is not allowed here")]
    Null,
    /// Longer than the length field can say.
    #[error("a length of {0} does not fit its length field")]
    TooLong(usize),
    /// The message has no such version.
    #[error("no such version")]
    Version,
}
