use super::*;

fn run(base: Offset, last: Offset) -> Run {
    Run {
        base_offset: base,
        last_offset: last,
        max_timestamp: 0,
        max_timestamp_base: base,
        position: 4096,
        payload_bytes: 100,
        batches: 1,
    }
}

fn segment(seq: u64) -> Arc<Segment> {
    Arc::new(Segment::new(
        &[0; 16],
        seq,
        seq,
        SegmentKind::Plain,
        1 << 16,
        (1, 1),
    ))
}

fn summary(log: u32, first: Offset, last: Offset) -> Summary {
    Summary {
        log: LogId(log),
        runs: 1,
        entries_position: 0,
        entries_crc: 0,
        first_offset: first,
        last_offset: last,
        max_timestamp: 0,
        max_timestamp_base: first,
        bytes: 100,
        batches: 1,
    }
}

fn live(segment: &Segment) -> u64 {
    segment.live_bytes.load(Ordering::Relaxed)
}

#[test]
fn offsets_are_found_in_spans_and_runs() {
    let mut index = Index::default();
    index.add_span(&segment(1), summary(1, 0, 9));
    index.push_active(LogId(1), run(10, 14));
    index.push_active(LogId(1), run(15, 19));
    let log = &index.logs[&LogId(1)];
    assert_eq!(log.place(0), Place::Span(0));
    assert_eq!(log.place(9), Place::Span(0));
    assert_eq!(log.place(10), Place::Active(0));
    assert_eq!(log.place(15), Place::Active(1));
    assert_eq!(log.place(20), Place::End);
}

#[test]
fn a_hole_above_the_start_is_told_and_one_below_is_not() {
    let mut index = Index::default();
    index.add_span(&segment(1), summary(1, 10, 19));
    index.add_span(&segment(3), summary(1, 30, 39));
    assert_eq!(index.logs[&LogId(1)].place(5), Place::Hole(10));
    assert_eq!(index.logs[&LogId(1)].place(25), Place::Hole(30));
    index.set_log_start(LogId(1), 30);
    assert_eq!(index.logs[&LogId(1)].place(25), Place::Span(0));
}

#[test]
fn moving_the_start_frees_whole_spans_only() {
    let mut index = Index::default();
    let (old, new) = (segment(1), segment(2));
    index.add_span(&old, summary(1, 0, 9));
    index.add_span(&new, summary(1, 10, 19));
    index.set_log_start(LogId(1), 9);
    assert_eq!((live(&old), live(&new)), (100, 100));
    index.set_log_start(LogId(1), 10);
    assert_eq!((live(&old), live(&new)), (0, 100));
    index.set_log_start(LogId(1), 3);
    assert_eq!(index.logs[&LogId(1)].start, 10, "a start never moves back");
}

#[test]
fn a_dropped_log_takes_nothing_more_until_its_last_entry_passed() {
    let mut index = Index::default();
    let old = segment(1);
    index.add_span(&old, summary(1, 0, 9));
    index.push_active(LogId(1), run(10, 10));
    index.drop_log(LogId(1), 7);
    assert_eq!((live(&old), index.active_size()), (0, (0, 0)));
    index.push_active(LogId(1), run(11, 11));
    assert!(index.logs.is_empty());
    index.committed(6);
    assert_eq!(index.dropped.len(), 1);
    index.committed(7);
    assert!(index.dropped.is_empty());
}

#[test]
fn packing_swaps_spans_and_leaves_out_what_died_meanwhile() {
    let mut index = Index::default();
    index.add_span(&segment(1), summary(1, 0, 9));
    index.add_span(&segment(2), summary(1, 10, 19));
    index.add_span(&segment(3), summary(1, 20, 29));
    index.add_span(&segment(2), summary(2, 0, 4));
    index.drop_log(LogId(2), 0);
    let packed = segment(2);
    index.replace_spans(
        &[LogId(1), LogId(2)],
        (1, 2),
        &packed,
        &[summary(1, 0, 19), summary(2, 0, 4)],
    );
    let spans: Vec<_> = index.logs[&LogId(1)]
        .spans
        .iter()
        .map(|span| (span.segment.seq, span.summary.last_offset))
        .collect();
    assert_eq!(spans, [(2, 19), (3, 29)]);
    assert!(!index.logs.contains_key(&LogId(2)));
    assert_eq!(live(&packed), 100);
}
