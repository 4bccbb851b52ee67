//! The selection of a publication's experiments and of values of their axes.

use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::{Changes, Experiment, OnlyError, axis_and_values};
use pubmark_runner::{RunError, suggestion};

use crate::definition::Paper;

/// A selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Lengths and repetitions, instead of the experiments' own.
    pub changes: Changes,
    /// Names of experiments; all experiments if empty.
    pub experiments: Vec<String>,
    /// Values of axes, for every experiment that has the axis. An experiment that has none of the values is left out.
    pub values: Vec<(String, String)>,
}

impl Selection {
    /// Adds what one `--only` names: experiments, separated by commas, or an axis with its values.
    ///
    /// # Errors
    /// The text has an `=` and not both of its parts; the error says what to write.
    pub fn add(&mut self, only: &str) -> Result<(), String> {
        match only.contains('=') {
            true => self.values.push(axis_and_values(only)?),
            false => self.experiments.extend(only.split(',').map(|name| name.trim().to_owned())),
        }
        Ok(())
    }

    /// The selected experiments of a publication, each with the selected values only, and with its own warm-up if none is given.
    ///
    /// # Errors
    /// The selection names an experiment, an axis or a value that no experiment has, or it selects nothing.
    pub fn of(&self, paper: &Paper) -> Result<Vec<Experiment>, RunError> {
        let all = paper.experiments();
        if let Some(wrong) = self.experiments.iter().find(|name| !all.contains(&name.as_str())) {
            return Err(RunError::input(format!("`--only`: `{wrong}` is no experiment of `{}`", paper.name))
                .hint(suggestion::choices(wrong, all)));
        }
        let is_meant = |name: &&str| self.experiments.is_empty() || self.experiments.iter().any(|one| one == name);
        let mut left = all
            .into_iter()
            .filter(is_meant)
            .map(|name| Ok(definition::load(name)?.experiment.changed(&self.changes)))
            .collect::<Result<Vec<Experiment>, RunError>>()?;
        for (axis, values) in &self.values {
            left = narrowed(left, axis, values)?;
        }
        match left.is_empty() {
            true => Err(RunError::input(format!("`--only` leaves no experiment of `{}`", paper.name))
                .hint("leave one `--only` out; `--dry-run` without them shows what there is")),
            false => Ok(left),
        }
    }
}

/// Limits an axis to some values. An experiment without the axis does not change; one with none of the values is removed.
fn narrowed(experiments: Vec<Experiment>, axis: &str, values: &str) -> Result<Vec<Experiment>, RunError> {
    if let Some(error) = unknown_value(&experiments, axis, values) {
        return Err(error);
    }
    let (mut left, mut with_value) = (vec![], 0);
    let mut axes: Vec<String> = vec![];
    for experiment in experiments {
        match with_values(&experiment, axis, values) {
            Ok(narrower) => {
                with_value += 1;
                left.push(narrower);
            }
            Err(OnlyError::NoAxis { axes: found, .. }) => {
                axes.extend(found);
                left.push(experiment);
            }
            Err(OnlyError::NoValue { .. }) => {}
        }
    }
    if with_value > 0 {
        return Ok(left);
    }
    axes.sort();
    axes.dedup();
    Err(RunError::input(format!("`--only`: no experiment has the axis `{axis}`"))
        .hint(suggestion::choices(axis, axes.iter().map(String::as_str))))
}

/// The error for one of the comma-separated values that is in no experiment with this axis, if there is one.
fn unknown_value(experiments: &[Experiment], axis: &str, values: &str) -> Option<RunError> {
    let limited = |value: &str| -> Vec<Result<Experiment, OnlyError>> {
        experiments.iter().map(|experiment| experiment.clone().only(axis, value)).collect()
    };
    // A value may contain a comma itself.
    let is_known = |value: &str| limited(value).iter().any(Result::is_ok);
    let wrong = Some(values).filter(|values| !is_known(values))?.split(',').find(|value| !is_known(value))?;
    let mut known: Vec<String> = vec![];
    for found in limited(wrong) {
        if let Err(OnlyError::NoValue { values, .. }) = found {
            known.extend(values);
        }
    }
    known.sort();
    known.dedup();
    let choices = suggestion::choices(wrong, known.iter().map(String::as_str));
    let error = RunError::input(format!("`--only`: no experiment has `{wrong}` on the axis `{axis}`")).hint(choices);
    // Without known values, no experiment has the axis.
    (!known.is_empty()).then_some(error)
}

/// The experiment, limited to those of the comma-separated values that it has; `NoValue` if it has none of them.
fn with_values(experiment: &Experiment, axis: &str, values: &str) -> Result<Experiment, OnlyError> {
    let found = experiment.clone().only(axis, values);
    if !matches!(found, Err(OnlyError::NoValue { .. })) {
        return found;
    }
    let has = |value: &&str| experiment.clone().only(axis, value).is_ok();
    let present: Vec<&str> = values.split(',').filter(has).collect();
    if present.is_empty() { found } else { experiment.clone().only(axis, &present.join(",")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::experiment::cells;

    use super::*;
    use crate::definition::find;

    fn of(experiments: &[&str], values: &[(&str, &str)]) -> Result<Vec<Experiment>, RunError> {
        let selection = Selection {
            experiments: experiments.iter().map(|name| (*name).to_owned()).collect(),
            values: values.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect(),
            ..Selection::default()
        };
        selection.of(&find("combench").unwrap())
    }

    #[test]
    fn an_only_names_experiments_or_an_axis_with_its_values() {
        let mut selection = Selection::default();
        for only in ["edge-pi, edge-vm", " system = nats,mosquitto "] {
            selection.add(only).unwrap();
        }
        assert_eq!(selection.experiments, ["edge-pi", "edge-vm"]);
        assert_eq!(selection.values, [("system".to_owned(), "nats,mosquitto".to_owned())]);
        assert!(selection.add("system=").unwrap_err().starts_with("write an axis and its values"));
    }

    #[test]
    fn values_are_left_where_an_experiment_has_the_axis() {
        let all = of(&[], &[]).unwrap();
        let some = of(&["combench-efficiency-qos", "combench-resilience"], &[("qos", "0,1")]).unwrap();
        assert!(all.len() > 2 && some.len() == 2);
        let qos = some.iter().find(|one| one.name == "combench-efficiency-qos").unwrap();
        assert_eq!(cells(qos).len(), 28);
        // Only one AMQP experiment has this size.
        let large = of(&[], &[("payload", "10000B")]).unwrap();
        assert!(large.iter().any(|one| one.name == "combench-efficiency-qos"));
        assert!(large.iter().all(|one| one.name != "combench-efficiency"));
    }

    #[test]
    fn an_unknown_value_is_refused_with_the_known_ones() {
        let wrong = of(&["combench-losses"], &[]).unwrap_err();
        assert!(wrong.hint.as_deref().is_some_and(|hint| hint.contains("combench-loss")), "{wrong:?}");
        let wrong = of(&[], &[("payloads", "1KB")]).unwrap_err();
        assert!(wrong.hint.as_deref().is_some_and(|hint| hint.contains("payload")), "{wrong:?}");
        let wrong = of(&["combench-efficiency-qos"], &[("qos", "0,7")]).unwrap_err();
        assert!(wrong.chain[0].contains("`7`"), "{wrong:?}");
        let wrong = of(&[], &[("payload", "10001B")]).unwrap_err();
        assert!(wrong.to_string().contains("10001B"), "{wrong}");
    }
}
