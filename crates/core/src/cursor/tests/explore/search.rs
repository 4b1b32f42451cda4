//! Through all worlds, and back from the goal.

use std::collections::{HashMap, VecDeque};

use super::acts::{Act, possible};
use super::model::{Scene, Setting};
use crate::ids::Offset;

/// What a search found.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// The invariant that broke, and how to get there.
    pub(super) broken: Option<(String, Vec<Act>)>,
    /// How many worlds cannot reach the goal, and how to get to one.
    pub(super) dead: Option<(usize, Vec<Act>)>,
    /// Whether the search was cut at its bound; dead ends are not asked for then.
    pub(super) cut: bool,
}

/// Which world comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The oldest: ways to a fault are the shortest.
    Breadth,
    /// The newest: few worlds are kept at a time.
    Depth,
}

impl Scene {
    /// Lets it happen and checks everything. `None`: it was refused.
    pub(super) fn after(
        &self,
        setting: &Setting,
        before: &[Offset],
        act: Act,
    ) -> Result<Option<(Self, Vec<Offset>)>, String> {
        let mut scene = self.clone();
        if !scene.act(setting, act)? {
            return Ok(None);
        }
        scene.search_ahead(setting);
        let after = scene.next_records(setting);
        scene.check(setting, &after)?;
        Self::check_move(before, &after)?;
        Ok(Some((scene, after)))
    }
}

struct Search {
    seen: HashMap<u128, u32>,
    parents: Vec<(u32, Act)>,
    edges: Vec<(u32, u32)>,
    goals: Vec<u32>,
    queue: VecDeque<(u32, Scene)>,
}

/// Goes through all worlds of a setting, at most `bound` of them.
pub(super) fn explore(setting: &Setting, bound: usize, order: Order) -> Outcome {
    let mut search = Search {
        seen: HashMap::new(),
        parents: Vec::new(),
        edges: Vec::new(),
        goals: Vec::new(),
        queue: VecDeque::new(),
    };
    let first = Scene::new(setting);
    let next = first.next_records(setting);
    search.visit(setting, first, &next, (0, Act::Append));
    while let Some((from, scene)) = search.next(order) {
        if search.parents.len() > bound {
            return search.outcome(None, true);
        }
        let before = scene.next_records(setting);
        for act in possible(&scene, setting) {
            match scene.after(setting, &before, act) {
                Ok(Some((next, after))) => {
                    let to = search.visit(setting, next, &after, (from, act));
                    search.edges.push((from, to));
                }
                Ok(None) => {}
                Err(broken) => {
                    let mut path = search.path(from);
                    path.push(act);
                    return search.outcome(Some((broken, path)), false);
                }
            }
        }
    }
    search.outcome(None, false)
}

impl Search {
    fn next(&mut self, order: Order) -> Option<(u32, Scene)> {
        match order {
            Order::Breadth => self.queue.pop_front(),
            Order::Depth => self.queue.pop_back(),
        }
    }

    fn visit(&mut self, setting: &Setting, scene: Scene, next: &[Offset], by: (u32, Act)) -> u32 {
        let fresh = self.parents.len() as u32;
        let found = *self.seen.entry(scene.key(setting)).or_insert(fresh);
        if found == fresh {
            self.parents.push(by);
            if scene.is_at_goal(setting, next) {
                self.goals.push(fresh);
            }
            self.queue.push_back((fresh, scene));
        }
        found
    }

    fn path(&self, mut at: u32) -> Vec<Act> {
        let mut path = Vec::new();
        while at != 0 {
            let (parent, act) = self.parents[at as usize];
            path.push(act);
            at = parent;
        }
        path.reverse();
        path
    }

    fn outcome(self, broken: Option<(String, Vec<Act>)>, cut: bool) -> Outcome {
        let dead = if broken.is_none() && !cut {
            self.dead()
        } else {
            None
        };
        Outcome {
            states: self.parents.len(),
            transitions: self.edges.len(),
            broken,
            dead,
            cut,
        }
    }

    /// Worlds from which no way leads to the goal.
    fn dead(&self) -> Option<(usize, Vec<Act>)> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.parents.len()];
        for (from, to) in &self.edges {
            back[*to as usize].push(*from);
        }
        let mut alive = vec![false; self.parents.len()];
        let mut open = self.goals.clone();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut alive[at as usize], true) {
                open.extend(&back[at as usize]);
            }
        }
        let first = alive.iter().position(|alive| !alive)?;
        let count = alive.iter().filter(|alive| !**alive).count();
        Some((count, self.path(first as u32)))
    }
}
