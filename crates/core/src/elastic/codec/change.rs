//! Changes and refusal reasons.

use super::parts::{get_hot_key, get_partition, get_slots, put_hot_key, put_partition, put_slots};
use super::{Read, Reader, Writer};
use crate::elastic::decision::{Change, How, Kind, Move, PassedOver, ShareChange, Why, WhyNot};

/// Their positions are their numbers in the bytes.
pub(super) const KINDS: [Kind; 8] = [
    Kind::Split,
    Kind::Steal,
    Kind::Isolate,
    Kind::Merge,
    Kind::Balance,
    Kind::Return,
    Kind::Fold,
    Kind::Plain,
];
/// The same.
pub(super) const WHYS: [Why; 7] = [
    Why::MemberIdle,
    Why::MemberDrained,
    Why::NoHolder,
    Why::Uneven,
    Why::FenceTimeout,
    Why::Quiet,
    Why::SwitchedOff,
];
/// The same.
pub(super) const HOWS: [How; 7] = [
    How::Release,
    How::Regrant,
    How::Divide,
    How::Grant,
    How::Return,
    How::Assign,
    How::Plain,
];

fn put_word<T: PartialEq>(w: &mut Writer, words: &[T], word: &T) {
    // Every word is in its table; a test holds that.
    let number = words
        .iter()
        .position(|other| other == word)
        .unwrap_or(words.len());
    w.e.u8(number as u8);
}

fn get_word<T: Copy>(r: &mut Reader<'_>, words: &[T], what: &'static str) -> Read<T> {
    let tag = r.d.u8()?;
    words
        .get(usize::from(tag))
        .copied()
        .ok_or_else(|| r.unknown(what, tag))
}

pub(super) fn put(w: &mut Writer, change: &Change) {
    put_word(w, &KINDS, &change.kind);
    put_word(w, &WHYS, &change.why);
    w.list(&change.moves, |w, moved| {
        put_partition(w, &moved.of);
        put_slots(w, &moved.slots);
        w.opt(moved.from.as_ref(), |w, from| w.name(from));
        w.name(&moved.to);
        put_word(w, &HOWS, &moved.how);
    });
    w.list(&change.shares, |w, share| {
        w.name(&share.member);
        w.e.uvar(share.before);
        w.e.uvar(share.after);
    });
    w.list(&change.passed_over, |w, passed| {
        put_partition(w, &passed.of);
        w.name(&passed.owner);
        put_why_not(w, &passed.why_not);
    });
    w.e.uvar(change.error);
}

pub(super) fn get(r: &mut Reader<'_>) -> Read<Change> {
    Ok(Change {
        kind: get_word(r, &KINDS, "a kind of change")?,
        why: get_word(r, &WHYS, "a reason for a change")?,
        moves: r.list(|r| {
            Ok(Move {
                of: get_partition(r)?,
                slots: get_slots(r)?,
                from: r.opt(Reader::name)?,
                to: r.name()?,
                how: get_word(r, &HOWS, "a way to move slots")?,
            })
        })?,
        shares: r.list(|r| {
            Ok(ShareChange {
                member: r.name()?,
                before: r.d.uvar()?,
                after: r.d.uvar()?,
            })
        })?,
        passed_over: r.list(|r| {
            Ok(PassedOver {
                of: get_partition(r)?,
                owner: r.name()?,
                why_not: get_why_not(r)?,
            })
        })?,
        error: r.d.uvar()?,
    })
}

pub(super) fn put_why_not(w: &mut Writer, why_not: &WhyNot) {
    w.e.u8(number(why_not));
    match why_not {
        WhyNot::Excluded { text } => w.name(text),
        WhyNot::Ineligible { member, text } => {
            w.name(member);
            w.name(text);
        }
        WhyNot::BelowThreshold { remaining, needed } => {
            w.e.uvar(*remaining);
            w.e.uvar(*needed);
        }
        WhyNot::FinishingSoon { left_ms, needed_ms } => {
            w.e.uvar(*left_ms);
            w.e.uvar(*needed_ms);
        }
        WhyNot::Cooldown { left_ms } | WhyNot::Waiting { left_ms } => w.e.uvar(*left_ms),
        WhyNot::SlicesMax { max } => w.e.uvar(u64::from(*max)),
        WhyNot::HotKey { slot, records } => put_hot_key(w, *slot, *records),
        _ => {}
    }
}

pub(super) fn get_why_not(r: &mut Reader<'_>) -> Read<WhyNot> {
    Ok(match r.d.u8()? {
        0 => WhyNot::Off,
        1 => WhyNot::Queues,
        2 => WhyNot::Paused,
        3 => WhyNot::Excluded { text: r.name()? },
        4 => WhyNot::Ineligible {
            member: r.name()?,
            text: r.name()?,
        },
        5 => WhyNot::NothingToServe,
        6 => WhyNot::BelowThreshold {
            remaining: r.d.uvar()?,
            needed: r.d.uvar()?,
        },
        7 => WhyNot::FinishingSoon {
            left_ms: r.d.uvar()?,
            needed_ms: r.d.uvar()?,
        },
        8 => WhyNot::Cooldown { left_ms: r.d.uvar()? },
        9 => WhyNot::SlicesMax { max: r.u32()? },
        10 => WhyNot::IdsExhausted,
        11 => {
            let (slot, records) = get_hot_key(r)?;
            WhyNot::HotKey { slot, records }
        }
        12 => WhyNot::Rewound,
        13 => WhyNot::Blind,
        14 => WhyNot::ChainFull,
        15 => WhyNot::NeverCommits,
        16 => WhyNot::InTransit,
        17 => WhyNot::OwnerAbsent,
        18 => WhyNot::NoReceiver,
        19 => WhyNot::Waiting { left_ms: r.d.uvar()? },
        20 => WhyNot::NotQuiet,
        21 => WhyNot::EvenEnough,
        tag => return Err(r.unknown("a reason for a refusal", tag)),
    })
}

fn number(why_not: &WhyNot) -> u8 {
    match why_not {
        WhyNot::Off => 0,
        WhyNot::Queues => 1,
        WhyNot::Paused => 2,
        WhyNot::Excluded { .. } => 3,
        WhyNot::Ineligible { .. } => 4,
        WhyNot::NothingToServe => 5,
        WhyNot::BelowThreshold { .. } => 6,
        WhyNot::FinishingSoon { .. } => 7,
        WhyNot::Cooldown { .. } => 8,
        WhyNot::SlicesMax { .. } => 9,
        WhyNot::IdsExhausted => 10,
        WhyNot::HotKey { .. } => 11,
        WhyNot::Rewound => 12,
        WhyNot::Blind => 13,
        WhyNot::ChainFull => 14,
        WhyNot::NeverCommits => 15,
        WhyNot::InTransit => 16,
        WhyNot::OwnerAbsent => 17,
        WhyNot::NoReceiver => 18,
        WhyNot::Waiting { .. } => 19,
        WhyNot::NotQuiet => 20,
        WhyNot::EvenEnough => 21,
    }
}
