//! The picture on a terminal, renewed until somebody has seen enough.
//!
//! A thread looks at the broker, so that keys work while it does not answer. The terminal is put in order again however this
//! ends: at the end, by a signal, or by a fault.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::keys::{Wish, wish};
use super::picture::{Picture, Sampler};
use super::screen::{self, Size, View};
use crate::failure::{Failure, Outcome};
use crate::interrupt;

/// How soon a key or a new picture is seen.
const TICK: Duration = Duration::from_millis(100);

/// Shows pictures until the person ends it.
///
/// # Errors
/// The broker did not answer the first time, or the terminal cannot be written to. Later failures to reach the broker are
/// shown, since it may come back.
pub(super) fn run(mut sampler: Sampler, interval: Duration, view: View) -> Outcome {
    let first = sampler.look()?;
    let interrupted = interrupt::flag()?;
    let (orders, wanted) = mpsc::channel();
    let (looks, pictures) = mpsc::channel();
    let looker = thread::spawn(move || look(sampler, interval, &wanted, &looks));
    let mut terminal = ratatui::try_init().map_err(|error| broken(&error))?;
    let mut live = Live {
        picture: first,
        view,
        orders,
        pictures,
        has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let shown = live.show(&mut terminal, &interrupted);
    ratatui::restore();
    // The looker ends when nobody gives it orders any more, or with the process if it waits for the broker.
    drop(live);
    drop(looker);
    shown
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot use the terminal: {error}")).hint("--once prints one picture as text")
}

/// Looks again and again, at once when another group is wanted.
fn look(
    mut sampler: Sampler,
    interval: Duration,
    orders: &Receiver<Option<String>>,
    looks: &Sender<Outcome<Picture>>,
) {
    loop {
        match orders.recv_timeout(interval) {
            Ok(group) => sampler.want(group),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if looks.send(sampler.look()).is_err() {
            return;
        }
    }
}

struct Live {
    picture: Picture,
    view: View,
    /// To the looker: the group to show in full.
    orders: Sender<Option<String>>,
    pictures: Receiver<Outcome<Picture>>,
    has_colours: bool,
}

impl Live {
    fn show(&mut self, terminal: &mut DefaultTerminal, interrupted: &AtomicBool) -> Outcome {
        self.draw(terminal)?;
        while !interrupted.load(Ordering::Relaxed) {
            let has_key = event::poll(TICK).map_err(|error| broken(&error))?;
            let mut is_changed = false;
            if has_key {
                match event::read().map_err(|error| broken(&error))? {
                    Event::Key(key) => match wish(key) {
                        Some(Wish::End) => return Ok(()),
                        Some(wish) => is_changed |= self.obey(wish),
                        None => {}
                    },
                    Event::Resize(..) => is_changed = true,
                    _ => {}
                }
            }
            while let Ok(look) = self.pictures.try_recv() {
                is_changed |= self.take(look);
            }
            if is_changed {
                self.draw(terminal)?;
            }
        }
        Ok(())
    }

    /// Takes a new picture, or notes why there is none. Says whether the screen changes.
    fn take(&mut self, look: Outcome<Picture>) -> bool {
        if self.view.is_frozen {
            return false;
        }
        match look {
            Ok(picture) => {
                self.picture = picture;
                self.view.trouble = None;
            }
            Err(failure) => self.view.trouble = Some(failure.message),
        }
        true
    }

    fn obey(&mut self, wish: Wish) -> bool {
        match wish {
            Wish::Next => self.choose(1),
            Wish::Previous => self.choose(-1),
            Wish::Zoom => self.view.is_zoomed = !self.view.is_zoomed,
            Wish::Freeze => self.view.is_frozen = !self.view.is_frozen,
            Wish::Help => self.view.shows_help = !self.view.shows_help,
            Wish::End => {}
        }
        true
    }

    /// Has another group shown in full, so many places further down.
    fn choose(&mut self, step: isize) {
        let groups = &self.picture.groups;
        let shown = self.picture.shown.as_deref();
        let at = groups
            .iter()
            .position(|group| Some(group.group.as_str()) == shown);
        let next = match at {
            Some(at) => at.saturating_add_signed(step).min(groups.len().saturating_sub(1)),
            None => 0,
        };
        if let Some(group) = groups.get(next) {
            let _ = self.orders.send(Some(group.group.clone()));
        }
    }

    fn draw(&self, terminal: &mut DefaultTerminal) -> Outcome {
        let drawn = terminal.draw(|frame| {
            let area = frame.area();
            let size = Size {
                width: usize::from(area.width),
                height: usize::from(area.height),
            };
            let mut lines = screen::lines(&self.picture, &self.view, size);
            if !self.has_colours {
                lines.iter_mut().for_each(pale);
            }
            frame.render_widget(Paragraph::new(lines), area);
        });
        drawn.map(|_| ()).map_err(|error| broken(&error))
    }
}

/// Takes the colours away; bold, reverse and so on stay.
fn pale(line: &mut Line<'static>) {
    let without = |style: Style| {
        Style {
            fg: None,
            bg: None,
            ..style
        }
        .fg(Color::Reset)
    };
    line.style = without(line.style);
    for span in &mut line.spans {
        span.style = without(span.style);
    }
}
