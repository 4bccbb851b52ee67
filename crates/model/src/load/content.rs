//! Validates predicates of subscribers: their syntax, and whether they fit the messages that the subscribers receive.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::diagnostic::{Problem, ProblemKind};
use super::payload::within;
use super::raw::{RawWhere, RawWorkload};
use super::shape::{Form, Spanned};
use crate::fleet::Fleet;
use crate::predicate::{Predicate, PredicateError};
use crate::transform;
use crate::workload::{DeviceGroup, FilterPlace, Workload};

/// Number of example messages of a template against which a predicate is checked.
const EXAMPLES: u32 = 64;

/// A content filter as written in a file.
type RawFilter = Form<Spanned<String>, RawWhere>;

fn text_of(filter: &RawFilter) -> &Spanned<String> {
    match filter {
        Form::Short(text) => text,
        Form::Full(full) => &full.filter,
    }
}

/// Parses a predicate.
pub(crate) fn predicate(filter: &RawFilter) -> Result<Predicate, Problem> {
    let text = text_of(filter);
    Predicate::parse(&text.value).map_err(|error| wrong(text, error))
}

/// Where messages are filtered.
pub(crate) fn place(filter: &RawFilter) -> FilterPlace {
    match filter {
        Form::Short(_) => FilterPlace::Client,
        Form::Full(full) => full.at.as_ref().map_or(FilterPlace::Client, |at| at.value),
    }
}

fn wrong(text: &Spanned<String>, error: PredicateError) -> Problem {
    within(text, "expression", error.at, error.reason, error.hint)
}

/// Checks each predicate against the messages of all devices that its subscribers receive from.
pub(crate) fn check(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    if workload.subscribers.iter().all(|group| group.predicate.is_none()) {
        return Ok(());
    }
    let fleet = Fleet::new(workload, 1);
    let received = groups_received(workload, &fleet);
    for ((group, raw), received) in workload.subscribers.iter().zip(&raw.subscribers).zip(received) {
        let (Some(predicate), Some(filter)) = (&group.predicate, &raw.r#where) else { continue };
        let text = text_of(filter);
        let reacts = |device: &&DeviceGroup| {
            (device.reaction().is_some() || device.slowdown.is_some()) && device.client == group.client
        };
        if let Some(device) = workload.devices.iter().find(reacts) {
            let conflict = "a client that reacts to messages filters none of them";
            return Err(Problem::new(ProblemKind::Conflict, conflict)
                .at(text.span, format!("device group `{}` is on the same client and reacts", device.name))
                .help("leave `where` out, or subscribe with a group on another client"));
        }
        for place in received {
            let device = &workload.devices[usize::from(place)];
            let messages = device.json_examples(EXAMPLES).ok_or_else(|| no_json(device, text))?;
            predicate.check(&device.name, &messages).map_err(|error| wrong(text, error))?;
            if group.filtered_at == FilterPlace::Broker {
                if !device.transform.is_empty() {
                    return Err(unreadable(device, text));
                }
                messages
                    .iter()
                    .try_for_each(|message| predicate.check_selector(message))
                    .map_err(|error| wrong(text, error))?;
            }
        }
    }
    Ok(())
}

/// For each subscriber group: the device groups that it receives from.
fn groups_received(workload: &Workload, fleet: &Fleet) -> Vec<BTreeSet<u16>> {
    let mut received = vec![BTreeSet::new(); workload.subscribers.len()];
    let all = fleet.streams(workload);
    // Subscribers with the same filters share a list.
    let mut seen = HashSet::new();
    for (subscriber, streams) in fleet.subscribers().iter().zip(&all) {
        let has_predicate = workload.subscribers[usize::from(subscriber.group)].predicate.is_some();
        if has_predicate && seen.insert((subscriber.group, Arc::as_ptr(streams))) {
            let groups = streams.iter().map(|entry| fleet.devices()[entry.publisher as usize].group);
            received[usize::from(subscriber.group)].extend(groups);
        }
    }
    received
}

/// A device group whose messages a predicate refers to, and whose sizes truncate its document.
pub(crate) fn cut(workload: &Workload) -> Option<&DeviceGroup> {
    if workload.subscribers.iter().all(|group| group.predicate.is_none()) {
        return None;
    }
    let received = groups_received(workload, &Fleet::new(workload, 1));
    let groups = received.into_iter().flatten().map(|place| &workload.devices[usize::from(place)]);
    groups.into_iter().find(|group| group.json_document_needs().is_some() && group.json_examples(1).is_none())
}

fn unreadable(device: &DeviceGroup, text: &Spanned<String>) -> Problem {
    let name = &device.name;
    Problem::new(ProblemKind::Conflict, format!("a broker cannot read the messages of device group `{name}`"))
        .at(text.span, format!("`transform` of `{name}` changes them: {}", transform::words(&device.transform)))
        .help("filter at the client, which undoes `transform` first: leave `at: broker` out")
}

fn no_json(device: &DeviceGroup, text: &Spanned<String>) -> Problem {
    let name = &device.name;
    let problem = |reason: String| Problem::new(ProblemKind::Conflict, reason).at(text.span, "nothing to ask about");
    match device.json_document_needs() {
        Some(bytes) => problem(format!("payloads of device group `{name}` cut its JSON document"))
            .help(format!("give it `payload: {bytes}B` or more")),
        None => problem(format!("messages of device group `{name}` have no JSON"))
            .help("give it a `body: {json: …}`, or the subscribers `filters` that leave it out"),
    }
}
