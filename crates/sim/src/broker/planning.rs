//! The planner of elastic groups, as the server's planning task runs it: first what was handed out before the start is
//! read again, then the planner is asked, counts what it asks for, and is asked again; each step at a moment that chance
//! chooses, so that anything may happen in between.

use std::collections::VecDeque;

use anabranch_core::cursor::Record;
use anabranch_engine::counting::{CountTask, Counting, Thought};
use anabranch_engine::recalling::RecallTask;

use super::Process;
use crate::oracle::Violation;
use crate::run::Ctx;
use crate::sights::Sight;
use crate::world::{Chore, Event};

/// The planner is not asked again sooner than this, unless something happens, milliseconds.
const PAUSE_MS: u64 = 50;
/// How long reading again, or counting, may take, milliseconds.
const READING_MS_MAX: u64 = 60;

/// Where the planning task is.
#[derive(Debug, Default)]
pub(super) struct Planning {
    /// Something has happened that the planner is to think about.
    pub(super) is_wanted: bool,
    stage: Stage,
    counting: Counting,
    /// When it is to think next, monotonic milliseconds, if that is scheduled.
    next_ms: Option<u64>,
}

#[derive(Debug, Default)]
enum Stage {
    /// The process has just begun.
    #[default]
    Begun,
    /// What was handed out before is read again, and taken in.
    Recalling {
        left: VecDeque<RecallTask>,
        read: Option<(RecallTask, Vec<Record>)>,
    },
    /// Waits for its time.
    Waiting,
    /// Counts for the planner.
    Counting { tasks: Vec<CountTask>, thought: Thought },
}

impl Process {
    /// The planning task goes one step on.
    pub(super) fn plan(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        match std::mem::take(&mut self.planning.stage) {
            Stage::Begun => {
                let left: VecDeque<RecallTask> = self.engine.recalls().into();
                if !left.is_empty() {
                    ctx.saw(Sight::RecalledAfterRestart);
                }
                self.planning.stage = Stage::Recalling { left, read: None };
                self.soon(ctx, life, READING_MS_MAX);
            }
            Stage::Recalling { left, read } => self.recall(ctx, life, left, read),
            Stage::Waiting => self.think(ctx, life),
            Stage::Counting { tasks, mut thought } => {
                match self
                    .planning
                    .counting
                    .count(self.engine.store(), &self.scans, &tasks)
                {
                    Ok(more) => {
                        thought.learn(more);
                        self.ask(ctx, life, thought);
                    }
                    Err((log, error)) => {
                        self.unreadable(ctx, &format!("records of log {log} cannot be counted: {error}"));
                        self.wait(ctx, life);
                    }
                }
            }
        }
    }

    fn recall(
        &mut self,
        ctx: &mut Ctx<'_>,
        life: u64,
        mut left: VecDeque<RecallTask>,
        read: Option<(RecallTask, Vec<Record>)>,
    ) {
        if let Some((task, records)) = read {
            let outcome = self.engine.recalled(ctx.world.now(), &task, &records);
            self.pass_on(outcome);
        }
        let Some(task) = left.pop_front() else {
            return self.think(ctx, life);
        };
        let read = match task.read(self.engine.store(), &self.scans) {
            Ok(records) => Some((task, records)),
            Err(error) => {
                self.unreadable(ctx, &format!("log {} cannot be read again: {error}", task.log()));
                None
            }
        };
        self.planning.stage = Stage::Recalling { left, read };
        self.soon(ctx, life, READING_MS_MAX);
    }

    fn think(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        self.planning.is_wanted = false;
        self.ask(ctx, life, Thought::default());
    }

    fn ask(&mut self, ctx: &mut Ctx<'_>, life: u64, thought: Thought) {
        let (wanted, outcome) = self.engine.plan(ctx.world.now(), thought.counted());
        self.pass_on(outcome);
        let Some(tasks) = thought.to_count(wanted) else {
            return self.wait(ctx, life);
        };
        self.planning.stage = Stage::Counting { tasks, thought };
        self.soon(ctx, life, READING_MS_MAX);
    }

    fn wait(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        self.planning.stage = Stage::Waiting;
        self.planning.next_ms = None;
        if let Some(next_ms) = self.engine.next_plan() {
            let at_ms = next_ms.max(ctx.world.now().mono_ms + PAUSE_MS);
            self.planning.next_ms = Some(at_ms);
            ctx.world.at_mono_ms(at_ms, Event::Broker(life, Chore::Plan));
        }
    }

    fn soon(&mut self, ctx: &mut Ctx<'_>, life: u64, ms_max: u64) {
        let at_ms = ctx.world.now().mono_ms + ctx.world.rng.between(0, ms_max);
        self.planning.next_ms = Some(at_ms);
        ctx.world.at_mono_ms(at_ms, Event::Broker(life, Chore::Plan));
    }

    /// If something has happened that the planner is to think about, it does so at once, unless it is at work.
    pub(super) fn think_later(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        let now_ms = ctx.world.now().mono_ms;
        let is_near = self.planning.next_ms.is_some_and(|at_ms| at_ms <= now_ms + 1);
        if self.planning.is_wanted && matches!(self.planning.stage, Stage::Waiting) && !is_near {
            self.soon(ctx, life, 1);
        }
    }

    /// Whether the task waits for another moment than this one: a wake that was overtaken by a nearer one.
    pub(super) fn is_planned_later(&self, ctx: &Ctx<'_>) -> bool {
        let has_begun = !matches!(self.planning.stage, Stage::Begun);
        has_begun
            && self
                .planning
                .next_ms
                .is_none_or(|at_ms| at_ms > ctx.world.now().mono_ms)
    }

    fn unreadable(&self, ctx: &mut Ctx<'_>, detail: &str) {
        // Only a process that has just ended may fail to read.
        if self.disk.ended().is_none() {
            let violation = Violation::new("what is visible can be read", detail.to_owned());
            ctx.oracle.judge(Err(violation));
        }
    }
}
