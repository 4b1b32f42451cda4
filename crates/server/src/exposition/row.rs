//! A metric as a row of a table, and its values at one moment.

/// What a metric is called and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Full name, the unit last; counters end in `_total`.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Names of the labels, in the order of the values of a [`Series`].
    pub(super) labels: &'static [&'static str],
    /// One sentence without its full stop.
    pub(super) help: &'static str,
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows while the process lives.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations by bucket.
    Histogram,
}

impl Kind {
    /// The word of the text formats.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    pub(super) row: &'static Row,
    pub(super) series: Vec<Series>,
}

/// A value with the values of its labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) labels: Vec<String>,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Count(u64),
    Level(i64),
    Real(f64),
    Spread(Spread),
}

/// Durations by bucket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) sum_s: f64,
    /// Upper bound, seconds, and how many fell into the bucket; the last bound is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<i64> for Value {
    fn from(level: i64) -> Self {
        Self::Level(level)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<&crate::metrics::Histogram> for Value {
    fn from(histogram: &crate::metrics::Histogram) -> Self {
        let bounds = crate::metrics::BUCKETS_US.iter().map(|us| *us as f64 / 1e6);
        Self::Spread(Spread {
            sum_s: histogram.sum_us() as f64 / 1e6,
            buckets: bounds.chain([f64::INFINITY]).zip(histogram.counts()).collect(),
        })
    }
}

impl Row {
    /// The metric with one value and no labels.
    pub(super) fn alone(&'static self, value: impl Into<Value>) -> Family {
        self.with([(Vec::new(), value.into())])
    }

    /// The metric with its series.
    pub(super) fn with(&'static self, series: impl IntoIterator<Item = (Vec<String>, Value)>) -> Family {
        let series = series.into_iter().map(|(labels, value)| {
            debug_assert_eq!(labels.len(), self.labels.len(), "labels of {}", self.name);
            Series { labels, value }
        });
        Family {
            row: self,
            series: series.collect(),
        }
    }
}

/// A count of things as a level.
pub(super) fn level(count: usize) -> Value {
    Value::Level(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Defines rows, each with a constant of its own, and all of them as `ROWS`.
macro_rules! rows {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(static $constant: $crate::exposition::row::Row = $crate::exposition::row::Row {
            name: $name,
            kind: $crate::exposition::row::Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// The rows of this part.
        pub(super) const ROWS: &[$crate::exposition::row::Row] = &[
            $($crate::exposition::row::Row {
                name: $name,
                kind: $crate::exposition::row::Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            },)*
        ];
    };
}
pub(super) use rows;
