//! Families as text, in either of the formats that Prometheus reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::row::{Family, Kind, Series, Value};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus 0.0.4: what everything reads.
    Prometheus,
}

impl Format {
    /// The format for an `Accept` header.
    pub(super) fn of(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// What the answer is labelled with.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Writes the families.
pub(super) fn render(families: Vec<Family>, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut out = String::new();
    match format {
        Format::OpenMetrics => text::encode(&mut out, &registry)?,
        Format::Prometheus => prometheus_text::encode(&mut out, &registry)?,
    }
    Ok(out)
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let row = family.row;
            let kind = match row.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            // The encoder puts the ending of counters, and a full stop behind the help.
            let name = row.name.strip_suffix("_total").unwrap_or(row.name);
            let help = format!("{}.", row.help);
            let mut metric = encoder.encode_descriptor(name, &help, None, kind)?;
            for series in &family.series {
                encode_series(&mut metric, family, series)?;
            }
        }
        Ok(())
    }
}

fn encode_series(metric: &mut MetricEncoder<'_>, family: &Family, series: &Series) -> fmt::Result {
    let kind = family.row.kind;
    if series.labels.is_empty() {
        return encode_value(metric, kind, &series.value);
    }
    let values = series.labels.iter().map(String::as_str);
    let labels: Vec<(&str, &str)> = family.row.labels.iter().copied().zip(values).collect();
    encode_value(&mut metric.encode_family(&labels)?, kind, &series.value)
}

fn encode_value(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> fmt::Result {
    match (kind, value) {
        (_, Value::Spread(spread)) => {
            let count = spread.buckets.iter().map(|(_, count)| count).sum();
            metric.encode_histogram::<NoLabelSet>(spread.sum_s, count, &spread.buckets, None)
        }
        (Kind::Counter, Value::Count(count)) => metric.encode_counter::<NoLabelSet, u64, f64>(count, None),
        (Kind::Counter, Value::Real(real)) => metric.encode_counter::<NoLabelSet, f64, f64>(real, None),
        (_, Value::Count(count)) => metric.encode_gauge(&i64::try_from(*count).unwrap_or(i64::MAX)),
        (_, Value::Level(level)) => metric.encode_gauge(level),
        (_, Value::Real(real)) => metric.encode_gauge(real),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::rows;
    use super::*;

    rows! {
        COUNTED: Counter "things_total" ["kind"] "Things seen";
        HELD: Gauge "held_bytes" [] "Bytes held";
        TOOK: Histogram "took_seconds" [] "Time taken";
    }

    fn some() -> Vec<Family> {
        let histogram = crate::metrics::Histogram::default();
        histogram.observe(std::time::Duration::from_micros(60));
        histogram.observe(std::time::Duration::from_secs(9));
        vec![
            COUNTED.with([(vec!["a \"b\"\n".to_owned()], Value::Count(3))]),
            HELD.alone(-1_i64),
            TOOK.alone(&histogram),
        ]
    }

    #[test]
    fn both_formats_have_the_same_series() {
        let old = render(some(), Format::Prometheus).unwrap();
        assert!(old.starts_with("# HELP things_total Things seen."), "{old}");
        for line in [
            "# TYPE things_total counter",
            "things_total{kind=\"a \\\"b\\\"\\n\"} 3",
            "held_bytes -1",
            "took_seconds_bucket{le=\"7.5e-05\"} 1",
            "took_seconds_bucket{le=\"+Inf\"} 2",
            "took_seconds_count 2",
            "took_seconds_sum 9.00006",
        ] {
            assert!(old.lines().any(|found| found == line), "{line} is not in\n{old}");
        }
        let new = render(some(), Format::OpenMetrics).unwrap();
        assert!(new.contains("# TYPE things counter\n"), "{new}");
        assert!(new.ends_with("# EOF\n"), "{new}");
        assert!(new.contains("took_seconds_bucket{le=\"+Inf\"} 2\n"), "{new}");
        let values = |text: &str| -> Vec<String> {
            let values = text.lines().filter(|line| !line.starts_with('#'));
            values.map(str::to_owned).collect()
        };
        assert_eq!(values(&old).len(), values(&new).len());
        assert_eq!(ROWS.len(), 3);
    }

    #[test]
    fn the_scraper_chooses_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        assert_eq!(Format::of(prometheus), Format::OpenMetrics);
        assert_eq!(Format::of("*/*"), Format::Prometheus);
        assert_eq!(Format::of(""), Format::Prometheus);
    }
}
