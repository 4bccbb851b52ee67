//! Warnings about the measurement itself.

use super::TextAndHint;
use crate::latency::upper;
use crate::quantity::{count, micros, percent};
use crate::record::Record;
use crate::steadiness::{Trend, unsteady};

/// Samples that must lie beyond a printed percentile.
const SAMPLES_BEYOND: u64 = 10;
/// Share of the cores that other programs may use without a warning.
const LOAD_PER_CORE: f64 = 0.5;
/// Most deviations that the text names; the others are counted.
const DEVIATIONS_NAMED: usize = 3;

pub(super) fn too_few_samples(record: &Record) -> Option<TextAndHint> {
    let latency = upper(&record.latency.total)?;
    let (name, _, one_in) =
        [("p50", latency.p50, 2), ("p90", latency.p90, 10), ("p99", latency.p99, 100), ("p99.9", latency.p999, 1_000)]
            .into_iter()
            .find(|(_, present, _)| present.is_none())?;
    let needed = SAMPLES_BEYOND * one_in;
    let text = format!("no {name}: it needs {} samples, this run has {}", count(needed), count(latency.count));
    // The duration that gives enough samples at the rate of this run, plus a tenth as a margin, rounded up to full
    // seconds.
    let window_s = record.window_s();
    let hint = if latency.count > 0 && window_s > 0.0 {
        let seconds = window_s * needed as f64 / latency.count as f64 * 1.1;
        format!("`--duration {}s`", seconds.ceil())
    } else {
        "run longer with `--duration`".to_string()
    };
    Some((text, hint))
}

pub(super) fn deviations(record: &Record) -> Option<TextAndHint> {
    let names: Vec<&str> = record.settings.deviations.iter().map(|deviation| deviation.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let mut text = match names.len() {
        1 => "1 deviation: ".to_string(),
        many => format!("{many} deviations: "),
    };
    text.push_str(&names[..names.len().min(DEVIATIONS_NAMED)].join(", "));
    if names.len() > DEVIATIONS_NAMED {
        text.push_str(&format!(" and {} more", names.len() - DEVIATIONS_NAMED));
    }
    Some((text, "the report says what each of them means".to_string()))
}

pub(super) fn no_write_start(record: &Record) -> Option<TextAndHint> {
    (record.latency.without_write_start > 0).then(|| {
        let text =
            format!("{} messages have no service latency: compact header", count(record.latency.without_write_start));
        (text, "use payloads of at least 24 bytes if service latency matters".to_string())
    })
}

pub(super) fn busy_machine(record: &Record) -> Option<TextAndHint> {
    let load = record.environment.load_before?;
    let cores = f64::from(record.environment.machine_cores());
    (cores > 0.0 && load > LOAD_PER_CORE * cores).then(|| {
        let text = format!(
            "machine was busy before the run: load {load:.2} on {cores} cores, {} of them",
            percent(load / cores)
        );
        (text, "stop other programs and run again".to_string())
    })
}

pub(super) fn sent_together(record: &Record) -> Option<TextAndHint> {
    let quanta_us = record.cost.threads.iter().filter_map(|thread| thread.quantum_us);
    let longest_us = quanta_us.reduce(f64::max)?;
    let text = format!(
        "messages were sent together within up to {} (`--pace {}`): the system may use less CPU than for single messages",
        micros(longest_us),
        record.settings.pace
    );
    Some((text, "`--pace exact` if the CPU usage of the system matters".to_string()))
}

pub(super) fn flood(record: &Record) -> Option<TextAndHint> {
    record.settings.flood.then(|| {
        (
            "flood: latencies are those of a queue kept full, and are not judged".to_string(),
            "use a workload with a rate to measure latency".to_string(),
        )
    })
}

pub(super) fn not_steady(record: &Record) -> Option<TextAndHint> {
    let found = unsteady(record)?;
    let medians = found.p50_us.map(micros).join(", ");
    let lower = "lower the rate, or find the highest sustainable rate with `pubmark capacity`".to_string();
    let (what, hint) = match found.trend {
        Trend::Behind => ("the system was behind when the window ended", lower),
        Trend::Grew => ("latency grew through the window", lower),
        // The window itself shows how long the warm-up takes.
        Trend::Fell => {
            let seconds = (record.settings.warmup_s + record.settings.duration_s).ceil();
            let hint = format!("not warm yet, or still catching up with the start: `--warmup {seconds}s`");
            ("latency fell through the window", hint)
        }
        Trend::Varied => ("latency varied through the window", "a longer `--warmup` and `--duration`".to_string()),
    };
    Some((format!("{what}: medians of its quarters {medians}"), hint))
}
