//! The picture: lines of text from plain data, at most 80 columns wide.

use crate::output::{Table, grouped};

/// Width of the picture, columns.
const WIDTH: usize = 80;

/// Width of the bar of remaining records, columns.
const BAR: usize = 36;

/// Width of the bar of what a member reads, columns.
const SHARE: usize = 32;

/// What is drawn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
    /// What runs where.
    pub(crate) title: String,
    /// Which part of the demo it is.
    pub(crate) phase: String,
    pub(crate) seconds: f64,
    pub(crate) records: u64,
    pub(crate) remaining: u64,
    /// Records per second of all members.
    pub(crate) rate: f64,
    /// How many times as fast as one member; `None` before that was measured.
    pub(crate) speed_up: Option<f64>,
    pub(crate) members: Vec<Row>,
    /// What happened, oldest first.
    pub(crate) events: Vec<Event>,
}

/// A line about a member.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) state: String,
    /// The part of all slots that it reads, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) slots: Option<u32>,
    pub(crate) remaining: Option<u64>,
    pub(crate) rate: f64,
    pub(crate) done: u64,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) seconds: f64,
    pub(crate) text: String,
}

impl Event {
    /// One line, uncut.
    pub(crate) fn line(&self) -> String {
        format!("{:>5.1} s  {}", self.seconds, self.text)
    }
}

impl Picture {
    /// The lines, at most `height` of them: the older events are left out first.
    pub(crate) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![
            self.title.clone(),
            String::new(),
            self.progress(),
            self.bar(),
            String::new(),
        ];
        lines.extend(self.table().lines().map(str::to_owned));
        lines.push(String::new());
        let room = height.saturating_sub(lines.len());
        let skipped = self.events.len().saturating_sub(room);
        lines.extend(self.events.iter().skip(skipped).map(Event::line));
        let width = width.min(WIDTH);
        lines.truncate(height);
        lines.iter().map(|line| cut(line, width)).collect()
    }

    fn progress(&self) -> String {
        let speed_up = self
            .speed_up
            .map_or(String::new(), |factor| format!("  {factor:.1} x one member"));
        format!(
            "{:<33} {:>5.1} s  {:>7} records/s{speed_up}",
            self.phase,
            self.seconds,
            grouped(self.rate.round() as u64)
        )
    }

    fn bar(&self) -> String {
        let full =
            (u128::from(self.remaining) * BAR as u128).div_ceil(u128::from(self.records.max(1))) as usize;
        format!(
            "{}  {} of {} records to do",
            bar(full, BAR, '░'),
            grouped(self.remaining),
            grouped(self.records)
        )
    }

    /// What a member has still to do, where the broker tells; else what it has done.
    fn table(&self) -> String {
        let told = self.members.iter().any(|row| row.remaining.is_some());
        let amount = if told { "TO DO" } else { "DONE" };
        let mut table = Table::new(&["MEMBER", "STATE", "READS", "SLOTS", amount, "RATE"]);
        let number = |value: Option<u64>| value.map_or("-".to_owned(), grouped);
        for row in &self.members {
            let share = (row.share * SHARE as f64).round() as usize;
            table.row(vec![
                row.name.clone(),
                row.state.clone(),
                bar(share, SHARE, '·'),
                number(row.slots.map(u64::from)),
                if told {
                    number(row.remaining)
                } else {
                    grouped(row.done)
                },
                grouped(row.rate.round() as u64),
            ]);
        }
        table.render()
    }
}

/// A bar of a width of which a part is full.
fn bar(full: usize, width: usize, rest: char) -> String {
    let full = full.min(width);
    std::iter::repeat_n('█', full)
        .chain(std::iter::repeat_n(rest, width - full))
        .collect()
}

/// The beginning of a line, with a mark where it was cut.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(members: usize, events: usize) -> Picture {
        let row = |number: usize| Row {
            name: format!("member-{number}"),
            state: "busy".to_owned(),
            share: 0.25 * (number % 2 + 1) as f64,
            slots: Some(512),
            remaining: Some(1_234_567),
            rate: 998.6,
            done: 10_000,
        };
        Picture {
            title: "anabranch demo".to_owned(),
            phase: "4 members, the 4th has joined".to_owned(),
            seconds: 12.34,
            records: 50_000,
            remaining: 25_000,
            rate: 3_991.2,
            speed_up: Some(3.98),
            members: (0..members).map(row).collect(),
            events: (0..events)
                .map(|i| Event {
                    seconds: i as f64,
                    text: format!("event {i} {}", "long ".repeat(30)),
                })
                .collect(),
        }
    }

    #[test]
    fn it_fits_on_a_screen_and_shows_the_latest() {
        let lines = picture(4, 40).lines(80, 23);
        assert_eq!(lines.len(), 23);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(
            lines[22].contains("event 39") && lines[22].ends_with('…'),
            "{lines:#?}"
        );
        assert!(
            lines[2].contains("3,991 records/s  4.0 x one member"),
            "{lines:#?}"
        );
        let bar = &lines[3];
        assert!(bar.contains("25,000 of 50,000"), "{bar}");
        assert_eq!(bar.matches('█').count(), BAR / 2, "{bar}");
        assert_eq!(
            (lines[6].matches('█').count(), lines[7].matches('█').count()),
            (8, 16),
            "{lines:#?}"
        );
        assert!(picture(12, 3).lines(80, 10).len() <= 10);
        assert!(
            picture(2, 3)
                .lines(40, 24)
                .iter()
                .all(|line| line.chars().count() <= 40)
        );
    }
}
