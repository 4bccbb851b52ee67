//! Checks whether a run can have the links of its workload.

use pubmark_model::workload::Workload;

use crate::error::RunError;
use crate::spec::{Netem, RunSpec};
use crate::target::CheckedTarget;
use pubmark_protocols::ProtocolPair;

/// Refuses runs that emulated links cannot carry, before anything starts.
///
/// # Errors
/// Clients that connect to each other without a broker on other machines, or options that concern this machine's
/// network.
pub fn validate(
    workload: &Workload,
    wanted: &CheckedTarget,
    protocol_pair: ProtocolPair,
    spec: &RunSpec,
) -> Result<(), RunError> {
    if workload.links_in_use().is_empty() {
        return Ok(());
    }
    let refused = |why: &str, hint: &str| Err(RunError::unsupported(why).hint(hint));
    match wanted {
        CheckedTarget::External { .. } if protocol_pair.is_brokerless() => {
            return refused(
                "links lead to one endpoint, and clients that meet without a broker connect to each other",
                "`--system NAME` in place of `--endpoint`, a protocol with a broker, or `--link none`",
            );
        }
        CheckedTarget::Brokerless { .. } if spec.nodes.nodes.is_some() => {
            return refused(
                "behind links of their node, clients that meet without a broker do not reach those of other nodes",
                "`--local-nodes` in place of `--nodes`, a system with a broker, or `--link none`",
            );
        }
        CheckedTarget::Started { .. } | CheckedTarget::Brokerless { .. } | CheckedTarget::External { .. } => {}
    }
    if spec.load.netem == Netem::Kernel && matches!(wanted, CheckedTarget::Brokerless { .. }) {
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
