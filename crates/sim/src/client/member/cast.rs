//! Who is in a group: which libraries, how many members, and whether some of them stand in the way of a division.

use super::library::{Ahead, KNOWN, Library, STRANGE, kafkajs};
use super::{Habits, Style, Whim, plots};
use crate::rng::Rng;

/// What a group's members are drawn for.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The group.
    pub group: &'a str,
    /// What it reads.
    pub topics: &'a [String],
    /// Most members.
    pub members_max: u64,
    /// A record takes so long at most, microseconds.
    pub work_us_max: u64,
    /// A commit is to mean that the work is done: no library that commits ahead of it may be in the group.
    pub commit_means_done: bool,
    /// Its members share partitions.
    pub is_elastic: bool,
}

/// How many of a hundred groups whose members share partitions have one with a plot.
const PLOT_PERCENT: u64 = 30;
/// How many groups of a hundred follow one whim all the time, and how often: at least and at most, milliseconds.
const OBSESSED_PERCENT: u64 = 25;
const OBSESSED_MS: (u64, u64) = (200, 3_000);

/// How a group is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Company {
    /// All use one library in one protocol.
    Alike(&'static Library, Style),
    /// All use one library.
    Related(&'static Library),
    /// Each another.
    Mixed,
}

impl PartialEq for Library {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Library {}

/// Draws the members of a group; the first has the number `first`.
pub fn draw(rng: &mut Rng, scene: Scene<'_>, first: usize) -> Vec<Habits> {
    let pick = |rng: &mut Rng| rng.pick(&KNOWN.each_ref()).copied().unwrap_or(&KNOWN[0]);
    let library = pick(rng);
    let company = match rng.below(10) {
        0..4 => {
            let styles = library.styles();
            Company::Alike(library, rng.pick(&styles).copied().unwrap_or(Style::Eager))
        }
        4..6 => Company::Related(library),
        _ => Company::Mixed,
    };
    let work_us_max = rng.between(0, scene.work_us_max);
    let mut members: Vec<Habits> = Vec::new();
    for nth in 0..rng.between(2, scene.members_max) {
        let index = first + members.len();
        let library = match company {
            Company::Alike(library, _) | Company::Related(library) => library,
            Company::Mixed => pick(rng),
        };
        let mut habits = Habits::draw(rng, (scene.group, scene.topics), library, index);
        if let Company::Alike(_, style) = company {
            habits.style = style;
        }
        // Before version 5 of JoinGroup there are no static members.
        let is_static = rng.percent(25) && library.join_version >= 5;
        habits.instance = is_static.then(|| format!("{}-{nth}", scene.group));
        habits.work_us = rng.between(0, work_us_max);
        members.push(habits);
    }
    let mut has_plot = false;
    if rng.percent(10) {
        estrange(rng, scene, &mut members, first);
    } else if rng.percent(8) {
        twin(rng, scene, &mut members, first);
    } else if scene.is_elastic && rng.percent(PLOT_PERCENT) {
        has_plot = true;
        plots::draw(rng, scene, &mut members, first);
    }
    if !has_plot && rng.percent(OBSESSED_PERCENT) {
        // All the time, so that it meets whatever else goes on.
        let whims: Vec<Whim> = Whim::all().collect();
        let whim = rng.pick(&whims).copied().unwrap_or(Whim::SeekBack);
        let whim_ms = rng.between(OBSESSED_MS.0, OBSESSED_MS.1);
        members.iter_mut().for_each(|habits| habits.obsess(whim, whim_ms));
    }
    if scene.commit_means_done {
        members.iter_mut().for_each(|habits| habits.ahead = Ahead::Never);
    }
    members
}

/// One of them uses a library that nobody knows.
fn estrange(rng: &mut Rng, scene: Scene<'_>, members: &mut [Habits], first: usize) {
    let at = rng.index(members.len());
    let library = rng.pick(&STRANGE.each_ref()).copied().unwrap_or(&STRANGE[0]);
    members[at] = Habits::draw(rng, (scene.group, scene.topics), library, first + at);
}

/// Two of them are consumers of one process, which share what they remember.
fn twin(rng: &mut Rng, scene: Scene<'_>, members: &mut [Habits], first: usize) {
    for (at, habits) in members.iter_mut().enumerate().take(2) {
        *habits = Habits::draw(rng, (scene.group, scene.topics), kafkajs(), first + at);
    }
    members[1].introduction = members[0].introduction.clone();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::member::Stands;

    #[test]
    fn all_libraries_and_positions_and_protocols_are_drawn() {
        let topics = ["t".to_owned()];
        let scene = Scene {
            group: "g",
            topics: &topics,
            members_max: 5,
            work_us_max: 1_000,
            commit_means_done: false,
            is_elastic: true,
        };
        let mut rng = Rng::new(1);
        let all: Vec<Habits> = (0..200).flat_map(|_| draw(&mut rng, scene, 7)).collect();
        for library in KNOWN.iter().chain(&STRANGE) {
            assert!(all.iter().any(|habits| habits.library == library), "{library:?}");
        }
        for style in [Style::Eager, Style::Cooperative, Style::Modern] {
            assert!(all.iter().any(|habits| habits.style == style));
        }
        for stands in [Stands::HeaderEnd, Stands::HeaderEndByRecord, Stands::LastRecord] {
            assert!(all.iter().any(|habits| habits.library.stands == stands));
        }
        assert!(
            all.iter()
                .all(|habits| habits.library.styles().contains(&habits.style))
        );
        let patient = Scene {
            commit_means_done: true,
            ..scene
        };
        let all = (0..50).flat_map(|_| draw(&mut rng, patient, 7));
        assert!(all.into_iter().all(|habits| habits.ahead == Ahead::Never));
    }
}
