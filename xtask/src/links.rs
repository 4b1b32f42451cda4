//! Links of documents: whatever a `[text](target)` of a page in the repository leads to within the repository must be there, the
//! heading behind a `#` included.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Where a link stands, and why it leads nowhere.
type Broken = String;

/// Checks the links of all `pages` (path from the root of the repository, text); `exists` knows the other files.
pub(crate) fn broken(pages: &[(String, String)], exists: impl Fn(&Path) -> bool) -> Vec<Broken> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|(page, text)| (page.as_str(), anchors(text)))
        .collect();
    let mut broken = Vec::new();
    for (page, text) in pages {
        for (number, target) in targets(text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() {
                PathBuf::from(page)
            } else {
                beside(page, path)
            };
            let place = format!("{page}:{number}: link to {target}");
            if !exists(&file) {
                broken.push(format!("{place}, which does not exist"));
            } else if !anchor.is_empty()
                && file
                    .to_str()
                    .and_then(|file| anchors.get(file))
                    .is_some_and(|known| !known.contains(anchor))
            {
                broken.push(format!("{place}, where no heading is called so"));
            }
        }
    }
    broken
}

/// A path that stands in a page, from the root of the repository.
fn beside(page: &str, path: &str) -> PathBuf {
    let mut whole = PathBuf::from(page);
    whole.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

/// The lines of a page that are text, not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let marks = line.trim_start();
        let ticks = marks.len() - marks.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            None => return Some((at + 1, line)),
            Some(open) if ticks >= open && marks.trim_start_matches('`').trim().is_empty() => fence = None,
            Some(_) => {}
        }
        None
    })
}

/// Every target of a link that is not a web address, with the number of its line.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text)
        .flat_map(|(number, line)| line.split("](").skip(1).map(move |part| (number, part)))
        .filter_map(|(number, part)| Some((number, part.split(')').next()?)))
        .filter(|(_, target)| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The names by which a page's headings can be linked to, as GitHub makes them: small letters, without punctuation, a hyphen
/// for each space, and a number behind the second of a kind.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let name = anchor(title.trim());
        let mut free = name.clone();
        let mut number = 0;
        while !known.insert(free.clone()) {
            number += 1;
            free = format!("{name}-{number}");
        }
    }
    known
}

fn anchor(title: &str) -> String {
    // Of a link in a heading, only its text counts.
    let mut shown = String::new();
    let mut rest = title;
    while let Some((before, behind)) = rest.split_once("](") {
        shown.push_str(before);
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    shown.push_str(rest);
    shown
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_in(pages: &[(&str, &str)]) -> Vec<String> {
        let pages: Vec<(String, String)> = pages
            .iter()
            .map(|(page, text)| ((*page).to_owned(), (*text).to_owned()))
            .collect();
        broken(&pages, |path| {
            path == Path::new("docs/img/a.png") || pages.iter().any(|(page, _)| Path::new(page) == path)
        })
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let good = "# Top\n[a](docs/b.md) [b](docs/b.md#what-is-not) [c](#top) [d](https://x/#y) ![e](docs/img/a.png)\n";
        let other = "## What is, not\n[up](../README.md#top) [beside](./b.md)\n";
        assert!(broken_in(&[("README.md", good), ("docs/b.md", other)]).is_empty());
    }

    #[test]
    fn a_file_and_a_heading_that_are_not_there_are_named_with_their_line() {
        let page = "# Top\n\n[a](gone.md)\n[b](#bottom) [c](b.md#bottom)\n";
        assert_eq!(
            broken_in(&[("docs/a.md", page), ("docs/b.md", "# Other\n")]),
            [
                "docs/a.md:3: link to gone.md, which does not exist",
                "docs/a.md:4: link to #bottom, where no heading is called so",
                "docs/a.md:4: link to b.md#bottom, where no heading is called so",
            ]
        );
    }

    #[test]
    fn code_has_neither_links_nor_headings() {
        let page =
            "[a](#real)\n# Real\n```sh\n# not a heading [x](gone.md)\n```\n````text\n```\n# nor this\n````\n";
        assert!(broken_in(&[("a.md", page)]).is_empty());
        assert_eq!(anchors(page), BTreeSet::from(["real".to_owned()]));
    }

    #[test]
    fn names_of_headings_are_as_github_makes_them() {
        let text = "# `wal.segment.bytes` (bytes)\n## Who sees, and may do, what?\n## Again\n## Again\n## A [link](x.md) here\n";
        let known = anchors(text);
        for name in [
            "walsegmentbytes-bytes",
            "who-sees-and-may-do-what",
            "again",
            "again-1",
            "a-link-here",
        ] {
            assert!(known.contains(name), "{name} in {known:?}");
        }
    }
}
