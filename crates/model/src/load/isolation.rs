//! Groups that run in separate processes because the run requires it.

use std::collections::BTreeSet;

use super::{LoadError, suggest};
use crate::workload::Workload;

/// Name that stands for every group.
pub const ALL: &str = "all";

/// Isolates the named groups in a process each: groups of devices, subscribers, requesters or responders, or the clients
/// that groups share.
///
/// # Errors
/// A group that does not exist.
pub(super) fn apply(workload: &mut Workload, names: &[String]) -> Result<(), LoadError> {
    for name in names {
        let is_meant =
            |group: &str, client: Option<&str>| name == ALL || group == name || client == Some(name.as_str());
        let mut is_there = false;
        for group in workload.devices.iter_mut().filter(|group| is_meant(&group.name, group.client.as_deref())) {
            group.isolate = true;
            is_there = true;
        }
        for group in workload.subscribers.iter_mut().filter(|group| is_meant(&group.name, group.client.as_deref())) {
            group.isolate = true;
            is_there = true;
        }
        if !is_there {
            let devices = workload.devices.iter().map(|group| (&group.name, &group.client));
            let subscribers = workload.subscribers.iter().map(|group| (&group.name, &group.client));
            let names = devices.chain(subscribers).flat_map(|(name, client)| [Some(name.as_str()), client.as_deref()]);
            let known: BTreeSet<&str> = names.flatten().chain([ALL]).collect();
            return Err(LoadError::Group {
                message: format!("there is no group `{name}` to have a process of its own"),
                hint: suggest::among(name, &Vec::from_iter(known)),
            });
        }
    }
    Ok(())
}
