//! What concerned each group's partition, in the order in which it happened: of a run that is known to fail, told again.

use anabranch_core::cursor::{Edit, Pieces, Slice};

use super::commits::Key;

/// Everything that may be told.
#[derive(Debug, Default)]
pub struct Story {
    /// With the step, and the partition it is about; none: all of them.
    lines: Option<Vec<(u64, Option<Key>, String)>>,
}

impl Story {
    /// From now on, what happens is kept.
    pub fn keep(&mut self) {
        self.lines.get_or_insert_default();
    }

    /// Something has happened; its words are made only if they are kept.
    pub fn add(&mut self, step: u64, key: Option<&Key>, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push((step, key.cloned(), text()));
        }
    }

    /// What concerned a partition, from the last time on that it was whole.
    pub fn of(&self, key: &Key) -> Vec<String> {
        let lines = self.lines.as_deref().unwrap_or_default();
        let of_key = lines
            .iter()
            .filter(|(_, about, _)| about.as_ref().is_none_or(|about| about == key));
        let told: Vec<String> = of_key
            .map(|(step, _, text)| format!("{step:>7} {text}"))
            .collect();
        let begin = told.iter().rposition(|line| line.ends_with(DIVIDED)).unwrap_or(0);
        told[begin..].to_vec()
    }
}

const DIVIDED: &str = "the cursor is divided";

/// An edit of a cursor, in a few words.
pub fn edit(edit: &Edit) -> String {
    match edit {
        Edit::Divide { .. } => DIVIDED.to_owned(),
        Edit::Grant { member, slice, epoch } => {
            format!("{member} is granted {} in epoch {epoch}", words(slice))
        }
        Edit::Succeed {
            chain,
            to,
            slice,
            transit,
        } => format!(
            "chain {}: its tail ends at {to}, then {}; in transit: {}",
            chain.get(),
            words(slice),
            pieces(transit)
        ),
        Edit::Advance {
            chain,
            front,
            pos,
            closed,
            opened,
            ..
        } => format!(
            "chain {}: done up to {pos} in slice {}, closed {closed:?}, {} slots come loose",
            chain.get(),
            front.get(),
            opened.len()
        ),
        Edit::State { chain, state } => format!("chain {} is {state:?}", chain.get()),
        Edit::Ceiling {
            chain,
            slice,
            ceiling,
        } => {
            format!(
                "chain {}: slice {} is handed out up to {ceiling}",
                chain.get(),
                slice.get()
            )
        }
        Edit::Plain { plain } => format!("the cursor is plain at {}", plain.offset),
    }
}

fn words(slice: &Slice) -> String {
    format!("slice {} with {}", slice.id.get(), pieces(&slice.pieces))
}

fn pieces(pieces: &Pieces) -> String {
    let one =
        |(from, slots): (i64, &anabranch_core::slots::SlotSet)| format!("{} slots from {from}", slots.len());
    match pieces.is_empty() {
        true => "nothing".to_owned(),
        false => pieces.iter().map(one).collect::<Vec<_>>().join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;

    #[test]
    fn only_what_concerns_the_partition_is_told_from_its_last_division_on() {
        let (here, there) = (("g".to_owned(), Tp::default()), ("h".to_owned(), Tp::default()));
        let mut story = Story::default();
        story.add(1, None, || panic!("nothing is kept"));
        story.keep();
        story.add(2, Some(&here), || "before".to_owned());
        story.add(3, Some(&here), || DIVIDED.to_owned());
        story.add(4, Some(&there), || "elsewhere".to_owned());
        story.add(5, None, || "the broker ends".to_owned());
        let told = story.of(&here);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].ends_with("the broker ends"));
    }
}
