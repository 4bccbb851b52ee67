//! Limits that a run has to keep: those of its specification, or else of its workload.

use pubmark_model::workload::Workload;
use pubmark_record::threshold::{Objectives, ThresholdError, metrics};

use crate::error::RunError;
use crate::spec::RunSpec;
use crate::suggestion;

/// Reads them; `None` where there are none.
pub(crate) fn of(spec: &RunSpec, workload: &Workload) -> Result<Option<Objectives>, RunError> {
    let (text, place) = match &spec.objectives {
        Some(text) => (text.clone(), "`--slo`".to_owned()),
        None if workload.objectives.is_empty() => return Ok(None),
        None => (workload.objectives.join(","), format!("`objectives` of workload `{}`", workload.name)),
    };
    Objectives::parse(&text).map(Some).map_err(|error| unread(&place, &error))
}

/// The error for limits that cannot be read, given in this place.
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
        let found = of(&spec, &workload).map_err(|error| error.chain.join(": "))?;
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
}
