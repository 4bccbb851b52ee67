//! Whether a node can start the system of a run.

use pubmark_model::workload::Workload;
use pubmark_systems::Definition;

use crate::brokerless;
use crate::error::RunError;
use crate::spec::RunSpec;

/// Refuses what a node cannot start: it starts what is built in, for clients that reach it over the network.
///
/// # Errors
/// A definition of the user's own, a system without a broker, links of this machine.
pub fn check(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    let Some(node) = &spec.target.node else { return Ok(()) };
    let named = spec.target.system.as_deref();
    if let Some(path) = named.filter(|name| !Definition::names().contains(name)) {
        return Err(RunError::unsupported(format!("`{node}` starts built-in systems, not the definition `{path}`"))
            .hint("`pubmark list systems`; or start the system there, and `--endpoint`"));
    }
    if named.is_some_and(|name| Definition::load(name).is_ok_and(|found| brokerless::has_no_broker(&found))) {
        return Err(RunError::unsupported(format!(
            "there is no broker that `{node}` could start: clients meet without one"
        ))
        .hint("leave `--system-node` out, or a system with a broker (`pubmark list systems`)"));
    }
    if spec.nodes.nodes.is_none() && !workload.links_in_use().is_empty() {
        return Err(RunError::unsupported("links of this machine lead to a system of this machine, or to an endpoint")
            .hint("`--nodes`, whose nodes make the links of their clients; or `--link none`"));
    }
    Ok(())
}
