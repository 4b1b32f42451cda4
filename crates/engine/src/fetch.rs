//! Fetch: what a reader may see, and reading it.
//!
//! ```text
//! look    (owner's lock): resolve topics, check epochs, bounds of each partition; of an offset with a slice id, its slice
//! read    (no lock):      up to the high watermark, from memory; if that does not have it, all of it from the disk
//! reserve (owner's lock): records of slices are noted as handed out, before the answer leaves; if a slice has changed
//!                         meanwhile, all begins anew
//! ```
//!
//! The first batch of the first partition that has one is read whole, however large (KIP-74); what follows obeys
//! `bytes_max` and each partition's own limit.

use anabranch_core::cursor::SliceOffset;
use anabranch_core::ids::{LogId, Offset, TopicId};
use anabranch_core::log::{FetchBounds, Log};
use anabranch_core::node::{Node, TopicRef};
use anabranch_store::{ReadError, Store};
use anabranch_wire::ErrorCode;
use bytes::Bytes;

use crate::slice_fetch::{OfSlice, Part, see_slice};
use crate::slices::{ScanCache, SourceError};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// It is to wait until there is this much.
    pub bytes_min: usize,
    /// It gets no more than this, but for the first batch.
    pub bytes_max: usize,
    /// From where.
    pub topics: Vec<WantTopic>,
}

/// Partitions of one topic that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantTopic {
    /// The topic.
    pub place: Place,
    /// The partitions.
    pub partitions: Vec<Want>,
}

/// A topic as the client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// By name.
    Name(String),
    /// By id.
    Id(TopicId),
}

impl Place {
    /// The same, borrowed.
    pub fn as_ref(&self) -> TopicRef<'_> {
        match self {
            Self::Name(name) => TopicRef::Name(name),
            Self::Id(id) => TopicRef::Id(*id),
        }
    }
}

/// One partition that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The partition.
    pub partition: i32,
    /// The client's idea of the leader epoch, -1 if it has none.
    pub leader_epoch: i32,
    /// From where.
    pub offset: Offset,
    /// The partition's own limit.
    pub bytes_max: usize,
}

/// One look at a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its log.
    pub log: LogId,
    /// What a reader may see of it.
    pub bounds: FetchBounds,
    /// Which of its records are asked for.
    pub part: Part,
}

/// One look at everything that is asked for: one item per [`Want`], in order.
pub type Look = Vec<Result<Seen, ErrorCode>>;

/// What was read, per [`Want`].
pub type Reads = Vec<Result<Read, FetchError>>;

/// What was read of one partition.
#[derive(Debug, Default)]
pub struct Read {
    /// Batches, one behind the other.
    pub batches: Vec<Bytes>,
    /// Of a slice: which records they have.
    pub of_slice: Option<OfSlice>,
}

/// Why a partition was not read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The look had refused it.
    #[error("refused with {0:?}")]
    Refused(ErrorCode),
    /// The store could not read it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The records of a slice could not be read.
    #[error(transparent)]
    Slice(#[from] SourceError),
}

impl FetchError {
    /// The Kafka error code to answer with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(code) => *code,
            Self::Read(_) | Self::Slice(_) => ErrorCode::KafkaStorageError,
        }
    }
}

/// Where may be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory alone: never blocks.
    Memory,
    /// Memory or disk: may block.
    Disk,
}

impl Fetch {
    /// All partitions in order.
    pub fn wants(&self) -> impl Iterator<Item = &Want> {
        self.topics.iter().flat_map(|topic| &topic.partitions)
    }

    /// Looks at all of them.
    pub fn look(&self, node: &Node) -> Look {
        self.topics.iter().flat_map(|topic| see(node, topic)).collect()
    }

    /// Whether a slice is among what was seen.
    pub fn has_slices(look: &Look) -> bool {
        look.iter().flatten().any(|seen| seen.part != Part::Whole)
    }

    /// Whether there is nothing to read, and no error to tell.
    pub fn finds_nothing(&self, look: &Look) -> bool {
        !look.is_empty() && self.pairs(look).all(is_at_end)
    }

    /// How much may be read, bytes, the first batch aside; `None` if there is nothing to read anywhere.
    pub fn bytes_expected(&self, look: &Look) -> Option<usize> {
        let mut open = self
            .pairs(look)
            .filter(|pair| pair.0.is_ok() && !is_at_end(*pair))
            .peekable();
        open.peek()?;
        let bytes = open
            .map(|(_, want)| want.bytes_max)
            .fold(0, usize::saturating_add);
        Some(bytes.min(self.bytes_max))
    }

    /// What [`Self::read`] gives if there is nothing to read.
    pub fn nothing(&self, look: &Look) -> Reads {
        look.iter()
            .map(|seen| match seen {
                Ok(_) => Ok(Read::default()),
                Err(error) => Err(FetchError::Refused(*error)),
            })
            .collect()
    }

    /// Reads all partitions within the limits; `None` if the disk is needed and must not be used.
    pub fn read(&self, store: &Store, scans: &ScanCache, look: &Look, source: Source) -> Option<Reads> {
        let mut left = self.bytes_max;
        let mut is_first = true;
        let mut all = Vec::with_capacity(look.len());
        for (seen, want) in self.pairs(look) {
            let bytes_max = left.min(want.bytes_max);
            let read = match seen {
                Err(error) => Err(FetchError::Refused(*error)),
                Ok(_) if is_at_end((seen, want)) => Ok(Read::default()),
                Ok(_) if !is_first && bytes_max == 0 => Ok(Read::default()),
                Ok(seen) => match &seen.part {
                    Part::Slice(slice) => {
                        let hand = (seen.log, seen.bounds, bytes_max);
                        slice.read(store, scans, hand, source)?
                    }
                    Part::Whole | Part::Later(_) | Part::Nothing => {
                        read_one(store, seen, want, bytes_max, is_first, source)?
                    }
                },
            };
            if let Ok(read) = &read {
                let bytes: usize = read.batches.iter().map(Bytes::len).sum();
                left = left.saturating_sub(bytes);
                is_first &= bytes == 0;
            }
            all.push(read);
        }
        Some(all)
    }

    /// Whether this is to be answered before its time is up. An error is answered at once, so that the client can act on it.
    pub fn is_enough(&self, reads: &Reads) -> bool {
        reads.is_empty()
            || reads.iter().any(Result::is_err)
            || size(reads) >= self.bytes_min.min(self.bytes_max.max(1))
    }

    fn pairs<'a>(
        &'a self,
        look: &'a Look,
    ) -> impl Iterator<Item = (&'a Result<Seen, ErrorCode>, &'a Want)> + 'a {
        look.iter().zip(self.wants())
    }
}

/// Bytes that were read.
pub fn size(reads: &Reads) -> usize {
    let batches = reads.iter().flatten().flat_map(|read| &read.batches);
    batches.map(Bytes::len).sum()
}

/// Whether the client's idea of the leader epoch is right; negative is none. FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
pub fn check_leader_epoch(log: &Log, epoch: i32) -> Result<(), ErrorCode> {
    match epoch {
        ..0 => Ok(()),
        epoch if epoch < log.leader_epoch() => Err(ErrorCode::FencedLeaderEpoch),
        epoch if epoch > log.leader_epoch() => Err(ErrorCode::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

fn is_at_end((seen, want): (&Result<Seen, ErrorCode>, &Want)) -> bool {
    seen.as_ref().is_ok_and(|seen| match &seen.part {
        Part::Whole => want.offset >= seen.bounds.high_watermark,
        Part::Later(_) | Part::Nothing => true,
        Part::Slice(slice) => slice.is_at_end(seen.bounds.high_watermark),
    })
}

/// Resolves and checks the partitions of one topic.
fn see<'a>(node: &'a Node, wanted: &'a WantTopic) -> impl Iterator<Item = Result<Seen, ErrorCode>> + 'a {
    let topic = node.find_topic(wanted.place.as_ref());
    wanted.partitions.iter().map(move |want| {
        let topic = topic?;
        let log = topic.log(want.partition).and_then(|log| node.log(log));
        let log = log.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if let Some(at) = SliceOffset::from_wire(want.offset).filter(|at| at.slice().is_some()) {
            // The epoch of the log says nothing about a slice, and clients ask with one that lags behind.
            return see_slice(node, log, (topic.id, want.partition), at);
        }
        check_leader_epoch(log, want.leader_epoch)?;
        Ok(Seen {
            log: log.id(),
            bounds: log.fetch_bounds(want.offset)?,
            part: Part::Whole,
        })
    })
}

fn read_one(
    store: &Store,
    seen: &Seen,
    want: &Want,
    bytes_max: usize,
    at_least_one: bool,
    source: Source,
) -> Option<Result<Read, FetchError>> {
    let whole = |batches| Read {
        batches,
        of_slice: None,
    };
    let upto = seen.bounds.high_watermark;
    if let Some(batches) = store.try_read(seen.log, want.offset, upto, bytes_max, at_least_one) {
        return Some(Ok(whole(batches)));
    }
    match source {
        Source::Memory => None,
        Source::Disk => {
            let read = store.read(seen.log, want.offset, upto, bytes_max, at_least_one);
            Some(read.map(whole).map_err(FetchError::Read))
        }
    }
}
