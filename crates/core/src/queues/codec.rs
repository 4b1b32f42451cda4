//! The bytes of a topic's queues; `docs/format/state.md` has the table.

use super::{Blocked, Decision, Kind, Phase, QueueLog, Queues, Why};
use crate::codec::{CodecError, Decoder, Encoder};

/// All kinds; a kind's number is its place, from 1.
pub(super) const KINDS: [Kind; 9] = [
    Kind::Start,
    Kind::ReadUp,
    Kind::WriteUp,
    Kind::WriteDown,
    Kind::ReadDown,
    Kind::Postpone,
    Kind::Turn,
    Kind::Wish,
    Kind::End,
];

type Read<T> = Result<T, CodecError>;

impl QueueLog {
    pub(crate) fn put(&self, e: &mut Encoder) {
        e.uvar(self.next);
        e.list(&self.entries, |e, (number, decision)| {
            e.uvar(self.next - number);
            decision.put(e);
        });
    }

    pub(crate) fn get(d: &mut Decoder<'_>) -> Read<Self> {
        let next = d.uvar()?;
        let mut log = Self::default();
        let mut before = None;
        for (back, decision) in d.list(|d| Ok::<_, CodecError>((d.uvar()?, Decision::get(d)?)))? {
            let number = next.checked_sub(back).filter(|_| back > 0);
            let Some(number) = number.filter(|number| before.is_none_or(|before| before < *number)) else {
                return Err(d.invalid("the decisions about a topic are not in order"));
            };
            before = Some(number);
            log.next = number;
            log.note(decision);
        }
        log.next = next;
        Ok(log)
    }
}

impl Queues {
    pub(crate) fn put(&self, e: &mut Encoder) {
        e.uvar(u64::from(self.write));
        e.uvar(u64::from(self.read));
        e.uvar(u64::from(self.goal));
        e.opt(self.wish, |e, wish| e.uvar(u64::from(wish)));
        match &self.phase {
            Phase::Idle => e.u8(0),
            Phase::ReadingAhead => e.u8(1),
            Phase::Draining => e.u8(2),
            Phase::Postponed(blocked) => {
                e.u8(3);
                blocked.put(e);
            }
        }
        e.ivar(self.since_ms);
    }

    pub(crate) fn get(d: &mut Decoder<'_>) -> Read<Self> {
        let (write, read, goal) = (d.uvar32()?, d.uvar32()?, d.uvar32()?);
        if write == 0 || goal == 0 || read < write {
            return Err(d.invalid("the queue counts of a topic contradict each other"));
        }
        let wish = d.opt(Decoder::uvar32)?;
        let at = d.position();
        let phase = match d.u8()? {
            0 => Phase::Idle,
            1 => Phase::ReadingAhead,
            2 => Phase::Draining,
            3 => Phase::Postponed(Blocked::get(d)?),
            tag => return Err(unknown(at, tag, "phase of a topic's queues")),
        };
        Ok(Self {
            wish,
            goal,
            phase,
            read,
            ..Self::at_rest(write, d.ivar()?)
        })
    }
}

impl Blocked {
    fn put(&self, e: &mut Encoder) {
        e.str(&self.group);
        e.uvar(u64::from(self.queue));
        e.uvar(self.unread);
    }

    fn get(d: &mut Decoder<'_>) -> Read<Self> {
        Ok(Self {
            group: d.string()?,
            queue: d.uvar32()?,
            unread: d.uvar()?,
        })
    }
}

impl Decision {
    pub(crate) fn put(&self, e: &mut Encoder) {
        e.ivar(self.at_ms);
        let place = KINDS.iter().position(|kind| *kind == self.kind);
        e.u8(place.map_or(0, |place| place as u8 + 1));
        put_why(e, &self.why);
        for count in [
            self.before.0,
            self.before.1,
            self.after.0,
            self.after.1,
            self.goal,
        ] {
            e.uvar(u64::from(count));
        }
        e.uvar(self.wait_ms);
    }

    pub(crate) fn get(d: &mut Decoder<'_>) -> Read<Self> {
        let at_ms = d.ivar()?;
        let at = d.position();
        let tag = d.u8()?;
        let place = usize::from(tag).checked_sub(1);
        let kind = place.and_then(|place| KINDS.get(place)).copied();
        Ok(Self {
            at_ms,
            kind: kind.ok_or_else(|| unknown(at, tag, "decision about queues"))?,
            why: get_why(d)?,
            before: (d.uvar32()?, d.uvar32()?),
            after: (d.uvar32()?, d.uvar32()?),
            goal: d.uvar32()?,
            wait_ms: d.uvar()?,
        })
    }
}

fn put_why(e: &mut Encoder, why: &Why) {
    match why {
        Why::SwitchedOn => e.u8(1),
        Why::LargestGroup { group, instances } => {
            e.u8(2);
            e.str(group);
            e.uvar(u64::from(*instances));
        }
        Why::Bounds => e.u8(3),
        Why::Operator { wish } => {
            e.u8(4);
            e.opt(*wish, |e, wish| e.uvar(u64::from(wish)));
        }
        Why::DelayOver => e.u8(5),
        Why::Drained => e.u8(6),
        Why::Unread(blocked) => {
            e.u8(7);
            blocked.put(e);
        }
        Why::Forced(blocked) => {
            e.u8(8);
            e.opt(blocked.as_ref(), |e, blocked| blocked.put(e));
        }
        Why::SwitchedOff => e.u8(9),
    }
}

fn get_why(d: &mut Decoder<'_>) -> Read<Why> {
    let at = d.position();
    Ok(match d.u8()? {
        1 => Why::SwitchedOn,
        2 => Why::LargestGroup {
            group: d.string()?,
            instances: d.uvar32()?,
        },
        3 => Why::Bounds,
        4 => Why::Operator {
            wish: d.opt(Decoder::uvar32)?,
        },
        5 => Why::DelayOver,
        6 => Why::Drained,
        7 => Why::Unread(Blocked::get(d)?),
        8 => Why::Forced(d.opt(Blocked::get)?),
        9 => Why::SwitchedOff,
        tag => return Err(unknown(at, tag, "reason of a decision about queues")),
    })
}

fn unknown(at: usize, tag: u8, what: &'static str) -> CodecError {
    CodecError::UnknownTag {
        at,
        tag: u64::from(tag),
        what,
    }
}
