//! Numbers, times and names in few characters.

use ratatui::text::Line;

use crate::time::format_time_ms;

/// The time of day, in UTC.
pub(super) fn clock(time_ms: i64) -> String {
    let time = format_time_ms(time_ms);
    time.get(11..19).unwrap_or_default().to_owned()
}

/// When so many records would be done.
pub(super) fn drain(records: u64, per_s: f64) -> Option<String> {
    (records > 0 && per_s > 0.0).then(|| seconds(records as f64 / per_s))
}

/// A duration in at most five characters.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.0005 => "0s".to_owned(),
        ..1.0 => format!("{:.0}ms", seconds * 1e3),
        ..10.0 => format!("{seconds:.1}s"),
        ..100.0 => format!("{seconds:.0}s"),
        ..6_000.0 => format!("{:.0}m", seconds / 60.0),
        ..172_800.0 => format!("{:.0}h", seconds / 3_600.0),
        _ => format!("{:.0}d", (seconds / 86_400.0).min(9_999.0)),
    }
}

/// A number of records per second in at most five characters; `-` if it is not known.
pub(super) fn speed(per_s: Option<f64>) -> String {
    match per_s {
        None => "-".to_owned(),
        Some(per_s @ ..10.0) => format!("{:.1}", per_s.max(0.0)),
        Some(per_s @ ..1_000.0) => format!("{per_s:.0}"),
        Some(per_s @ ..1_000_000.0) => format!("{:.1}k", per_s / 1e3),
        Some(per_s) => format!("{:.1}M", per_s / 1e6),
    }
}

/// At most so many characters. Control characters of names do no harm on the screen.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let clean = text
        .chars()
        .map(|letter| if letter.is_control() { '?' } else { letter });
    if text.chars().count() <= width {
        return clean.collect();
    }
    let mut kept: String = clean.take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Takes away what does not fit.
pub(super) fn clamp(line: &mut Line<'static>, width: usize) {
    let mut left = width;
    for span in &mut line.spans {
        let length = span.content.chars().count();
        if length > left {
            span.content = span.content.chars().take(left).collect::<String>().into();
        }
        left = left.saturating_sub(length);
    }
}
