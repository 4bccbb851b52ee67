//! Checks whether this machine has enough open files, ports and memory for a fleet.

use pubmark_model::fleet::ClientCounts;
use pubmark_model::plan::{Plan, PlanOptions};
use pubmark_model::workload::Workload;
use pubmark_systems::{descriptors, environment};

use crate::error::{ErrorKind, RunError};
use crate::spec::RunSpec;
use crate::target::CheckedTarget;
use crate::{linked, sources};

/// File descriptors that pubmark needs in addition to its connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Checks open files and ports for these clients. `available` is called with the number of required open files and
/// returns the limit.
pub fn check(
    spec: &RunSpec,
    workload: &Workload,
    clients: ClientCounts,
    wanted: &CheckedTarget,
    available: fn(u64) -> Result<u64, RunError>,
) -> Result<(), RunError> {
    let is_relayed = matches!(wanted, CheckedTarget::External { .. }) && linked::are_here(spec, workload);
    let sockets = wanted.sockets(clients).div_ceil(spec.node_count().into());
    // The relay to a system that already runs is a separate process, with two descriptors for each connection.
    let sockets = if is_relayed { 2 * sockets } else { sockets };
    let needed = sockets + OTHER_DESCRIPTORS;
    let limit = available(needed)?;
    if needed > limit {
        return Err(RunError::new(
            ErrorKind::TooLarge,
            format!("{sockets} connections need {needed} open files, the limit is {limit}"),
        )
        .hint(format!("`ulimit -Hn {needed}` as root, or fewer devices")));
    }
    sources::check_ports(spec.connection.source_addresses.as_ref(), sources::connections_to_one(clients, wanted))
}

/// Raises the limit of open files to the required number, or as far as this process may.
pub fn raise_descriptors(needed: u64) -> Result<u64, RunError> {
    descriptors::raise_for(needed).map(|limit| limit.soft).map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to raise the limit of open files")
    })
}

/// The value to which the limit of open files could be raised.
pub fn look_at_descriptors(_needed: u64) -> Result<u64, RunError> {
    descriptors::reachable().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to read the limit of open files")
    })
}

/// Refuses a run that needs more than the total memory of this machine, by an estimate of the generator's memory;
/// `--dry-run` is stricter.
pub fn check_memory(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    let (nodes, labels, duration) = (spec.node_count(), spec.node_labels(), spec.window.duration);
    let options = PlanOptions { nodes, labels, duration, ..PlanOptions::default() };
    let needed = Plan::new(workload, &options).node.generator_bytes;
    let Some(memory) = environment::memory_bytes().filter(|memory| needed > *memory) else { return Ok(()) };
    let [needed, memory] = [needed, memory].map(|bytes| bytes.div_ceil(1 << 20));
    Err(RunError::new(
        ErrorKind::TooLarge,
        format!("the generator needs about {needed} MiB of memory, this machine has {memory} MiB"),
    )
    .hint("use fewer devices, or more machines"))
}
