//! How a member behaves: its library has some manners, the program that uses it has others, and its machine has a clock.

use super::Style;
use super::library::{Ahead, Library, STRANGE, Stands};
use crate::net::Introduction;
use crate::rng::Rng;

/// How a member behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Its group.
    pub group: String,
    /// Topics it subscribes to.
    pub topics: Vec<String>,
    /// Protocol.
    pub style: Style,
    /// Instance id of a static member.
    pub instance: Option<String>,
    /// The client library.
    pub library: &'static Library,
    /// What it says of itself.
    pub introduction: Introduction,
    /// What its commits mean.
    pub ahead: Ahead,
    /// Commits after each batch, and waits for it, instead of now and then.
    pub manual: bool,
    /// Interval of commits otherwise, milliseconds.
    pub commit_ms: u64,
    /// How long a record takes, microseconds.
    pub work_us: u64,
    /// Most records that the program takes at once.
    pub batch_max: usize,
    /// It fetches more while it holds fewer records than this.
    pub buffer_min: usize,
    /// So long the program waits before it takes the next batch, milliseconds: what comes meanwhile is in it.
    pub linger_ms: u64,
    /// Its clock shows so many percent of the time that passes.
    pub clock_percent: u64,
    /// What it does now and then that others do not.
    pub whims: Vec<Whim>,
    /// How often it thinks of that, milliseconds.
    pub whim_ms: u64,
    /// How many times of a hundred it does it then.
    pub whim_percent: u64,
}

/// What a member does now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whim {
    /// Sends an old commit again.
    Resend,
    /// Sends a request twice.
    Double,
    /// Goes back to a record that it had before.
    SeekBack,
    /// Goes back to where the partition begins.
    SeekToBeginning,
    /// Passes records over.
    SeekAhead,
    /// Its heartbeats stop for longer than its session, while it works, commits and fetches.
    Deaf,
    /// Reads nothing for a while, and is a member all the same.
    Rest,
    /// Its program says itself what is committed, and says it again once the member that was expelled is one anew: what
    /// was done before, of partitions that it does not have any more or not yet.
    Insist,
    /// Gives its subscription up and takes it again at once, with the same member id (consumer protocol).
    Resubscribe,
}

impl Whim {
    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        WHIMS.iter().map(|(whim, _)| *whim)
    }

    /// Whether the member goes to another position.
    pub fn is_seek(self) -> bool {
        matches!(self, Self::SeekBack | Self::SeekToBeginning | Self::SeekAhead)
    }
}

/// How many members of a hundred wait before they take a batch, and how long at most, milliseconds.
const LINGER_PERCENT: u64 = 15;
const LINGER_MS_MAX: u64 = 150;
/// A member has a whim so often, milliseconds.
const WHIM_MS: u64 = 1_500;
/// How many of these times of a hundred it gives way to it.
const WHIM_PERCENT: u64 = 25;
const WHIMS: [(Whim, u64); 9] = [
    (Whim::Resend, 20),
    (Whim::Double, 20),
    (Whim::SeekBack, 12),
    (Whim::SeekToBeginning, 4),
    (Whim::SeekAhead, 12),
    (Whim::Deaf, 8),
    (Whim::Rest, 15),
    (Whim::Insist, 40),
    (Whim::Resubscribe, 15),
];

impl Habits {
    /// Draws the rest of the habits of a member with this library.
    pub fn draw(
        rng: &mut Rng,
        (group, topics): (&str, &[String]),
        library: &'static Library,
        index: usize,
    ) -> Self {
        let styles = library.styles();
        let batches = [1, 4, 20, 500];
        let buffers = [1, 30, 300];
        let mut habits = Self {
            group: group.to_owned(),
            topics: topics.to_vec(),
            style: rng.pick(&styles).copied().unwrap_or(Style::Eager),
            instance: None,
            library,
            introduction: library.introduction(index),
            ahead: library.ahead,
            manual: rng.percent(40),
            commit_ms: rng.between(300, 3_000),
            work_us: 0,
            batch_max: rng.pick(&batches).copied().unwrap_or(1),
            buffer_min: rng.pick(&buffers).copied().unwrap_or(1),
            linger_ms: 0,
            clock_percent: if rng.percent(20) {
                rng.between(60, 140)
            } else {
                100
            },
            whims: WHIMS
                .iter()
                .filter(|(_, percent)| rng.percent(*percent))
                .map(|(whim, _)| *whim)
                .filter(|whim| library.seeks || !whim.is_seek())
                .collect(),
            whim_ms: WHIM_MS,
            whim_percent: WHIM_PERCENT,
        };
        if rng.percent(LINGER_PERCENT) {
            habits.linger_ms = rng.between(1, LINGER_MS_MAX);
        }
        // Where the answer to a commit waits behind a fetch that waits, a program that commits each record by hand would get
        // through three a second.
        if library.one_line && habits.manual {
            habits.batch_max = habits.batch_max.max(20);
        }
        habits
    }

    /// From now on it has this whim, if its library can, and follows it all the time.
    pub(super) fn obsess(&mut self, whim: Whim, whim_ms: u64) {
        if self.library.seeks || !whim.is_seek() {
            self.whims = vec![whim];
            self.whim_ms = whim_ms;
            self.whim_percent = 100;
        }
    }

    /// Whether it has a whim.
    pub fn has(&self, whim: Whim) -> bool {
        self.whims.contains(&whim)
    }

    /// Whether nobody knows what its library does.
    pub(super) fn is_strange(&self) -> bool {
        STRANGE.iter().any(|strange| std::ptr::eq(strange, self.library))
    }

    /// Whether it seems to be another client than the one of its number.
    pub(super) fn is_twin(&self, index: usize) -> bool {
        self.introduction.host != Introduction::of(index).host
    }

    /// The position behind the last record of an answer, given both ends; and the one that is committed.
    pub(super) fn behind(&self, header_end: i64, last_record: i64) -> (i64, i64) {
        let by_record = last_record + 1;
        match self.library.stands {
            Stands::HeaderEnd => (header_end, header_end),
            Stands::HeaderEndByRecord => (header_end, by_record),
            Stands::LastRecord => (by_record, by_record),
        }
    }
}
