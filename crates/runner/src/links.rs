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
                match protocol_pair.subscribe.capabilities.features.subscribers_listen {
                    true => "one machine without `--nodes`, a system with a broker, or `--link none`",
                    false => "`--local-nodes` in place of `--nodes`, a system with a broker, or `--link none`",
                },
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::link::choice::LinkChoice;

    use super::*;
    use crate::Host;

    /// The hint for a system without a broker whose clients are behind links on several nodes.
    fn hint(system: &str, change: impl FnOnce(&mut RunSpec)) -> String {
        let mut spec = RunSpec::new("hello");
        spec.target.system = Some(system.to_owned());
        (spec.load.links, spec.load.qos) = (vec![LinkChoice::parse("lte").unwrap()], Some(0));
        change(&mut spec);
        spec.check(&Host::this()).map(drop).unwrap_err().hint.unwrap()
    }

    #[test]
    fn a_hint_does_not_lead_to_another_refusal() {
        let machines = hint("zeromq-peers", |spec| spec.nodes.nodes = Some(2));
        assert!(!machines.contains("--local-nodes"), "{machines}");
        let processes = hint("zeromq-peers", |spec| spec.nodes.local_nodes = Some(2));
        assert!(!processes.contains("`--nodes`"), "{processes}");
        let mut spec = RunSpec::new("hello");
        spec.target.system = Some("zeromq-peers".to_owned());
        (spec.load.links, spec.load.qos) = (vec![LinkChoice::parse("lte").unwrap()], Some(0));
        assert!(spec.check(&Host::this()).is_ok(), "one process on one machine is what both hints name");
        // Clients that meet at an address of their network do so in several processes, too.
        let discovered = hint("zenoh-peers", |spec| spec.nodes.nodes = Some(2));
        assert!(discovered.contains("`--local-nodes` in place of `--nodes`"), "{discovered}");
    }
}
