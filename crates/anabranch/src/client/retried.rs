//! Refusals of the broker that librdkafka tries again by itself, for ever or until a record's time is up, and tells nobody but its
//! debug log. Whoever waits is to know what for, so they are read there.

/// The part of librdkafka's debug log that tells what became of Fetch requests; a value of its property `debug`.
pub(crate) const DEBUG_FETCH: &str = "fetch";

/// The same for Produce requests.
pub(crate) const DEBUG_PRODUCE: &str = "msg";

/// A partition that was asked for and refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchRefusal {
    pub(crate) partition: i32,
    /// As the client sees it: in a slice, the slice's.
    pub(crate) offset: i64,
    /// Kafka's name of the error, such as `KAFKA_STORAGE_ERROR`.
    pub(crate) error: String,
}

impl FetchRefusal {
    /// Reads `... TOPIC [PARTITION]: Fetch failed at offset OFFSET (leader epoch EPOCH): ERROR`; `None` for any other line.
    pub(crate) fn parse(facility: &str, line: &str) -> Option<FetchRefusal> {
        if facility != "FETCHERR" {
            return None;
        }
        let (place, rest) = line.rsplit_once("]: Fetch failed at offset ")?;
        let (_, partition) = place.rsplit_once('[')?;
        let (offset, rest) = rest.split_once(' ')?;
        let (_, error) = rest.rsplit_once(": ")?;
        Some(FetchRefusal {
            partition: partition.parse().ok()?,
            offset: offset.parse().ok()?,
            error: error.to_owned(),
        })
    }
}

/// Why a batch of records was refused, in librdkafka's words: from
/// `... MessageSet with N message(s) (...) encountered error: ERROR (actions ...)`; `None` for any other line.
pub(crate) fn produce_refusal<'a>(facility: &str, line: &'a str) -> Option<&'a str> {
    if facility != "MSGSET" {
        return None;
    }
    let (_, rest) = line.split_once(" encountered error: ")?;
    Some(rest.rsplit_once(" (actions ")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That the lines look like this is shown by the tests of the program that have a broker refuse.
    #[test]
    fn refusals_are_found_in_the_log() {
        let line = "[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: a [b [3]: Fetch failed at offset 60000 (leader epoch 0): KAFKA_STORAGE_ERROR";
        let expected = FetchRefusal {
            partition: 3,
            offset: 60000,
            error: "KAFKA_STORAGE_ERROR".to_owned(),
        };
        assert_eq!(FetchRefusal::parse("FETCHERR", line), Some(expected));
        assert_eq!(FetchRefusal::parse("FETCH", line), None);
        assert_eq!(
            FetchRefusal::parse("FETCHERR", "t [0]: Fetch failed at offset END: X"),
            None
        );
        let line = "[thrd:x]: x: t [0]: MessageSet with 3 message(s) (MsgId 0, BaseSeq -1) encountered error: Broker: Disk error (actions Refresh,Retry)";
        assert_eq!(produce_refusal("MSGSET", line), Some("Broker: Disk error"));
        assert_eq!(produce_refusal("PRODUCE", line), None);
    }
}
