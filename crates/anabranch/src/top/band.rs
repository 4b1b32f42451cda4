//! A partition as a band of slots: who reads which.

use anabranch_server::admin::model::{Group, Partition};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::words::cut;
use crate::output::grouped;

/// Slots of a partition.
pub(super) const SLOTS: usize = 4096;

/// Characters of the name of a partition.
const NAME_MAX: usize = 24;

/// Characters of a band.
const BAND_MAX: usize = 64;

/// What stands for members in bands, in their order.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Colours of members, told apart with every kind of colour vision; the letters say the same without colours.
const COLOURS: [Color; 6] = [
    Color::Cyan,
    Color::Yellow,
    Color::Magenta,
    Color::Green,
    Color::Blue,
    Color::White,
];

/// Each partition as a band, the fullest first.
pub(super) fn bands(group: &Group, room: usize, width: usize) -> Vec<Line<'static>> {
    let mut partitions: Vec<&Partition> = group.partitions.iter().collect();
    partitions.sort_by_key(|one| std::cmp::Reverse((one.shares.len() > 1, one.lag)));
    partitions.truncate(room);
    let names = partitions
        .iter()
        .map(|one| name_of_partition(one).chars().count());
    let name_width = names.max().unwrap_or(0);
    let band_width = width.saturating_sub(name_width + 17).clamp(8, BAND_MAX);
    let lines = partitions.iter().map(|partition| {
        let name = name_of_partition(partition);
        let mut spans = vec![Span::raw(format!("  {name:<name_width$} "))];
        spans.extend(band(group, partition, band_width));
        spans.push(Span::raw(format!(" {:>12}", grouped(partition.lag))));
        Line::from(spans)
    });
    lines.collect()
}

/// The slots of a partition, by who reads them.
pub(super) fn band(group: &Group, partition: &Partition, width: usize) -> Vec<Span<'static>> {
    let mut owners: Vec<Option<usize>> = vec![None; SLOTS];
    // Only the last slice of a member can still get records.
    for share in partition.shares.iter().filter(|share| share.end.is_none()) {
        let owner = group
            .members
            .iter()
            .position(|member| member.member == share.member);
        for [first, last] in &share.slot_runs {
            let run = owners.get_mut(usize::from(*first)..=usize::from(*last));
            run.into_iter().flatten().for_each(|slot| *slot = owner);
        }
    }
    let cell = |at: usize| {
        let part = owners.get(at * SLOTS / width..(at + 1) * SLOTS / width);
        most_frequent(part.unwrap_or_default())
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut run = (None, String::new());
    for owner in (0..width).map(cell) {
        if owner != run.0 && !run.1.is_empty() {
            spans.push(Span::styled(std::mem::take(&mut run.1), style_of(run.0)));
        }
        run.0 = owner;
        run.1.push(owner.map_or('.', letter));
    }
    spans.push(Span::styled(run.1, style_of(run.0)));
    spans
}

fn most_frequent(owners: &[Option<usize>]) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::<Option<usize>, usize>::new();
    for owner in owners {
        *counts.entry(*owner).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .and_then(|(owner, _)| owner)
}

pub(super) fn letter(member: usize) -> char {
    LETTERS.get(member).map_or('#', |letter| char::from(*letter))
}

pub(super) fn style_of(member: Option<usize>) -> Style {
    let colour = member.and_then(|member| COLOURS.get(member % COLOURS.len()));
    colour.map_or_else(
        || Style::new().add_modifier(Modifier::DIM),
        |colour| Style::new().fg(*colour),
    )
}

/// `topic/3`, the topic cut off where that is long.
pub(super) fn name_of_partition(partition: &Partition) -> String {
    let number = format!("/{}", partition.partition);
    let topic = cut(&partition.topic, NAME_MAX.saturating_sub(number.len()));
    format!("{topic}{number}")
}
