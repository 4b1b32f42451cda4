//! "Did you mean ...?": the nearest known name to one that is not known.

/// The candidate that most resembles `name`, if any resembles it enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(&fold(name), &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Case and the choice between `.`, `_` and `-` are no difference in meaning.
fn fold(name: &str) -> Vec<char> {
    let fold_char = |c: char| {
        if c == '_' || c == '-' {
            '.'
        } else {
            c.to_ascii_lowercase()
        }
    };
    name.chars().map(fold_char).collect()
}

/// Edit distance where swapping two neighbours counts as one step.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replace = last[j] + usize::from(from != to);
            let mut best = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["listen", "log.level", "log.retention.ms", "data"];

    fn suggest(name: &str) -> Option<&'static str> {
        nearest(name, NAMES.into_iter())
    }

    #[test]
    fn slips_are_recognised() {
        assert_eq!(suggest("lisen"), Some("listen"));
        assert_eq!(suggest("log_levle"), Some("log.level"));
        assert_eq!(suggest("LOG.RETENTION.MS"), Some("log.retention.ms"));
        assert_eq!(suggest("dta"), Some("data"));
    }

    #[test]
    fn other_words_are_not() {
        assert_eq!(suggest("colour"), None);
        assert_eq!(suggest("x"), None);
        assert_eq!(suggest(""), None);
    }
}
