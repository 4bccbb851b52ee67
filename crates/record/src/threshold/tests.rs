#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::metrics::METRICS;
use super::*;
use crate::figures::figure;
use crate::record::{OwnDrops, Summary};
use crate::requests::{RequestBooks, RequestFigures, ResponseBooks};
use crate::sample;

fn objective(text: &str) -> Clause {
    Objectives::parse(text).unwrap().clauses()[0].clone()
}

#[test]
fn each_way_to_write_a_limit_is_read() {
    for (text, name, operator, bound) in [
        ("p99<50ms", "p99", Operator::Below, 50_000.0),
        ("loss=0", "loss", Operator::Equal, 0.0),
        ("loss<=0.1%", "loss", Operator::AtMost, 0.001),
        ("p50 <= 2ms", "p50", Operator::AtMost, 2_000.0),
        ("P99.9≤1s", "p99.9", Operator::AtMost, 1e6),
        ("delivered>=99.9%", "delivered", Operator::AtLeast, 0.999),
        ("rate>=5000/s", "rate", Operator::AtLeast, 5_000.0),
        ("cpu<0.5", "cpu", Operator::Below, 0.5),
        ("cpu<50%", "cpu", Operator::Below, 0.5),
        ("cpu_per_million<20", "cpu_per_million", Operator::Below, 20.0),
        ("memory<100MB", "memory", Operator::Below, 1e8),
        ("memory<1200kB", "memory", Operator::Below, 1.2e6),
        ("delivered>=100%", "delivered", Operator::AtLeast, 1.0),
        ("loss<1%", "loss", Operator::Below, 0.01),
        ("duplicated==0", "duplicated", Operator::Equal, 0.0),
        ("max>1s", "max", Operator::Above, 1e6),
    ] {
        let found = objective(text);
        assert_eq!((found.metric.name(), found.operator, found.text.as_str()), (name, operator, text));
        let Bound::Value(value) = found.bound else { panic!("{text} is no change") };
        assert!((value - bound).abs() < 1e-9, "{text}: {value}");
    }
    assert_eq!(Objectives::parse(" p99<50ms , loss=0 ").unwrap().clauses().len(), 2);
}

#[test]
fn a_limit_on_a_metric_of_the_users_own_is_held_in_its_unit() {
    let mut record = sample::record();
    record.custom = vec![
        sample::custom("jitter", "ms", [0.5, 1.5]),
        sample::custom("energy", "mJ", [20.0, 20.0]),
        sample::custom("gone", "ms", [f64::NAN, f64::NAN]),
    ];
    record.custom[2].lower = None;
    record.custom[2].upper = None;
    let outcome = |text: &str| Objectives::parse(text).unwrap().judge(&record)[0].outcome;
    for (text, expected) in [
        ("custom.jitter<2ms", ClauseOutcome::True),
        ("custom.jitter<0.002s", ClauseOutcome::True),
        ("custom.jitter<2", ClauseOutcome::True),
        ("custom.jitter<1ms", ClauseOutcome::Undecided),
        ("custom.jitter<400us", ClauseOutcome::False),
        ("custom.jitter>-1ms", ClauseOutcome::True),
        ("custom.jitter<2kB", ClauseOutcome::NotMeasured),
        ("custom.energy<=20mJ", ClauseOutcome::True),
        ("custom.energy<20", ClauseOutcome::False),
        ("custom.energy<1J", ClauseOutcome::NotMeasured),
        ("custom.gone<2ms", ClauseOutcome::NotMeasured),
        ("custom.unheard_of<2ms", ClauseOutcome::NotMeasured),
    ] {
        assert_eq!(outcome(text), expected, "{text}");
    }
    let objectives = Objectives::parse("custom.jitter<1ms,custom.energy<1mJ").unwrap();
    let complaints: Vec<String> = objectives.judge(&record).iter().filter_map(Judged::complaint).collect();
    assert_eq!(
        complaints,
        [
            "custom.jitter is 0.5–1.5 ms: custom.jitter<1ms is undecided",
            "custom.energy is 20 mJ, missing custom.energy<1mJ"
        ]
    );
    let change = &Conditions::parse("custom.jitter>+10%").unwrap();
    assert!(change.need_baseline() && !Conditions::parse("custom.jitter>10%").unwrap().need_baseline());
    for (text, words) in [
        ("custom.<2", "is no name of a metric"),
        ("custom.a b<2", "is no name of a metric"),
        ("custom.jitter<", "has no value"),
        ("custom.jitter<fast", "is no value"),
        ("custom.jitter<2 ms per message", "is no value"),
    ] {
        let error = Objectives::parse(text).unwrap_err();
        assert!(error.message.contains(words), "{text}: {}", error.message);
    }
}

#[test]
fn changes_are_read_where_there_is_a_baseline() {
    let found = Conditions::parse("p99>+10%,rate<-5%,loss>0.1%").unwrap();
    let bounds: Vec<Bound> = found.clauses().iter().map(|clause| clause.bound).collect();
    assert_eq!(bounds, [Bound::Change(0.1), Bound::Change(-0.05), Bound::Value(0.001)]);
    assert!(found.need_baseline() && !Conditions::parse("loss>0").unwrap().need_baseline());
    assert!(Objectives::parse("p99<+10%").unwrap_err().message.contains("no baseline to compare with"));
}

/// Text, the position as underlined, words of the message.
const WRONG: [(&str, &str, &str); 20] = [
    ("", "", "nothing is limited"),
    ("p99", "p99", "no `<`"),
    ("p99<50ms,,loss=0", "", "missing between the commas"),
    ("p99<50ms,", "", "missing between the commas"),
    ("p99<50ms, los=0", "los", "no figure `los`"),
    ("<50ms", "", "what is limited"),
    ("p99<", "p99<", "no value"),
    ("p99<50", "50", "no unit"),
    ("p99<<50ms", "<50ms", "not a duration"),
    ("loss<=300%", "300%", "more than everything"),
    ("loss<5", "5", "more than everything"),
    ("loss<1", "1", "as 1 % and as everything"),
    ("memory<1parsec", "1parsec", "not a size"),
    ("memory<100", "100", "no unit"),
    ("p99=<50ms", "=<", "no comparison"),
    ("rate=>5/s", "=>", "no comparison"),
    ("rate>=1,000/s", "rate>=1", "ends at the comma"),
    ("loss=0, lost<1,000,000", "lost<1", "ends at the comma"),
    ("lost=few", "few", "not a number of messages"),
    ("cpu<nan", "nan", "not a number of cores"),
];

#[test]
fn what_is_wrong_is_underlined() {
    for (text, place, words) in WRONG {
        let error = Objectives::parse(text).unwrap_err();
        assert!(error.message.contains(words), "{text}: {error}");
        assert!(!error.hint.is_empty());
        let underlined: String = error.text.chars().skip(error.at).take(error.length).collect();
        if !place.is_empty() {
            assert_eq!(underlined, place, "{text}");
        }
        let drawing = error.drawing();
        let lines: Vec<&str> = drawing.lines().collect();
        assert_eq!(lines.len(), 2, "{drawing}");
        assert!(lines[1].trim_start().chars().all(|letter| letter == '^'));
    }
    let error = Objectives::parse("p99<50ms, los=0").unwrap_err();
    assert_eq!(error.drawing(), "  p99<50ms, los=0\n            ^^^");
    assert_eq!(error.unknown_name.as_deref(), Some("los"));
    let hint = |text: &str| Objectives::parse(text).unwrap_err().hint;
    for (text, typed) in [
        ("p99=<50ms", "`<=`"),
        ("rate=>5/s", "`>=`"),
        ("rate>=1,000/s", "`rate>=1000/s`"),
        ("loss=0, lost<1,000,000", "`lost<1000000`"),
        ("loss<1", "`1%`, or `100%`"),
        ("loss<5", "`5%`"),
        ("memory<100", "`100MB`"),
    ] {
        assert!(hint(text).contains(typed), "{text}: {}", hint(text));
    }
    let change = Conditions::parse("p99>10%").unwrap_err();
    assert!(change.hint.contains("`+10%`"), "{}", change.hint);
    assert!(!hint("p99>10%").contains("+10%"), "there is no baseline");
    for text in ["p99>+ten%", "p99>+10", "p99=+10%", "p99>+-10%"] {
        assert!(Conditions::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_record_is_held_against_each_limit() {
    let record = sample::record();
    let objectives = Objectives::parse("p50<=0.31ms,p99<1ms,loss=0,memory_per_connection<1MB").unwrap();
    let outcomes: Vec<ClauseOutcome> = objectives.judge(&record).iter().map(|judged| judged.outcome).collect();
    assert_eq!(outcomes, [ClauseOutcome::True, ClauseOutcome::True, ClauseOutcome::True, ClauseOutcome::NotMeasured]);
    assert!(!objectives.hold(&record), "what was not measured is not kept");
    let judged = objectives.judge(&record);
    assert_eq!(judged[3].complaint().as_deref(), Some("memory_per_connection was not measured"));
    let missed = Objectives::parse("p50<0.2ms").unwrap();
    assert_eq!(missed.judge(&record)[0].complaint().as_deref(), Some("p50 is 248–310 µs, missing p50<0.2ms"));
}

#[test]
fn a_limit_that_is_met_to_the_digit_is_met() {
    let mut record = sample::record();
    (record.delivery.messages.delivered, record.delivery.messages.lost) = (9_990, 10);
    // 1 − 0.999 is slightly more than 0.001 in floating point.
    assert!(Objectives::parse("loss<=0.1%,delivered>=99.9%,lost<=10").unwrap().hold(&record));
    assert!(!Objectives::parse("loss<0.1%").unwrap().hold(&record));
    assert!(!Objectives::parse("loss=0").unwrap().hold(&record));
}

#[test]
fn a_change_counts_from_the_baseline() {
    let clause = Conditions::parse("p99>+10%").unwrap().clauses()[0].clone();
    assert!(clause.is_change(100.0, 111.0));
    assert!(!clause.is_change(100.0, 110.0));
    assert!(!clause.is_change(0.0, 0.0));
    assert!(clause.is_change(0.0, 1.0), "from nothing to something is any change");
}

#[test]
fn a_limit_inside_the_interval_is_undecided() {
    let within = |text: &str, low: f64, high: f64| objective(text).judge(Some(MeasuredFigure::within([low, high])));
    for (text, low, high, expected) in [
        ("p99<50ms", 10_000.0, 49_000.0, ClauseOutcome::True),
        ("p99<50ms", 10_000.0, 51_000.0, ClauseOutcome::Undecided),
        ("p99<50ms", 50_000.0, 51_000.0, ClauseOutcome::False),
        ("p99<=50ms", 50_000.0, 51_000.0, ClauseOutcome::Undecided),
        ("p99>1ms", 900.0, 1_100.0, ClauseOutcome::Undecided),
        ("p99>1ms", 1_100.0, 1_200.0, ClauseOutcome::True),
        ("p99=1ms", 900.0, 1_100.0, ClauseOutcome::Undecided),
        ("p99=1ms", 1_000.0, 1_000.0, ClauseOutcome::True),
        ("p99=1ms", 1_100.0, 1_200.0, ClauseOutcome::False),
    ] {
        assert_eq!(within(text, low, high), expected, "{text} of {low} to {high}");
    }
    assert_eq!(objective("p99<1s").judge(None), ClauseOutcome::NotMeasured);
}

#[test]
fn a_percentile_of_too_few_samples_lies_between_its_neighbours() {
    let mut record = sample::record();
    let total = record.latency.total.as_mut().unwrap();
    (total.upper.p99, total.upper.max) = (None, 9_000.0);
    total.lower = None;
    total.upper.p95 = Some(2_000.0);
    let judge = |text: &str| Objectives::parse(text).unwrap().judge(&record)[0].clone().outcome;
    assert_eq!(judge("p99<=9ms"), ClauseOutcome::True, "even the largest is below");
    assert_eq!(judge("p99<1.9ms"), ClauseOutcome::False, "p95 is above");
    assert_eq!(judge("p99<5ms"), ClauseOutcome::Undecided);
    let objectives = Objectives::parse("p99<5ms").unwrap();
    let judged = objectives.judge(&record);
    assert_eq!(judged[0].complaint().unwrap(), "p99 is 2–9 ms: p99<5ms is undecided");
    assert!(judged[0].figure.unwrap().remedy().contains("run longer"));
}

#[test]
fn a_system_that_was_held_up_misses_no_limit_of_time() {
    let mut record = sample::record();
    let reason = |code: &str| crate::record::Reason {
        code: code.to_owned(),
        status: crate::record::VerdictStatus::Suspect,
        text: String::new(),
        hint: String::new(),
    };
    let judge = |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].clone().outcome;
    assert_eq!(judge(&record, "p50<0.2ms"), ClauseOutcome::False);
    record.verdict.reasons = vec![reason("V28")];
    assert_eq!(judge(&record, "p50<0.2ms"), ClauseOutcome::Undecided, "it could have been faster");
    assert_eq!(judge(&record, "p50<1s"), ClauseOutcome::True, "and was fast enough all the same");
    assert_eq!(judge(&record, "delivered<50%"), ClauseOutcome::False, "a count is a count");
}

#[test]
fn a_flood_that_was_held_up_misses_no_limit_of_its_rate() {
    let mut record = sample::record();
    record.settings.flood = true;
    record.throughput.delivered_per_s = 900.0;
    let reasons = |code: &str| {
        let (code, text, hint) = (code.to_owned(), String::new(), String::new());
        vec![crate::record::Reason { code, status: crate::record::VerdictStatus::Suspect, text, hint }]
    };
    let outcome = |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].outcome;
    record.verdict.reasons = reasons("V10");
    assert_eq!(outcome(&record, "rate>=1000/s"), ClauseOutcome::False);
    for code in ["V02", "V04", "V06", "V18", "V28"] {
        record.verdict.reasons = reasons(code);
        assert_eq!(outcome(&record, "rate>=1000/s"), ClauseOutcome::Undecided, "{code}: it could have been faster");
        assert_eq!(outcome(&record, "rate=1000/s"), ClauseOutcome::Undecided, "{code}");
        assert_eq!(outcome(&record, "rate>=900/s"), ClauseOutcome::True, "{code}: and was fast enough all the same");
        assert_eq!(outcome(&record, "rate<900/s"), ClauseOutcome::False, "{code}");
    }
    record.settings.flood = false;
    assert_eq!(outcome(&record, "rate>=1000/s"), ClauseOutcome::False, "the load was no higher");
    record.verdict.reasons = reasons("V04");
    assert_eq!(outcome(&record, "p50<0.2ms"), ClauseOutcome::False, "the delays of a busy thread are measured");
}

#[test]
fn messages_that_pubmark_dropped_may_have_been_those_that_are_missing() {
    let mut record = sample::record();
    let messages = &mut record.delivery.messages;
    (messages.expected, messages.delivered, messages.lost, messages.unknown) = (10_000, 9_900, 70, 30);
    let outcome = |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].outcome;
    for limit in ["loss<=0.5%", "delivered>=99.5%", "lost<=20"] {
        assert_eq!(outcome(&record, limit), ClauseOutcome::False, "{limit}: the system lost them");
    }
    record.delivery.own_drops = OwnDrops { missed: 10, overflowed_datagrams: 20, library_datagrams: Some(30) };
    for (limit, expected) in [
        ("loss<=0.5%", ClauseOutcome::Undecided),
        ("loss<0.4%", ClauseOutcome::False),
        ("loss<=1%", ClauseOutcome::True),
        ("delivered>=99.5%", ClauseOutcome::Undecided),
        ("delivered>99.6%", ClauseOutcome::False),
        ("lost<=20", ClauseOutcome::Undecided),
        ("lost<10", ClauseOutcome::False),
        ("lost<=70", ClauseOutcome::True),
    ] {
        assert_eq!(outcome(&record, limit), expected, "{limit}");
    }
    record.throughput.delivered_per_s = 990.0;
    assert_eq!(outcome(&record, "rate>=995/s"), ClauseOutcome::Undecided);
    assert_eq!(outcome(&record, "rate>=997/s"), ClauseOutcome::False);
    record.delivery.own_drops.library_datagrams = Some(u64::MAX);
    assert_eq!(outcome(&record, "loss=0"), ClauseOutcome::Undecided, "no more than are missing");
    assert_eq!(outcome(&record, "delivered<=100%"), ClauseOutcome::True);
    let outcomes = RequestBooks { sent: 100, answered: 90, late: 4, timed_out: 6, ..RequestBooks::default() };
    record.requests = Some(RequestFigures { outcomes, ..RequestFigures::default() });
    assert_eq!(outcome(&record, "answered>=95%"), ClauseOutcome::Undecided, "a reply may have been dropped");
    assert_eq!(outcome(&record, "answered>=97%"), ClauseOutcome::False, "4 replies came late");
}

#[test]
fn messages_that_a_system_may_have_dropped_because_of_pubmark_miss_no_limit() {
    let mut record = sample::record();
    let messages = &mut record.delivery.messages;
    (messages.expected, messages.delivered, messages.lost, messages.unknown) = (10_000, 9_900, 70, 30);
    let mut judge = |code: &str, flood: bool, limit: &str| {
        let (code, text, hint) = (code.to_owned(), String::new(), String::new());
        record.verdict.reasons =
            vec![crate::record::Reason { code, status: crate::record::VerdictStatus::Suspect, text, hint }];
        record.settings.flood = flood;
        let objectives = Objectives::parse(limit).unwrap();
        let judged = objectives.judge(&record).remove(0);
        (judged.outcome, judged.figure.unwrap().remedy().contains("get the CPU time"))
    };
    for (code, flood, is_open) in [
        ("V02", false, true),
        ("V01", false, false),
        ("V04", false, false),
        ("V28", false, false),
        ("V02", true, true),
        ("V04", true, true),
        ("V28", true, true),
        ("V10", true, false),
    ] {
        let expected = if is_open { ClauseOutcome::Undecided } else { ClauseOutcome::False };
        for limit in ["loss=0", "loss<0.5%", "delivered=100%", "delivered>99.5%", "lost=0", "lost<20"] {
            assert_eq!(judge(code, flood, limit), (expected, is_open), "{code} {flood} {limit}");
        }
        for limit in ["loss<=1%", "delivered>=99%", "lost<=70"] {
            assert_eq!(judge(code, flood, limit).0, ClauseOutcome::True, "{code} {flood} {limit}");
        }
        assert_eq!(judge(code, flood, "delivered<99%").0, ClauseOutcome::False, "{code}: it was no worse than this");
    }
    let mut refused = record.clone();
    let messages = &mut refused.delivery.messages;
    (messages.refused, messages.prevented) = (100, 100);
    let (code, text, hint) = ("V02".to_owned(), String::new(), String::new());
    let status = crate::record::VerdictStatus::Suspect;
    refused.verdict.reasons = vec![crate::record::Reason { code, status, text, hint }];
    refused.settings.flood = false;
    let outcome = |text: &str| Objectives::parse(text).unwrap().judge(&refused)[0].outcome;
    assert_eq!((outcome("loss=0"), outcome("loss<1.5%")), (ClauseOutcome::False, ClauseOutcome::Undecided));
}

#[test]
fn back_pressure_is_an_interval_and_a_few_messages_may_hold_its_limit() {
    let mut record = sample::record();
    let outcome = |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].outcome;
    let upper = record.latency.backpressure.as_mut().unwrap();
    (upper.p99, upper.max) = (Some(2_000.0), 9_000.0);
    assert_eq!(outcome(&record, "backpressure_p99<1ms"), ClauseOutcome::False);
    let lower = Summary { p99: Some(500.0), ..record.latency.backpressure.clone().unwrap() };
    record.latency.backpressure_lower = Some(lower);
    assert_eq!(outcome(&record, "backpressure_p99<1ms"), ClauseOutcome::Undecided, "most of it may be pubmark's");
    assert_eq!(outcome(&record, "backpressure_p99<400us"), ClauseOutcome::False);
    for summary in [&mut record.latency.backpressure, &mut record.latency.backpressure_lower] {
        let summary = summary.as_mut().unwrap();
        (summary.p99, summary.p95, summary.p90, summary.p50) = (None, None, None, Some(300.0));
    }
    assert_eq!(outcome(&record, "backpressure_p99<=9ms"), ClauseOutcome::True, "even the largest is below");
    assert_eq!(outcome(&record, "backpressure_p99<1ms"), ClauseOutcome::Undecided);
    record.latency.backpressure = None;
    assert_eq!(outcome(&record, "backpressure_p99<9ms"), ClauseOutcome::NotMeasured);
}

#[test]
fn replies_that_pubmark_made_late_may_have_been_in_time() {
    let mut record = sample::record();
    let outcomes = RequestBooks { sent: 1_000, answered: 980, late: 20, ..RequestBooks::default() };
    record.requests = Some(RequestFigures { outcomes, ..RequestFigures::default() });
    let outcome = |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].outcome;
    assert_eq!(outcome(&record, "answered>=99%"), ClauseOutcome::False, "the system took too long");
    record.requests.as_mut().unwrap().outcomes.late_by_generator = 15;
    assert_eq!(outcome(&record, "answered>=99%"), ClauseOutcome::Undecided);
    assert_eq!(outcome(&record, "answered>=98%"), ClauseOutcome::True);
    assert_eq!(outcome(&record, "answered=100%"), ClauseOutcome::False, "5 were late in any case");
    let outcomes = RequestBooks { sent: 1_000, answered: 980, timed_out: 20, ..RequestBooks::default() };
    let responses = ResponseBooks { dropped: 20, dropped_by_generator: 15, ..ResponseBooks::default() };
    record.requests = Some(RequestFigures { outcomes, responses, ..RequestFigures::default() });
    assert_eq!(outcome(&record, "answered>=99%"), ClauseOutcome::Undecided, "pubmark's responder was late");
    assert_eq!(outcome(&record, "answered=100%"), ClauseOutcome::False, "the responder was full for 5 in any case");
    let objectives = Objectives::parse("answered>=99%").unwrap();
    let complaint = objectives.judge(&record)[0].complaint();
    assert!(complaint.as_ref().is_some_and(|text| text.ends_with("answered>=99% is undecided")), "{complaint:?}");
    let (text, hint) = (String::new(), String::new());
    let status = crate::record::VerdictStatus::Suspect;
    record.verdict.reasons = vec![crate::record::Reason { code: "V28".to_owned(), status, text, hint }];
    assert_eq!(outcome(&record, "answered=100%"), ClauseOutcome::Undecided, "with CPU time all could be in time");
    assert_eq!(outcome(&record, "answered>=98%"), ClauseOutcome::True);
    assert_eq!(outcome(&record, "answered<98%"), ClauseOutcome::False, "it was no worse than this");
}

#[test]
fn a_time_that_is_missing_because_of_the_system_misses_only_limits_that_it_exceeds() {
    let mut record = sample::record();
    let because =
        |record: &Record, text: &str| Objectives::parse(text).unwrap().judge(record)[0].missed_because(record);
    assert_eq!(because(&record, "p99<1us"), None, "it was measured");
    record.latency.total = None;
    assert_eq!(because(&record, "p99<1s"), None, "messages arrived without a time");
    (record.delivery.messages.lost, record.delivery.messages.delivered) = (record.delivery.messages.expected, 0);
    for (limit, expected) in [
        ("p99<1s", Some("nothing arrived")),
        ("p99<=1s", Some("nothing arrived")),
        ("p99=1s", Some("nothing arrived")),
        ("p99>1s", None),
        ("p99>=1s", None),
    ] {
        assert_eq!(because(&record, limit), expected, "{limit}");
    }
    let asked = |record: &mut Record, outcomes: RequestBooks| {
        record.requests = Some(RequestFigures { outcomes, timeout_s: Some(5.0), ..RequestFigures::default() });
    };
    let limits = ["round_trip_p99<1s", "round_trip_p99<=5s", "round_trip_p99<6s"];
    for (outcomes, expected) in [
        (RequestBooks { timed_out: 9, ..RequestBooks::default() }, [Some("nothing arrived"); 3]),
        (
            RequestBooks { late: 4, timed_out: 5, ..RequestBooks::default() },
            [Some("no reply in time"), Some("no reply in time"), None],
        ),
        (RequestBooks { late: 4, late_by_generator: 1, timed_out: 5, ..RequestBooks::default() }, [None; 3]),
        (RequestBooks { unknown: 1, timed_out: 8, ..RequestBooks::default() }, [None; 3]),
        (RequestBooks { answered: 1, timed_out: 8, ..RequestBooks::default() }, [None; 3]),
    ] {
        asked(&mut record, RequestBooks { sent: 9, ..outcomes });
        assert_eq!(limits.map(|limit| because(&record, limit)), expected, "{outcomes:?}");
    }
    asked(&mut record, RequestBooks { sent: 9, timed_out: 9, ..RequestBooks::default() });
    record.requests.as_mut().unwrap().responses.dropped_by_generator = 1;
    assert_eq!(because(&record, "round_trip_p99<1s"), None, "it may have had a reply");
    asked(&mut record, RequestBooks { sent: 9, late: 9, ..RequestBooks::default() });
    record.requests.as_mut().unwrap().timeout_s = None;
    assert_eq!(because(&record, "round_trip_p99<1s"), None, "an older record");
    let (text, hint) = (String::new(), String::new());
    let status = crate::record::VerdictStatus::Suspect;
    record.verdict.reasons = vec![crate::record::Reason { code: "V28".to_owned(), status, text, hint }];
    assert_eq!(because(&record, "p99<1s"), None, "with CPU time they may have arrived");
}

#[test]
fn each_metric_has_a_figure_and_a_text_for_its_values() {
    for metric in &METRICS {
        assert!(figure(metric.figure).is_some(), "{} has no figure", metric.name);
        assert!(Limited::Known(metric).text(0.5).chars().any(|letter| letter.is_ascii_digit()));
        assert_eq!(METRICS.iter().filter(|other| other.name == metric.name).count(), 1);
    }
    let delivered = Limited::Known(metrics::find("delivered").unwrap());
    assert_eq!((delivered.text(1.0), delivered.text(0.999_999)), ("100 %".to_owned(), "99.999 %".to_owned()));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
        for error in [Objectives::parse(&text).err(), Conditions::parse(&text).err()].into_iter().flatten() {
            prop_assert_eq!(error.drawing().lines().count(), 2);
        }
    }

    #[test]
    fn nearly_right_texts_do_not_either(text in "(p99|loss|cpu|max|ä)?(<|>=|=|≤|\\+)?[+−-]?[0-9.]{0,6}(ms|%|/s|µs)?,?( p50<1s)?") {
        for error in [Objectives::parse(&text).err(), Conditions::parse(&text).err()].into_iter().flatten() {
            prop_assert!(error.at <= error.text.chars().count());
            prop_assert_eq!(error.drawing().lines().count(), 2);
        }
    }

    #[test]
    fn a_decided_limit_is_decided_for_every_value_between(low in 0.0f64..1e6, width in 0.0f64..1e6, part in 0.0f64..=1.0, limit in 0.0f64..2e6) {
        let clause = Clause { bound: Bound::Value(limit), ..objective("p99<1s") };
        let inside = clause.judge(Some(MeasuredFigure::exactly(low + part * width)));
        match clause.judge(Some(MeasuredFigure::within([low, low + width]))) {
            ClauseOutcome::Undecided => {}
            decided => prop_assert_eq!(decided, inside),
        }
    }

    #[test]
    fn a_limit_below_and_one_at_least_are_never_both_true(value in 0.0f64..1e9, limit in 0.0f64..1e9) {
        prop_assert!(Operator::Below.is_true(value, limit) != Operator::AtLeast.is_true(value, limit));
        prop_assert!(Operator::Above.is_true(value, limit) != Operator::AtMost.is_true(value, limit));
    }
}

#[test]
fn the_shortest_time_that_is_limited_says_how_exact_a_run_has_to_be() {
    let shortest = |text| Objectives::parse(text).unwrap().shortest_time_us();
    assert_eq!(shortest("p99 < 50ms, p50 < 0.4ms, loss = 0"), Some(400.0));
    assert_eq!(shortest("loss = 0"), None);
}
