//! What an event does: to the clients, and to the cursor through the calls that the server makes.

use super::acts::Act;
use super::client::{Answer, Role};
use super::model::{NAMES, Scene, Setting};
use crate::cursor::*;
use crate::ids::Offset;

impl Scene {
    /// Lets it happen. `false`: it was refused, and nothing changed. An error is a broken invariant.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetimes"
    )]
    pub(super) fn act(&mut self, setting: &Setting, act: Act) -> Result<bool, String> {
        match act {
            Act::Release(at, set) => {
                return Ok(self.chain_step(setting, at, |step, name| step.release(name, Setting::set(set))));
            }
            Act::JumpGrant(at, set) => {
                return Ok(
                    self.chain_step(setting, at, |step, name| step.jump_grant(name, Setting::set(set)))
                );
            }
            Act::Return(at, set) => {
                return Ok(self.chain_step(setting, at, |step, name| {
                    step.return_transit(name, Setting::set(set))
                }));
            }
            Act::Refresh(at) => return Ok(self.chain_step(setting, at, |step, name| step.refresh(name))),
            Act::Grant(at, set) => return Ok(self.grant(setting, at, set)),
            Act::Replain => return Ok(self.replain(setting)),
            Act::Append => self.end += 1,
            Act::Crash => self.crash(setting),
            Act::Recall => self.recall(setting),
            Act::Foreign(at, which, offset) => {
                self.budget.foreign -= 1;
                if let Some(slice) = self.slice_of(at, which) {
                    self.serve(setting, Position { slice, offset })?;
                }
            }
            act => return self.act_of_client(setting, act),
        }
        Ok(true)
    }

    fn act_of_client(&mut self, setting: &Setting, act: Act) -> Result<bool, String> {
        match act {
            Act::OffsetFetch(at) => {
                self.clients[at].position = self.cursor.offset_fetch(&self.live, NAMES[at]);
            }
            Act::SendFetch(at) => {
                let client = &mut self.clients[at];
                client.fetches.extend(client.position);
                // With one fetch under way the moment of sending makes no difference.
                if setting.fetches_max == 1 {
                    return self.act_of_client(setting, Act::Serve(at, 0));
                }
            }
            Act::Serve(at, which) => {
                let to = self.clients[at].fetches.remove(which);
                match self.serve(setting, to)? {
                    Some(answer) => self.clients[at].answers.push(answer),
                    None if setting.fetches_max == 1 => return Ok(false),
                    None => {}
                }
            }
            Act::LoseAnswer(at, which) => {
                self.budget.lost -= 1;
                self.clients[at].answers.remove(which);
            }
            Act::TakeAnswer(at, which) => self.clients[at].take_answer(setting, which),
            Act::TakeUp(at, count) => {
                self.clients[at].take_up(setting, count);
                if setting.ahead == 0 {
                    self.finish(setting, at)?;
                }
            }
            Act::Finish(at) => self.finish(setting, at)?,
            Act::SendCommit(at) => {
                let client = &mut self.clients[at];
                client
                    .commits
                    .extend(client.done.map(|done| (client.epoch, done)));
                client.sent = client.done;
            }
            Act::Commit(at, which) => {
                let (epoch, position) = self.clients[at].commits.remove(which);
                self.commit(setting, at, epoch, position);
            }
            Act::CommitAndResend(at, which) => {
                self.budget.resends -= 1;
                let (epoch, position) = self.clients[at].commits[which];
                self.commit(setting, at, epoch, position);
            }
            Act::LoseCommit(at, which) => {
                self.budget.lost -= 1;
                self.clients[at].commits.remove(which);
                self.clients[at].sent = None;
            }
            act => self.act_of_member(setting, act),
        }
        Ok(true)
    }

    fn act_of_member(&mut self, setting: &Setting, act: Act) {
        match act {
            Act::Join(at) => {
                self.clients[at].forget(setting);
                self.clients[at].role = Role::Member;
            }
            Act::Seek(at, which, offset) => {
                self.budget.seeks -= 1;
                let slice = self.slice_of(at, which);
                self.clients[at].jump(slice.map(|slice| Position { slice, offset }));
            }
            Act::Skip(at) => self.skip(setting, at),
            Act::Restart(at) => {
                self.budget.restarts -= 1;
                self.clients[at].forget(setting);
            }
            Act::GiveUp(at) => {
                self.budget.give_ups -= 1;
                if !setting.false_give_up {
                    self.clients[at].forget(setting);
                }
                self.step(setting, |step| step.give_up(NAMES[at]));
            }
            Act::Leave(at) => {
                self.budget.leaves -= 1;
                self.clients[at].forget(setting);
                self.dead(setting, at, Role::Out);
            }
            Act::Die(at) => {
                self.budget.deaths -= 1;
                self.excuse_work(at);
                self.clients[at].forget(setting);
                self.clients[at].role = Role::Silent;
            }
            Act::Notice(at) => self.dead(setting, at, Role::Out),
            Act::Expel(at) => {
                self.budget.expulsions -= 1;
                self.excuse_work(at);
                self.dead(setting, at, Role::Zombie);
            }
            act => unreachable!("{act:?} is no event of a member"),
        }
    }

    fn dead(&mut self, setting: &Setting, at: usize, role: Role) {
        self.clients[at].role = role;
        self.step(setting, |step| step.dead(NAMES[at]));
    }

    fn slice_of(&self, at: usize, which: usize) -> Option<SliceId> {
        self.held(at).map(|(_, chain)| chain.slices()[which].id)
    }

    fn chain_step(
        &mut self,
        setting: &Setting,
        at: usize,
        act: impl FnOnce(&mut Step<'_>, SliceId) -> Result<SliceId, Refusal>,
    ) -> bool {
        let Some(name) = self.held(at).map(|(name, _)| name) else {
            return false;
        };
        self.step(setting, |step| act(step, name)).is_ok()
    }

    fn grant(&mut self, setting: &Setting, at: usize, set: u16) -> bool {
        let epochs = self.clients.iter().map(|client| client.epoch);
        let epoch = epochs.max().unwrap_or(0) + 1;
        self.clients[at].epoch = epoch;
        self.step(setting, |step| step.grant(NAMES[at], epoch, Setting::set(set)))
            .is_ok()
    }

    /// What the server does for a fetch.
    fn serve(&mut self, setting: &Setting, to: Position) -> Result<Option<Answer>, String> {
        let mut at = to;
        loop {
            let plan = match self.cursor.locate(&self.live, at.slice, at.offset) {
                Found::Read(plan) => plan,
                Found::Silent => return Ok(None),
                Found::Unknown => match self.ids.get(at.slice) {
                    Some(IdUse::Retired { .. }) => return Ok(None),
                    Some(IdUse::Taken { .. }) | None => return Err(format!("I4: {at:?} means nothing")),
                },
            };
            let end = self.end.min(plan.sieve.to()).max(plan.from);
            let all = setting.records(plan.scan_from, end);
            let found: Vec<Record> = all.filter(|r| plan.sieve.keeps(r.slot, r.offset)).collect();
            if !found.is_empty() {
                return self.answer(setting, to, &plan, found, end).map(Some);
            }
            self.step(setting, |step| step.memo(&plan, end));
            match plan.next {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
    }

    fn answer(
        &mut self,
        setting: &Setting,
        to: Position,
        plan: &ReadPlan,
        mut found: Vec<Record>,
        mut end: Offset,
    ) -> Result<Answer, String> {
        if found.len() > setting.answer_max {
            found.truncate(setting.answer_max);
            end = found.last().map_or(end, |last| last.offset + 1);
        }
        let reserved = self.step(setting, |step| step.reserve(plan, &found, end));
        let end = reserved.map_err(|refusal| refusal.to_string())?.end;
        let slice = plan.slice;
        let place = |offset| Position { slice, offset };
        Ok(Answer {
            to,
            records: found.iter().map(|record| place(record.offset)).collect(),
            end: place(end),
        })
    }

    fn commit(&mut self, setting: &Setting, at: usize, epoch: i32, to: Position) {
        self.step(setting, |step| {
            step.commit(NAMES[at], epoch, to.slice, to.offset, Note::default())
        });
    }

    /// The skipped records need not be processed; they may be.
    fn skip(&mut self, setting: &Setting, at: usize) {
        self.budget.skips -= 1;
        let (client, offset) = (&mut self.clients[at], self.end);
        let position = client.position.map(|position| Position { offset, ..position });
        client.jump(position);
        self.excused = (1 << setting.log.len()) - 1;
    }

    /// What a client had committed ahead of its work is lost with it.
    fn excuse_work(&mut self, at: usize) {
        for place in &self.clients[at].work {
            self.excused |= 1 << place.offset;
        }
    }

    fn crash(&mut self, setting: &Setting) {
        self.budget.crashes -= 1;
        self.live = Live::default();
        self.live.planted = Planted::new(setting.fault);
        if let Cursor::Divided(divided) = &self.cursor {
            self.live.recover(divided, self.end, 0);
        }
        for client in &mut self.clients {
            client.fetches.clear();
        }
    }

    fn recall(&mut self, setting: &Setting) {
        for wanted in self.divided().recall_wanted(&self.live) {
            let all = setting.records(wanted.from, wanted.to);
            let found: Vec<Record> = all.filter(|r| wanted.sieve.keeps(r.slot, r.offset)).collect();
            let _ = self.step(setting, |step| step.recall(&wanted, &found));
        }
    }

    /// Back to plain, if that is exact, and divided again at once.
    fn replain(&mut self, setting: &Setting) -> bool {
        let mut probe = self.divided().plain_probe(&self.live);
        let (from, to) = probe.range();
        setting.records(from, to).for_each(|record| probe.feed(record));
        let is_exact = self.step(setting, |step| step.back_to_plain(&probe)).is_ok();
        if is_exact {
            self.divide(setting);
        }
        is_exact
    }
}
