//! Combinations: every value of every axis with every value of the other axes.

use std::collections::{BTreeMap, BTreeSet};

use super::axes::{AXES, Settings, Value, axis_words, setting_values};
use super::definition::Experiment;

/// Values of an axis as they are displayed, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisValues {
    /// `system`, `qos`, …, or `set.KEY`.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Unique identifier, safe as a file name; unchanged as long as the cell's values are.
    pub id: String,
    /// Text that distinguishes the cell from the others, for people.
    pub label: String,
    /// Value of the cell on every given axis.
    pub values: BTreeMap<String, String>,
    /// Settings for the runs of the cell.
    pub settings: Settings,
}

/// The given axes, in order; `system` is always among them.
pub fn axes(experiment: &Experiment) -> Vec<AxisValues> {
    dimensions(experiment)
        .into_iter()
        .map(|dimension| AxisValues {
            name: dimension.name,
            values: dimension.values.into_iter().map(|value| value.shown).collect(),
        })
        .collect()
}

struct Dimension {
    name: String,
    values: Vec<Value>,
}

/// All axes with values; the ones that vary slowest come first.
fn dimensions(experiment: &Experiment) -> Vec<Dimension> {
    let given = &experiment.axes;
    let rows = AXES.iter().map(|row| Dimension { name: row.name.to_owned(), values: (row.values)(given) });
    let settings = given
        .set
        .iter()
        .map(|(key, values)| Dimension { name: format!("set.{key}"), values: setting_values(key.clone(), values) });
    rows.chain(settings).filter(|dimension| !dimension.values.is_empty()).collect()
}

/// Number of combinations of all axes.
pub(super) fn combinations(experiment: &Experiment) -> u64 {
    axes(experiment).iter().fold(1, |cells, axis| cells.saturating_mul(axis.values.len() as u64))
}

/// Every combination, in order of the axes, the last varying fastest.
pub fn cells(experiment: &Experiment) -> Vec<PlannedCell> {
    let dimensions = dimensions(experiment);
    let untouched = Settings::unchanged(&experiment.workload, &experiment.set);
    let count: usize = dimensions.iter().map(|dimension| dimension.values.len()).product();
    let mut ids = BTreeSet::new();
    (0..count)
        .map(|number| {
            let mut settings = untouched.clone();
            let mut chosen: Vec<(&Dimension, &Value)> = vec![];
            let mut rest = number;
            for dimension in dimensions.iter().rev() {
                chosen.push((dimension, &dimension.values[rest % dimension.values.len()]));
                rest /= dimension.values.len();
            }
            chosen.reverse();
            chosen.iter().for_each(|(_, value)| (value.change)(&mut settings));
            PlannedCell {
                id: unique(&mut ids, &id(&chosen)),
                label: label(&chosen),
                values: chosen.iter().map(|(axis, value)| (axis.name.clone(), value.shown.clone())).collect(),
                settings,
            }
        })
        .collect()
}

/// The system, and every other axis with more than one value; with the axis name where the value alone is not clear.
fn distinguishing<'a>(chosen: &'a [(&'a Dimension, &'a Value)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    chosen
        .iter()
        .enumerate()
        .filter(|(position, (axis, _))| *position == 0 || axis.values.len() > 1)
        .map(|(_, (axis, value))| (axis.name.as_str(), value.shown.as_str()))
}

/// Maximum length of an id: with the number of a repetition it must still be a valid file name.
const LONGEST_ID: usize = 120;

fn id(chosen: &[(&Dimension, &Value)]) -> String {
    let words: Vec<String> = distinguishing(chosen)
        .map(|(axis, value)| match axis {
            "system" | "workload" | "protocol" | "profile" => value.to_owned(),
            axis => format!("{}-{value}", axis.strip_prefix("set.").unwrap_or(axis)),
        })
        .collect();
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let mut id: String = words.join("_").chars().map(safe).collect();
    id.truncate(LONGEST_ID);
    id
}

fn unique(taken: &mut BTreeSet<String>, id: &str) -> String {
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    let free = std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken.contains(id));
    let free = free.expect("the numbers do not end before the ids taken");
    taken.insert(free.clone());
    free
}

fn label(chosen: &[(&Dimension, &Value)]) -> String {
    distinguishing(chosen).map(|(axis, value)| axis_words(axis, value)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::parse;

    fn experiment(axes: &str) -> Experiment {
        let text = format!("{{name: test, workload: hello, set: {{every: 1s}}, axes: {{{axes}}}}}");
        parse("test.yaml", &text, &|_, _| Ok(())).unwrap()
    }

    #[test]
    fn every_combination_is_a_cell_of_its_own() {
        let found = cells(&experiment("system: [a, b], qos: [0, 2], scale: 10, set: {size: [1KB, 2KB]}"));
        let ids: Vec<&str> = found.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids[..3], ["a_qos-0_size-1KB", "a_qos-0_size-2KB", "a_qos-2_size-1KB"]);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 8);
        assert_eq!(found[1].label, "a, QoS 0, size 2KB");
        assert_eq!(found[7].settings.qos, Some(2));
        assert_eq!(found[7].settings.scale, 10);
        let set: Vec<(&str, &str)> = found[7].settings.set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(set, [("every", "1s"), ("size", "2KB")]);
        assert_eq!(found[0].values["scale"], "10");
    }

    #[test]
    fn settings_of_a_system_stay_with_it() {
        let axes = "system: [{system: a, label: tuned a, profile: tuned, topology: 3:bridge, limit: cpu=1}, a]";
        let found = cells(&experiment(axes));
        assert_eq!(found[0].id, "tuned-a");
        assert_eq!(found[0].settings.topology.brokers, 3);
        assert_eq!(found[0].settings.limit.as_deref(), Some("cpu=1"));
        assert_eq!((found[1].settings.profile.as_deref(), found[1].settings.limit.as_deref()), (None, None));
    }

    #[test]
    fn ids_with_the_same_file_name_are_distinguished() {
        let found = cells(&experiment("system: [{system: a, label: x y}, {system: a, label: x-y}]"));
        assert_eq!((found[0].id.as_str(), found[1].id.as_str()), ("x-y", "x-y-2"));
    }

    #[test]
    fn clients_are_an_axis_by_their_labels() {
        let found = cells(&experiment("system: a, client: [pubmark, 'paho=python3 client.py', './own a=b', rustdds]"));
        let found_labels: Vec<_> =
            found.iter().map(|cell| (cell.label.as_str(), cell.settings.client.as_deref())).collect();
        let expected = [
            ("a, pubmark", None),
            ("a, paho", Some("python3 client.py")),
            ("a, ./own a=b", Some("./own a=b")),
            ("a, rustdds", Some("rustdds")),
        ];
        assert_eq!(found_labels, expected);
    }

    #[test]
    fn tls_is_an_axis_or_a_system_s_own() {
        let found = cells(&experiment("system: a, tls: [false, true]"));
        let found_labels: Vec<_> =
            found.iter().map(|cell| (cell.label.as_str(), cell.id.as_str(), cell.settings.tls)).collect();
        assert_eq!(found_labels, [("a, no TLS", "a_tls-false", false), ("a, TLS", "a_tls-true", true)]);
        let found = cells(&experiment("system: [a, {system: a, label: secured, tls: true}]"));
        assert_eq!(found.iter().map(|cell| cell.settings.tls).collect::<Vec<_>>(), [false, true]);
        for (axes, why) in [
            ("system: a, tls: maybe", "neither `true` nor `false`"),
            ("system: {system: a, tls: true}, tls: [false, true]", "by a system and by an axis"),
            ("system: a, tls: [true, true]", "given twice"),
            ("system: a, client: [\"a=x y\", \"a=z w\"]", "`a` is given twice"),
        ] {
            let text = format!("{{name: test, workload: hello, axes: {{{axes}}}}}");
            let error = parse("test.yaml", &text, &|_, _| Ok(())).unwrap_err().to_string();
            assert!(error.contains(why), "{axes}: {error}");
        }
    }

    #[test]
    fn no_limit_is_a_value_like_others() {
        let found = cells(&experiment("system: a, limit: [none, \"cpu=0.5,memory=256MB\"], topology: [1, 5:shard]"));
        let labels: Vec<&str> = found.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(labels[..2], ["a, 1 broker, no limit", "a, 1 broker, cpu=0.5,memory=256MB"]);
        assert_eq!(labels[2], "a, 5 shards, no limit");
        assert_eq!(found[0].settings.limit, None);
        assert_eq!(found[1].id, "a_topology-1_limit-cpu-0.5-memory-256MB");
    }
}
