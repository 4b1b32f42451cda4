//! Points in time as people write them: ISO 8601, milliseconds since 1970, or "this long ago".

use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_server::settings::parse_duration_ms;

/// The time of the wall clock, milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

/// Reads a point in time as milliseconds since 1970 (UTC).
///
/// `2026-01-31`, `2026-01-31T12:00`, `2026-01-31T12:00:00.250Z`, `2026-01-31T12:00:00+01:00`, `1769860800000`, and
/// `-90min` for 90 minutes before `now_ms`. Without a zone the time is UTC, as in Kafka's tools.
pub(crate) fn parse_time_ms(text: &str, now_ms: i64) -> Result<i64, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a time; write 2026-01-31T12:00:00Z, milliseconds since 1970, or -1h for one hour ago"
        )
    };
    if let Some(ago) = text.strip_prefix('-') {
        let ago_ms = parse_duration_ms(ago).map_err(|_| wrong())?;
        return i64::try_from(ago_ms)
            .ok()
            .and_then(|ago_ms| now_ms.checked_sub(ago_ms))
            .ok_or_else(wrong);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| wrong());
    }
    iso_ms(text).ok_or_else(wrong)
}

const DAY_MS: i64 = 86_400_000;

fn iso_ms(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00Z"),
    };
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (
        digits(date.next()?, 4)?,
        digits(date.next()?, 2)?,
        digits(date.next()?, 2)?,
    );
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let (clock, zone_minutes) = split_zone(time)?;
    let day_ms = clock_ms(clock)?;
    Some(days_from_civil(year, month, day) * DAY_MS + day_ms - zone_minutes * 60_000)
}

/// Splits `12:00:00+01:00` into the clock and the zone's minutes ahead of UTC.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let (clock, zone) = time.split_at(at);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let zone = zone.get(1..)?.replace(':', "");
    let (hours, minutes) = match zone.len() {
        2 => (digits(&zone, 2)?, 0),
        4 => (digits(zone.get(..2)?, 2)?, digits(zone.get(2..)?, 2)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some((clock, sign * (hours * 60 + minutes)))
}

fn clock_ms(clock: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, fraction) = match parts.next() {
        Some(rest) => rest.split_once('.').unwrap_or((rest, "0")),
        None => ("00", "0"),
    };
    let second = digits(second, 2)?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let milli: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let valid = hour < 24 && minute < 60 && second < 60;
    valid.then_some(((hour * 60 + minute) * 60 + second) * 1000 + milli)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let valid = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar. Years are counted from March, so that the leap day is
/// the last of its year, in eras of 400 years (146,097 days).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Writes milliseconds since 1970 as `2026-01-31T12:00:00.000Z`.
pub(crate) fn format_time_ms(ms: i64) -> String {
    let (days, in_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read() {
        let noon = 1_769_860_800_000;
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00",
            "2026-01-31 12:00:00.000",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T06:30:00-0530",
            "1769860800000",
        ] {
            assert_eq!(parse_time_ms(text, 0), Ok(noon), "{text}");
        }
        assert_eq!(parse_time_ms("-90min", noon), Ok(noon - 5_400_000));
        assert_eq!(parse_time_ms("2026-01-31", 0), Ok(noon - 43_200_000));
        assert_eq!(
            parse_time_ms("2024-02-29T00:00:00.25", 0)
                .map(format_time_ms)
                .unwrap(),
            "2024-02-29T00:00:00.250Z"
        );
    }

    #[test]
    fn wrong_times_are_refused() {
        for text in [
            "",
            "-",
            "yesterday",
            "2026-02-29",
            "2026-13-01",
            "2026-01-31T24:00",
            "2026-01-31T12:00:00+1",
            "12:00",
        ] {
            let error = parse_time_ms(text, 0).unwrap_err();
            assert!(error.contains("is not a time"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in -62_135_596_800_000_i64..253_402_300_799_999) {
            prop_assert_eq!(parse_time_ms(&format_time_ms(ms), 0), Ok(ms));
        }
    }
}
