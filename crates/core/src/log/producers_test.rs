//! Sequence rules: row by row, against a naive oracle, and with clients that pipeline, lose answers and retry.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn batch(producer_id: i64, epoch: i16, base_sequence: i32, count: i32) -> BatchFacts {
    BatchFacts {
        producer_id,
        producer_epoch: epoch,
        base_sequence,
        record_count: count,
        last_offset_delta: count - 1,
        base_timestamp: 1_000,
        max_timestamp: 2_000,
        size: 100,
        is_transactional: false,
    }
}

/// Producers with a log that only counts.
#[derive(Default)]
struct Bench {
    producers: Producers,
    next: Offset,
}

/// What a batch came to: the new or the old offset, or the error code.
type Outcome = Result<(bool, Offset), ErrorCode>;

impl Bench {
    fn offer(&mut self, mono_ms: u64, batch: BatchFacts) -> Outcome {
        match self
            .producers
            .check(mono_ms, &batch)
            .map_err(|error| error.code())?
        {
            Sequenced::Duplicate(kept) => Ok((false, kept.base_offset)),
            Sequenced::New => {
                let (base, last) = (self.next, self.next + i64::from(batch.last_offset_delta));
                let place = Place {
                    base_offset: base,
                    last_offset: last,
                    timestamp: batch.max_timestamp,
                    is_elsewhere: false,
                };
                self.producers.accept(mono_ms, &batch, place);
                self.next = last + 1;
                Ok((true, base))
            }
        }
    }

    fn restarted(self) -> Self {
        let mut e = Encoder::new();
        self.producers.put(&mut e);
        let bytes = e.into_bytes();
        let mut d = Decoder::new(&bytes);
        let producers = Producers::get(&mut d, 2).unwrap();
        d.finish().unwrap();
        Self {
            producers,
            next: self.next,
        }
    }
}

const OUT_OF_ORDER: Outcome = Err(ErrorCode::OutOfOrderSequenceNumber);
const OLD_EPOCH: Outcome = Err(ErrorCode::InvalidProducerEpoch);

#[test]
fn batches_follow_each_other_and_retries_get_the_old_offset() {
    let mut bench = Bench::default();
    assert_eq!(bench.offer(0, batch(1, 0, 0, 3)), Ok((true, 0)));
    assert_eq!(bench.offer(0, batch(1, 0, 3, 2)), Ok((true, 3)));
    assert_eq!(bench.offer(0, batch(1, 0, 0, 3)), Ok((false, 0)));
    assert_eq!(bench.offer(0, batch(1, 0, 3, 2)), Ok((false, 3)));
    assert_eq!(bench.offer(0, batch(1, 0, 6, 1)), OUT_OF_ORDER, "5 is missing");
    assert_eq!(
        bench.offer(0, batch(1, 0, 7, 1)),
        OUT_OF_ORDER,
        "and so are those behind it"
    );
    assert_eq!(bench.offer(0, batch(1, 0, 5, 1)), Ok((true, 5)));
    assert_eq!(
        bench.offer(0, batch(1, 0, 0, 2)),
        OUT_OF_ORDER,
        "part of an old batch is not that batch"
    );
}

#[test]
fn five_batches_are_kept() {
    let mut bench = Bench::default();
    for sequence in 0..7 {
        assert_eq!(
            bench.offer(0, batch(1, 0, sequence, 1)),
            Ok((true, i64::from(sequence)))
        );
    }
    for sequence in 2..7 {
        assert_eq!(
            bench.offer(0, batch(1, 0, sequence, 1)),
            Ok((false, i64::from(sequence)))
        );
    }
    assert_eq!(bench.offer(0, batch(1, 0, 1, 1)), OUT_OF_ORDER);
}

#[test]
fn epochs_fence_and_start_at_zero() {
    let mut bench = Bench::default();
    assert_eq!(bench.offer(0, batch(1, 3, 0, 1)), Ok((true, 0)));
    assert_eq!(bench.offer(0, batch(1, 4, 1, 1)), OUT_OF_ORDER);
    assert_eq!(bench.offer(0, batch(1, 4, 0, 1)), Ok((true, 1)));
    assert_eq!(bench.offer(0, batch(1, 3, 1, 1)), OLD_EPOCH);
    assert_eq!(bench.offer(0, batch(1, 3, 0, 1)), OLD_EPOCH, "not even a retry");
}

#[test]
fn unknown_producers_may_start_anywhere() {
    let mut bench = Bench::default();
    assert_eq!(bench.offer(0, batch(1, 5, 77, 1)), Ok((true, 0)));
    assert_eq!(bench.offer(0, batch(2, 0, 0, 1)), Ok((true, 1)));
}

#[test]
fn sequence_numbers_wrap() {
    let mut bench = Bench::default();
    assert_eq!(bench.offer(0, batch(1, 0, i32::MAX - 1, 2)), Ok((true, 0)));
    assert_eq!(bench.offer(0, batch(1, 0, 0, 1)), Ok((true, 2)));
    assert_eq!(
        bench.offer(0, batch(2, 0, i32::MAX, 3)),
        Ok((true, 3)),
        "a wrap inside a batch"
    );
    assert_eq!(bench.offer(0, batch(2, 0, i32::MAX, 3)), Ok((false, 3)));
    assert_eq!(bench.offer(0, batch(2, 0, 2, 1)), Ok((true, 6)));
}

#[test]
fn a_refused_first_batch_must_come_first() {
    let mut bench = Bench::default();
    bench.producers.note_refused(0, &batch(1, 0, 0, 1));
    bench.producers.note_refused(0, &batch(1, 0, 1, 1));
    assert_eq!(bench.offer(10, batch(1, 0, 1, 1)), OUT_OF_ORDER);
    assert_eq!(
        bench.offer(10, batch(1, 0, 0, 2)),
        Ok((true, 0)),
        "renumbered by the client"
    );
    bench.producers.note_refused(0, &batch(2, 0, 0, 1));
    assert_eq!(
        bench.offer(10, batch(2, 1, 5, 1)),
        Ok((true, 2)),
        "a new epoch starts anew"
    );
    bench.producers.note_refused(0, &batch(3, 0, 0, 1));
    assert_eq!(
        bench.offer(limits::REFUSED_PRODUCER_MS, batch(3, 0, 1, 1)),
        Ok((true, 3)),
        "it gave up"
    );
}

#[test]
fn refusals_take_bounded_memory() {
    let mut bench = Bench::default();
    for id in 0..1_000i64 {
        bench
            .producers
            .note_refused(id.unsigned_abs(), &batch(id, 0, 0, 1));
    }
    assert_eq!(
        bench.producers.refused.len(),
        limits::REFUSED_PRODUCERS_PER_LOG_MAX
    );
    assert_eq!(
        bench.offer(1_000, batch(999, 0, 1, 1)),
        OUT_OF_ORDER,
        "the newest are remembered"
    );
    bench
        .producers
        .expire(limits::REFUSED_PRODUCER_MS + 1_000, 0, u64::MAX);
    assert!(bench.producers.refused.is_empty());
}

#[test]
fn the_longest_idle_are_forgotten_first() {
    let mut bench = Bench::default();
    for id in [1, 2, 3, 1] {
        let sequence = i32::from(bench.producers.by_id.contains_key(&id));
        assert!(bench.offer(0, batch(id, 0, sequence, 1)).is_ok());
    }
    bench.producers.shrink_to(2);
    assert_eq!(bench.producers.by_id.keys().collect::<Vec<_>>(), [&1, &3]);
    bench.producers.shrink_to(1);
    assert_eq!(bench.producers.by_id.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn idle_producers_expire_by_monotonic_time_and_those_from_before_a_restart_from_the_start() {
    let mut bench = Bench::default();
    assert!(bench.offer(100, batch(1, 0, 0, 1)).is_ok());
    assert!(bench.offer(150, batch(2, 0, 0, 1)).is_ok());
    bench.producers.expire(199, 0, 100);
    assert_eq!(bench.producers.len(), 2);
    bench.producers.expire(200, 0, 100);
    assert_eq!(bench.producers.len(), 1);
    let mut bench = bench.restarted();
    bench.producers.expire(1_099, 1_000, 100);
    assert_eq!(bench.producers.len(), 1);
    bench.producers.expire(1_100, 1_000, 100);
    assert_eq!(bench.producers.len(), 0);
    assert_eq!(
        bench.offer(1_100, batch(2, 0, 9, 1)),
        Ok((true, 2)),
        "and may go on anywhere"
    );
}

#[test]
fn damaged_snapshots_are_errors() {
    let mut bench = Bench::default();
    for id in 0..3 {
        assert!(bench.offer(0, batch(id, 0, 0, 2)).is_ok());
    }
    let mut e = Encoder::new();
    bench.producers.put(&mut e);
    let bytes = e.into_bytes();
    for cut in 0..bytes.len() {
        assert!(
            Producers::get(&mut Decoder::new(&bytes[..cut]), 2).is_err(),
            "{cut}"
        );
    }
}

/// Everything ever accepted, and the rules in the words of the table.
#[derive(Default)]
struct Oracle {
    accepted: Vec<(BatchFacts, Offset)>,
}

impl Oracle {
    fn offer(&mut self, batch: BatchFacts, next: Offset) -> Outcome {
        let of_producer = self
            .accepted
            .iter()
            .filter(|(old, _)| old.producer_id == batch.producer_id);
        let Some((last, _)) = of_producer.clone().next_back() else {
            return self.accept(batch, next);
        };
        if batch.producer_epoch < last.producer_epoch {
            return OLD_EPOCH;
        }
        if batch.producer_epoch > last.producer_epoch {
            return if batch.base_sequence == 0 {
                self.accept(batch, next)
            } else {
                OUT_OF_ORDER
            };
        }
        let recent = of_producer
            .rev()
            .take_while(|(old, _)| old.producer_epoch == last.producer_epoch)
            .take(5);
        for (old, offset) in recent {
            if (old.base_sequence, old.record_count) == (batch.base_sequence, batch.record_count) {
                return Ok((false, *offset));
            }
        }
        let expected = (i64::from(last.base_sequence) + i64::from(last.record_count)) % (1 << 31);
        if i64::from(batch.base_sequence) == expected {
            self.accept(batch, next)
        } else {
            OUT_OF_ORDER
        }
    }

    fn accept(&mut self, batch: BatchFacts, next: Offset) -> Outcome {
        self.accepted.push((batch, next));
        Ok((true, next))
    }
}

fn any_batch() -> impl Strategy<Value = BatchFacts> {
    let sequence = prop_oneof![4 => 0..12i32, 1 => (i32::MAX - 4)..=i32::MAX];
    (0..3i64, 0..3i16, sequence, 1..4i32).prop_map(|(id, epoch, first, count)| batch(id, epoch, first, count))
}

/// One thing that happens between a client and the broker.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The application has records; they are sent if fewer than five batches are unanswered.
    Send(i32),
    /// The next request arrives.
    Arrive,
    /// The next request arrives, and the broker refuses it for a passing reason.
    Refuse,
    /// The next answer reaches the client.
    Answer,
    /// The connection breaks: requests and answers on the way are lost, the client retries all.
    Break,
    /// The broker restarts.
    Restart,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..4i32).prop_map(Event::Send),
        6 => Just(Event::Arrive),
        1 => Just(Event::Refuse),
        5 => Just(Event::Answer),
        1 => Just(Event::Break),
        1 => Just(Event::Restart),
    ]
}

/// A client as librdkafka and Java are: five in flight, answers in order, retries from the first failure on.
#[derive(Default)]
struct Client {
    next_sequence: i32,
    unanswered: VecDeque<BatchFacts>,
    to_broker: VecDeque<BatchFacts>,
    to_client: VecDeque<(BatchFacts, Outcome)>,
    acknowledged: Vec<(i32, Offset)>,
}

impl Client {
    fn resend(&mut self) {
        self.to_client.clear();
        self.to_broker.clone_from(&self.unanswered);
    }

    fn answered(&mut self) {
        let Some((batch, outcome)) = self.to_client.pop_front() else {
            return;
        };
        match outcome {
            Ok((_, offset)) => {
                assert_eq!(
                    self.unanswered.pop_front(),
                    Some(batch),
                    "success only for the oldest in flight"
                );
                self.acknowledged.push((batch.base_sequence, offset));
            }
            Err(_) => self.resend(),
        }
    }
}

fn run(events: &[Event]) -> (Vec<(i32, Offset)>, Client) {
    let (mut bench, mut client, mut written) = (Bench::default(), Client::default(), Vec::new());
    let drain = [Event::Break]
        .into_iter()
        .chain([Event::Arrive; 5])
        .chain([Event::Answer; 5]);
    for event in events.iter().copied().chain(drain) {
        match event {
            Event::Send(count) if client.unanswered.len() < 5 => {
                let new = batch(9, 0, client.next_sequence, count);
                client.next_sequence += count;
                client.unanswered.push_back(new);
                client.to_broker.push_back(new);
            }
            Event::Send(_) => {}
            Event::Arrive => {
                let Some(batch) = client.to_broker.pop_front() else {
                    continue;
                };
                let outcome = bench.offer(0, batch);
                if let Ok((true, offset)) = outcome {
                    written.extend(
                        (0..batch.record_count).map(|n| (batch.base_sequence + n, offset + i64::from(n))),
                    );
                }
                client.to_client.push_back((batch, outcome));
            }
            Event::Refuse => {
                let Some(batch) = client.to_broker.pop_front() else {
                    continue;
                };
                // A duplicate is acknowledged whatever else is wrong.
                if matches!(bench.producers.check(0, &batch), Ok(Sequenced::Duplicate(_))) {
                    client.to_broker.push_front(batch);
                    continue;
                }
                bench.producers.note_refused(0, &batch);
                client
                    .to_client
                    .push_back((batch, Err(ErrorCode::NotLeaderOrFollower)));
            }
            Event::Answer => client.answered(),
            Event::Break => client.resend(),
            Event::Restart => {
                bench = bench.restarted();
                client.resend();
            }
        }
    }
    (written, client)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_rules_are_those_of_the_oracle(batches in prop::collection::vec((any_batch(), prop::bool::weighted(0.1)), 1..80)) {
        let (mut bench, mut oracle) = (Bench::default(), Oracle::default());
        for (batch, restart) in batches {
            if restart {
                bench = bench.restarted();
            }
            let next = bench.next;
            prop_assert_eq!(bench.offer(0, batch), oracle.offer(batch, next), "{:?}", batch);
        }
    }

    #[test]
    fn every_record_is_written_once_in_order_whatever_is_lost(events in prop::collection::vec(any_event(), 1..200)) {
        let (written, client) = run(&events);
        prop_assert!(client.unanswered.is_empty(), "all was acknowledged in the end");
        let sequences: Vec<i32> = written.iter().map(|(sequence, _)| *sequence).collect();
        prop_assert_eq!(sequences, (0..client.next_sequence).collect::<Vec<_>>());
        for acknowledged in &client.acknowledged {
            prop_assert!(written.contains(acknowledged), "{:?} was acknowledged elsewhere", acknowledged);
        }
    }
}
