//! A client: what it was handed, what it works at, what it has sent.

use super::model::Setting;
use crate::cursor::Position;

/// What a client is to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Role {
    Out,
    Member,
    /// Expelled, without knowing it.
    Zombie,
    /// Gone, without the group knowing it.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The position that was asked for.
    pub(super) to: Position,
    pub(super) records: Vec<Position>,
    pub(super) end: Position,
}

#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) role: Role,
    pub(super) epoch: i32,
    /// Where it fetches next; none before it has asked for its committed offset.
    pub(super) position: Option<Position>,
    /// Handed to it, not taken up.
    pub(super) buffer: Vec<Position>,
    /// Taken up, not done.
    pub(super) work: Vec<Position>,
    /// What it may commit.
    pub(super) done: Option<Position>,
    /// What it committed last.
    pub(super) sent: Option<Position>,
    /// On their way, each with the epoch at which it was sent.
    pub(super) commits: Vec<(i32, Position)>,
    pub(super) fetches: Vec<Position>,
    pub(super) answers: Vec<Answer>,
}

pub(super) fn after(place: Position) -> Position {
    Position {
        offset: place.offset + 1,
        ..place
    }
}

impl Client {
    pub(super) fn new() -> Self {
        Self {
            role: Role::Out,
            epoch: 0,
            position: None,
            buffer: Vec::new(),
            work: Vec::new(),
            done: None,
            sent: None,
            commits: Vec::new(),
            fetches: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(super) fn be_member(&mut self, epoch: i32) {
        (self.role, self.epoch) = (Role::Member, epoch);
    }

    /// Whether it runs and believes itself a member.
    pub(super) fn lives(&self) -> bool {
        matches!(self.role, Role::Member | Role::Zombie)
    }

    /// It begins anew: what it was handed is forgotten, what it sent is on its way.
    pub(super) fn forget(&mut self, setting: &Setting) {
        let answers = if setting.takes_late_answers {
            std::mem::take(&mut self.answers)
        } else {
            Vec::new()
        };
        *self = Self {
            role: self.role,
            epoch: self.epoch,
            commits: std::mem::take(&mut self.commits),
            answers,
            ..Self::new()
        };
    }

    /// It goes on reading at another position; what it was handed is forgotten.
    pub(super) fn jump(&mut self, to: Option<Position>) {
        self.buffer.clear();
        self.answers.clear();
        self.fetches.clear();
        self.position = to;
        self.done = to;
    }

    /// Takes up `count` records. From now on their end may be committed: before the work is done if the client
    /// commits ahead of it.
    pub(super) fn take_up(&mut self, setting: &Setting, count: usize) {
        self.work = self.buffer.drain(..count).collect();
        let last = self.work.last().copied().map(after).or(self.done);
        let is_at_end = self.buffer.is_empty() && !setting.last_plus_one && self.answers.is_empty();
        self.done = if is_at_end { self.position.or(last) } else { last };
    }

    pub(super) fn take_answer(&mut self, setting: &Setting, which: usize) {
        let answer = self.answers.remove(which);
        if setting.takes_late_answers && self.position.is_none() {
            self.buffer.extend(answer.records);
            return;
        }
        let Some(position) = self.position else { return };
        let first = answer.records.first().copied();
        let fits = if setting.lenient {
            first.is_some_and(|first| first >= position)
        } else {
            answer.to == position
        };
        if !fits {
            return;
        }
        let last = answer.records.last().copied().map(after);
        self.position = if setting.last_plus_one {
            last
        } else {
            Some(answer.end)
        };
        self.buffer.extend(answer.records);
    }
}
