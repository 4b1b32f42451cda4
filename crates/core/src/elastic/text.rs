//! Decisions and refusals as one sentence each, for people.

use super::decision::{Change, Decision, How, Kind, Move, Refusal, ShareChange, Why, WhyNot};
use super::inputs::Inputs;

/// Most members that a sentence names.
const NAMES_MAX: usize = 4;

impl Decision {
    /// What was done, and why, in one sentence.
    pub fn sentence(&self) -> String {
        let change = &self.change;
        let first = change.moves.first();
        let of = first.map_or_else(String::new, |moved| moved.of.to_string());
        let owner = first.and_then(|moved| moved.from.clone()).unwrap_or_default();
        let to = first.map_or("", |moved| &moved.to);
        match change.kind {
            Kind::Split | Kind::Steal => format!(
                "the {} records of {owner} in {of} are divided: {}; {}{}",
                number(before(change)),
                list(&change.shares, |share| format!(
                    "{} for {}",
                    number(share.after),
                    share.member
                )),
                why(change),
                means(change),
            ),
            Kind::Isolate => format!(
                "one slot has most of the {} records of {owner} in {of}: it stays alone, and {} the rest; {}{}",
                number(before(change)),
                takers(change, "takes", "take"),
                why(change),
                means(change),
            ),
            Kind::Merge => format!(
                "{} {} slots of {of} that nobody had",
                takers(change, "gets", "get"),
                slots(change)
            ),
            Kind::Balance => balance(change),
            Kind::Return => format!(
                "{} slots of {of} go back to {to}: its commits did not prove in time that what it was handed is done",
                slots(change),
            ),
            Kind::Fold => format!("the shares of {of} flow together at {to}, since {}", calm(change)),
            Kind::Plain => format!("{of} becomes plain again at {owner}, since {}", calm(change)),
        }
    }
}

impl Refusal {
    /// What was not done, and why, in one sentence.
    pub fn sentence(&self) -> String {
        let asked = match &self.inputs {
            Inputs::Divide(inputs) => {
                let names = list(&inputs.needy, |needy| needy.id.clone());
                format!("no work for {names}")
            }
            Inputs::Grant(inputs) => format!(
                "{} slots of {} stay without a holder",
                inputs.slots.len(),
                inputs.of
            ),
            _ => "nothing is done".to_owned(),
        };
        match &self.about {
            Some((of, owner)) => format!(
                "{asked}: the largest share, {owner}'s of {of}, {}",
                self.why_not.sentence()
            ),
            None => format!("{asked}: {}", self.why_not.sentence()),
        }
    }
}

impl WhyNot {
    /// What stands in the way. Where it is about a share, that is the subject and is not named.
    pub fn sentence(&self) -> String {
        match self {
            Self::Paused => "changes are paused by the operator".to_owned(),
            Self::NothingToServe => "no topic that they subscribe to has a share to divide".to_owned(),
            Self::NoReceiver => "no member is there that may take them".to_owned(),
            Self::Waiting { left_ms } => format!("it is not time yet, for another {left_ms} ms"),
            Self::NotQuiet => "there are records to read".to_owned(),
            Self::EvenEnough => "no move would make the loads more equal by enough".to_owned(),
            Self::Off => "is of a topic with elastic.mode=off".to_owned(),
            Self::Queues => "is of a topic with elastic.mode=queues".to_owned(),
            Self::Excluded { text } => format!("is of a topic that is not divided: {text}"),
            Self::Ineligible { member, text } => {
                format!("cannot be divided while {member} is in the group: {text}")
            }
            Self::BelowThreshold { remaining, needed } => format!(
                "has parts of {} records, and dividing begins at {}",
                number(*remaining),
                number(*needed)
            ),
            Self::FinishingSoon { left_ms, needed_ms } => {
                format!("will be done in {left_ms} ms, and is left alone below {needed_ms} ms")
            }
            Self::Cooldown { left_ms } => {
                format!("is of a topic that was just divided; it may be again in {left_ms} ms")
            }
            Self::SlicesMax { max } => {
                format!("is of a partition that {max} members share, the most that may")
            }
            Self::IdsExhausted => {
                "is of a partition without slice ids left; those of shares that are over come back after a week"
                    .to_owned()
            }
            Self::HotKey { slot, records } => format!(
                "has its {} records in slot {} alone, which one member must process in order",
                number(*records),
                slot.get()
            ),
            Self::Rewound => {
                "is held by a member that reads again what it had before, until it has committed that".to_owned()
            }
            Self::Blind => "is not known well enough since the restart".to_owned(),
            Self::ChainFull => "has as many slices as may be until its owner commits".to_owned(),
            Self::NeverCommits => {
                "is held by a member that takes records and does not commit; look whether it is stuck".to_owned()
            },
            Self::InTransit => "is of a partition of which slots are on their way already".to_owned(),
            Self::OwnerAbsent => "is held by a member that is leaving, or away for a moment".to_owned(),
        }
    }
}

fn balance(change: &Change) -> String {
    let count = change.moves.len();
    let partitions = if count == 1 {
        "partition is"
    } else {
        "partitions are"
    };
    let loads = list(&change.shares, |share: &ShareChange| {
        format!(
            "{} {} after {}",
            share.member,
            number(share.after),
            number(share.before)
        )
    });
    let why = match change.why {
        Why::NoHolder => "some had no holder",
        Why::MemberIdle => "a member had nothing",
        _ => "the loads differed",
    };
    format!("{count} {partitions} placed, since {why}; records to process: {loads}")
}

fn takers(change: &Change, one: &str, many: &str) -> String {
    let moved: Vec<&Move> = change
        .moves
        .iter()
        .filter(|moved| moved.from.as_ref() != Some(&moved.to))
        .collect();
    let names = list(&moved, |moved| moved.to.clone());
    format!("{names} {}", if moved.len() == 1 { one } else { many })
}

fn slots(change: &Change) -> usize {
    change.moves.iter().map(|moved| moved.slots.len()).sum()
}

fn before(change: &Change) -> u64 {
    change.shares.first().map_or(0, |share| share.before)
}

fn why(change: &Change) -> &'static str {
    match change.why {
        Why::MemberDrained => "the others had processed everything of theirs",
        _ => "the others had nothing",
    }
}

fn means(change: &Change) -> &'static str {
    match change.moves.first().map(|moved| moved.how) {
        Some(How::Regrant) => {
            " (its owner gives it up once, since much was handed out already or commits are rare)"
        }
        Some(How::Divide) => " (its owner gives the partition up once, this first time)",
        _ => "",
    }
}

fn calm(change: &Change) -> &'static str {
    match change.why {
        Why::SwitchedOff => "the topic is not to be divided any more",
        _ => "there has been nothing to read for long",
    }
}

/// The first few, and how many more there are.
fn list<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = values.iter().take(NAMES_MAX).map(text).collect();
    let more = values.len().saturating_sub(shown.len());
    match (shown.split_last(), more) {
        (None, _) => "nobody".to_owned(),
        (Some(_), 1..) => format!("{} and {more} more", shown.join(", ")),
        (Some((last, [])), 0) => last.clone(),
        (Some((last, first)), 0) => format!("{} and {last}", first.join(", ")),
    }
}

/// A number with its thousands apart.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
