#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::{CauseCount, LatencyBounds, SentMeans, ShardHealth, Side};
use crate::sample::{self, Shape};

fn verdict_of(change: impl FnOnce(&mut Record)) -> Verdict {
    let mut record = sample::record();
    change(&mut record);
    judge(&VerdictInput::of(&record))
}

/// On both sides.
fn over_library(record: &mut Record) {
    record.protocol.sent_means = SentMeans::HandedOver;
    record.protocol.read_by_library = Some(true);
    record.latency.receive_lateness = None;
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    verdict.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// A summary whose p99 is exactly N µs and is also the largest value.
fn with_p99(p99_us: f64) -> Option<Summary> {
    let mut summary = Shape { median_us: 1.0, tail: 0.1, count: 10_000 }.summary();
    summary.p99 = Some(p99_us);
    Some(summary)
}

#[test]
fn the_sample_is_valid_and_every_rule_that_concerns_it_is_listed() {
    let verdict = verdict_of(|_| {});
    assert_eq!(verdict.status, VerdictStatus::Valid, "{:?}", verdict.reasons);
    assert!(verdict.reasons.is_empty());
    let listed: Vec<&str> = verdict.checks.iter().map(|check| check.code.as_str()).collect();
    let expected: Vec<&str> = rules::RULES
        .iter()
        .map(|rule| rule.code)
        .filter(|code| {
            !["V05", "V16", "V17", "V18", "V20", "V21", "V22", "V24", "V25", "V27", "V28", "V29", "V30", "V31"]
                .contains(code)
        })
        .collect();
    assert_eq!(
        listed, expected,
        "V05 concerns real-time runs only, V16 those with requests, V17 and V18 those with links, V20 those with faults, V21 and V22 those on nodes, V24 those without a broker, V25 those whose system ended, V27 those whose schedule was counted, V28 those whose system's wait was measured, V29 those whose client is a program, V30 those whose subscribers have predicates, V31 those whose clients without a connection were counted"
    );
}

#[test]
fn a_check_holds_its_value_its_limits_and_its_unit() {
    let changes: [fn(&mut Record); 6] = [
        |_| {},
        |record| record.latency.scheduler_lag = with_p99(400.0),
        |record| record.latency.receive_lateness = with_p99(1e6),
        |record| record.delivery.messages.lost += 1,
        |record| record.delivery.messages.approximate = true,
        |record| record.environment.steal = Some(0.5),
    ];
    for change in changes {
        for check in verdict_of(change).checks {
            let (Some(value), Some(limits), Some(unit)) = (check.value, check.limits, check.unit) else {
                assert_eq!((check.value, check.limits, check.unit), (None, None, None), "{check:?}");
                assert!(["V10", "V13", "V14", "V19"].contains(&check.code.as_str()), "{check:?}");
                continue;
            };
            let expected = match limits.suspect {
                _ if value <= limits.valid => VerdictStatus::Valid,
                Some(suspect) if value > suspect => VerdictStatus::Invalid,
                _ => VerdictStatus::Suspect,
            };
            assert_eq!(check.status, expected, "{value} {unit:?}: {check:?}");
        }
    }
    let late = verdict_of(|record| record.latency.scheduler_lag = with_p99(400.0)).checks.remove(0);
    assert_eq!((late.value, late.unit), (Some(400.0), Some(CheckUnit::Microseconds)));
}

#[test]
fn lateness_is_width_until_the_load_is_another_one() {
    for (window_s, lag_us, expected) in [
        (10.0, 10_000.0, VerdictStatus::Valid),
        (10.0, 10_001.0, VerdictStatus::Suspect),
        (10.0, 100_000.0, VerdictStatus::Suspect),
        (10.0, 100_001.0, VerdictStatus::Invalid),
        (2.0, 20_000.0, VerdictStatus::Suspect),
        (2.0, 20_001.0, VerdictStatus::Invalid),
        (0.5, 10_001.0, VerdictStatus::Invalid),
        (3_600.0, 100_001.0, VerdictStatus::Invalid),
    ] {
        for lateness in [false, true] {
            let verdict = verdict_of(|record| {
                record.settings.duration_s = window_s;
                let own =
                    if lateness { &mut record.latency.receive_lateness } else { &mut record.latency.scheduler_lag };
                *own = with_p99(lag_us);
            });
            assert_eq!(verdict.status, expected, "{window_s} s, {lag_us} µs: {:?}", verdict.reasons);
        }
    }
}

#[test]
fn lateness_in_a_run_that_was_stopped_is_compared_with_the_window_that_there_was() {
    let verdict = verdict_of(|record| {
        (record.settings.window_start_ns, record.settings.window_end_ns) = (7_000_000_000, 9_000_000_000);
        record.run.status = Status::Interrupted;
        record.latency.scheduler_lag = with_p99(20_001.0);
    });
    let check = verdict.checks.iter().find(|check| check.code == "V01").unwrap();
    assert_eq!(check.status, VerdictStatus::Invalid, "more than 1 % of 2 s: {}", check.text);
}

#[test]
fn a_reader_that_was_late_may_be_why_messages_are_missing() {
    let verdict = verdict_of(|record| {
        lose_one(record);
        record.latency.receive_lateness = with_p99(20_000.0);
    });
    assert_eq!(codes(&verdict), ["V02"]);
    assert!(
        verdict.reasons[0].text.ends_with("some of the 1 missing messages because of it"),
        "{}",
        verdict.reasons[0].text
    );
}

#[test]
fn what_pubmark_dropped_is_not_charged_to_the_system() {
    let judged = |missed: u64, overflowed_datagrams: u64, change: fn(&mut Record)| {
        verdict_of(|record| {
            record.delivery.own_drops = OwnDrops { missed, overflowed_datagrams, ..OwnDrops::default() };
            change(record);
        })
    };
    let messages = "messages found pubmark's queue full";
    let datagrams = "datagrams found the full buffer of pubmark's socket";
    for (missed, overflowed, text) in [
        (1_200, 0, format!("1,200 {messages}; messages or replies that are missing: 1")),
        (0, 12, format!("12 {datagrams}; messages or replies that are missing: 1")),
        (3, 12, format!("3 {messages}, 12 {datagrams}; messages or replies that are missing: 1")),
    ] {
        let verdict = judged(missed, overflowed, lose_one);
        assert_eq!((verdict.status, codes(&verdict)), (VerdictStatus::Invalid, vec!["V02"]));
        assert_eq!(verdict.reasons[0].text, format!("{GENERATOR_LIMITED}: {text}"));
        assert!(verdict.reasons[0].hint.contains("--shards"), "{}", verdict.reasons[0].hint);
        assert_eq!(judged(missed, overflowed, |_| {}).status, VerdictStatus::Valid, "nothing is missing");
    }
    assert_eq!(judged(0, 0, lose_one).status, VerdictStatus::Valid, "the system lost it");
}

#[test]
fn what_a_library_s_sockets_dropped_may_be_what_is_missing() {
    let judged = |drops: u64, change: fn(&mut Record)| {
        verdict_of(|record| {
            over_library(record);
            record.delivery.own_drops.library_datagrams = Some(drops);
            change(record);
        })
    };
    let verdict = judged(7, lose_one);
    assert_eq!((verdict.status, codes(&verdict)), (VerdictStatus::Suspect, vec!["V02"]));
    let text = &verdict.reasons[0].text;
    assert!(text.contains("7 datagrams found the full buffer of a client library's socket"), "{text}");
    assert_eq!(judged(7, |_| {}).status, VerdictStatus::Valid, "nothing is missing");
    assert_eq!(judged(0, lose_one).status, VerdictStatus::Valid, "the system lost it");
    let own = judged(7, |record| {
        lose_one(record);
        record.delivery.own_drops.missed = 1;
    });
    assert_eq!(own.status, VerdictStatus::Invalid, "what pubmark itself dropped counts more");
}

#[test]
fn what_pubmark_dropped_counts_in_floods_behind_libraries_and_for_unknown_messages() {
    let changes: [fn(&mut Record); 3] = [
        |record| record.settings.flood = true,
        over_library,
        |record| {
            record.delivery.messages.lost -= 1;
            record.delivery.messages.unknown += 1;
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let verdict = verdict_of(|record| {
            lose_one(record);
            record.delivery.own_drops.missed = 1;
            change(record);
        });
        assert_eq!((verdict.status, codes(&verdict)), (VerdictStatus::Invalid, vec!["V02"]), "{number}");
    }
}

#[test]
fn a_slow_generator_is_called_generator_limited() {
    let verdict = verdict_of(|record| record.latency.scheduler_lag = with_p99(190_000.0));
    assert_eq!(verdict.status, VerdictStatus::Invalid);
    assert!(verdict.reasons[0].text.starts_with(GENERATOR_LIMITED), "{}", verdict.reasons[0].text);
    assert!(verdict.reasons[0].hint.contains("--realtime"));
}

#[test]
fn the_hint_does_not_advise_what_was_done_already() {
    let verdict = verdict_of(|record| {
        record.latency.scheduler_lag = with_p99(190_000.0);
        record.settings.realtime = true;
    });
    assert!(!verdict.reasons[0].hint.contains("--realtime"), "{}", verdict.reasons[0].hint);
}

#[test]
fn back_pressure_never_counts_against_a_run() {
    let verdict = verdict_of(|record| {
        record.latency.backpressure = with_p99(5_000_000.0);
        record.latency.total = with_p99(5_000_000.0).map(LatencyBounds::measured);
        record.delivery.messages.sent -= 4_000;
        record.delivery.messages.unsent += 4_000;
        record.delivery.messages.expected -= 4_000;
        record.delivery.messages.delivered -= 4_000;
        record.latency.total.as_mut().unwrap().upper.count -= 4_000;
        record.tables.by_type.clear();
    });
    assert_eq!(verdict.status, VerdictStatus::Valid, "{:?}", verdict.reasons);
}

#[test]
fn without_a_p99_the_largest_sample_stands_in() {
    let few = |max_us: f64| {
        let mut summary = Shape { median_us: 1.0, tail: 0.1, count: 100 }.summary();
        summary.max = max_us;
        Some(summary)
    };
    let verdict = verdict_of(|record| {
        record.latency.scheduler_lag = few(10_001.0).map(|few| Summary { p90: None, p95: None, p99: None, ..few });
    });
    assert_eq!(codes(&verdict), ["V01"]);
    assert!(verdict.reasons[0].text.contains("max (too few samples for p99)"), "{}", verdict.reasons[0].text);
}

#[test]
fn a_stall_of_the_system_is_not_held_against_us() {
    let verdict = verdict_of(|record| record.latency.total.as_mut().unwrap().upper.max = 1_000_000.0);
    assert_eq!(verdict.status, VerdictStatus::Valid, "{:?}", verdict.reasons);
}

#[test]
fn the_busiest_thread_counts() {
    for (cores, expected) in [
        (0.80, [VerdictStatus::Valid, VerdictStatus::Valid]),
        (0.81, [VerdictStatus::Valid, VerdictStatus::Suspect]),
        (0.95, [VerdictStatus::Valid, VerdictStatus::Suspect]),
        (0.96, [VerdictStatus::Suspect, VerdictStatus::Invalid]),
    ] {
        let with = |flood: bool| {
            verdict_of(|record| {
                record.settings.flood = flood;
                record.cost.threads.push(ShardHealth {
                    name: "publisher 1".into(),
                    side: Side::Devices,
                    cores: Some(cores),
                    sessions: 1,
                    wakeups: Some(1),
                    quantum_us: None,
                    ordinary_share: None,
                });
            })
            .status
        };
        assert_eq!([with(false), with(true)], expected, "{cores} cores");
    }
    assert_eq!(codes(&verdict_of(|record| record.cost.threads.clear())), ["V04"]);
}

#[test]
fn a_library_or_a_program_that_may_be_saturated_is_in_doubt_in_a_flood() {
    let library = |flood: bool, cores: Option<f64>| {
        verdict_of(|record| {
            record.settings.flood = flood;
            over_library(record);
            let of_shards: f64 = record.cost.threads.iter().filter_map(|thread| thread.cores).sum();
            match cores {
                Some(cores) => record.cost.generator.as_mut().unwrap().cores = of_shards + cores,
                None => record.cost.generator = None,
            }
        })
    };
    assert_eq!(library(true, Some(0.7)).status, VerdictStatus::Valid, "none of them used more than all");
    let verdict = library(true, Some(1.4));
    assert_eq!((verdict.status, codes(&verdict)), (VerdictStatus::Suspect, vec!["V04"]));
    assert!(
        verdict.reasons[0].text.contains("threads of the client library used up to 140 %"),
        "{:?}",
        verdict.reasons
    );
    assert!(library(true, None).reasons[0].text.contains("not checked"));
    assert_eq!(library(false, Some(1.4)).status, VerdictStatus::Valid, "no flood");
    let program = |usage: Option<f64>| {
        verdict_of(|record| {
            record.settings.flood = true;
            record.connections.client_programs = Some(Default::default());
            record.cost.client_programs = usage.map(|cores| Usage { cores, ..Usage::default() });
        })
    };
    assert!(!codes(&program(Some(0.7))).contains(&"V04"));
    for (usage, words) in [(Some(0.97), "threads of the client program used up to 97 %"), (None, "not checked")] {
        let verdict = program(usage);
        let reason = verdict.reasons.iter().find(|reason| reason.code == "V04").unwrap();
        assert!(reason.status == VerdictStatus::Suspect && reason.text.contains(words), "{reason:?}");
    }
}

#[test]
fn real_time_needs_room_on_few_cores_only() {
    let realtime = |generator_cores: f64, machine_cores: u32| {
        verdict_of(|record| {
            record.settings.realtime = true;
            record.cost.generator.as_mut().unwrap().cores = generator_cores;
            record.environment.cores = machine_cores;
        })
        .status
    };
    assert_eq!(realtime(0.5, 2), VerdictStatus::Valid);
    assert_eq!(realtime(0.51, 4), VerdictStatus::Suspect);
    assert_eq!(realtime(0.51, 8), VerdictStatus::Valid);
}

#[test]
fn each_fault_is_found_by_its_own_rule() {
    type Change = fn(&mut Record);
    let faults: [(&str, VerdictStatus, Change); 29] = [
        ("V06", VerdictStatus::Suspect, |record| record.environment.steal = Some(0.06)),
        ("V07", VerdictStatus::Invalid, |record| {
            record.delivery.messages.offered += 3;
            record.tables.by_type[0].delivery.offered += 3;
        }),
        ("V07", VerdictStatus::Invalid, |record| {
            record.delivery.messages.refused += 1;
            record.tables.by_type[0].delivery.refused += 1;
        }),
        ("V08", VerdictStatus::Invalid, |record| {
            record.delivery.messages.expected += 1;
            record.tables.by_type[0].delivery.expected += 1;
        }),
        ("V09", VerdictStatus::Invalid, |record| record.tables.by_type[1].delivery.duplicated += 1),
        ("V10", VerdictStatus::Suspect, |record| record.delivery.messages.approximate = true),
        ("V11", VerdictStatus::Suspect, |record| record.latency.total.as_mut().unwrap().upper.negative = 100),
        ("V11", VerdictStatus::Invalid, |record| record.latency.service.as_mut().unwrap().upper.negative = 101),
        ("V12", VerdictStatus::Invalid, |record| record.latency.total.as_mut().unwrap().upper.clipped = 1),
        ("V14", VerdictStatus::Suspect, |record| record.run.status = Status::Interrupted),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.system_unsent_bytes = Some(1);
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.system_unread_bytes = Some(1);
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.socket_unsent_bytes = 1;
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.held_bytes = 1;
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.relay_bytes = Some(1);
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.link_bytes = Some(1);
        }),
        ("V19", VerdictStatus::Suspect, |record| {
            lose_one(record);
            record.delivery.at_end.sessions_not_resumed = 1;
        }),
        ("V23", VerdictStatus::Suspect, |record| record.connections.subscriptions_refused = 1),
        ("V23", VerdictStatus::Suspect, |record| record.connections.subscriptions_revoked = 1),
        ("V26", VerdictStatus::Invalid, |record| record.latency.total.as_mut().unwrap().upper.count += 1),
        ("V26", VerdictStatus::Suspect, |record| record.latency.total.as_mut().unwrap().upper.count -= 1),
        ("V26", VerdictStatus::Suspect, |record| record.latency.total.as_mut().unwrap().upper.count -= 100),
        ("V26", VerdictStatus::Invalid, |record| record.latency.total.as_mut().unwrap().upper.count -= 101),
        ("V26", VerdictStatus::Invalid, |record| record.latency.total = None),
        ("V26", VerdictStatus::Invalid, |record| record.delivery.never_sent = Some(1)),
        ("V26", VerdictStatus::Invalid, |record| {
            record.delivery.due_times = Some(DueTimeAudit { audited: 1, wrong: 1, example: None })
        }),
        ("V27", VerdictStatus::Invalid, |record| {
            record.workload.scheduled = Some(record.delivery.messages.offered + 1)
        }),
        ("V27", VerdictStatus::Invalid, |record| {
            record.workload.scheduled = Some(record.delivery.messages.offered - 1)
        }),
        ("V27", VerdictStatus::Invalid, |record| {
            record.workload.scheduled = Some(record.delivery.messages.offered);
            record.delivery.reactions = Some(ReactionCounts { triggered: 1, ..ReactionCounts::default() });
        }),
    ];
    for (code, status, change) in faults {
        let verdict = verdict_of(change);
        assert_eq!((codes(&verdict), verdict.status), (vec![code], status), "{:?}", verdict.reasons);
    }
}

/// A category of the message accounting.
type Part = fn(&mut Delivery) -> &mut u64;

#[test]
fn every_count_that_a_message_can_end_in_is_a_part_of_the_whole() {
    let sending: [Part; 4] = [
        |books| &mut books.skipped_planned,
        |books| &mut books.skipped_disconnected,
        |books| &mut books.refused,
        |books| &mut books.unsent,
    ];
    let delivery: [Part; 2] = [|books| &mut books.lost, |books| &mut books.unknown];
    let moves = |code: &str, whole: Part, parts: &[Part]| {
        for (number, part) in parts.iter().enumerate() {
            let verdict = verdict_of(|record| {
                *whole(&mut record.delivery.messages) -= 1;
                *part(&mut record.delivery.messages) += 1;
                record.tables.by_type.clear();
            });
            assert!(!codes(&verdict).contains(&code), "{code}, part {number}: {:?}", verdict.reasons);
            let doubled = verdict_of(|record| {
                *part(&mut record.delivery.messages) += 1;
                record.tables.by_type.clear();
            });
            assert!(codes(&doubled).contains(&code), "{code}, part {number} is counted twice and nobody notices");
        }
    };
    moves("V07", |books| &mut books.sent, &sending);
    moves("V08", |books| &mut books.delivered, &delivery);
}

fn lose_one(record: &mut Record) {
    record.delivery.messages.delivered -= 1;
    record.delivery.messages.lost += 1;
    record.latency.total.as_mut().unwrap().upper.count -= 1;
    record.tables.by_type.clear();
}

#[test]
fn messages_may_count_as_lost_when_none_is_in_flight() {
    for unknown in [Some(0), None] {
        let verdict = verdict_of(|record| {
            lose_one(record);
            (record.delivery.at_end.system_unsent_bytes, record.delivery.at_end.system_unread_bytes) =
                (unknown, unknown);
        });
        assert_eq!(verdict.status, VerdictStatus::Valid, "{:?}", verdict.reasons);
    }
    let verdict = verdict_of(|record| {
        lose_one(record);
        (record.delivery.at_end.relay_bytes, record.delivery.at_end.link_bytes) = (Some(2_000), Some(300));
    });
    let words = &verdict.checks.iter().find(|check| check.code == "V19").unwrap().text;
    assert!(words.contains("(2,000 B in the relay, 300 B on the links)"), "{words}");
    // Bytes that belong to no missing message, such as acknowledgements.
    assert_eq!(verdict_of(|record| record.delivery.at_end.system_unsent_bytes = Some(9)).status, VerdictStatus::Valid);
}

#[test]
fn a_run_in_which_every_subscription_was_refused_is_invalid_for_the_system_s_reason() {
    let verdict = verdict_of(|record| {
        record.delivery.messages = Delivery { offered: 5, sent: 5, absent: 5, ..Delivery::default() };
        record.tables.by_type.clear();
        record.latency.total = None;
        record.connections.subscriptions_refused = 1;
        let cause = "subscription refused: code 135, not authorized".to_owned();
        record.connections.causes = vec![CauseCount { cause, count: 1 }];
        record.latency.scheduler_lag = with_p99(17_000.0);
    });
    assert_eq!(
        (verdict.status, codes(&verdict)),
        (VerdictStatus::Invalid, vec!["V23", "V01"]),
        "the system's reason first"
    );
    assert!(verdict.reasons[0].text.contains("the system says: code 135, not authorized"), "{:?}", verdict.reasons);
}

#[test]
fn a_refused_subscription_does_not_explain_that_nothing_was_sent() {
    let verdict = verdict_of(|record| {
        record.delivery.messages = Delivery { offered: 5, unsent: 5, ..Delivery::default() };
        record.tables.by_type.clear();
        record.latency.total = None;
        record.connections.subscriptions_refused = 1;
    });
    let reason = |code: &str| verdict.reasons.iter().find(|reason| reason.code == code).map(|reason| reason.status);
    assert_eq!(reason("V13"), Some(VerdictStatus::Invalid), "{:?}", verdict.reasons);
    assert_eq!(reason("V23"), Some(VerdictStatus::Suspect), "{:?}", verdict.reasons);
}

#[test]
fn refused_and_revoked_subscriptions_are_told_apart_with_the_system_s_reason_of_each() {
    let verdict = verdict_of(|record| {
        record.connections.subscriptions_refused = 2;
        record.connections.subscriptions_revoked = 1;
        let causes = ["subscription revoked: consumer deleted", "subscription refused: not authorized"];
        record.connections.causes = causes.map(|cause| CauseCount { cause: cause.to_owned(), count: 1 }).to_vec();
    });
    let text = "2 subscriptions were refused (the system says: not authorized), 1 subscription was revoked by the system \
                during the run (the system says: consumer deleted): nothing is expected of those";
    assert_eq!((codes(&verdict), verdict.reasons[0].text.as_str()), (vec!["V23"], text));
}

#[test]
fn as_many_messages_as_the_schedule_has_are_offered() {
    let status = |change: fn(&mut Record)| {
        verdict_of(|record| {
            record.workload.scheduled = Some(record.delivery.messages.offered);
            change(record);
        })
    };
    let check = status(|_| {});
    assert!(check.checks.iter().any(|check| check.code == "V27"), "{:?}", check.checks);
    let interrupted = status(|record| {
        record.workload.scheduled = Some(1_000_000);
        record.run.status = Status::Interrupted;
    });
    assert_eq!(codes(&interrupted), ["V14"], "the rest of the schedule was never due");
}

#[test]
fn the_difference_of_open_books_is_named() {
    let verdict = verdict_of(|record| {
        record.delivery.messages.offered += 3;
        record.tables.by_type.clear();
    });
    assert!(verdict.reasons[0].text.ends_with("3 unaccounted for"), "{}", verdict.reasons[0].text);
}

#[test]
fn nothing_measured_is_invalid() {
    let verdict = verdict_of(|record| {
        record.delivery.messages = Delivery::default();
        record.tables.by_type.clear();
        record.latency.total = None;
    });
    assert_eq!((verdict.status, codes(&verdict)), (VerdictStatus::Invalid, vec!["V13"]));
    let nothing_sent = verdict_of(|record| {
        record.delivery.messages = Delivery { offered: 5, unsent: 5, ..Delivery::default() };
        record.tables.by_type.clear();
        record.latency.total = None;
    });
    assert_eq!((nothing_sent.status, codes(&nothing_sent)), (VerdictStatus::Invalid, vec!["V13"]));
    assert!(nothing_sent.reasons[0].text.contains("no message was sent"), "{}", nothing_sent.reasons[0].text);
    let without_subscription = |subscribers: u64| {
        verdict_of(|record| {
            record.workload.subscribers = subscribers;
            record.delivery.messages = Delivery { offered: 5, sent: 5, absent: 5, ..Delivery::default() };
            record.tables.by_type.clear();
            record.latency.total = None;
        })
        .status
    };
    assert_eq!(without_subscription(1), VerdictStatus::Invalid);
    assert_eq!(without_subscription(0), VerdictStatus::Valid);
}

#[test]
fn a_flood_is_not_judged_by_its_latency() {
    let verdict = verdict_of(|record| {
        record.settings.flood = true;
        record.latency.scheduler_lag = with_p99(9e6);
        record.latency.receive_lateness = with_p99(9e6);
    });
    assert_eq!(verdict.status, VerdictStatus::Valid, "{:?}", verdict.reasons);
    assert!(verdict.checks.iter().all(|check| !["V01", "V02"].contains(&check.code.as_str())));
}

#[test]
fn the_worst_reason_comes_first() {
    let verdict = verdict_of(|record| {
        record.environment.steal = Some(0.5);
        record.run.status = Status::Interrupted;
        record.delivery.messages.offered += 1;
        record.tables.by_type.clear();
    });
    assert_eq!(codes(&verdict), ["V07", "V06", "V14"]);
}
