//! Records, to look at.

use serde::{Deserialize, Serialize};

/// Records of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Messages {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// First offset that is still there.
    pub log_start: i64,
    /// Offset that the next record gets.
    pub log_end: i64,
    /// The records that match, in the order of their offsets.
    pub messages: Vec<Message>,
    /// The offset to go on at; `None` at the end of the partition.
    pub next: Option<i64>,
    /// How many records were looked at.
    pub searched: u64,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Message {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, milliseconds since 1970; -1 if it has none.
    pub time_ms: i64,
    /// Its slot: which share of a divided partition it belongs to.
    pub slot: u16,
    /// The key; `None` if it has none.
    pub key: Option<Text>,
    /// The value; `None` for a tombstone.
    pub value: Option<Text>,
    /// The headers, the first 32 of them.
    pub headers: Vec<Header>,
}

/// A header of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<Text>,
}

/// Bytes, as far as they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Text {
    /// The bytes as text if they are UTF-8, else in hexadecimal; what is beyond the bound that was asked for is left out.
    pub text: String,
    /// Whether `text` is hexadecimal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hex: bool,
    /// How many bytes there are.
    pub bytes: u64,
    /// Whether bytes were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}
