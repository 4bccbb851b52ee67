//! Links of a choice for a user without root privileges: the runs of all candidates are in one user namespace.

use pubmark_model::workload::Workload;
use pubmark_runner::{Host, RunError, RunSpec};

use crate::requirements::{CandidateSpec, Requirements};

/// Lets a user without root privileges create the links of all runs, as [`RunSpec::claim_links`] does for one run. Call it before any
/// thread is started; it does nothing for root, and without links that this machine creates. `workload` is that of the requirements.
///
/// # Errors
/// Those of [`RunSpec::claim_links`].
pub fn claim(requirements: &Requirements, workload: &Workload, host: Host) -> Result<Host, RunError> {
    claiming(requirements).claim_links(workload, host)
}

/// The run that claims the links for all candidates, which have one workload: one to an endpoint, if a candidate has one, because that
/// starts the relay as well.
fn claiming(requirements: &Requirements) -> RunSpec {
    let mut spec = requirements.spec();
    spec.target.endpoint =
        requirements.candidates.iter().map(CandidateSpec::settings).find_map(|settings| settings.endpoint);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirements::CandidateSettings;

    #[test]
    fn the_run_that_claims_the_links_is_to_an_endpoint_if_a_candidate_has_one() {
        let url = "mqtt://127.0.0.1:9".to_owned();
        let named = |name: &str| CandidateSpec::Name(name.to_owned());
        let with_settings =
            CandidateSpec::Settings(CandidateSettings { endpoint: Some(url.clone()), ..CandidateSettings::default() });
        let claimed = |candidates: &[CandidateSpec]| {
            let requirements = Requirements { candidates: candidates.to_vec(), ..Requirements::new("hello") };
            claiming(&requirements).target.endpoint
        };
        assert_eq!(claimed(&[]), None);
        assert_eq!(claimed(&[named("builtin")]), None);
        assert_eq!(claimed(&[named("builtin"), named(&url)]), Some(url.clone()));
        assert_eq!(claimed(&[named("builtin"), with_settings]), Some(url));
    }
}
