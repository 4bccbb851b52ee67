//! The message log of random runs with brokers that lose, duplicate, delay, refuse and cut off. Counts computed from
//! the log alone must equal the message accounting.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::{Ended, Simulation, window_ns};
use crate::message_log::entries::{Entry, EntryOutcome};
use crate::message_log::files::LogFiles;
use crate::message_log::writer::LogWriter;

/// Runs with a message log.
fn logged(workload: &str, duration: Duration, arrange: impl FnOnce(&Simulation)) -> (Ended, Vec<Entry>) {
    let files = LogFiles::create(&std::env::temp_dir()).expect("a folder");
    let writer = LogWriter::start(&files.file(0)).expect("a file");
    let mut simulation = Simulation::prepared(workload, duration, |setup| setup.log = Some(writer.shard()));
    simulation.plan.message_log = Some(files.folder().to_owned());
    arrange(&simulation);
    let mut ended = simulation.run();
    let log = ended.outcome.log.as_mut().expect("a run with a log");
    log.files = files.open().expect("files");
    assert_eq!((log.logged.missing, &log.logged.why), (0, &None));
    let mut entries = vec![];
    let read = log.entries(window_ns(), |entry| {
        entries.push(*entry);
        Ok(())
    });
    read.expect("a log that can be read");
    (ended, entries)
}

/// Fails unless the counts of the log equal the message accounting, and its latencies the histograms.
fn compare(ended: &Ended, entries: &[Entry]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    entries.iter().for_each(|entry| *counts.entry(entry.outcome.name()).or_default() += 1);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let books = &ended.outcome.books.delivery;
    let found = ["delivered", "lost", "unknown", "absent", "duplicated", "overlap"].map(count);
    let reported = [books.delivered, books.lost, books.unknown, books.absent, books.duplicated, books.overlap];
    assert_count_eq!(found, reported, "delivered, lost, unknown, absent, duplicated, overlap");
    let found = ["skipped_planned", "skipped_disconnected", "unsent", "delivered_after_refusal"].map(count);
    let reported = [books.skipped_planned, books.skipped_disconnected, books.unsent, books.delivered_after_refusal];
    assert_count_eq!(found, reported, "skipped as planned, as disconnected, unsent, delivered after refusal");
    assert_count_eq!(count("refused") + count("too_large"), books.refused);
    let orderless = entries.iter().filter(|entry| entry.out_of_order).count() as u64;
    assert_count_eq!(orderless, books.out_of_order);

    let is_unsent = |entry: &&Entry| entry.sequence.is_none();
    let submitted: HashSet<(u32, u32)> =
        entries.iter().filter_map(|entry| Some((entry.publisher, entry.sequence?))).collect();
    let offered = submitted.len() as u64 + entries.iter().filter(is_unsent).count() as u64;
    assert_count_eq!(offered, books.offered, "offered");

    let mut latency = Bounds::new(Precision::Total);
    for entry in entries.iter().filter(|entry| entry.outcome == EntryOutcome::Delivered) {
        let (lower_ns, upper_ns) = entry.latency_ns.expect("of what arrived");
        assert_eq!(upper_ns, entry.received_ns.expect("arrived") - entry.due_ns.expect("was due"));
        latency.record(upper_ns, upper_ns.abs_diff(lower_ns));
    }
    let figures = |bounds: &Bounds| {
        let of = |times: &Distribution| [0.1, 0.5, 0.99, 1.0].map(|part| times.quantile_unguarded_ns(part));
        [of(&bounds.lower), of(&bounds.upper)]
    };
    if books.delivered_after_refusal == 0 {
        assert_eq!(figures(&latency), figures(&ended.outcome.times.latency));
    }
}

fn workload(devices: u32, every_us: u32, subscribers: u32, qos: u8) -> String {
    format!(
        "
name: virtual
devices:
  - {{name: device, count: {devices}, arrival: periodic, every: {every_us}us, payload: 24B, topic: 'v/{{device}}', qos: {qos}}}
  - {{name: unheard, count: 1, arrival: periodic, every: 20ms, payload: 24B, topic: 'u/{{device}}', qos: {qos}}}
subscribers:
  - {{name: subscriber, count: {subscribers}, filters: ['v/#'], qos: {qos}}}
"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_message_log_counts_what_the_books_count(
        (devices, every_us, subscribers, qos) in (1u32..5, 700u32..30_000, 1u32..4, 0u8..2),
        (lost, doubled, refused) in (2u32..40, 2u32..40, 2u32..40),
        delay_ns in prop_oneof![Just(1_000_u64), 1_000u64..2_000_000_000],
        cut_ms in proptest::option::of(100i64..900),
    ) {
        let (ended, entries) = logged(&workload(devices, every_us, subscribers, qos), Duration::from_secs(1), |run| {
            let mut broker = run.broker.borrow_mut();
            broker.copy_delays = Box::new(move |_, sequence, _| match () {
                () if sequence % lost == 1 => vec![],
                () if sequence % doubled == 1 => vec![1_000, delay_ns],
                () => vec![1_000 + delay_ns / u64::from(sequence % 7 + 1)],
            });
            broker.acknowledges = Box::new(move |sequence| {
                Some(if sequence % refused == 1 { Err(Reason::words("full")) } else { Ok(()) })
            });
            drop(broker);
            if let Some(cut_ms) = cut_ms {
                run.at(cut_ms * 1_000_000, |broker| broker.cut("p0"));
                run.at(cut_ms * 1_000_000 + 30_000_000, |broker| broker.cut("s0"));
            }
        });
        compare(&ended, &entries);
        let unheard = entries.iter().filter(|entry| entry.outcome == EntryOutcome::NoSubscriber).count();
        prop_assert!(unheard > 20, "{unheard} messages of a device that nobody subscribes to");
    }
}
