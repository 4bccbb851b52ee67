//! Limits that a run has to meet: those of its specification, or else of its workload.

use pubmark_model::metric::MetricProgram;
use pubmark_model::workload::Workload;
use pubmark_record::threshold::{Limited, Objectives, ThresholdError, metrics};
use pubmark_record::unit;

use crate::error::RunError;
use crate::spec::RunSpec;
use crate::suggestion;

/// Parses the limits; `None` if there are none.
pub(crate) fn of(spec: &RunSpec, workload: &Workload, own: &[MetricProgram]) -> Result<Option<Objectives>, RunError> {
    let (text, place) = match &spec.objectives {
        Some(text) => (text.clone(), "`--slo`".to_owned()),
        None if workload.objectives.is_empty() => return Ok(None),
        None => (workload.objectives.join(","), format!("`objectives` of workload `{}`", workload.name)),
    };
    let objectives = Objectives::parse(&text).map_err(|error| unread(&place, &error))?;
    for clause in objectives.clauses() {
        declared(&clause.metric, &clause.text, own).map_err(|error| error.during(format!("failed to read {place}")))?;
    }
    Ok(Some(objectives))
}

/// Checks that a metric of the user's own is declared, and that its unit fits the limit.
fn declared(metric: &Limited, limit: &str, own: &[MetricProgram]) -> Result<(), RunError> {
    let (Some(name), Limited::Custom { symbol, .. }) = (metric.custom_name(), metric) else { return Ok(()) };
    let Some(found) = own.iter().find(|declared| declared.name == name) else {
        let hint = match own {
            [] => format!("declare it: `--metric '{name}=COMMAND'`, or `metrics:` in the workload"),
            own => suggestion::choices(name, own.iter().map(|declared| declared.name.as_str())),
        };
        return Err(RunError::input(format!("there is no metric `{name}` for the limit `{limit}`")).hint(hint));
    };
    match unit::worth(&found.unit, symbol) {
        Some(_) => Ok(()),
        None if found.unit.is_empty() => {
            Err(RunError::input(format!("`{name}` is declared without a unit, and `{limit}` has one"))
                .hint(format!("declare it: `--metric '{name}:{symbol}=…'`, or leave the unit out of the limit")))
        }
        None => Err(RunError::input(format!("`{name}` counts in {}, and `{limit}` does not", found.unit))
            .hint("write the limit in the unit of the metric")),
    }
}

/// The error for limits that cannot be parsed; `place` says where they were given.
pub fn unread(place: &str, error: &ThresholdError) -> RunError {
    let hint = match &error.unknown_name {
        Some(name) => suggestion::choices(name, metrics::names()),
        None => error.hint.clone(),
    };
    RunError::input(format!("{}\n{}", error.message, error.drawing()))
        .during(format!("failed to read {place}"))
        .hint(hint)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn limits(slo: Option<&str>, own: &[&str]) -> Result<Vec<String>, String> {
        let mut spec = RunSpec::new("hello");
        let mut workload = spec.load().unwrap();
        workload.objectives = own.iter().map(|limit| (*limit).to_owned()).collect();
        spec.objectives = slo.map(str::to_owned);
        let found = of(&spec, &workload, &[]).map_err(|error| error.chain.join(": "))?;
        Ok(found.iter().flat_map(|found| found.clauses()).map(|clause| clause.text.clone()).collect())
    }

    #[test]
    fn the_specification_goes_before_the_workload() {
        assert!(limits(None, &[]).unwrap().is_empty());
        assert_eq!(limits(None, &["p99 < 50ms", "loss=0"]).unwrap(), ["p99 < 50ms", "loss=0"]);
        assert_eq!(limits(Some("max<1s"), &["p99 < 50ms"]).unwrap(), ["max<1s"]);
        assert!(
            limits(None, &["p98<1s"])
                .unwrap_err()
                .starts_with("failed to read `objectives` of workload `hello`: there is no figure")
        );
        assert!(limits(Some("p99"), &[]).unwrap_err().starts_with("failed to read `--slo`"));
    }

    #[test]
    fn a_metric_of_the_users_own_is_declared_in_the_unit_of_its_limit() {
        let own =
            [crate::custom_metrics::read("jitter:ms=true").unwrap(), crate::custom_metrics::read("hops=true").unwrap()];
        let refused = |limit: &str| {
            let mut spec = RunSpec::new("hello");
            spec.objectives = Some(limit.to_owned());
            of(&spec, &spec.load().unwrap(), &own).map_err(|error| error.to_string()).err()
        };
        for limit in ["custom.jitter<2ms", "custom.jitter<0.002s", "custom.jitter<2", "custom.hops<=3,p99<1s"] {
            assert_eq!(refused(limit), None, "{limit}");
        }
        for (limit, words) in [
            ("custom.jiter<2ms", "there is no metric `jiter`"),
            ("custom.jitter<2kB", "counts in ms"),
            ("custom.hops<3ms", "is declared without a unit"),
        ] {
            assert!(refused(limit).unwrap().contains(words), "{limit}: {:?}", refused(limit));
        }
    }
}
