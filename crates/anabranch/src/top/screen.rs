//! A picture as lines, for a screen of any size.
//!
//! From top to bottom: the broker in two lines, the groups, and of the group that is shown in full its partitions as bands of
//! slots, notes (how many queues there are, what is on its way), its members, and the latest decisions. Each part gets what it
//! needs, within its share of the height; what no other part needs goes to members and groups. What does not fit is counted in
//! the headings.

use anabranch_server::admin::model::{Decision, Form, Group, Member, Share, Verdict};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::band::{NAME_MAX, SLOTS, bands, letter, name_of_partition, style_of};
use super::picture::{GroupLine, Picture};
use super::words::{clamp, clock, cut, drain, seconds, speed};
use crate::decisions::sentence;
use crate::names::{name_of, with_names};
use crate::output::{grouped, plural};

/// Width and height in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// What the person at the terminal has chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    /// The picture does not change until it is let go on.
    pub(super) is_frozen: bool,
    /// The keys are explained in the place of the picture.
    pub(super) shows_help: bool,
    /// Only the group that is shown in full, and all of it that fits.
    pub(super) is_zoomed: bool,
    /// Why the picture is an old one.
    pub(super) trouble: Option<String>,
}

/// An offset that has stood still for so long is marked, seconds.
const STUCK_S: f64 = 60.0;

const KEYS: &str = "up/down group  enter zoom  f freeze  ? help  q quit";

const HELP: &str = "\
  up, down, k, j    the group before, the next one
  enter             this group alone, and all groups again
  f                 hold the picture, let it go on
  ?                 these keys
  q, esc, ctrl-c    end

  !          records wait, members are there, and nothing was committed for
             a minute or more
  Bands      one letter for each part of the 4,096 slots: who reads it; ~ where
             it is on its way to another member, a dot where nobody reads it
  SHARE      partitions that a member reads, parts of divided ones as parts
  SENT       unread records that the member has been sent and has not committed
  OLDEST     age of the oldest record that is not committed
  WANTED     members with which all would be read within a minute
  DRAIN      when all would be read at the present speed, if nothing came";

/// How many lines each part gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    groups: usize,
    bands: usize,
    notes: usize,
    members: usize,
    decisions: usize,
}

impl Room {
    /// Deals `lines` out to parts that need so many.
    fn deal(lines: usize, need: Room, is_zoomed: bool) -> Room {
        let share = |part: usize, need: usize| (lines * part / 18).max(1).min(need);
        let mut room = Room {
            groups: if is_zoomed { 0 } else { share(4, need.groups) },
            bands: share(4, need.bands),
            notes: share(2, need.notes),
            members: share(5, need.members),
            decisions: share(3, need.decisions),
        };
        let mut left = lines.saturating_sub(room.total());
        for (part, need) in [
            (&mut room.members, need.members),
            (&mut room.bands, need.bands),
            (&mut room.decisions, need.decisions),
            (&mut room.groups, if is_zoomed { 0 } else { need.groups }),
            (&mut room.notes, need.notes),
        ] {
            let more = need.saturating_sub(*part).min(left);
            *part += more;
            left -= more;
        }
        room
    }

    fn total(&self) -> usize {
        self.groups + self.bands + self.notes + self.members + self.decisions
    }
}

/// The picture for a screen.
pub(super) fn lines(picture: &Picture, view: &View, size: Size) -> Vec<Line<'static>> {
    let mut lines = head(picture, view, size.width);
    if view.shows_help {
        lines.push(Line::default());
        lines.extend(HELP.lines().map(Line::raw));
    } else {
        let detail = picture.detail.as_ref();
        // Of the groups, the group, its members, and the decisions.
        let headings = usize::from(!view.is_zoomed)
            + 2 * usize::from(detail.is_some())
            + 1
            + usize::from(detail.is_none());
        let free = size.height.saturating_sub(lines.len() + 1 + headings);
        let room = Room::deal(free, need(picture), view.is_zoomed);
        lines.extend(body(picture, room, view.is_zoomed, size.width));
    }
    lines.truncate(size.height.saturating_sub(1));
    lines.iter_mut().for_each(|line| clamp(line, size.width));
    lines.resize(size.height.saturating_sub(1), Line::default());
    lines.push(Line::styled(
        cut(KEYS, size.width),
        Style::new().add_modifier(Modifier::DIM),
    ));
    lines
}

/// The picture as text, all of it.
pub(super) fn text(picture: &Picture, width: usize) -> String {
    let mut lines = head(picture, &View::default(), width);
    lines.extend(body(picture, need(picture), false, usize::MAX));
    let mut text = String::new();
    for line in lines {
        text.push_str(line.to_string().trim_end());
        text.push('\n');
    }
    text
}

fn need(picture: &Picture) -> Room {
    let detail = picture.detail.as_ref();
    let partitions = || detail.into_iter().flat_map(|group| &group.partitions);
    Room {
        groups: picture.groups.len().max(1),
        bands: partitions().count(),
        notes: detail.map_or(0, |group| notes(picture, group).count()),
        members: detail.map_or(0, |group| group.members.len()),
        decisions: picture.decisions.len().max(1),
    }
}

fn head(picture: &Picture, view: &View, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let clock = clock(picture.time_ms);
    let title = format!("anabranch top  {}  {}", picture.broker, picture.version);
    let state = match (&view.trouble, view.is_frozen) {
        (Some(_), _) => "NO ANSWER  ",
        (None, true) => "FROZEN  ",
        (None, false) => "",
    };
    let gap = width.saturating_sub(title.chars().count() + state.len() + clock.len());
    let first = Line::from(vec![
        Span::styled(title, bold),
        Span::raw(" ".repeat(gap.max(2))),
        Span::styled(state, Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)),
        Span::raw(clock),
    ]);
    let second = match &view.trouble {
        Some(trouble) => Line::styled(cut(trouble, width), Style::new().fg(Color::Red)),
        None => Line::raw(format!(
            "in {}/s  out {}/s  unread {}  groups {}  topics {}  connections {}",
            speed(picture.in_per_s),
            speed(picture.out_per_s),
            grouped(picture.lag),
            picture.groups.len(),
            picture.topics,
            picture.connections
        )),
    };
    vec![first, second]
}

fn body(picture: &Picture, room: Room, is_zoomed: bool, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !is_zoomed {
        lines.extend(groups(picture, room.groups, width));
    }
    if let Some(group) = &picture.detail {
        let left_out = group.partitions.len().saturating_sub(room.bands);
        lines.push(heading(&titled(&about(group), left_out), width));
        lines.extend(bands(group, room.bands, width));
        let notes = notes(picture, group).take(room.notes);
        lines.extend(notes.map(|note| Line::raw(cut(&note, width))));
        lines.extend(members(group, room.members, width));
    } else if let Some(group) = &picture.shown {
        let line = picture.groups.iter().find(|line| line.group == *group);
        let why = match line.map(|line| line.members) {
            Some(0) => "it has no members; its committed offsets are kept",
            _ => "its members assign its partitions themselves; who reads what is not known here",
        };
        lines.push(heading(&format!("{group}: {why}"), width));
    }
    lines.extend(decisions(picture, room.decisions, width));
    lines
}

fn heading(text: &str, width: usize) -> Line<'static> {
    let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    Line::styled(cut(text, width), style)
}

/// A title that says how many lines there is no room for.
fn titled(title: &str, left_out: usize) -> String {
    match left_out {
        0 => title.to_owned(),
        more => format!("{title} (+{more} more)"),
    }
}

fn groups(picture: &Picture, room: usize, width: usize) -> Vec<Line<'static>> {
    let shown = picture.shown.as_deref();
    let columns = format!(
        "  {:<22} {:>7} {:>4} {:>6} {:>10} {:>7} {:>7} {:>6}",
        titled("GROUP", picture.groups.len().saturating_sub(room)),
        "MEMBERS",
        "IDLE",
        "WANTED",
        "UNREAD",
        "OLDEST",
        "OUT/S",
        "DRAIN"
    );
    let mut lines = vec![heading(&columns, width)];
    if picture.groups.is_empty() {
        lines.push(Line::raw("  no group has committed anything yet"));
        return lines;
    }
    // The one that is shown in full stays in sight.
    let at = picture
        .groups
        .iter()
        .position(|group| Some(group.group.as_str()) == shown);
    let first = at.unwrap_or(0).saturating_sub(room.saturating_sub(1));
    for group in picture.groups.iter().skip(first).take(room) {
        lines.push(group_line(group, Some(group.group.as_str()) == shown, width));
    }
    lines
}

fn group_line(group: &GroupLine, is_shown: bool, width: usize) -> Line<'static> {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let drain = group.out_per_s.and_then(|speed| drain(group.lag, speed));
    let is_stuck = group.stuck_seconds >= STUCK_S;
    let mut text = format!(
        "{}{}{:<22} {:>7} {:>4} {:>6} {:>10} {:>7} {:>7} {:>6}",
        if is_shown { ">" } else { " " },
        if is_stuck { "!" } else { " " },
        cut(&group.group, 22),
        group.members,
        count(group.idle_members),
        count(group.desired_members),
        grouped(group.lag),
        group.lag_seconds.map_or_else(|| "-".to_owned(), seconds),
        speed(group.out_per_s),
        drain.unwrap_or_else(|| "-".to_owned()),
    );
    if is_stuck {
        text.push_str(&format!(" stuck {}", seconds(group.stuck_seconds)));
    }
    let style = match is_shown {
        true => Style::new().add_modifier(Modifier::REVERSED),
        false => Style::new(),
    };
    Line::styled(cut(&text, width), style)
}

/// What a group is, and why it is not divided if it is not.
fn about(group: &Group) -> String {
    let mut text = format!("{}: {}, {} protocol", group.group, group.state, group.protocol);
    let is_divided = group.partitions.iter().any(|one| one.form == Form::Divided);
    match &group.elastic.reason {
        _ if group.elastic.mode == "off" => {}
        Some(reason) => {
            let now = if is_divided {
                "stays as it is divided"
            } else {
                "not divided"
            };
            text.push_str(&format!("; {now}: {}", with_names(group, reason)));
        }
        None => text.push_str(&format!("; {}", group.elastic.mode)),
    }
    if group.elastic.paused {
        text.push_str("; paused by an operator");
    }
    text
}

/// What is to be said of a group's partitions beside who reads them: how many queues there are, and what is on its way.
fn notes<'a>(picture: &'a Picture, group: &'a Group) -> impl Iterator<Item = String> + 'a {
    let queued = picture.queues.iter().filter(|queues| {
        let mut partitions = group.partitions.iter();
        partitions.any(|partition| partition.topic == queues.topic)
    });
    let queued = queued.map(|queues| {
        format!(
            "  {}: queue mode; {} {} written, {} read",
            cut(&queues.topic, NAME_MAX),
            plural(queues.written, "queue"),
            if queues.written == 1 { "is" } else { "are" },
            queues.read
        )
    });
    let moving = group.partitions.iter().flat_map(|partition| {
        let transits = partition.transits.iter();
        transits.map(move |transit| (partition, transit))
    });
    let moving = moving.map(|(partition, transit)| {
        let to = transit
            .to
            .as_deref()
            .map_or_else(|| "nobody yet".to_owned(), |to| name_of(group, to));
        format!(
            "  {}: {} slots, {} records moving from {} to {to} for {}",
            name_of_partition(partition),
            transit.slots,
            grouped(transit.remaining),
            name_of(group, &transit.from),
            seconds(transit.since_ms as f64 / 1e3),
        )
    });
    queued.chain(moving)
}

fn members(group: &Group, room: usize, width: usize) -> Vec<Line<'static>> {
    let columns = format!(
        "  {:<20} {:<8} {:>5} {:>6} {:>10} {:>7} {:>7}",
        titled("MEMBER", group.members.len().saturating_sub(room)),
        "STATE",
        "FOR",
        "SHARE",
        "UNREAD",
        "SENT",
        "RATE/S"
    );
    let columns = format!("{columns} {:>5}", "DRAIN");
    let mut lines = vec![heading(&columns, width)];
    for (at, member) in group.members.iter().enumerate().take(room) {
        lines.push(member_line(group, at, member, width));
    }
    lines
}

fn member_line(group: &Group, at: usize, member: &Member, width: usize) -> Line<'static> {
    let partitions = group.partitions.iter();
    let held = partitions.flat_map(|one| one.shares.iter().filter(|share| share.member == member.member));
    let held: Vec<&Share> = held.collect();
    let open = held.iter().filter(|share| share.end.is_none());
    let slots: u64 = open.map(|share| u64::from(share.slots)).sum();
    let share = slots as f64 / SLOTS as f64;
    let sum = |value: fn(&Share) -> u64| {
        held.iter()
            .fold(0_u64, |sum, share| sum.saturating_add(value(share)))
    };
    let (unread, sent) = (sum(|share| share.remaining), sum(|share| share.handed_out));
    let drain = member.rate.and_then(|rate| drain(unread, rate));
    let mut text = format!(
        " {:<20} {:<8} {:>5} {share:>6.2} {:>10} {:>7} {:>7} {:>5}",
        cut(&name_of(group, &member.member), 20),
        member.state.name(),
        seconds(member.since_ms as f64 / 1e3),
        grouped(unread),
        grouped(sent),
        speed(member.rate),
        drain.unwrap_or_else(|| "-".to_owned()),
    );
    if let Some(why) = &member.ineligible {
        text.push_str(&format!(" {why}"));
    }
    let text = cut(&text, width.saturating_sub(1));
    Line::from(vec![
        Span::styled(letter(at).to_string(), style_of(at)),
        Span::raw(text),
    ])
}

fn decisions(picture: &Picture, room: usize, width: usize) -> Vec<Line<'static>> {
    let left_out = picture.decisions.len().saturating_sub(room);
    let mut lines = vec![heading(&titled("DECISIONS", left_out), width)];
    if picture.decisions.is_empty() {
        lines.push(Line::raw("  nothing was decided yet"));
    }
    for decision in picture.decisions.iter().rev().take(room) {
        lines.push(decision_line(picture, decision, width));
    }
    lines
}

fn decision_line(picture: &Picture, decision: &Decision, width: usize) -> Line<'static> {
    let mut said = sentence(decision);
    if let Some(group) = picture
        .detail
        .as_ref()
        .filter(|group| group.group == decision.group)
    {
        said = with_names(group, &said);
    }
    let text = format!("  {} {said}", clock(decision.time_ms));
    let style = match decision.outcome {
        Verdict::Decided => Style::new(),
        Verdict::Refused => Style::new().add_modifier(Modifier::DIM),
    };
    Line::styled(cut(&text, width), style)
}

#[cfg(test)]
#[path = "screen_test.rs"]
mod tests;
