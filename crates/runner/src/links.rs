//! Checks whether a run can have the links of its workload.

use pubmark_model::workload::Workload;

use crate::error::RunError;
use crate::spec::{Netem, RunSpec};
use crate::target::CheckedTarget;
use crate::{linked, trunked, workers};
use pubmark_protocols::ProtocolPair;

/// Refuses runs that emulated links cannot carry, before anything starts.
///
/// # Errors
/// Clients that connect to each other without a broker and for which there are no networks or addresses, or options that
/// concern this machine's network.
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
        CheckedTarget::Brokerless { .. } if spec.nodes.nodes.is_some() && !workers::are_needed(protocol_pair) => {
            return refused(
                "behind links of their node, clients that meet without a broker reach those of other nodes from networks of their \
                 own only, and these clients share one",
                "one machine without `--nodes`, a system with a broker, or `--link none`",
            );
        }
        CheckedTarget::Brokerless { definition, .. } if spec.nodes.nodes.is_some() => {
            trunked::check(definition, &protocol_pair.subscribe.capabilities, workload, spec.node_count())?;
        }
        CheckedTarget::Started { definition, options }
            if linked::are_here(spec, workload)
                && linked::are_apart_from_machine()
                && options.runs_in_container(definition) =>
        {
            return refused(
                "without root, links are in a network of their own, which containers cannot join",
                "as root, a system that runs as a program (`pubmark list systems`), or `--link none`",
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

    /// Checks a run of a system without a broker whose clients are behind links.
    fn check(system: &str, change: impl FnOnce(&mut RunSpec)) -> Result<(), RunError> {
        let mut spec = RunSpec::new("hello");
        spec.target.system = Some(system.to_owned());
        (spec.load.links, spec.load.qos) = (vec![LinkChoice::parse("lte").unwrap()], Some(0));
        change(&mut spec);
        spec.check(&Host::this()).map(drop)
    }

    #[test]
    fn clients_without_a_broker_are_behind_links_of_several_machines() {
        for system in ["zeromq-peers", "zenoh-peers", "dds"] {
            let found = check(system, |spec| spec.nodes.nodes = Some(2));
            assert!(found.is_ok(), "{system}: {found:?}");
        }
        let too_many = check("zeromq-peers", |spec| spec.nodes.nodes = Some(512)).unwrap_err().to_string();
        assert!(too_many.contains("at most 511 have addresses"), "{too_many}");
        let by_kernel = check("zenoh-peers", |spec| (spec.nodes.nodes, spec.load.netem) = (Some(2), Netem::Kernel));
        assert!(by_kernel.unwrap_err().to_string().contains("need links to each other"));
    }

    #[test]
    fn a_hint_does_not_lead_to_another_refusal() {
        let processes = check("zeromq-peers", |spec| spec.nodes.local_nodes = Some(2)).unwrap_err();
        assert!(!processes.hint.unwrap().contains("`--nodes`"));
        assert!(check("zeromq-peers", |_| ()).is_ok(), "one process on one machine is what the hint names");
    }
}
