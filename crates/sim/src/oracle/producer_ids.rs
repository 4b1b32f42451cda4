//! A producer id is given once, for ever.

use std::collections::BTreeSet;

use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "a producer id is given to one producer only, for ever";

/// All that were given.
#[derive(Debug, Default)]
pub struct ProducerIds {
    given: BTreeSet<i64>,
}

impl ProducerIds {
    /// A client was told its id.
    pub fn given(&mut self, id: i64) -> Verdict {
        if self.given.insert(id) {
            return Ok(());
        }
        Err(Violation::new(
            SENTENCE,
            format!("producer id {id} was given before"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_time_is_noticed() {
        let mut oracle = ProducerIds::default();
        oracle.given(1).unwrap();
        oracle.given(2).unwrap();
        assert!(oracle.given(1).is_err());
    }
}
