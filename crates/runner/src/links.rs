//! Links of a workload: whether a run can have them.

use pubmark_model::workload::Workload;

use crate::error::RunError;
use crate::spec::{Netem, RunSpec};
use crate::target::Wanted;

/// Refuses what links cannot carry, before anything starts.
///
/// # Errors
/// A system that runs elsewhere, options that speak of this machine's network.
pub fn carried_out(workload: &Workload, wanted: &Wanted, spec: &RunSpec) -> Result<(), RunError> {
    if workload.links_in_use().is_empty() {
        return Ok(());
    }
    let refused = |why: &str, hint: &str| Err(RunError::unsupported(why).hint(hint));
    match wanted {
        Wanted::Started { .. } | Wanted::Brokerless { .. } => {}
        Wanted::External { .. } => {
            return refused(
                "links lead to a system that pubmark starts, not to one that runs already",
                "`--system NAME` in place of `--endpoint`, or `--link none`",
            );
        }
    }
    if spec.load.netem == Netem::Kernel && matches!(wanted, Wanted::Brokerless { .. }) {
        return refused(
            "links by `--netem kernel` lead to a broker, and clients that meet without one need links to each other",
            "leave `--netem kernel` out, or a system with a broker (`pubmark list systems`)",
        );
    }
    if spec.connection.source_addresses.is_some() {
        return refused(
            "`--source-addresses` are this machine's, and links have addresses of their own",
            "leave one out",
        );
    }
    Ok(())
}
