//! What a run delivered, checked record by record.

/// Work on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) member: u32,
    pub(crate) key: u32,
    /// How many records of the key came before it in the log.
    pub(crate) seq: u32,
    /// Work on it began, microseconds of the run's clock.
    pub(crate) start_us: u64,
    /// Work on it was done.
    pub(crate) done_us: u64,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Distinct records.
    pub(crate) delivered: u64,
    /// Records that were not.
    pub(crate) lost: u64,
    /// Deliveries beyond the first.
    pub(crate) again: u64,
    /// First deliveries that came after a later record of their key, or while another member was at work on an earlier one.
    pub(crate) order_breaks: u64,
}

/// Checks deliveries against the number of records that each key has.
pub(crate) fn check(written: &[u32], mut deliveries: Vec<Delivery>) -> Verdict {
    // What one member began in one go has one start, and stays in the order in which it came.
    deliveries.sort_by_key(|delivery| delivery.start_us);
    let mut verdict = Verdict::default();
    let mut seen: Vec<Vec<bool>> = written.iter().map(|count| vec![false; *count as usize]).collect();
    // Of each key: the next number that is in order, and who worked on it last, until when.
    let mut states = vec![(0, None::<(u32, u64)>); written.len()];
    for delivery in deliveries {
        let Some(seen) = seen
            .get_mut(delivery.key as usize)
            .and_then(|of_key| of_key.get_mut(delivery.seq as usize))
        else {
            continue;
        };
        if std::mem::replace(seen, true) {
            verdict.again += 1;
            continue;
        }
        verdict.delivered += 1;
        let (next, last) = &mut states[delivery.key as usize];
        let overlaps =
            last.is_some_and(|(member, done_us)| member != delivery.member && delivery.start_us < done_us);
        verdict.order_breaks += u64::from(delivery.seq < *next || overlaps);
        *next = (delivery.seq + 1).max(*next);
        if last.is_none_or(|(_, done_us)| done_us <= delivery.done_us) {
            *last = Some((delivery.member, delivery.done_us));
        }
    }
    verdict.lost = written.iter().map(|count| u64::from(*count)).sum::<u64>() - verdict.delivered;
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(member: u32, seq: u32, start_us: u64) -> Delivery {
        Delivery {
            member,
            key: 0,
            seq,
            start_us,
            done_us: start_us + 10,
        }
    }

    fn order_breaks(deliveries: &[Delivery]) -> u64 {
        check(&[3], deliveries.to_vec()).order_breaks
    }

    #[test]
    fn a_key_that_moves_between_members_in_order_is_fine() {
        let deliveries = [delivery(1, 0, 0), delivery(2, 1, 10), delivery(1, 2, 20)];
        let verdict = check(&[3], deliveries.to_vec());
        let fine = Verdict {
            delivered: 3,
            ..Verdict::default()
        };
        assert_eq!(verdict, fine);
    }

    #[test]
    fn what_comes_late_or_at_once_breaks_the_order() {
        assert_eq!(
            order_breaks(&[delivery(1, 1, 0), delivery(1, 0, 10), delivery(1, 2, 20)]),
            1
        );
        assert_eq!(order_breaks(&[delivery(1, 0, 0), delivery(2, 1, 9)]), 1);
        assert_eq!(
            order_breaks(&[delivery(1, 0, 0), delivery(1, 1, 9)]),
            0,
            "one member, one piece of work"
        );
        let long = Delivery {
            done_us: 100,
            ..delivery(1, 0, 0)
        };
        assert_eq!(
            order_breaks(&[long, delivery(1, 1, 20), delivery(2, 2, 50)]),
            1,
            "the longest work counts, not the last"
        );
    }

    #[test]
    fn what_comes_again_breaks_nothing_and_is_counted() {
        let again = [delivery(1, 0, 0), delivery(1, 1, 10), delivery(2, 0, 30)];
        let verdict = check(&[3], again.to_vec());
        assert_eq!((verdict.again, verdict.lost, verdict.order_breaks), (1, 1, 0));
    }
}
