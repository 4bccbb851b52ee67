//! Checks whether a node can start the system of a run.

use pubmark_model::load::{has_keys, names_other_files};
use pubmark_model::workload::Workload;
use pubmark_systems::Definition;

use crate::brokerless;
use crate::error::RunError;
use crate::spec::{RunSpec, WorkloadSource};

/// Refuses a definition that is not built in.
///
/// # Errors
/// The definition is not built in; `node` names what would start it.
pub fn check_system(named: Option<&str>, node: &str) -> Result<(), RunError> {
    match named.filter(|name| !Definition::names().contains(name)) {
        Some(path) => {
            Err(RunError::unsupported(format!("{node} starts built-in systems, not the definition `{path}`"))
                .hint("`pubmark list systems`; or start the system there, and `--endpoint`"))
        }
        None => Ok(()),
    }
}

/// Largest size, in bytes, of the files of sizes that are sent to a node: the limit of its messages is 1 MiB.
const MOST_CONTENTS: usize = 512 << 10;

/// Refuses a workload that names files or environment variables, which are on the coordinator's machine.
///
/// # Errors
/// The workload names some.
pub fn check_workload(spec: &RunSpec) -> Result<(), RunError> {
    let text = match &spec.workload {
        WorkloadSource::Inline { text, .. } => text,
        WorkloadSource::Named(_) => "",
    };
    let settings = || spec.load.set.iter().map(|(path, value)| (path.as_str(), value.as_str()));
    if spec.load.files.values().map(String::len).sum::<usize>() > MOST_CONTENTS {
        return Err(RunError::unsupported(format!(
            "the files of sizes that the workload names have more than {MOST_CONTENTS} bytes, and a node starts the system"
        ))
        .hint("fewer sizes, or a distribution; or leave `--system-node` out"));
    }
    if names_other_files(text, &spec.load.set, &spec.load.files)
        || has_keys(&["password_env", "key_env"], text, settings())
    {
        return Err(RunError::unsupported(
            "the workload names a file or a variable of this machine, and a node starts the system",
        )
        .hint("write log-ins into the workload itself; or leave `--system-node` out"));
    }
    Ok(())
}

/// Refuses a system that a node cannot start: a node starts built-in systems, for clients that reach it over the
/// network.
///
/// # Errors
/// A definition of the user's own, a system without a broker, or links of this machine.
pub fn check(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    let Some(node) = &spec.target.node else { return Ok(()) };
    let named = spec.target.system.as_deref();
    check_system(named, &format!("`{node}`"))?;
    check_workload(&spec.self_contained())?;
    if spec.target.image.is_some() {
        return Err(RunError::unsupported(format!("`--image` is for a system that this machine starts, not `{node}`"))
            .hint("leave it out; or start the system there, and `--endpoint`"));
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
