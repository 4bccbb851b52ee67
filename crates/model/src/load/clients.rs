//! Validates groups that share clients, reactions and slowdowns, when all groups are known and the fleet is built.

use std::collections::HashMap;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::raw::{RawGroup, RawSubscriber, RawWorkload};
use super::shape::Form;
use super::suggest;
use crate::fleet::Fleet;
use crate::workload::{DeviceGroup, SubscriberGroup, Workload};

/// Validates references between groups.
pub(crate) fn check(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    check_moduli(workload, raw)?;
    check_clients(workload, raw)?;
    if workload.has_reactions() || workload.has_slowdowns() {
        check_reactions(workload, raw)?;
    }
    Ok(())
}

/// `{index%NAME}` requires a group or clients with this NAME.
fn check_moduli(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    let reaction = |group: &RawGroup| match &group.arrival {
        Some(Form::Full(full)) => full.value.reaction_to.clone(),
        _ => None,
    };
    let slows = |group: &RawGroup| group.when.as_ref().map(|when| when.value.receives.clone());
    let devices = raw.devices.iter().flat_map(|group| {
        let will = match &group.will {
            Some(Form::Full(will)) => Some(will.value.topic.clone()),
            _ => None,
        };
        [group.topic.clone(), reaction(group), slows(group), will].into_iter().flatten()
    });
    let filters = raw.subscribers.iter().flat_map(|group| group.filters.value.0.iter().cloned());
    let filters = filters.chain(raw.responders.iter().flat_map(|group| group.filters.value.0.iter().cloned()));
    let requests = raw.requesters.iter().filter_map(|group| group.topic.clone());
    for text in devices.chain(requests).chain(filters) {
        for word in text.value.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let Some((_, name)) = word.split_once('%') else { continue };
            if workload.count_of(name).is_none() {
                return Err(Problem::new(ProblemKind::UnknownName, format!("nothing is called `{name}`"))
                    .at(text.span, format!("`{{{word}}}` counts modulo its number"))
                    .maybe_help(did_you_mean(name, names(workload))));
            }
        }
    }
    Ok(())
}

fn names(workload: &Workload) -> impl Iterator<Item = &str> {
    let devices = workload.devices.iter().flat_map(|group| [Some(group.name.as_str()), group.client.as_deref()]);
    let subscribers =
        workload.subscribers.iter().flat_map(|group| [Some(group.name.as_str()), group.client.as_deref()]);
    devices.chain(subscribers).flatten()
}

fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    suggest::nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

fn place(group: &RawGroup) -> Span {
    group.name.as_ref().or(group.r#type.as_ref()).map(|name| name.span).unwrap_or_default()
}

fn listener_place(group: &RawSubscriber) -> Span {
    group.client.as_ref().map_or(group.filters.span, |client| client.span)
}

/// The groups seen so far that use the same clients.
struct ClientUse<'a> {
    count: u32,
    device: Option<&'a DeviceGroup>,
    listens: Option<Span>,
    place: Span,
}

/// Groups that share connections must have the same number of members and the same kind of session, and must not end a
/// connection that others use.
fn check_clients(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    let mut seen: HashMap<&str, ClientUse<'_>> = HashMap::new();
    for (group, raw) in workload.devices.iter().zip(&raw.devices) {
        let Some(client) = &group.client else { continue };
        let span = place(raw);
        check_device(group, span)?;
        let entry =
            seen.entry(client).or_insert(ClientUse { count: group.count, device: None, listens: None, place: span });
        check_count(entry, group.count, client, span)?;
        match entry.device {
            Some(first) if !same_session(first, group) => return Err(different(client, span, entry.place)),
            Some(_) => {}
            None => entry.device = Some(group),
        }
    }
    for (group, raw) in workload.subscribers.iter().zip(&raw.subscribers) {
        let Some(client) = &group.client else { continue };
        let span = listener_place(raw);
        check_subscriber(group, span)?;
        let entry =
            seen.entry(client).or_insert(ClientUse { count: group.count, device: None, listens: None, place: span });
        check_count(entry, group.count, client, span)?;
        if entry.device.is_some_and(|device| device.session != group.session || device.identity != group.identity) {
            return Err(different(client, span, entry.place));
        }
        if let Some(first) = entry.listens.replace(span) {
            return Err(conflict(format!("two groups of subscribers share the clients `{client}`"))
                .at(span, "again")
                .at(first, "first here")
                .help("give one group all filters: `filters: [\"a/+\", \"b/{index}\"]`"));
        }
    }
    Ok(())
}

fn conflict(message: String) -> Problem {
    Problem::new(ProblemKind::Conflict, message)
}

fn same_session(first: &DeviceGroup, group: &DeviceGroup) -> bool {
    first.session == group.session
        && first.identity == group.identity
        && first.in_flight_window == group.in_flight_window
        && first.mqtt == group.mqtt
}

fn different(client: &str, span: Span, first: Span) -> Problem {
    conflict(format!("groups on one connection (`client: {client}`) differ in what a connection has once"))
        .at(span, "this group")
        .at(first, "and this one")
        .help("give them the same `session`, `credentials`, `in_flight_window` and `mqtt`")
}

fn check_count(entry: &ClientUse<'_>, count: u32, client: &str, span: Span) -> Result<(), Problem> {
    if entry.count == count {
        return Ok(());
    }
    Err(conflict(format!("`client: {client}` has {} clients here and {count} there", entry.count))
        .at(span, format!("{count}, at this scale"))
        .at(entry.place, format!("{}, at this scale", entry.count))
        .help("groups that share clients have the same `count` and `scales` (subscribers do not scale unless they say so)"))
}

fn check_device(group: &DeviceGroup, span: Span) -> Result<(), Problem> {
    let what = match (&group.churn, &group.will) {
        (Some(_), _) => "churn",
        (None, Some(_)) => "a will",
        (None, None) if group.identity.token.is_some() => "a token of each device",
        (None, None) if group.identity.is_of_each() => "an identity of each device",
        (None, None) => return Ok(()),
    };
    Err(conflict(format!("`{}` shares its connections and has {what}", group.name))
        .at(span, "this group")
        .help(format!("leave `client` out, or {what}: it belongs to a connection of one's own")))
}

fn check_subscriber(group: &SubscriberGroup, span: Span) -> Result<(), Problem> {
    match group.shared {
        None => Ok(()),
        Some(_) => {
            Err(conflict(format!("`{}` is a shared group, and shares its connections with devices", group.name))
                .at(span, "here")
                .help("leave `client` or `shared` out"))
        }
    }
}

/// Every reaction and every slowdown must have clients that receive a trigger, and no chain of reactions may be circular.
fn check_reactions(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    for (group, raw) in workload.devices.iter().zip(&raw.devices) {
        let reacts = group.reaction().is_some();
        if reacts && group.client.is_none() {
            return Err(Problem::new(
                ProblemKind::MissingKey,
                format!("`{}` reacts and has no subscription of its own", group.name),
            )
            .at(place(raw), "this group has no `client`")
            .help("name a `client` here and in a group of subscribers that receives the triggers"));
        }
        if let Some(when) = raw.when.as_ref().filter(|_| group.client.is_none()) {
            let message = format!("`{}` has `when` and no subscription of its own", group.name);
            return Err(Problem::new(ProblemKind::MissingKey, message)
                .at(when.span, "this group has no `client`")
                .help("name a `client` here and in a group of subscribers that receives the messages"));
        }
        let has_trigger = group.topic.0.contains("{trigger");
        if has_trigger && !reacts {
            return Err(Problem::new(
                ProblemKind::UnknownPlaceholder,
                "`{trigger}` is the device that triggered a reaction",
            )
            .at(raw.topic.as_ref().map_or(place(raw), |topic| topic.span), "nothing fills it in")
            .help("write `{index}` for the device's own number"));
        }
    }
    let fleet = Fleet::checked(workload, 1).map_err(|too_large| {
        let is_triggered = |group: &DeviceGroup| group.reaction().is_some() || group.slowdown.is_some();
        let reacting = workload.devices.iter().position(is_triggered).unwrap_or_default();
        Problem::new(ProblemKind::TooLarge, too_large.to_string())
            .at(place(&raw.devices[reacting]), "the first group that reacts")
            .help(too_large.hint())
    })?;
    if let Some(group) = fleet.cycle() {
        let name = &workload.devices[usize::from(group)].name;
        return Err(conflict(format!("`{name}` reacts to its own reactions in the end"))
            .at(place(&raw.devices[usize::from(group)]), "a chain without end")
            .help("let the last message of a chain have a topic that nothing reacts to"));
    }
    let mut triggered = vec![false; workload.devices.len()];
    for link in fleet.links().iter().chain(fleet.slowdowns()) {
        triggered[usize::from(fleet.devices()[link.reacts as usize].group)] = true;
    }
    for ((group, raw), triggered) in workload.devices.iter().zip(&raw.devices).zip(triggered) {
        if let Some(reaction) = group.reaction().filter(|_| !triggered) {
            let client = group.client.as_deref().unwrap_or_default();
            return Err(conflict(format!("nothing triggers `{}`", group.name))
                .at(place(raw), format!("no device sends to `{}` what `{client}` subscribes to", reaction.to.0))
                .help(format!("check `reaction_to`, and the filters of the subscribers with `client: {client}`")));
        }
        if let (Some(when), false) = (&raw.when, triggered) {
            let client = group.client.as_deref().unwrap_or_default();
            let topics = &when.value.receives;
            return Err(conflict(format!("nothing slows `{}` down", group.name))
                .at(topics.span, format!("no device sends to `{}` what `{client}` subscribes to", topics.value))
                .help(format!("check `receives`, and the filters of the subscribers with `client: {client}`")));
        }
    }
    Ok(())
}
