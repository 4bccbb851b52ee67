//! Validates the placements of a workload, as far as this does not depend on the nodes of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEFAULT, DEVICES, Placement, Placements, SUBSCRIBERS};
use crate::load::suggest;
use crate::workload::Workload;

/// A placement that is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Name that the placement was written for: a group, or a name for several groups.
    pub subject: String,
    /// Whether no group has this name.
    pub is_unknown: bool,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// Checks the placements of a workload.
///
/// # Errors
/// A group does not exist; devices or responders have a copy at each site; groups that share a connection have different
/// placements.
pub fn check(workload: &Workload) -> Result<(), Misplaced> {
    check_names(workload)?;
    check_copies(workload)?;
    check_connections(workload)
}

fn check_names(workload: &Workload) -> Result<(), Misplaced> {
    let devices = workload.devices.iter().map(|group| (&group.name, &group.client));
    let subscribers = workload.subscribers.iter().map(|group| (&group.name, &group.client));
    let names = devices.chain(subscribers).flat_map(|(name, client)| [Some(name.as_str()), client.as_deref()]);
    let names: BTreeSet<&str> = names.flatten().collect();
    let reserved = [DEFAULT, DEVICES, SUBSCRIBERS].into_iter().find(|word| names.contains(word));
    if let Some(word) = reserved.filter(|_| workload.placement != Placements::default()) {
        return Err(Misplaced {
            subject: word.to_owned(),
            is_unknown: false,
            message: format!("a group is called `{word}`, and in a placement this stands for several groups"),
            hint: "call the group otherwise".to_owned(),
        });
    }
    match workload.placement.groups.keys().find(|group| !names.contains(group.as_str())) {
        None => Ok(()),
        Some(group) => {
            let names: Vec<&str> = names.into_iter().chain([DEFAULT, DEVICES, SUBSCRIBERS]).collect();
            Err(Misplaced {
                subject: group.clone(),
                is_unknown: true,
                message: format!("there is no group `{group}` to place"),
                hint: suggest::among(group, &names),
            })
        }
    }
}

/// The name by which a group got its placement.
fn named_by(workload: &Workload, name: &str, client: Option<&str>, side: &str) -> String {
    let groups = &workload.placement.groups;
    let own = [Some(name), client].into_iter().flatten().find(|word| groups.contains_key(*word));
    own.unwrap_or(side).to_owned()
}

fn check_copies(workload: &Workload) -> Result<(), Misplaced> {
    for group in &workload.devices {
        if let Placement::Each(key) = workload.placement_of_devices(group) {
            return Err(Misplaced {
                subject: named_by(workload, &group.name, group.client.as_deref(), DEVICES),
                is_unknown: false,
                message: format!(
                    "devices of `{}` would be there once for each `{key}`, and only subscribers can",
                    group.name
                ),
                hint: format!("`split`, `replicate`, or one of the sites: `{key}=VALUE`"),
            });
        }
    }
    for group in &workload.subscribers {
        let placement = workload.placement_of_subscribers(group);
        let (where_, hint) = match placement {
            Placement::Each(key) => {
                (format!("once for each `{key}`"), format!("`split`, or one of the sites: `{key}=VALUE`"))
            }
            Placement::Replicate => {
                ("on every node".to_owned(), "`split`, or one of the sites: `KEY=VALUE`".to_owned())
            }
            Placement::Split | Placement::On(_) => continue,
        };
        let message = if group.responds.is_some() {
            format!("responders of `{}` would be there {where_}, and a request has one reply", group.name)
        } else if let Some(shared) = &group.shared
            && !group.filters.iter().all(|filter| filter.0.contains("{copy}"))
        {
            // For the system, all copies are members of one shared group, and each message is delivered to one of them.
            format!("`{}` shares its subscription as `{shared}`, and would be there {where_}", group.name)
        } else {
            continue;
        };
        return Err(Misplaced {
            subject: named_by(workload, &group.name, group.client.as_deref(), SUBSCRIBERS),
            is_unknown: false,
            message,
            hint,
        });
    }
    Ok(())
}

/// Groups that share connections must have the same placement, unless only the defaults for devices and subscribers place
/// them.
fn check_connections(workload: &Workload) -> Result<(), Misplaced> {
    let placements = &workload.placement;
    let devices =
        workload.devices.iter().map(|group| (&group.client, &group.name, workload.placement_of_devices(group)));
    let subscribers =
        workload.subscribers.iter().map(|group| (&group.client, &group.name, workload.placement_of_subscribers(group)));
    let mut first_of: BTreeMap<&str, (&str, &Placement)> = BTreeMap::new();
    for (client, name, placement) in devices.chain(subscribers) {
        let Some(client) = client.as_deref() else { continue };
        let (first, other) = *first_of.entry(client).or_insert((name, placement));
        let is_by_side = |name: &str, placement: &Placement| {
            placement.key().is_none()
                && !placements.groups.contains_key(name)
                && !placements.groups.contains_key(client)
        };
        if other == placement || is_by_side(first, other) && is_by_side(name, placement) {
            continue;
        }
        let subject = [name.as_str(), first, client].into_iter().find(|word| placements.groups.contains_key(*word));
        return Err(Misplaced {
            subject: subject.unwrap_or(DEFAULT).to_owned(),
            is_unknown: false,
            message: format!("`{first}` ({other}) and `{name}` ({placement}) share the connections `{client}`"),
            hint: format!("name the connections: `{client}={}`", if other.key().is_some() { other } else { placement }),
        });
    }
    Ok(())
}
