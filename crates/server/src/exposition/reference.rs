//! The reference page of metrics.

use super::ROWS;

const INTRODUCTION: &str = "\
# Metrics

<!-- Made by `anabranch config metrics`; a test holds this page against the table of metrics. -->

`http://127.0.0.1:9099/metrics` (`--http` sets the address) has them for Prometheus, in its text format or in
OpenMetrics, as the scraper asks. Names that begin with `kafka_` are those of `kafka_exporter` and mean the same.
What is about topics and groups comes from one moment, so that lag is never negative, adds up, and is not changed by a
division. Counters begin at 0 with the process. Keys of records are never in a label.
";

/// Headings of the parts, in the order of [`ROWS`].
const HEADINGS: [&str; ROWS.len()] = [
    "Process",
    "Clients",
    "Storage",
    "Topics",
    "Groups",
    "Elastic groups",
];

/// The page, in Markdown.
pub fn metrics_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for (heading, rows) in HEADINGS.iter().zip(ROWS) {
        page.push_str(&format!(
            "\n## {heading}\n\n| metric | kind | labels | what it is |\n|---|---|---|---|\n"
        ));
        for row in rows {
            let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
            page.push_str(&format!(
                "| `{}` | {} | {} | {} |\n",
                row.name,
                row.kind.name(),
                labels.join(", "),
                row.help
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::row::Kind;
    use super::*;

    /// Gauges in seconds.
    const TIMES: [&str; 3] = [
        "process_start_time_seconds",
        "anabranch_group_lag_seconds",
        "anabranch_group_stuck_seconds",
    ];

    #[test]
    fn names_are_unique_and_say_their_kind_and_unit() {
        let rows: Vec<_> = ROWS.into_iter().flatten().collect();
        let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        for row in rows {
            assert_eq!(
                row.name.ends_with("_total"),
                row.kind == Kind::Counter,
                "{}",
                row.name
            );
            assert_eq!(
                row.name.ends_with("_seconds"),
                row.kind == Kind::Histogram || TIMES.contains(&row.name),
                "{}",
                row.name
            );
            assert!(row.help.len() > 3 && !row.help.ends_with('.'), "{}", row.name);
            assert!(metrics_page().contains(row.name));
        }
    }
}
