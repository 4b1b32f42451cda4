//! Plots: a member whose habits fit each other so that something comes about that chance alone brings together too seldom.
//! The rest of the cast is as it was drawn.

use super::library::{Ahead, KNOWN, Library};
use super::{Habits, Style, Whim, cast::Scene};
use crate::rng::Rng;

/// What a member is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plot {
    /// It works slowly on much that it holds, gives its subscription up again and again, and is back under the same id before
    /// others have got what it had: then it commits what it had done.
    Restless,
    /// It goes back again and again, and has so much handed to it at once that its commits lie behind what it reads once more.
    SecondThoughts,
}

/// Draws a plot, and gives one of the members its part; the first has the number `first`.
pub(super) fn draw(rng: &mut Rng, scene: Scene<'_>, members: &mut [Habits], first: usize) {
    let plots = [Plot::Restless, Plot::SecondThoughts];
    let plot = rng.pick(&plots).copied().unwrap_or(Plot::Restless);
    let at = rng.index(members.len());
    let fits =
        |library: &&Library| library.modern && (plot == Plot::Restless || library.ahead == Ahead::Batch);
    let libraries: Vec<&'static Library> = KNOWN.iter().filter(fits).collect();
    let library = rng.pick(&libraries).copied().unwrap_or(&KNOWN[0]);
    let mut habits = Habits::draw(rng, (scene.group, scene.topics), library, first + at);
    habits.style = Style::Modern;
    habits.work_us = rng.between(scene.work_us_max / 4, scene.work_us_max);
    match plot {
        Plot::Restless => {
            habits.buffer_min = 300;
            habits.obsess(Whim::Resubscribe, rng.between(300, 2_500));
        }
        Plot::SecondThoughts => {
            habits.manual = false;
            habits.commit_ms = rng.between(100, 400);
            (habits.batch_max, habits.buffer_min) = (500, 30);
            habits.linger_ms = rng.between(30, 200);
            habits.obsess(Whim::SeekBack, rng.between(300, 2_000));
            // The others are soon without work, and get some of its.
            members.iter_mut().for_each(|other| other.work_us /= 4);
        }
    }
    members[at] = habits;
}
