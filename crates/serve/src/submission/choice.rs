//! A choice of a system.

use pubmark_choose::candidate::{self, Candidate};
use pubmark_choose::record::State;
use pubmark_choose::requirements::Requirements;
use pubmark_experiment::Machines;
use pubmark_record::headline::Kind;
use pubmark_record::threshold::Objectives;
use pubmark_runner::{ErrorKind, Host, RunError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Submission, What, loaded, refused};
use crate::allow::Allow;
use crate::problem::Problem;

/// A choice of a system, as `pubmark choose` makes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoiceSubmission {
    /// What a system must do, and which systems to choose from: the content of `requirements.yaml` (`pubmark schema
    /// requirements`).
    pub choose: Requirements,
}

/// A choice that can be made.
pub struct ChoicePlan {
    /// The requirements, with the text of the workload in place of its path.
    pub requirements: Requirements,
    /// Objectives of each run.
    pub objectives: Objectives,
    /// The candidates, with the reason why one is not run.
    pub candidates: Vec<Candidate>,
}

impl ChoiceSubmission {
    /// Checks permissions and requirements, and prepares the runs of the candidates: at least one can run on this machine.
    pub(super) fn judged(self, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let ChoicePlan { requirements, candidates, .. } = self.planned(allow, host)?;
        let can_run = candidates.iter().filter(|candidate| candidate.runs.is_ok());
        let systems: Vec<String> = can_run.map(|candidate| candidate.label.clone()).collect();
        if systems.is_empty() {
            return Err(nobody_runs(&candidates).into());
        }
        let name = loaded(&requirements.spec())?.name;
        let what = What::Choice(Box::new(requirements));
        Ok(Submission { kind: Kind::Choice, name, systems, what, notes: vec![] })
    }

    /// The plan of the choice for this machine; nothing is started.
    pub(super) fn planned(self, allow: &Allow, host: &Host) -> Result<ChoicePlan, Problem> {
        allow.choice(&self.choose).map_err(refused)?;
        let requirements = self.choose.self_contained();
        let workload = loaded(&requirements.spec())?;
        let objectives = requirements.check(&workload.objectives)?;
        requirements.machines(Machines::default()).check(false)?;
        let candidates = candidate::all(&requirements, host)?;
        Ok(ChoicePlan { requirements, objectives, candidates })
    }
}

/// The reasons of all candidates.
fn nobody_runs(candidates: &[Candidate]) -> RunError {
    let reason = |candidate: &Candidate| {
        let reason = match &candidate.runs {
            Err(State::Excluded { reason } | State::Broken { reason }) => reason.clone(),
            Err(State::Undecided { would_decide }) => would_decide.clone(),
            _ => return None,
        };
        Some(format!("{}: {reason}", candidate.label))
    };
    let reasons: Vec<String> = candidates.iter().filter_map(reason).collect();
    RunError::new(ErrorKind::Unsupported, reasons.join("; "))
        .during("no candidate can be run here")
        .hint("`pubmark list systems` shows what each offers and which are installed")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::allow::Right;

    #[test]
    fn an_address_for_machines_is_refused_where_none_join() {
        let allow = Allow(vec![Right::Endpoints]);
        let read = |machines: &str| {
            let text = format!(
                r#"{{"choose": {{"workload": "hello", "objectives": "loss=0", "candidates": ["builtin"], {machines}}}}}"#
            );
            Submission::read(&text, &allow, &Host::this()).map(drop)
        };
        let refused = read(r#""system_host": "127.0.0.1""#).unwrap_err();
        assert!(refused.body.error.contains("choose.system_host"), "{refused:?}");
        let joined = read(r#""nodes": 2, "system_host": "127.0.0.1""#);
        assert!(joined.err().is_none_or(|refused| !refused.body.error.contains("none is to join")));
    }
}
