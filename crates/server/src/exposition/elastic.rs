//! What the planner of elastic groups and the machine behind queue mode did, over all groups and topics.

use anabranch_core::elastic::{Durations, Ended, HANDOVER_BOUNDS_MS, Kind};

use super::row::{Family, Spread, Value, rows};
use super::scrape::Scrape;

rows! {
    DECISIONS: Counter "anabranch_decisions_total" ["kind"] "Changes that the planner decided: `split`, `steal`, `isolate`, `merge`, `balance`, `return`, `fold`, `plain`";
    ENDED: Counter "anabranch_decisions_ended_total" ["end"] "Decisions that are over, by what became of them: `done`, `undone` (slots did not become free in time), `overtaken` (by a member that left, a restart or another decision)";
    HANDOVER: Histogram "anabranch_handover_seconds" ["kind", "end"] "Time from a decision until it was over: for a split, until the new owners had their parts";
    REFUSALS: Counter "anabranch_refusals_total" ["reason"] "Times that the planner was asked for a change and refused it, by reason; an idle member asks again and again";
    QUEUES: Counter "anabranch_queue_changes_total" ["kind"] "Changes of the number of queues of topics in queue mode: `read-up`, `write-up`, `write-down`, `read-down` and others";
}

pub(super) fn families(scrape: &Scrape) -> Vec<Family> {
    let totals = &scrape.totals;
    let count = |label: &str, count: u64| (vec![label.to_owned()], Value::Count(count));
    let ended = |end: Ended| {
        let of_end = totals.handovers().iter().filter(move |((_, of), _)| *of == end);
        of_end.map(|(_, durations)| durations.count()).sum()
    };
    let spreads = totals.handovers().iter().map(|((kind, end), durations)| {
        let labels = vec![kind.code().to_owned(), end.code().to_owned()];
        (labels, Value::Spread(spread(durations)))
    });
    vec![
        DECISIONS.with(Kind::ALL.map(|kind| count(kind.code(), totals.decided(kind)))),
        ENDED.with(Ended::ALL.map(|end| count(end.code(), ended(end)))),
        HANDOVER.with(spreads),
        // Those that have happened: there are many reasons, and most never do.
        REFUSALS.with(
            totals
                .refused()
                .iter()
                .map(|(reason, times)| count(reason, *times)),
        ),
        QUEUES.with(
            scrape
                .queue_changes
                .iter()
                .map(|(kind, times)| count(kind.code(), *times)),
        ),
    ]
}

fn spread(durations: &Durations) -> Spread {
    let bounds = HANDOVER_BOUNDS_MS.iter().map(|ms| *ms as f64 / 1e3);
    Spread {
        sum_s: durations.sum_ms as f64 / 1e3,
        buckets: bounds.chain([f64::INFINITY]).zip(durations.buckets).collect(),
    }
}
