//! Inputs.

use super::parts::{
    get_hottest, get_partition, get_precision, get_slots, get_weights, put_hottest, put_partition,
    put_precision, put_slots, put_weights,
};
use super::{Read, Reader, Writer};
use crate::elastic::inputs::{
    BalanceInputs, Candidate, DivideInputs, DivideRules, Facts, FoldInputs, FoldShare, GrantInputs, Inputs,
    Item, ItemTopic, Load, Needy, PlainInputs, Receiver, ReturnInputs,
};
use crate::elastic::settings::{CommitEvidence, Mode};
use crate::ids::TopicId;

pub(super) fn put(w: &mut Writer, inputs: &Inputs) {
    match inputs {
        Inputs::Divide(inputs) => {
            w.e.u8(1);
            put_divide(w, inputs);
        }
        Inputs::Grant(inputs) => {
            w.e.u8(2);
            put_grant(w, inputs);
        }
        Inputs::Return(inputs) => {
            w.e.u8(3);
            put_return(w, inputs);
        }
        Inputs::Balance(inputs) => {
            w.e.u8(4);
            put_balance(w, inputs);
        }
        Inputs::Fold(inputs) => {
            w.e.u8(5);
            put_fold(w, inputs);
        }
        Inputs::Plain(inputs) => {
            w.e.u8(6);
            put_partition(w, &inputs.of);
            w.name(&inputs.member);
            put_quiet(w, inputs.quiet_for_ms, inputs.merge_delay_ms, inputs.mode);
        }
    }
}

pub(super) fn get(r: &mut Reader<'_>) -> Read<Inputs> {
    Ok(match r.d.u8()? {
        1 => Inputs::Divide(Box::new(get_divide(r)?)),
        2 => Inputs::Grant(Box::new(get_grant(r)?)),
        3 => Inputs::Return(Box::new(get_return(r)?)),
        4 => Inputs::Balance(Box::new(get_balance(r)?)),
        5 => Inputs::Fold(Box::new(get_fold(r)?)),
        6 => {
            let (of, member) = (get_partition(r)?, r.name()?);
            let (quiet_for_ms, merge_delay_ms, mode) = get_quiet(r)?;
            Inputs::Plain(Box::new(PlainInputs {
                of,
                member,
                quiet_for_ms,
                merge_delay_ms,
                mode,
            }))
        }
        tag => return Err(r.unknown("inputs of a decision", tag)),
    })
}

fn put_divide(w: &mut Writer, inputs: &DivideInputs) {
    w.e.bool(inputs.paused);
    w.list(&inputs.needy, |w, needy| {
        w.name(&needy.id);
        w.e.bool(needy.drained);
        w.e.uvar(needy.for_ms);
    });
    w.list(&inputs.candidates, put_candidate);
    w.e.uvar(u64::from(inputs.more_candidates));
    w.opt(inputs.victim.as_ref(), put_weights);
}

fn get_divide(r: &mut Reader<'_>) -> Read<DivideInputs> {
    Ok(DivideInputs {
        paused: r.d.bool()?,
        needy: r.list(|r| {
            Ok(Needy {
                id: r.name()?,
                drained: r.d.bool()?,
                for_ms: r.d.uvar()?,
            })
        })?,
        candidates: r.list(get_candidate)?,
        more_candidates: r.u32()?,
        victim: r.opt(get_weights)?,
    })
}

fn put_candidate(w: &mut Writer, candidate: &Candidate) {
    put_partition(w, &candidate.of);
    w.name(&candidate.owner);
    w.e.bool(candidate.plain);
    w.e.uvar(candidate.remaining);
    w.e.uvar(candidate.handed_out);
    w.e.uvar(u64::from(candidate.slots));
    w.opt(candidate.hottest.as_ref(), put_hottest);
    put_precision(w, candidate.precision);
    w.list(&candidate.takers, |w, (at, more)| {
        w.e.uvar(u64::from(*at));
        w.e.bool(*more);
    });
    w.e.uvar(u64::from(candidate.sharers));
    w.e.uvar(u64::from(candidate.ids_left));
    put_facts(w, &candidate.facts);
    for number in [
        candidate.divided_ago_ms,
        candidate.returned_ago_ms,
        candidate.rate,
        candidate.commit_interval_ms,
        candidate.uncommitted_for_ms,
    ] {
        w.opt(number.as_ref(), |w, number| w.e.uvar(*number));
    }
    w.e.uvar(candidate.commits);
    put_rules(w, &candidate.rules);
}

fn get_candidate(r: &mut Reader<'_>) -> Read<Candidate> {
    let of = get_partition(r)?;
    let owner = r.name()?;
    let plain = r.d.bool()?;
    let (remaining, handed_out, slots) = (r.d.uvar()?, r.d.uvar()?, r.u32()?);
    let (hottest, precision) = (r.opt(get_hottest)?, get_precision(r)?);
    let takers = r.list(|r| Ok((r.u16()?, r.d.bool()?)))?;
    let (sharers, ids_left, facts) = (r.u32()?, r.u32()?, get_facts(r)?);
    let mut number = || r.opt(|r| r.d.uvar());
    let (divided_ago_ms, returned_ago_ms, rate) = (number()?, number()?, number()?);
    let (commit_interval_ms, uncommitted_for_ms) = (number()?, number()?);
    Ok(Candidate {
        of,
        owner,
        plain,
        remaining,
        handed_out,
        slots,
        hottest,
        precision,
        takers,
        sharers,
        ids_left,
        facts,
        divided_ago_ms,
        returned_ago_ms,
        rate,
        commit_interval_ms,
        uncommitted_for_ms,
        commits: r.d.uvar()?,
        rules: get_rules(r)?,
    })
}

fn put_facts(w: &mut Writer, facts: &Facts) {
    w.opt(facts.excluded.as_ref(), |w, text| w.name(text));
    w.opt(facts.ineligible.as_ref(), |w, (member, text)| {
        w.name(member);
        w.name(text);
    });
    for flag in [
        facts.owner_absent,
        facts.in_transit,
        facts.chain_full,
        facts.rewound,
        facts.blind,
    ] {
        w.e.bool(flag);
    }
}

fn get_facts(r: &mut Reader<'_>) -> Read<Facts> {
    Ok(Facts {
        excluded: r.opt(Reader::name)?,
        ineligible: r.opt(|r| Ok((r.name()?, r.name()?)))?,
        owner_absent: r.d.bool()?,
        in_transit: r.d.bool()?,
        chain_full: r.d.bool()?,
        rewound: r.d.bool()?,
        blind: r.d.bool()?,
    })
}

fn put_rules(w: &mut Writer, rules: &DivideRules) {
    put_mode(w, rules.mode);
    w.e.bool(rules.evidence == CommitEvidence::Latest);
    for number in [
        rules.split_min_remaining,
        rules.steal_min_remaining,
        rules.steal_min_ms,
        rules.cooldown_ms,
        rules.fence_timeout_ms,
        rules.watchdog_commit_ms,
        u64::from(rules.slices_max),
    ] {
        w.e.uvar(number);
    }
}

fn get_rules(r: &mut Reader<'_>) -> Read<DivideRules> {
    Ok(DivideRules {
        mode: get_mode(r)?,
        evidence: if r.d.bool()? {
            CommitEvidence::Latest
        } else {
            CommitEvidence::Previous
        },
        split_min_remaining: r.d.uvar()?,
        steal_min_remaining: r.d.uvar()?,
        steal_min_ms: r.d.uvar()?,
        cooldown_ms: r.d.uvar()?,
        fence_timeout_ms: r.d.uvar()?,
        watchdog_commit_ms: r.d.uvar()?,
        slices_max: r.u32()?,
    })
}

fn put_mode(w: &mut Writer, mode: Mode) {
    w.e.u8(match mode {
        Mode::Slices => 0,
        Mode::Queues => 1,
        Mode::Off => 2,
    });
}

fn get_mode(r: &mut Reader<'_>) -> Read<Mode> {
    match r.d.u8()? {
        0 => Ok(Mode::Slices),
        1 => Ok(Mode::Queues),
        2 => Ok(Mode::Off),
        tag => Err(r.unknown("an elastic mode", tag)),
    }
}

fn put_quiet(w: &mut Writer, quiet_for_ms: Option<u64>, merge_delay_ms: u64, mode: Mode) {
    w.opt(quiet_for_ms.as_ref(), |w, ms| w.e.uvar(*ms));
    w.e.uvar(merge_delay_ms);
    put_mode(w, mode);
}

fn get_quiet(r: &mut Reader<'_>) -> Read<(Option<u64>, u64, Mode)> {
    Ok((r.opt(|r| r.d.uvar())?, r.d.uvar()?, get_mode(r)?))
}

fn put_grant(w: &mut Writer, inputs: &GrantInputs) {
    put_partition(w, &inputs.of);
    put_slots(w, &inputs.slots);
    w.e.uvar(inputs.remaining);
    w.opt(inputs.weights.as_ref(), put_weights);
    w.e.uvar(inputs.for_ms);
    w.list(&inputs.receivers, |w, receiver| {
        w.name(&receiver.id);
        w.e.uvar(receiver.load);
        w.e.uvar(u64::from(receiver.slots));
    });
    w.e.uvar(u64::from(inputs.sharers));
    w.e.uvar(u64::from(inputs.slices_max));
    w.e.uvar(inputs.split_min_remaining);
}

fn get_grant(r: &mut Reader<'_>) -> Read<GrantInputs> {
    Ok(GrantInputs {
        of: get_partition(r)?,
        slots: get_slots(r)?,
        remaining: r.d.uvar()?,
        weights: r.opt(get_weights)?,
        for_ms: r.d.uvar()?,
        receivers: r.list(|r| {
            Ok(Receiver {
                id: r.name()?,
                load: r.d.uvar()?,
                slots: r.u32()?,
            })
        })?,
        sharers: r.u32()?,
        slices_max: r.u32()?,
        split_min_remaining: r.d.uvar()?,
    })
}

fn put_return(w: &mut Writer, inputs: &ReturnInputs) {
    put_partition(w, &inputs.of);
    put_slots(w, &inputs.slots);
    w.name(&inputs.source);
    w.opt(inputs.target.as_ref(), |w, target| w.name(target));
    w.e.uvar(inputs.remaining);
    w.e.uvar(inputs.for_ms);
    w.e.uvar(inputs.fence_timeout_ms);
}

fn get_return(r: &mut Reader<'_>) -> Read<ReturnInputs> {
    Ok(ReturnInputs {
        of: get_partition(r)?,
        slots: get_slots(r)?,
        source: r.name()?,
        target: r.opt(Reader::name)?,
        remaining: r.d.uvar()?,
        for_ms: r.d.uvar()?,
        fence_timeout_ms: r.d.uvar()?,
    })
}

fn put_balance(w: &mut Writer, inputs: &BalanceInputs) {
    w.e.bool(inputs.paused);
    w.list(&inputs.members, |w, load| {
        w.name(&load.id);
        w.e.uvar(load.records);
        w.e.uvar(u64::from(load.items));
        w.e.bool(load.needy);
        w.e.bool(load.takes);
    });
    w.list(&inputs.topics, |w, topic| {
        w.e.id(&topic.topic.0);
        w.name(&topic.name);
        w.list(&topic.takers, |w, at| w.e.uvar(u64::from(*at)));
    });
    w.list(&inputs.items, |w, item| {
        w.e.uvar(u64::from(item.topic));
        w.e.ivar(i64::from(item.partition));
        w.opt(item.owner.as_ref(), |w, at| w.e.uvar(u64::from(*at)));
        w.e.uvar(item.remaining);
    });
    w.opt(inputs.balanced_ago_ms.as_ref(), |w, ms| w.e.uvar(*ms));
    w.e.uvar(inputs.cooldown_ms);
    w.e.uvar(inputs.cut_gives);
    w.e.uvar(inputs.min_remaining);
}

fn get_balance(r: &mut Reader<'_>) -> Read<BalanceInputs> {
    Ok(BalanceInputs {
        paused: r.d.bool()?,
        members: r.list(|r| {
            Ok(Load {
                id: r.name()?,
                records: r.d.uvar()?,
                items: r.u32()?,
                needy: r.d.bool()?,
                takes: r.d.bool()?,
            })
        })?,
        topics: r.list(|r| {
            Ok(ItemTopic {
                topic: TopicId(r.d.id()?),
                name: r.name()?,
                takers: r.list(Reader::u16)?,
            })
        })?,
        items: r.list(|r| {
            Ok(Item {
                topic: r.u16()?,
                partition: r.d.ivar32()?,
                owner: r.opt(Reader::u16)?,
                remaining: r.d.uvar()?,
            })
        })?,
        balanced_ago_ms: r.opt(|r| r.d.uvar())?,
        cooldown_ms: r.d.uvar()?,
        cut_gives: r.d.uvar()?,
        min_remaining: r.d.uvar()?,
    })
}

fn put_fold(w: &mut Writer, inputs: &FoldInputs) {
    put_partition(w, &inputs.of);
    w.list(&inputs.shares, |w, share| {
        w.name(&share.member);
        put_slots(w, &share.slots);
        w.e.uvar(share.remaining);
        w.e.bool(share.takes);
    });
    put_quiet(w, inputs.quiet_for_ms, inputs.merge_delay_ms, inputs.mode);
}

fn get_fold(r: &mut Reader<'_>) -> Read<FoldInputs> {
    let of = get_partition(r)?;
    let shares = r.list(|r| {
        Ok(FoldShare {
            member: r.name()?,
            slots: get_slots(r)?,
            remaining: r.d.uvar()?,
            takes: r.d.bool()?,
        })
    })?;
    let (quiet_for_ms, merge_delay_ms, mode) = get_quiet(r)?;
    Ok(FoldInputs {
        of,
        shares,
        quiet_for_ms,
        merge_delay_ms,
        mode,
    })
}
