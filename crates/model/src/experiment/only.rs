//! A part of an experiment: some values of an axis instead of all, for instance only one system or one size.

use super::axes::{AXES, retain};
use super::cells::{AxisValues, axes};
use super::definition::Experiment;

/// Reason why the values cannot be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnlyError {
    /// The experiment does not vary this.
    NoAxis {
        /// The requested axis.
        wrong: String,
        /// The axes of the experiment.
        axes: Vec<String>,
    },
    /// The axis has no such value.
    NoValue {
        /// The axis.
        axis: String,
        /// The requested value.
        wrong: String,
        /// The values of the axis.
        values: Vec<String>,
    },
}

/// Splits `AXIS=VALUES` into its two parts.
///
/// # Errors
/// A part is missing; the text says what to write.
pub fn axis_and_values(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((axis, values)) if !axis.trim().is_empty() && !values.trim().is_empty() => {
            Ok((axis.trim().to_owned(), values.trim().to_owned()))
        }
        _ => Err("write an axis and its values, such as `system=mosquitto,nats`".to_owned()),
    }
}

impl Experiment {
    /// The experiment with only these values of an axis, and with the publications' figures that belong to them. `values`
    /// is one value, or several separated by commas; a value that contains a comma (`cpu=0.5,memory=256MB`) must be the
    /// only one. A setting of the workload is found with or without its `set.`; case is ignored.
    pub fn only(mut self, axis: &str, values: &str) -> Result<Experiment, OnlyError> {
        let given = axes(&self);
        let set_axis = format!("set.{axis}");
        let found = given.iter().find(|known| known.name == axis).or(given.iter().find(|known| known.name == set_axis));
        let Some(found) = found else {
            let axes = given.into_iter().map(|known| known.name).collect();
            return Err(OnlyError::NoAxis { wrong: axis.to_owned(), axes });
        };
        let values = values.trim();
        // Case is ignored: a system is `Mosquitto` in one experiment and `mosquitto` in another.
        let requested: Vec<&str> = match found.values.iter().any(|known| known.eq_ignore_ascii_case(values)) {
            true => vec![values],
            false => values.split(',').map(str::trim).collect(),
        };
        if let Some(wrong) =
            requested.iter().find(|requested| !found.values.iter().any(|known| known.eq_ignore_ascii_case(requested)))
        {
            let (axis, values) = (found.name.clone(), found.values.clone());
            return Err(OnlyError::NoValue { axis, wrong: (*wrong).to_owned(), values });
        }
        let is_requested = |value: &str| requested.iter().any(|requested| value.eq_ignore_ascii_case(requested));
        self.retain_values(found, is_requested);
        Ok(self)
    }

    /// The experiment with those values of its axes that one of several selections from it has, and with the publications'
    /// figures that belong to them.
    #[must_use]
    pub fn with_values_of(mut self, selections: &[&Experiment]) -> Experiment {
        let selected: Vec<AxisValues> = selections.iter().flat_map(|selection| axes(selection)).collect();
        for axis in axes(&self) {
            let own = || selected.iter().filter(|other| other.name == axis.name);
            self.retain_values(&axis, |value| own().any(|other| other.values.iter().any(|known| known == value)));
        }
        self
    }

    /// Limits an axis to some of its values.
    fn retain_values(&mut self, axis: &AxisValues, is_selected: impl Fn(&str) -> bool) {
        let positions: Vec<bool> = axis.values.iter().map(|value| is_selected(value)).collect();
        match AXES.iter().find(|row| row.name == axis.name) {
            Some(row) => (row.retain)(&mut self.axes, &positions),
            None => {
                let setting = self.axes.set.iter_mut().filter(|(key, _)| axis.name == format!("set.{key}"));
                setting.for_each(|(_, values)| retain(values, &positions));
            }
        }
        for paper in &mut self.papers {
            if let Some(column) = paper.columns.iter().position(|column| *column == axis.name) {
                paper.rows.retain(|row| is_selected(&row.at[column]));
            }
        }
        self.papers.retain(|paper| !paper.rows.is_empty());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::{all, cells, parse};

    const TEXT: &str = "name: t\nworkload: hello\naxes: {system: [a, b], payload: [1KB, 1MB], limit: [none, \"cpu=0.5,memory=256MB\"], set: {every: [1s, 2s]}}\n\
        papers: [{source: s, figure: latency p50, columns: [system, payload], values: [[a, 1KB, 3ms], [b, 1KB, 4ms]]}]\n";

    fn only(axis: &str, values: &str) -> Result<Experiment, OnlyError> {
        parse("t.yaml", TEXT, &|_, _| Ok(())).unwrap().only(axis, values)
    }

    #[test]
    fn selected_values_stay_with_their_figures() {
        let found = only("system", "b").unwrap();
        assert_eq!(cells(&found).len(), 8);
        assert_eq!(found.papers[0].rows.len(), 1);
        assert_eq!(found.papers[0].rows[0].written, "4ms");
        assert_eq!(parse("t.yaml", &found.to_yaml(), &|_, _| Ok(())).unwrap(), found, "its file says the same");
        assert!(only("payload", "1MB").unwrap().papers.is_empty());
        assert_eq!(cells(&only("system", "a, B").unwrap()).len(), 16);
    }

    #[test]
    fn several_selections_together_have_the_values_of_each() {
        let whole = parse("t.yaml", TEXT, &|_, _| Ok(())).unwrap();
        let (large, small) = (only("payload", "1MB").unwrap(), only("payload", "1KB").unwrap());
        assert_eq!(whole.clone().with_values_of(&[&large, &small]), whole, "in the order of the whole");
        assert_eq!(whole.clone().with_values_of(&[&large]), large);
        let limited = only("limit", "cpu=0.5,memory=256MB").unwrap().only("every", "2s").unwrap();
        assert_eq!(whole.with_values_of(&[&limited]), limited, "with a comma, and of a setting");
    }

    #[test]
    fn a_value_with_a_comma_and_a_setting_are_found() {
        assert_eq!(cells(&only("limit", "cpu=0.5,memory=256MB").unwrap()).len(), 8);
        assert_eq!(cells(&only("every", "2s").unwrap()).len(), 8);
        assert_eq!(cells(&only("set.every", "2s").unwrap()).len(), 8);
    }

    #[test]
    fn a_setting_that_is_not_varied_is_refused_by_name() {
        assert!(
            matches!(only("qos", "1"), Err(OnlyError::NoAxis { wrong, axes }) if wrong == "qos" && axes.len() == 4)
        );
        assert!(
            matches!(only("system", "a,c"), Err(OnlyError::NoValue { wrong, values, .. }) if wrong == "c" && values == ["a", "b"])
        );
        assert!(only("system", "").is_err());
    }

    #[test]
    fn every_axis_of_every_built_in_experiment_can_be_cut_down_to_its_last_value() {
        for listed in all().unwrap() {
            for axis in axes(&listed.experiment) {
                let last = axis.values.last().unwrap();
                let found = listed.experiment.clone().only(&axis.name, last).unwrap();
                let of_it = |known: &crate::experiment::AxisValues| known.name == axis.name;
                assert_eq!(axes(&found).into_iter().find(of_it).unwrap().values, [last.as_str()], "{}", listed.name);
            }
        }
    }
}
