//! The load of a flood, as far as a record describes it. Runs of one schedule need no such description.

use pubmark_model::experiment::axis_title;

use crate::experiment::{Cell, ExperimentRecord};
use crate::quantity;
use crate::record::Record;

/// Mean payloads whose ratio is at most this are taken for the same where runs are compared: payloads of random sizes have
/// another mean in each run.
pub(crate) const SAME_PAYLOAD: f64 = 1.05;
/// The same for a run and its baseline: two runs that are both like a third (a history) are like each other.
pub(crate) const SAME_PAYLOAD_AS_BASELINE: f64 = 1.11;

/// Axes of experiments that change the load, besides settings of the workload (`set.…`).
const AXES: [&str; 4] = ["workload", "scale", "rate", "payload"];

/// What determines the load of a run without a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Values by name, or by axis, in the order of messages.
    facts: Vec<(String, String)>,
    /// Mean payload of the messages, bytes; `None` if it depends on the system, or is not known.
    payload_bytes: Option<f64>,
}

/// A part of the load that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadDifference {
    /// What it is.
    pub name: String,
    /// Its values on both sides.
    pub values: [String; 2],
}

impl Load {
    /// The load of a run.
    pub(crate) fn of_run(record: &Record) -> Load {
        let workload = &record.workload;
        let facts = [
            ("workload", workload.name.clone()),
            ("variant", workload.variant.to_string()),
            ("scale", workload.scale.to_string()),
            ("devices", workload.devices.to_string()),
            ("subscribers", workload.subscribers.to_string()),
            ("topics", workload.topics.to_string()),
            ("window", window(record.settings.duration_s)),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).to_vec();
        // Of several device types a flood delivers as many messages of each as the system takes.
        let is_of_one_type = record.tables.by_type.len() == 1;
        Load { facts, payload_bytes: payload_bytes(record).filter(|_| is_of_one_type) }
    }

    /// The load of an experiment's cell.
    pub(crate) fn of_cell(record: &ExperimentRecord, cell: &Cell) -> Load {
        let mut facts =
            vec![("variant".to_owned(), record.variant.clone()), ("window".to_owned(), window(record.duration_s))];
        if !cell.settings.contains_key("workload") {
            facts.insert(0, ("workload".to_owned(), record.workload.clone()));
        }
        let axes = cell.settings.iter().filter(|(axis, _)| Load::is_axis(axis));
        facts.extend(axes.map(|(axis, value)| (key(axis), value.clone())));
        Load { facts, payload_bytes: None }
    }

    /// Whether an axis of experiments changes the load.
    pub(crate) fn is_axis(axis: &str) -> bool {
        AXES.contains(&axis) || axis.starts_with("set.")
    }

    /// In what both differ. What one of them lacks is not compared; of mean payloads, what is within the ratio
    /// `same_payload`.
    pub(crate) fn differences(&self, other: &Load, same_payload: f64) -> Vec<LoadDifference> {
        let fact = |(key, mine): &(String, String)| {
            let (_, theirs) = other.facts.iter().find(|(known, _)| known == key)?;
            let name = axis_title(key).to_owned();
            (mine != theirs).then(|| LoadDifference { name, values: [mine.clone(), theirs.clone()] })
        };
        let mut found: Vec<LoadDifference> = self.facts.iter().filter_map(fact).collect();
        if let (Some(mine), Some(theirs)) = (self.payload_bytes, other.payload_bytes)
            && mine.max(theirs) > same_payload * mine.min(theirs)
        {
            let values = [mine, theirs].map(quantity::bytes);
            found.push(LoadDifference { name: "mean payload".to_owned(), values });
        }
        found
    }
}

/// Mean payload that the workload asked for, bytes: of the messages that were written, or in a record without their bytes of
/// those that arrived. `None` where sizes may be missing: a message may be refused or lost because of its size.
fn payload_bytes(record: &Record) -> Option<f64> {
    let (delivery, books, rates) = (&record.delivery, &record.delivery.messages, &record.throughput);
    // Requests are written, too, as many as the system answers.
    let written = record.cost.efficiency.as_ref().filter(|_| record.requests.is_none()).map(|found| &found.total);
    if let Some(written) = written.filter(|total| total.published > 0) {
        return (delivery.too_large == 0).then(|| written.published_bytes as f64 / written.published as f64);
    }
    let is_whole = books.delivered == books.expected
        && [books.refused, books.skipped_disconnected, books.absent].iter().all(|missing| *missing == 0);
    (is_whole && rates.delivered_per_s > 0.0).then(|| rates.payload_bytes_per_s / rates.delivered_per_s)
}

/// Key of an axis. Workloads of an axis may be paths, and the name of a run's workload is none.
fn key(axis: &str) -> String {
    if axis == "workload" { "axis workload".to_owned() } else { axis.to_owned() }
}

fn window(duration_s: f64) -> String {
    format!("{duration_s} s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::efficiency::{EfficiencyFigures, GroupEfficiency};
    use crate::{sample, sample_experiment};

    fn of_one_type(payload_bytes: f64) -> Record {
        let mut record = sample::record();
        record.tables.by_type.truncate(1);
        record.throughput.payload_bytes_per_s = payload_bytes * record.throughput.delivered_per_s;
        record
    }

    fn names(one: &Load, other: &Load) -> Vec<String> {
        one.differences(other, SAME_PAYLOAD).into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn floods_of_other_payloads_differ_and_chance_does_not_count() {
        let load = |payload_bytes| Load::of_run(&of_one_type(payload_bytes));
        let found = load(16.0).differences(&load(65_536.0), SAME_PAYLOAD_AS_BASELINE);
        assert_eq!((found.len(), &*found[0].name), (1, "mean payload"), "{found:?}");
        assert!(names(&load(1_000.0), &load(1_010.0)).is_empty(), "random sizes");
        assert!(names(&load(0.0), &load(0.0)).is_empty());
    }

    #[test]
    fn payloads_of_which_some_did_not_arrive_are_those_that_were_written_or_not_compared() {
        let load = |delivered_bytes, change: fn(&mut Record)| {
            let mut record = of_one_type(delivered_bytes);
            change(&mut record);
            Load::of_run(&record)
        };
        let whole = load(1_000.0, |_| {});
        let lossy: [fn(&mut Record); 4] = [
            |record| record.delivery.messages.delivered -= 1,
            |record| record.delivery.messages.refused = 1,
            |record| record.delivery.messages.skipped_disconnected = 1,
            |record| record.delivery.messages.absent = 1,
        ];
        for (number, change) in lossy.into_iter().enumerate() {
            assert_eq!(names(&whole, &load(400.0, change)), [""; 0], "the large ones may be missing: {number}");
        }
        let written = |published_bytes, too_large| {
            let mut record = of_one_type(400.0);
            let group = GroupEfficiency { published: 10, published_bytes, ..GroupEfficiency::default() };
            record.cost.efficiency = Some(EfficiencyFigures::of(vec![group]));
            record.delivery.messages.delivered -= 1;
            record.delivery.too_large = too_large;
            Load::of_run(&record)
        };
        assert_eq!(names(&whole, &written(10_000, 0)), [""; 0], "the same payloads, of which large ones were lost");
        assert_eq!(names(&whole, &written(4_000, 0)), ["mean payload"]);
        assert_eq!(names(&whole, &written(4_000, 1)), [""; 0], "not all sizes were written");
    }

    #[test]
    fn of_several_device_types_the_mix_is_the_systems() {
        let mut large = sample::record();
        large.throughput.payload_bytes_per_s *= 100.0;
        assert!(names(&Load::of_run(&sample::record()), &Load::of_run(&large)).is_empty());
    }

    #[test]
    fn what_one_side_lacks_is_not_compared() {
        let experiment = sample_experiment::experiment();
        let mut run = sample::record();
        run.workload.name.clone_from(&experiment.workload);
        run.settings.duration_s = experiment.duration_s;
        let cell = Load::of_cell(&experiment, &experiment.cells[0]);
        assert_eq!(names(&cell, &Load::of_run(&run)), [""; 0]);
        run.workload.scale = 7;
        run.workload.devices = 7;
        assert_eq!(names(&cell, &Load::of_run(&run)), ["scale"]);
    }

    #[test]
    fn cells_of_other_payloads_differ() {
        let mut experiment = sample_experiment::experiment();
        let load = |experiment: &ExperimentRecord| Load::of_cell(experiment, &experiment.cells[0]);
        let before = load(&experiment);
        experiment.cells[0].settings.insert("qos".to_owned(), "2".to_owned());
        assert_eq!(names(&before, &load(&experiment)), [""; 0], "no part of the load");
        for size in ["16B", "64KB"] {
            experiment.cells[0].settings.insert("payload".to_owned(), size.to_owned());
            assert_eq!(names(&before, &load(&experiment)), [""; 0], "an older record lacks it");
        }
        let large = load(&experiment);
        experiment.cells[0].settings.insert("payload".to_owned(), "16B".to_owned());
        assert_eq!(names(&load(&experiment), &large), ["payload"]);
    }
}
