//! What a value may be: by type, and by a check of its key.

use super::ConfigType;

/// What a value must satisfy beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Nothing more.
    Any,
    /// A number, at least this.
    AtLeast(i64),
    /// A number in this range, ends included.
    Between(i64, i64),
    /// A fraction from 0 to 1.
    Fraction,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of these words, not empty, none twice.
    SomeOf(&'static [&'static str]),
    /// This one value; the text says why there is no choice.
    Only(&'static str, &'static str),
}

/// `Ok`, or what would have been allowed, to stand after a colon.
pub(super) fn check(kind: ConfigType, check: Check, value: &str) -> Result<(), String> {
    let value = value.trim();
    let number = of_kind(kind, value).map_err(|what| match check {
        Check::AtLeast(min) => format!("{what}, at least {min}"),
        Check::Between(min, max) => format!("{what} from {min} to {max}"),
        _ => what,
    })?;
    match check {
        Check::Any => Ok(()),
        Check::AtLeast(min) => match number {
            Some(number) if number >= min => Ok(()),
            _ => Err(format!("it must be at least {min}")),
        },
        Check::Between(min, max) => match number {
            Some(number) if (min..=max).contains(&number) => Ok(()),
            _ => Err(format!("it must be from {min} to {max}")),
        },
        Check::Fraction => match value.parse::<f64>() {
            Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(()),
            _ => Err("it must be from 0 to 1".to_owned()),
        },
        Check::OneOf(words) if words.contains(&value) => Ok(()),
        Check::OneOf(words) => Err(format!("it must be one of {}", words.join(", "))),
        Check::SomeOf(words) => some_of(words, value),
        Check::Only(only, _) if value.eq_ignore_ascii_case(only) => Ok(()),
        Check::Only(only, why) => Err(format!("only `{only}` is possible, since {why}")),
    }
}

/// Checks the type; numbers are handed back.
fn of_kind(kind: ConfigType, value: &str) -> Result<Option<i64>, String> {
    let whole = |bits: u32| {
        let number = value
            .parse::<i64>()
            .ok()
            .filter(|n| bits == 64 || n.unsigned_abs() < 1 << (bits - 1));
        number
            .map(Some)
            .ok_or_else(|| "it must be a whole number".to_owned())
    };
    match kind {
        ConfigType::Boolean => match value.to_ascii_lowercase().as_str() {
            "true" | "false" => Ok(None),
            _ => Err("it must be true or false".to_owned()),
        },
        ConfigType::Short => whole(16),
        ConfigType::Int => whole(32),
        ConfigType::Long => whole(64),
        ConfigType::Double => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(None),
            _ => Err("it must be a number".to_owned()),
        },
        ConfigType::String | ConfigType::List | ConfigType::Class | ConfigType::Password => Ok(None),
    }
}

fn some_of(words: &[&str], value: &str) -> Result<(), String> {
    let given = words_of(value);
    let known = given.iter().all(|word| words.contains(word));
    let twice = given
        .iter()
        .enumerate()
        .any(|(at, word)| given.iter().take(at).any(|other| other == word));
    if known && !twice && !given.is_empty() {
        return Ok(());
    }
    Err(format!(
        "it must be a list without repetition of {}",
        words.join(", ")
    ))
}

/// The words of a list value.
pub(crate) fn words_of(value: &str) -> Vec<&str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_checked_with_their_bounds() {
        let ok = |kind, value| check(kind, Check::Any, value).is_ok();
        assert!(ok(ConfigType::Boolean, "TRUE") && !ok(ConfigType::Boolean, "yes"));
        assert!(ok(ConfigType::Int, "2147483647") && !ok(ConfigType::Int, "2147483648"));
        assert!(ok(ConfigType::Long, " -1 ") && !ok(ConfigType::Long, "1.5") && !ok(ConfigType::Long, ""));
        assert!(ok(ConfigType::Long, "9223372036854775807") && !ok(ConfigType::Long, "9223372036854775808"));
        assert!(ok(ConfigType::Double, "0.5") && !ok(ConfigType::Double, "NaN"));
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let allowed = |check_: Check, kind, value| check(kind, check_, value).unwrap_err();
        assert_eq!(
            allowed(Check::AtLeast(-1), ConfigType::Long, "-2"),
            "it must be at least -1"
        );
        assert_eq!(
            allowed(Check::AtLeast(1), ConfigType::Int, "many"),
            "it must be a whole number, at least 1"
        );
        assert_eq!(
            allowed(Check::Between(1, 64), ConfigType::Int, "2147483648"),
            "it must be a whole number from 1 to 64"
        );
        assert_eq!(
            allowed(Check::Any, ConfigType::Long, "1.5"),
            "it must be a whole number"
        );
        assert_eq!(
            allowed(Check::OneOf(&["a", "b"]), ConfigType::String, "c"),
            "it must be one of a, b"
        );
        let policies = Check::SomeOf(&["compact", "delete"]);
        assert!(check(ConfigType::List, policies, "delete, compact").is_ok());
        for bad in ["", "delete,delete", "drop", " , "] {
            assert!(check(ConfigType::List, policies, bad).is_err(), "{bad}");
        }
        let only = Check::Only("producer", "batches are stored as they came");
        assert!(allowed(only, ConfigType::String, "zstd").contains("as they came"));
    }
}
