//! A partition as a band of slots: who reads which.

use anabranch_server::admin::model::{Group, Partition};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::words::cut;
use crate::output::grouped;

/// Slots of a partition.
pub(super) const SLOTS: usize = 4096;

/// Most characters of the name of a partition.
pub(super) const NAME_MAX: usize = 24;

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

/// Who has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Nobody,
    /// It is on its way to a member.
    Moving,
    /// The member at this place of the group's list.
    Member(usize),
}

/// The slots of a partition, by who reads them.
pub(super) fn band(group: &Group, partition: &Partition, width: usize) -> Vec<Span<'static>> {
    let mut owners = vec![Owner::Nobody; SLOTS];
    let mut take = |runs: &[[u16; 2]], owner: Owner| {
        for [first, last] in runs {
            let run = owners.get_mut(usize::from(*first)..=usize::from(*last));
            run.into_iter().flatten().for_each(|slot| *slot = owner);
        }
    };
    // Only the last slice of a member can still get records.
    for share in partition.shares.iter().filter(|share| share.end.is_none()) {
        let mut members = group.members.iter();
        let owner = members.position(|member| member.member == share.member);
        take(&share.slot_runs, owner.map_or(Owner::Nobody, Owner::Member));
    }
    for transit in &partition.transits {
        take(&transit.slot_runs, Owner::Moving);
    }
    // What waits for a member that is to get it is as good as on its way.
    for loose in partition.loose.iter().filter(|loose| loose.to.is_some()) {
        take(&loose.slot_runs, Owner::Moving);
    }
    let cell = |at: usize| {
        let part = owners.get(at * SLOTS / width..(at + 1) * SLOTS / width);
        most_frequent(part.unwrap_or_default())
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut run = (Owner::Nobody, String::new());
    for owner in (0..width).map(cell) {
        if owner != run.0 && !run.1.is_empty() {
            spans.push(Span::styled(std::mem::take(&mut run.1), style(run.0)));
        }
        run.0 = owner;
        run.1.push(sign(owner));
    }
    spans.push(Span::styled(run.1, style(run.0)));
    spans
}

fn most_frequent(owners: &[Owner]) -> Owner {
    let mut counts = std::collections::BTreeMap::<Owner, usize>::new();
    for owner in owners {
        *counts.entry(*owner).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map_or(Owner::Nobody, |(owner, _)| owner)
}

fn sign(owner: Owner) -> char {
    match owner {
        Owner::Nobody => '.',
        Owner::Moving => '~',
        Owner::Member(member) => letter(member),
    }
}

fn style(owner: Owner) -> Style {
    match owner {
        Owner::Nobody | Owner::Moving => Style::new().add_modifier(Modifier::DIM),
        Owner::Member(member) => style_of(member),
    }
}

pub(super) fn letter(member: usize) -> char {
    LETTERS.get(member).map_or('#', |letter| char::from(*letter))
}

pub(super) fn style_of(member: usize) -> Style {
    let colour = COLOURS.get(member % COLOURS.len());
    colour.map_or_else(Style::new, |colour| Style::new().fg(*colour))
}

/// `topic/3`, the topic cut off where that is long.
pub(super) fn name_of_partition(partition: &Partition) -> String {
    let number = format!("/{}", partition.partition);
    let topic = cut(&partition.topic, NAME_MAX.saturating_sub(number.len()));
    format!("{topic}{number}")
}
