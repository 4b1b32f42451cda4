//! Pictures of made-up groups.

use super::super::band::band;
use super::super::picture::QueueLine;
use super::*;
use anabranch_server::admin::model::{Elastic, Form, Loose, MemberState, Partition, Transit};

fn member(number: usize, client_id: &str) -> Member {
    Member {
        member: format!("id-{number}"),
        client_id: client_id.to_owned(),
        host: "127.0.0.1".to_owned(),
        software: String::new(),
        state: MemberState::Busy,
        since_ms: 4_000,
        rate: Some(500.0),
        ineligible: None,
    }
}

/// The slots from the first to the last, both included, at member `number`.
fn share(number: usize, first: u16, last: u16) -> Share {
    Share {
        member: format!("id-{number}"),
        slice: number as u32 + 1,
        position: 0,
        end: None,
        slots: u32::from(last - first) + 1,
        slot_runs: vec![[first, last]],
        remaining: 12_000,
        remaining_exact: true,
        handed_out: 700,
    }
}

/// A partition of which member 0 has the lower half and member 1 the last quarter; the third is on its way to it.
fn partition() -> Partition {
    Partition {
        topic: "orders".to_owned(),
        partition: 0,
        form: Form::Divided,
        log_start: 0,
        log_end: 60_000,
        committed: 10_000,
        lag: 50_000,
        shares: vec![share(0, 0, 2047), share(1, 3072, 4095)],
        transits: vec![Transit {
            from: "id-0".to_owned(),
            to: Some("id-1".to_owned()),
            slots: 1024,
            remaining: 9_000,
            since_ms: 1_200,
            slot_runs: vec![[2048, 3071]],
        }],
        loose: Vec::new(),
        bands: None,
    }
}

fn decision(seq: u64, verdict: Verdict) -> Decision {
    Decision {
        seq,
        time_ms: 1_700_000_000_000 + seq as i64 * 1_000,
        group: "billing".to_owned(),
        topic: "orders".to_owned(),
        partition: 0,
        kind: "split".to_owned(),
        outcome: verdict,
        reason: "member-idle".to_owned(),
        text: "id-1 has nothing to do, id-0 has 50,000 records".to_owned(),
        from: Some("id-0".to_owned()),
        to: vec!["id-1".to_owned()],
        slots: 2048,
        moves: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
        result: None,
        handover_ms: None,
        count: 1,
    }
}

fn picture(groups: usize) -> Picture {
    let line = |number: usize| GroupLine {
        group: if number == 0 {
            "billing".to_owned()
        } else {
            format!("group-{number}")
        },
        members: 2,
        idle_members: Some(0),
        desired_members: Some(4),
        lag: 50_000,
        lag_seconds: Some(11.4),
        out_per_s: Some(1_000.0),
        ..GroupLine::default()
    };
    Picture {
        time_ms: 1_700_000_123_000,
        broker: "127.0.0.1:9099".to_owned(),
        version: "0.1.0".to_owned(),
        in_per_s: Some(5_000.0),
        out_per_s: Some(18_240.0),
        lag: 50_000,
        groups: (0..groups).map(line).collect(),
        shown: Some("billing".to_owned()),
        detail: Some(Group {
            group: "billing".to_owned(),
            state: "Stable".to_owned(),
            protocol: "classic".to_owned(),
            elastic: Elastic {
                mode: "slices".to_owned(),
                eligible: true,
                reason: None,
                paused: false,
            },
            members: vec![member(0, "app-1"), member(1, "app-2")],
            partitions: vec![partition()],
        }),
        decisions: vec![decision(1, Verdict::Decided), decision(2, Verdict::Refused)],
        ..Picture::default()
    }
}

const SMALL: Size = Size {
    width: 80,
    height: 24,
};

fn shown(picture: &Picture, view: &View, size: Size) -> Vec<String> {
    let lines = lines(picture, view, size);
    assert_eq!(lines.len(), size.height);
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    for line in &lines {
        assert!(line.chars().count() <= size.width, "{line}");
    }
    lines
}

fn has(lines: &[String], parts: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn one_screen_has_groups_shares_members_and_decisions() {
    let lines = shown(&picture(2), &View::default(), SMALL);
    let all = lines.join("\n");
    assert!(
        lines[0].starts_with("anabranch top  127.0.0.1:9099  0.1.0") && lines[0].ends_with("22:15:23"),
        "{all}"
    );
    assert!(
        lines[1].starts_with("in 5.0k/s  out 18.2k/s  unread 50,000"),
        "{all}"
    );
    assert!(
        has(&lines, &["> billing", "50,000", "11s", "1.0k", "50s"]),
        "{all}"
    );
    assert!(
        has(&lines, &["billing: Stable, classic protocol; slices"]),
        "{all}"
    );
    assert!(
        has(
            &lines,
            &["1024 slots, 9,000 records moving from app-1 to app-2 for 1.2s"]
        ),
        "{all}"
    );
    assert!(
        has(
            &lines,
            &["A app-1", "busy", "0.50", "12,000", "700", "500", "24s"]
        ),
        "{all}"
    );
    assert!(has(&lines, &["22:13:21 split: app-2 has nothing to do"]), "{all}");
    assert!(lines[23].contains("q quit"));
}

#[test]
fn a_band_tells_who_reads_which_slots_what_is_on_its_way_and_what_nobody_holds() {
    let picture = picture(1);
    let group = picture.detail.as_ref().unwrap();
    let text: String = band(group, &group.partitions[0], 16)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(text, "AAAAAAAA~~~~BBBB");
    // A slice that has ended gets nothing more: its slots may be somebody else's by now.
    let mut old = share(0, 0, 4095);
    old.end = Some(7);
    let mut partition = partition();
    partition.shares.push(old);
    let text: String = band(group, &partition, 8)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(text, "AAAA~~BB");
    // What nobody holds waits for a member, or for the planner.
    let loose = |to: Option<&str>| Loose {
        slots: 1024,
        remaining: 9_000,
        to: to.map(str::to_owned),
        slot_runs: vec![[2048, 3071]],
    };
    partition.transits.clear();
    for (to, shown) in [(Some("id-1"), "AAAA~~BB"), (None, "AAAA..BB")] {
        partition.loose = vec![loose(to)];
        let text: String = band(group, &partition, 8)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(text, shown);
    }
}

#[test]
fn a_topic_in_queue_mode_says_how_many_queues_there_are() {
    let mut picture = picture(1);
    let queues = |topic: &str| QueueLine {
        topic: topic.to_owned(),
        written: 1,
        read: 3,
    };
    picture.queues = vec![queues("orders"), queues("of-others")];
    let lines = shown(&picture, &View::default(), SMALL);
    assert!(
        has(&lines, &["orders: queue mode; 1 queue is written, 3 read"]),
        "{lines:#?}"
    );
    assert!(!has(&lines, &["of-others"]), "{lines:#?}");
}

#[test]
fn every_size_is_kept_to_and_what_does_not_fit_is_counted() {
    let mut large = picture(200);
    let group = large.detail.as_mut().unwrap();
    group.members = (0..60).map(|number| member(number, "same")).collect();
    group.partitions = (0..100)
        .map(|number| Partition {
            partition: number,
            ..partition()
        })
        .collect();
    large.decisions = (0..20).map(|seq| decision(seq, Verdict::Decided)).collect();
    for (width, height) in [(80, 24), (200, 60), (40, 12), (20, 5), (1, 1), (300, 400)] {
        shown(&large, &View::default(), Size { width, height });
        let zoomed = View {
            is_zoomed: true,
            ..View::default()
        };
        shown(&large, &zoomed, Size { width, height });
    }
    let lines = shown(&large, &View::default(), SMALL);
    let left_out = lines.iter().filter(|line| line.contains(" more)")).count();
    assert_eq!(left_out, 4, "{lines:#?}");
    assert!(
        !has(&lines, &["same "]) && has(&lines, &["same..id-0"]),
        "{lines:#?}"
    );
    let tall = Size {
        width: 80,
        height: 600,
    };
    assert!(
        !has(&shown(&large, &View::default(), tall), &[" more)"]),
        "there is room for all"
    );
}

#[test]
fn the_group_in_full_stays_in_sight() {
    let mut many = picture(50);
    many.shown = Some("group-40".to_owned());
    many.detail = None;
    let lines = shown(&many, &View::default(), SMALL);
    assert!(has(&lines, &["> group-40"]), "{lines:#?}");
    assert!(
        has(
            &lines,
            &["group-40: its members assign its partitions themselves"]
        ),
        "{lines:#?}"
    );
    for line in &mut many.groups {
        line.members = 0;
    }
    let lines = shown(&many, &View::default(), SMALL);
    assert!(has(&lines, &["group-40: it has no members"]), "{lines:#?}");
}

#[test]
fn trouble_a_hold_and_help_are_said() {
    let view = View {
        trouble: Some("cannot reach the broker: connection refused".to_owned()),
        ..View::default()
    };
    let lines = shown(&picture(1), &view, SMALL);
    assert!(lines[0].contains("NO ANSWER") && lines[1].contains("connection refused"));
    let view = View {
        is_frozen: true,
        ..View::default()
    };
    assert!(shown(&picture(1), &view, SMALL)[0].contains("FROZEN"));
    let view = View {
        shows_help: true,
        ..View::default()
    };
    assert!(has(
        &shown(&picture(1), &view, SMALL),
        &["SENT", "has not committed"]
    ));
}

#[test]
fn the_text_has_everything_and_whole_sentences() {
    let mut long = picture(30);
    long.decisions[0].text = "x".repeat(300);
    let text = text(&long, 80);
    assert!(text.contains(&"x".repeat(300)) && text.contains("group-29"));
    assert!(!text.contains("q quit") && !text.contains(" more)"));
    assert!(text.lines().all(|line| line.trim_end() == line));
}

#[test]
fn an_empty_broker_says_so() {
    let lines = shown(&Picture::default(), &View::default(), SMALL);
    assert!(has(&lines, &["no group has committed anything yet"]));
    assert!(has(&lines, &["nothing was decided yet"]));
}

#[test]
fn durations_and_speeds_are_short() {
    for (value, text) in [
        (0.0, "0s"),
        (0.25, "250ms"),
        (9.94, "9.9s"),
        (75.0, "75s"),
        (600.0, "10m"),
        (7_200.0, "2h"),
        (1e6, "12d"),
        (1e12, "9999d"),
    ] {
        assert_eq!(seconds(value), text);
    }
    for (value, text) in [
        (None, "-"),
        (Some(0.04), "0.0"),
        (Some(512.3), "512"),
        (Some(18_240.0), "18.2k"),
        (Some(2.5e6), "2.5M"),
    ] {
        assert_eq!(speed(value), text);
    }
    assert_eq!(
        cut("a\u{1b}[2J", 9),
        "a?[2J",
        "a name does not drive the terminal"
    );
    assert_eq!(cut("abcdef", 4), "abc…");
}

#[test]
fn why_a_group_is_not_divided_is_said_with_names() {
    let mut picture = picture(1);
    let group = picture.detail.as_mut().unwrap();
    group.elastic.reason = Some("member \"id-1\" keeps its offsets elsewhere".to_owned());
    let lines = shown(&picture, &View::default(), SMALL);
    assert!(
        has(&lines, &["stays as it is divided: member \"app-2\" keeps"]),
        "{lines:#?}"
    );
    let group = picture.detail.as_mut().unwrap();
    group.partitions[0].form = Form::Plain;
    let lines = shown(&picture, &View::default(), SMALL);
    assert!(
        has(&lines, &["; not divided: member \"app-2\" keeps"]),
        "{lines:#?}"
    );
}

#[test]
fn the_number_of_a_partition_is_seen_however_long_its_topic() {
    let mut picture = picture(1);
    let group = picture.detail.as_mut().unwrap();
    group.partitions[0].topic = "a-topic-with-a-very-long-name".to_owned();
    let lines = shown(&picture, &View::default(), SMALL);
    assert!(has(&lines, &["a-topic-with-a-very-l…/0 AAAA"]), "{lines:#?}");
}
