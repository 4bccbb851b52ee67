#![allow(clippy::unwrap_used)]

use pubmark_model::qos::Qos;

use super::*;
use crate::delivery::BrokenPromises;
use crate::message_log::MessageLogInfo;
use crate::record::{CauseCount, Deviation, Status};
use crate::sample::{self, Shape};

fn warnings_of(change: impl FnOnce(&mut Record)) -> Vec<Warning> {
    let mut record = sample::record();
    change(&mut record);
    warnings(&record)
}

#[test]
fn the_sample_has_no_warning() {
    assert_eq!(warnings_of(|_| {}), []);
}

#[test]
fn each_cause_raises_its_own_warning_and_only_it() {
    type Change = fn(&mut Record);
    let causes: [(&str, Change); 25] = [
        ("W01", |record| {
            record.latency.total = Some(Shape { median_us: 300.0, tail: 0.2, count: 5_000 }.bounds());
        }),
        ("W02", |record| {
            record.settings.deviations.push(Deviation { name: "limit-raised".into(), detail: String::new() })
        }),
        ("W03", |record| record.connections.granted_qos_lower = 1),
        ("W04", |record| record.delivery.too_large = 1),
        ("W05", |record| record.delivery.sizes_raised = 1),
        ("W06", |record| record.connections.refused = 1),
        ("W06", |record| record.connections.auth_failed = 1),
        ("W06", |record| record.connections.tls_failed = 1),
        ("W06", |record| record.connections.dropped = 1),
        ("W07", |record| record.connections.subscriptions_refused = 1),
        ("W07", |record| record.connections.subscriptions_revoked = 1),
        ("W08", |record| record.delivery.messages.unsent = 1),
        ("W09", |record| record.delivery.messages.lost = 1),
        ("W10", |record| record.delivery.messages.foreign = 1),
        ("W11", |record| record.latency.without_write_start = 1),
        ("W12", |record| record.delivery.at_end.socket_unsent_bytes = 1),
        ("W13", |record| record.environment.load_before = Some(2.1)),
        ("W15", |record| record.delivery.messages.delivered_after_refusal = 1),
        ("W19", |record| record.delivery.messages.truncated = 1),
        ("W23", |record| record.delivery.messages.corrupt = 1),
        ("W20", |record| record.cost.threads[0].quantum_us = Some(200.0)),
        ("W21", |record| record.message_log = Some(MessageLogInfo { missing: 1, ..whole_log() })),
        ("W22", |record| record.message_log = Some(MessageLogInfo { by_client: None, ..whole_log() })),
        ("W22", |record| {
            record.message_log = Some(MessageLogInfo { by_client_without_percentiles: true, ..whole_log() })
        }),
        ("W18", |record| {
            record.tables.series[2..4].iter_mut().for_each(|bin| bin.latency.upper.p50_us = Some(500_000.0))
        }),
    ];
    for (code, change) in causes {
        let found: Vec<String> = warnings_of(change).into_iter().map(|warning| warning.code).collect();
        assert_eq!(found, [code]);
    }
}

#[test]
fn a_missing_percentile_names_the_samples_and_a_duration_that_gives_them() {
    let found = warnings_of(|record| {
        record.latency.total = Some(Shape { median_us: 300.0, tail: 0.2, count: 5_000 }.bounds());
    });
    assert_eq!(found[0].text, "no p99.9: it needs 10,000 samples, this run has 5,000");
    assert_eq!(found[0].hint, "`--duration 22s`");
    let stopped = warnings_of(|record| {
        record.latency.total = Some(Shape { median_us: 300.0, tail: 0.2, count: 5_000 }.bounds());
        (record.settings.window_start_ns, record.settings.window_end_ns) = (7_000_000_000, 9_000_000_000);
        record.run.status = Status::Interrupted;
    });
    let found = stopped.iter().find(|warning| warning.text.starts_with("no p99.9")).unwrap();
    assert_eq!(found.hint, "`--duration 5s`", "they came within 2 s");
}

#[test]
fn a_latency_that_fell_names_its_medians_and_a_longer_warm_up() {
    let found = warnings_of(|record| {
        record.settings.warmup_s = 2.0;
        record.settings.duration_s = 10.0;
        for bin in record.tables.series.iter_mut().filter(|bin| (0.0..5.0).contains(&bin.t_s)) {
            bin.latency.upper.p50_us = Some(50_000.0);
        }
        for bin in record.tables.series.iter_mut().filter(|bin| bin.t_s >= 5.0) {
            bin.latency.upper.p50_us = Some(700.0);
        }
    });
    assert_eq!(found[0].text, "latency fell through the window: medians of its quarters 50 ms, 50 ms, 700 µs, 700 µs");
    assert_eq!(found[0].hint, "not warm yet, or still catching up with the start: `--warmup 12s`");
}

#[test]
fn losses_break_no_promise_at_best_effort() {
    let best_effort = warnings_of(|record| {
        record.delivery.messages.lost = 1;
        record.workload.qos = vec![Qos::BestEffort, Qos::ExactlyOnce];
    });
    assert_eq!(best_effort, []);
}

#[test]
fn a_lower_level_of_some_subscriptions_does_not_hide_the_losses_of_the_others() {
    let found = |lower: u64| {
        let found = warnings_of(|record| {
            record.delivery.messages.lost = 7;
            record.connections.granted_qos_lower = lower;
        });
        let codes: Vec<&str> = found.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["W03", "W09"]);
        found[1].text.clone()
    };
    let lost = "7 lost although publisher and subscriber ask for at-least-once or exactly-once (at most: ";
    assert_eq!(found(1), format!("{lost}1 subscription was granted a lower level)"));
    assert_eq!(found(2), format!("{lost}2 subscriptions were granted a lower level)"));
}

#[test]
fn second_copies_break_only_the_promise_of_exactly_once() {
    assert_eq!(warnings_of(|record| record.delivery.messages.duplicated = 1), []);
    let exactly_once = warnings_of(|record| {
        record.delivery.messages.duplicated = 2;
        record.workload.qos = vec![Qos::ExactlyOnce];
    });
    assert_eq!(
        exactly_once[0].text,
        "2 delivered more than once although publisher and subscriber ask for exactly-once"
    );
}

#[test]
fn a_promise_is_made_by_both_ends() {
    let of = |lost: u64| {
        warnings_of(|record| {
            record.delivery.messages.lost = 7;
            record.workload.qos = vec![Qos::BestEffort, Qos::AtLeastOnce];
            record.delivery.broken_promises = Some(BrokenPromises { lost, duplicated: 0 });
        })
    };
    assert_eq!(of(0), [], "subscribers at QoS 0 are promised nothing");
    let found = of(3);
    assert_eq!((found.len(), found[0].code.as_str()), (1, "W09"), "those of the group at QoS 1");
    assert_eq!(found[0].text, "3 lost although publisher and subscriber ask for at-least-once or exactly-once");
}

#[test]
fn the_most_frequent_cause_is_named() {
    let found = warnings_of(|record| {
        record.connections.dropped = 4;
        record.connections.causes = vec![CauseCount { cause: "reset by peer".into(), count: 4 }];
    });
    assert_eq!(found[0].text, "connections: 4 dropped (mostly: reset by peer)");
    let found = warnings_of(|record| {
        record.connections.dropped = 4;
        let causes = [("not permitted: reports of deleted consumers", 9), ("reset by peer", 4)];
        record.connections.causes = causes.map(|(cause, count)| CauseCount { cause: cause.to_owned(), count }).to_vec();
    });
    assert_eq!(found[0].text, "connections: 4 dropped (mostly: reset by peer)", "the other one ended no connection");
}

#[test]
fn one_subscription_is_written_as_one() {
    let text = |change: fn(&mut Record)| warnings_of(change).remove(0).text;
    let both = text(|record| {
        record.connections.subscriptions_refused = 2;
        record.connections.subscriptions_revoked = 1;
    });
    assert_eq!(both, "2 subscriptions refused, 1 subscription revoked by the system");
    let hint = warnings_of(|record| record.connections.subscriptions_revoked = 1).remove(0).hint;
    assert!(hint.ends_with("who deletes its queues, streams or consumers"), "{hint}");
    let lower = text(|record| record.connections.granted_qos_lower = 1);
    assert_eq!(lower, "1 subscription granted a lower level than requested");
}

#[test]
fn a_flood_says_that_its_latencies_are_not_judged() {
    let found = warnings_of(|record| record.settings.flood = true);
    assert_eq!(found[0].code, "W14");
}

/// Information about a complete message log.
fn whole_log() -> MessageLogInfo {
    MessageLogInfo { by_client: Some("csv/by_client.csv".to_owned()), ..MessageLogInfo::default() }
}
