//! Numbers on the command line: what is wrong with one says which are right.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use crate::output::grouped;

/// A parser of whole numbers within a range, for clap. `what` they are, for messages: "a whole number of records", "an offset".
pub(crate) fn number<T>(
    what: &'static str,
    range: impl RangeBounds<T> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display,
{
    move |text| match text.parse() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(expected(what, &range)),
    }
}

fn expected<T: Display>(what: &str, range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(from), Bound::Included(upto)) => {
            format!("expected {what} from {} to {}", grouped(from), grouped(upto))
        }
        (Bound::Included(from), _) => format!("expected {what} from {} on", grouped(from)),
        _ => format!("expected {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_says_what_is_right() {
        let records = number("a whole number of records", 1..=10_000_000u32);
        assert_eq!(records("10000000"), Ok(10_000_000));
        let wrong = "expected a whole number of records from 1 to 10,000,000".to_owned();
        for text in ["0", "10000001", "1.5", "", "many", "99999999999999999999", "-1"] {
            assert_eq!(records(text), Err(wrong.clone()), "{text:?}");
        }
        let partitions = number("a whole number of partitions", 1i32..);
        assert_eq!(
            partitions("0"),
            Err("expected a whole number of partitions from 1 on".to_owned())
        );
        assert!(partitions("2147483648").is_err(), "more than the type holds");
        let any = number::<i64>("a whole number of records", ..);
        assert_eq!(any("-3"), Ok(-3));
        assert_eq!(any("x"), Err("expected a whole number of records".to_owned()));
        assert_eq!(grouped(-100), "-100");
        assert_eq!(grouped(-1000), "-1,000");
    }
}
