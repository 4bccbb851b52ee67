//! Links that replace those of the workload for a run: `lte` for all groups, `sensors=lte` for one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Link, NO_LINK, presets};
use crate::load::{LoadError, suggest};
use crate::workload::{Deviation, Workload};

/// A link for one group or for all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChoice {
    /// A group of devices, subscribers, requesters or responders, or the clients that groups share; `None` for all groups.
    pub group: Option<String>,
    /// A link of the workload, a preset, `none`, or a definition in braces.
    pub link: String,
}

impl LinkChoice {
    /// Parses `NAME` or `GROUP=NAME`; instead of the name there may be a definition: `{delay: 20ms, loss: 1%}`.
    ///
    /// # Errors
    /// The group or the link is empty. The error is a sentence.
    pub fn parse(text: &str) -> Result<LinkChoice, String> {
        let text = text.trim();
        let (group, link) = match text.split_once('=').filter(|_| !text.starts_with('{')) {
            Some((group, link)) => (Some(group.trim()), link.trim()),
            None => (None, text),
        };
        if link.is_empty() || group.is_some_and(str::is_empty) {
            return Err("a link is written NAME for all groups, or GROUP=NAME, for instance `sensors=lte`".to_owned());
        }
        Ok(LinkChoice { group: group.map(str::to_owned), link: link.to_owned() })
    }
}

impl fmt::Display for LinkChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(formatter, "{group}={}", self.link),
            None => formatter.write_str(&self.link),
        }
    }
}

/// Assigns the chosen links to groups, in order, and adds a deviation for each.
///
/// # Errors
/// A link or a group does not exist; groups on one connection have different links.
pub fn apply(workload: &mut Workload, choices: &[LinkChoice]) -> Result<(), LoadError> {
    if choices.is_empty() {
        return Ok(());
    }
    let presets = presets::all()?;
    for choice in choices {
        add(workload, &choice.link, &presets)?;
        put(workload, choice)?;
    }
    match split_client(workload) {
        None => Ok(()),
        Some((client, one, other)) => Err(LoadError::Link {
            message: format!(
                "groups that share the connections `{client}` would be behind `{one}` and behind `{other}`"
            ),
            hint: format!("name the connections: `--link {client}={other}`"),
        }),
    }
}

/// Adds the link to the workload's links.
fn add(workload: &mut Workload, name: &str, presets: &[Link]) -> Result<(), LoadError> {
    if name == NO_LINK || workload.links.iter().any(|link| link.name == name) {
        return Ok(());
    }
    if name.starts_with('{') {
        workload.links.push(presets::defined_here(name)?);
        return Ok(());
    }
    if let Some(preset) = presets.iter().find(|preset| preset.name == name) {
        workload.links.push(preset.clone());
        return Ok(());
    }
    let names: Vec<&str> = workload.links.iter().chain(presets).map(|link| link.name.as_str()).collect();
    Err(LoadError::Link { message: format!("there is no link `{name}`"), hint: suggest::among(name, &names) })
}

fn put(workload: &mut Workload, choice: &LinkChoice) -> Result<(), LoadError> {
    let link = (choice.link != NO_LINK).then(|| choice.link.clone());
    let is_meant = |name: &str, client: Option<&str>| match &choice.group {
        None => true,
        Some(group) => group == name || client == Some(group.as_str()),
    };
    let mut is_there = false;
    for group in &mut workload.devices {
        if is_meant(&group.name, group.client.as_deref()) {
            group.link.clone_from(&link);
            is_there = true;
        }
    }
    for group in &mut workload.subscribers {
        if is_meant(&group.name, group.client.as_deref()) {
            group.link.clone_from(&link);
            is_there = true;
        }
    }
    if let Some(group) = choice.group.as_ref().filter(|_| !is_there) {
        let devices = workload.devices.iter().map(|group| (&group.name, &group.client));
        let subscribers = workload.subscribers.iter().map(|group| (&group.name, &group.client));
        let names = devices.chain(subscribers).flat_map(|(name, client)| [Some(name.as_str()), client.as_deref()]);
        let names: BTreeSet<&str> = names.flatten().collect();
        let hint = suggest::among(group, &Vec::from_iter(names));
        return Err(LoadError::Link { message: format!("there is no group `{group}` to put behind a link"), hint });
    }
    let who = choice.group.as_ref().map_or_else(|| "every group".to_owned(), |group| format!("`{group}`"));
    workload.deviations.push(Deviation {
        name: "link-replaced".to_owned(),
        detail: match &link {
            Some(link) => format!("{who} is behind the link `{link}` in place of what the workload says"),
            None => format!("{who} is behind no link in place of what the workload says"),
        },
    });
    Ok(())
}

/// Clients whose groups have different links, and two of these links.
fn split_client(workload: &Workload) -> Option<(String, String, String)> {
    let devices = workload.devices.iter().map(|group| (&group.client, &group.link));
    let subscribers = workload.subscribers.iter().map(|group| (&group.client, &group.link));
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (client, link) in devices.chain(subscribers) {
        let Some(client) = client else { continue };
        let link = link.as_deref().unwrap_or(NO_LINK);
        let first = *known.entry(client).or_insert(link);
        if first != link {
            return Some((client.clone(), first.to_owned(), link.to_owned()));
        }
    }
    None
}
