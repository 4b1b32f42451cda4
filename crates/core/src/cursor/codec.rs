//! The bytes of cursors and of their changes, in the building blocks of [`crate::codec`]. One value has one form.

use std::collections::BTreeMap;

use super::change::{CursorChange, Edit, Note};
use super::divided::{Chain, ChainState, Divided, Slice, Transit};
use super::ids::{get_id, get_ids, put_id, put_ids};
use super::pieces::Pieces;
use super::{Cursor, Plain};
use crate::codec::{CodecError, Decoder, Encoder};
use crate::slots::SlotSet;

type Read<T> = Result<T, CodecError>;

impl Cursor {
    /// Writes the cursor behind other values.
    pub fn put(&self, e: &mut Encoder) {
        match self {
            Self::Plain(plain) => {
                e.u8(0);
                put_plain(e, plain);
            }
            Self::Divided(divided) => {
                e.u8(1);
                put_divided(e, divided);
            }
        }
    }

    /// Reads a cursor that other values may follow.
    pub fn get(d: &mut Decoder<'_>) -> Read<Self> {
        match d.u8()? {
            0 => Ok(Self::Plain(get_plain(d)?)),
            1 => Ok(Self::Divided(Box::new(get_divided(d)?))),
            _ => Err(d.invalid("the byte before is no kind of cursor")),
        }
    }
}

impl CursorChange {
    /// Writes the change behind other values.
    pub fn put(&self, e: &mut Encoder) {
        e.uvar(self.version);
        match &self.edit {
            Edit::Divide { kept } => {
                e.u8(1);
                put_plain(e, kept);
            }
            Edit::Grant { member, epoch, slice } => {
                e.u8(2);
                e.str(member);
                e.ivar(i64::from(*epoch));
                put_slice(e, slice);
            }
            Edit::Succeed {
                chain,
                to,
                slice,
                transit,
            } => {
                e.u8(3);
                put_id(e, *chain);
                e.ivar(*to);
                put_slice(e, slice);
                put_pieces(e, transit);
            }
            Edit::Advance {
                chain,
                front,
                pos,
                closed,
                opened,
                note,
            } => {
                e.u8(4);
                put_id(e, *chain);
                put_id(e, *front);
                e.ivar(*pos);
                put_ids(e, closed);
                put_slots(e, opened);
                e.opt(note.as_ref(), put_note);
            }
            Edit::State { chain, state } => {
                e.u8(5);
                put_id(e, *chain);
                put_state(e, *state);
            }
            Edit::Ceiling {
                chain,
                slice,
                ceiling,
            } => {
                e.u8(6);
                put_id(e, *chain);
                put_id(e, *slice);
                e.ivar(*ceiling);
            }
            Edit::Plain { plain } => {
                e.u8(7);
                put_plain(e, plain);
            }
        }
    }

    /// Reads a change that other values may follow.
    pub fn get(d: &mut Decoder<'_>) -> Read<Self> {
        let version = d.uvar()?;
        let at = d.position();
        let edit = match d.u8()? {
            1 => Edit::Divide { kept: get_plain(d)? },
            2 => Edit::Grant {
                member: d.string()?,
                epoch: d.ivar32()?,
                slice: get_slice(d)?,
            },
            3 => Edit::Succeed {
                chain: get_id(d)?,
                to: d.ivar()?,
                slice: get_slice(d)?,
                transit: get_pieces(d)?,
            },
            4 => Edit::Advance {
                chain: get_id(d)?,
                front: get_id(d)?,
                pos: d.ivar()?,
                closed: get_ids(d)?,
                opened: get_slots(d)?,
                note: d.opt(get_note)?,
            },
            5 => Edit::State {
                chain: get_id(d)?,
                state: get_state(d)?,
            },
            6 => Edit::Ceiling {
                chain: get_id(d)?,
                slice: get_id(d)?,
                ceiling: d.ivar()?,
            },
            7 => Edit::Plain { plain: get_plain(d)? },
            tag => {
                return Err(CodecError::UnknownTag {
                    at,
                    tag: u64::from(tag),
                    what: "change of a cursor",
                });
            }
        };
        Ok(Self { version, edit })
    }
}

fn put_plain(e: &mut Encoder, plain: &Plain) {
    e.ivar(plain.offset);
    e.ivar(i64::from(plain.leader_epoch));
    e.str(&plain.metadata);
    e.ivar(plain.commit_ms);
    e.opt(plain.expires_ms, Encoder::ivar);
}

fn get_plain(d: &mut Decoder<'_>) -> Read<Plain> {
    Ok(Plain {
        offset: d.ivar()?,
        leader_epoch: d.ivar32()?,
        metadata: d.string()?,
        commit_ms: d.ivar()?,
        expires_ms: d.opt(Decoder::ivar)?,
    })
}

fn put_note(e: &mut Encoder, note: &Note) {
    e.str(&note.metadata);
    e.ivar(note.commit_ms);
    e.opt(note.expires_ms, Encoder::ivar);
}

fn get_note(d: &mut Decoder<'_>) -> Read<Note> {
    Ok(Note {
        metadata: d.string()?,
        commit_ms: d.ivar()?,
        expires_ms: d.opt(Decoder::ivar)?,
    })
}

fn put_state(e: &mut Encoder, state: ChainState) {
    e.u8(match state {
        ChainState::Held => 0,
        ChainState::GivenUp => 1,
        ChainState::Dead => 2,
    });
}

fn get_state(d: &mut Decoder<'_>) -> Read<ChainState> {
    match d.u8()? {
        0 => Ok(ChainState::Held),
        1 => Ok(ChainState::GivenUp),
        2 => Ok(ChainState::Dead),
        _ => Err(d.invalid("the byte before is no state of a chain")),
    }
}

/// Length of a set as words.
const WORDS_BYTES: usize = 512;

/// Runs of slots, each as the distance from the first slot where it could begin and its length less one; or all words
/// if that is not longer.
fn put_slots(e: &mut Encoder, slots: &SlotSet) {
    let mut runs = Encoder::new();
    let mut behind = 0;
    runs.list(slots.runs(), |e, (first, last)| {
        e.uvar(u64::from(first.get() - behind));
        e.uvar(u64::from(last.get() - first.get()));
        // A run of its own leaves one slot out before it.
        behind = (last.get() + 2).min(4096);
    });
    let runs = runs.into_bytes();
    if runs.len() < WORDS_BYTES {
        e.u8(0);
        e.raw(&runs);
    } else {
        e.u8(1);
        for word in slots.words() {
            e.raw(&word.to_le_bytes());
        }
    }
}

fn get_slots(d: &mut Decoder<'_>) -> Read<SlotSet> {
    match d.u8()? {
        0 => get_runs(d),
        1 => {
            let mut words = [0; 64];
            for word in &mut words {
                *word = u64::from_le_bytes(d.raw()?);
            }
            let slots = SlotSet::from_words(words);
            let mut again = Encoder::new();
            put_slots(&mut again, &slots);
            if again.into_bytes().first() == Some(&1) {
                Ok(slots)
            } else {
                Err(d.invalid("the slots before would be shorter as runs"))
            }
        }
        _ => Err(d.invalid("the byte before is no form of a set of slots")),
    }
}

fn get_runs(d: &mut Decoder<'_>) -> Read<SlotSet> {
    let from = d.position();
    let mut words = [0u64; 64];
    let mut behind = 0u64;
    d.list(|d| {
        let first = behind.saturating_add(d.uvar()?);
        let last = first.saturating_add(d.uvar()?);
        if last >= 4096 {
            return Err(d.invalid("the run of slots before goes beyond the last slot"));
        }
        for slot in first..=last {
            words[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        behind = last + 2;
        Ok(())
    })?;
    if d.position() - from >= WORDS_BYTES {
        return Err(d.invalid("the runs of slots before would be shorter as words"));
    }
    Ok(SlotSet::from_words(words))
}

fn put_pieces(e: &mut Encoder, pieces: &Pieces) {
    e.list(pieces.iter(), |e, (from, slots)| {
        e.ivar(from);
        put_slots(e, slots);
    });
}

fn get_pieces(d: &mut Decoder<'_>) -> Read<Pieces> {
    let (mut pieces, mut seen, mut last) = (Pieces::new(), SlotSet::empty(), None);
    d.list(|d| {
        let from = d.ivar()?;
        let slots = get_slots(d)?;
        if last.is_some_and(|last| last >= from) || slots.is_empty() || !seen.is_disjoint(&slots) {
            return Err(d.invalid("the pieces before do not ascend, or are empty, or overlap"));
        }
        last = Some(from);
        seen = seen.union(&slots);
        pieces.add(from, &slots);
        Ok(())
    })?;
    Ok(pieces)
}

fn put_slice(e: &mut Encoder, slice: &Slice) {
    put_id(e, slice.id);
    e.ivar(slice.start);
    put_pieces(e, &slice.pieces);
    e.opt(slice.to, Encoder::ivar);
    e.opt(slice.ceiling, Encoder::ivar);
}

fn get_slice(d: &mut Decoder<'_>) -> Read<Slice> {
    Ok(Slice {
        id: get_id(d)?,
        start: d.ivar()?,
        pieces: get_pieces(d)?,
        to: d.opt(Decoder::ivar)?,
        ceiling: d.opt(Decoder::ivar)?,
    })
}

fn put_divided(e: &mut Encoder, divided: &Divided) {
    e.uvar(divided.version);
    put_plain(e, &divided.kept);
    e.list(&divided.chains, |e, (name, chain)| {
        put_id(e, *name);
        put_chain(e, chain);
    });
    put_pieces(e, &divided.loose);
}

fn get_divided(d: &mut Decoder<'_>) -> Read<Divided> {
    let version = d.uvar()?;
    let kept = get_plain(d)?;
    let chains = d.list(|d| Ok::<_, CodecError>((get_id(d)?, get_chain(d)?)))?;
    if !chains.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(d.invalid("the chains before do not ascend"));
    }
    let divided = Divided {
        version,
        kept,
        chains: chains.into_iter().collect::<BTreeMap<_, _>>(),
        loose: get_pieces(d)?,
    };
    match divided.check() {
        Ok(()) => Ok(divided),
        Err(_) => Err(d.invalid("the cursor before breaks the rules of divided cursors")),
    }
}

fn put_chain(e: &mut Encoder, chain: &Chain) {
    e.str(&chain.member);
    e.ivar(i64::from(chain.epoch));
    put_state(e, chain.state);
    put_ids(e, &chain.closed);
    e.list(&chain.slices, put_slice);
    e.ivar(chain.pos);
    e.list(&chain.transits, |e, transit| {
        put_id(e, transit.by);
        put_pieces(e, &transit.pieces);
    });
    e.bool(chain.touched);
}

fn get_chain(d: &mut Decoder<'_>) -> Read<Chain> {
    Ok(Chain {
        member: d.string()?,
        epoch: d.ivar32()?,
        state: get_state(d)?,
        closed: get_ids(d)?,
        slices: d.list(get_slice)?,
        pos: d.ivar()?,
        transits: d.list(|d| {
            Ok::<_, CodecError>(Transit {
                by: get_id(d)?,
                pieces: get_pieces(d)?,
            })
        })?,
        touched: d.bool()?,
    })
}
