//! What can happen next.

use super::client::{Client, Role};
use super::model::{NAMES, Scene, Setting, slot};
use crate::cursor::*;
use crate::ids::Offset;
use crate::slots::SlotSet;

/// One event. Numbers are a client, then an index, an offset, or a set of slots as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Join(usize),
    OffsetFetch(usize),
    SendFetch(usize),
    Serve(usize, usize),
    LoseAnswer(usize, usize),
    TakeAnswer(usize, usize),
    TakeUp(usize, usize),
    Finish(usize),
    SendCommit(usize),
    Commit(usize, usize),
    CommitAndResend(usize, usize),
    LoseCommit(usize, usize),
    Seek(usize, usize, Offset),
    Skip(usize),
    Restart(usize),
    GiveUp(usize),
    Leave(usize),
    Die(usize),
    /// The group notices that a member is gone.
    Notice(usize),
    Expel(usize),
    /// The log gets one more record.
    Append,
    Crash,
    /// What was handed out before the crash is read again.
    Recall,
    Foreign(usize, usize, Offset),
    Release(usize, u16),
    JumpGrant(usize, u16),
    Return(usize, u16),
    Refresh(usize),
    /// By assignment.
    Grant(usize, u16),
    /// Back to plain, and divided again.
    Replain,
}

/// All events that can come next.
pub(super) fn possible(scene: &Scene, setting: &Setting) -> Vec<Act> {
    let mut acts = Vec::new();
    for (at, client) in scene.clients.iter().enumerate() {
        of_requests(scene, setting, at, client, &mut acts);
        of_work(scene, setting, at, client, &mut acts);
        if client.role == Role::Member {
            of_application(scene, setting, at, client, &mut acts);
            of_membership(scene, setting, at, client, &mut acts);
        }
        of_planner(scene, setting, at, client, &mut acts);
    }
    of_broker(scene, setting, &mut acts);
    acts
}

/// What a client asks, and what becomes of it.
fn of_requests(scene: &Scene, setting: &Setting, at: usize, client: &Client, acts: &mut Vec<Act>) {
    let is_held = scene.held(at).is_some();
    if matches!(client.role, Role::Out | Role::Zombie) && !is_held {
        acts.push(Act::Join(at));
    }
    if client.role == Role::Member && client.position.is_none() && is_held {
        acts.push(Act::OffsetFetch(at));
    }
    let has_room = client.fetches.len() + client.answers.len() < setting.fetches_max;
    if client.lives() && client.position.is_some() && has_room {
        acts.push(Act::SendFetch(at));
    }
    acts.extend((0..client.fetches.len()).map(|which| Act::Serve(at, which)));
    for which in 0..client.answers.len() {
        acts.push(Act::TakeAnswer(at, which));
        if scene.budget.lost > 0 {
            acts.push(Act::LoseAnswer(at, which));
        }
    }
}

/// Work and commits.
fn of_work(scene: &Scene, setting: &Setting, at: usize, client: &Client, acts: &mut Vec<Act>) {
    if client.lives() {
        if client.work.is_empty() {
            let most = setting.ahead.max(1).min(client.buffer.len());
            acts.extend((1..=most).map(|count| Act::TakeUp(at, count)));
        } else {
            acts.push(Act::Finish(at));
        }
        let has_news = client.done.is_some() && client.done != client.sent;
        if has_news && client.commits.len() < setting.commits_max {
            acts.push(Act::SendCommit(at));
        }
    }
    for which in 0..client.commits.len() {
        acts.push(Act::Commit(at, which));
        if scene.budget.resends > 0 {
            acts.push(Act::CommitAndResend(at, which));
        }
        if scene.budget.lost > 0 {
            acts.push(Act::LoseCommit(at, which));
        }
    }
}

/// What an application does beside its work.
fn of_application(scene: &Scene, setting: &Setting, at: usize, client: &Client, acts: &mut Vec<Act>) {
    let budget = scene.budget;
    if !client.work.is_empty() || client.position.is_none() {
        return;
    }
    if budget.restarts > 0 {
        acts.push(Act::Restart(at));
    }
    let Some((_, chain)) = scene.held(at) else { return };
    if budget.skips > 0 {
        acts.push(Act::Skip(at));
    }
    if budget.seeks > 0 {
        // Not beyond what it has not taken up: that would be skipping.
        let limit = client.buffer.first().copied().or(client.position);
        for (which, slice) in chain.slices().iter().enumerate() {
            let slice = slice.id;
            let is_back = |offset: &Offset| {
                let offset = *offset;
                limit.is_some_and(|limit| Position { slice, offset } < limit)
            };
            let back = (0..setting.end()).filter(is_back);
            acts.extend(back.map(|offset| Act::Seek(at, which, offset)));
        }
    }
}

/// How a member stops to be one, or to hold what it holds.
fn of_membership(scene: &Scene, setting: &Setting, at: usize, client: &Client, acts: &mut Vec<Act>) {
    let (budget, held) = (scene.budget, scene.held(at));
    let is_idle = client.work.is_empty();
    if budget.give_ups > 0 && is_idle && held.is_some() {
        acts.push(Act::GiveUp(at));
    }
    if budget.leaves > 0 && is_idle {
        acts.push(Act::Leave(at));
    }
    if budget.deaths > 0 {
        acts.push(Act::Die(at));
    }
    if budget.expulsions > 0 && held.is_some() {
        acts.push(Act::Expel(at));
    }
    if let (Some((_, chain)), true) = (held, budget.foreign > 0) {
        for which in 0..chain.slices().len() {
            acts.extend((0..setting.end()).map(|offset| Act::Foreign(at, which, offset)));
        }
    }
}

/// Any subset of the slots that have records and are in `slots`.
fn subsets(setting: &Setting, slots: &SlotSet) -> impl Iterator<Item = u16> + use<> {
    let mine = (0..setting.slots).filter(|number| slots.contains(slot(*number)));
    let bits: u16 = mine.map(|number| 1 << number).sum();
    (1..1 << setting.slots).filter(move |set| set & !bits == 0)
}

/// Whatever a planner could decide: any move at any moment.
fn of_planner(scene: &Scene, setting: &Setting, at: usize, client: &Client, acts: &mut Vec<Act>) {
    if client.role == Role::Silent && scene.divided().chain_of(NAMES[at]).is_some() {
        acts.push(Act::Notice(at));
    }
    let grantable = scene.divided().grantable(&scene.live).slots();
    let Some((name, chain)) = scene.held(at) else {
        if client.role == Role::Member {
            acts.extend(subsets(setting, &grantable).map(|set| Act::Grant(at, set)));
        }
        return;
    };
    if !has_room(scene, setting, name, chain) {
        return;
    }
    let tail = chain.tail().pieces.slots();
    let all = subsets(setting, &tail).max().unwrap_or(0);
    let releases = subsets(setting, &tail).filter(|set| setting.empties || *set != all);
    acts.extend(releases.map(|set| Act::Release(at, set)));
    acts.extend(subsets(setting, &grantable).map(|set| Act::JumpGrant(at, set)));
    if setting.returns {
        acts.extend(subsets(setting, &chain.transit_slots()).map(|set| Act::Return(at, set)));
    }
    let views = scene.divided().view(&scene.live);
    let needs_refresh = |view: &ChainView| view.chain == name && view.rewound == Rewound::NeedsRefresh;
    if views.iter().any(needs_refresh) {
        acts.push(Act::Refresh(at));
    }
}

/// [`Divided::has_room`] with the setting's own limit.
fn has_room(scene: &Scene, setting: &Setting, name: SliceId, chain: &Chain) -> bool {
    let place = scene.divided().place(name, &scene.live);
    let is_replaced = !scene.live.is_blind(name) && place == Some(chain.tail().start);
    let count = chain.slices().len();
    count < setting.slices_max || count > 1 && is_replaced
}

fn of_broker(scene: &Scene, setting: &Setting, acts: &mut Vec<Act>) {
    if scene.end < setting.end() {
        acts.push(Act::Append);
    }
    if scene.budget.crashes > 0 {
        acts.push(Act::Crash);
    }
    if !scene.divided().recall_wanted(&scene.live).is_empty() {
        acts.push(Act::Recall);
    }
    let mut chains = scene.divided().chains();
    if chains.all(|(_, chain)| chain.state() != ChainState::Held) {
        acts.push(Act::Replain);
    }
}
