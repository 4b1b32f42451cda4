//! Reads Prometheus's text format, as far as the broker writes it.

use std::collections::BTreeMap;

/// One line: a name, labels and a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: BTreeMap<&'a str, String>,
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// The value of a label; empty if it has none.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// The samples of a scrape; lines that are not understood are left out.
pub(crate) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    // A timestamp may follow; the broker sends none.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value })
}

/// The labels up to the closing brace, and what stands behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<&str, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        rest = loop {
            match letters.next()? {
                (at, '"') => break quoted.get(at + 1..)?,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_read_as_they_were_written() {
        let text =
            "# HELP a b\n# TYPE a gauge\na 3\nb_total{x=\"1\",y=\"a \\\"b\\\"\\n\\\\}\"} 1.5e3\nc{} +Inf\n";
        let found: Vec<Sample<'_>> = samples(text).collect();
        assert_eq!((found[0].name, found[0].value), ("a", 3.0));
        assert_eq!((found[1].name, found[1].value), ("b_total", 1500.0));
        assert_eq!((found[1].label("x"), found[1].label("y")), ("1", "a \"b\"\n\\}"));
        assert_eq!((found[2].name, found[2].value), ("c", f64::INFINITY));
        assert_eq!(found[2].label("none"), "");
    }

    #[test]
    fn lines_that_are_cut_off_are_left_out() {
        for line in [
            "a",
            "a{",
            "a{b",
            "a{b=\"",
            "a{b=\"c",
            "a{b=\"c\"",
            "a{b=\"c\"}",
            "a x",
            "",
            "a{b=\"\\",
        ] {
            assert_eq!(samples(line).count(), 0, "{line}");
        }
    }
}
