//! Validates links: definitions in a file and presets, and which group uses which link.

use std::collections::BTreeMap;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::link_conditions::State;
use super::names;
use super::raw::RawWorkload;
use super::raw_links::{Keys, RawDirection, RawLink, RawStep};
use super::shape::{Form, Named, Spanned, Word};
use super::suggest;
use super::value;
use crate::link::presets;
use crate::link::{Link, NO_LINK, Step};
use crate::workload::Workload;

/// Maximum number of links that one workload defines.
const MOST_LINKS: usize = 1_000;
/// Maximum number of steps of one link: a change every second for hours.
const MOST_STEPS: usize = 10_000;

/// A change of a link in one or both directions, at one time.
struct Change<'a> {
    /// Time, ns; `place` is the span for errors that concern the whole change.
    at_ns: u64,
    place: Span,
    both: Keys<'a>,
    up: Option<&'a Spanned<RawDirection>>,
    down: Option<&'a Spanned<RawDirection>>,
}

/// Reads the definitions of a file.
pub(crate) fn definitions(raw: &Named<RawLink>) -> Result<Vec<Link>, Problem> {
    if let Some((name, _)) = raw.0.get(MOST_LINKS) {
        return Err(value::too_many("links", raw.0.len() as u64, MOST_LINKS as u64, name.span));
    }
    raw.0.iter().map(|(name, link)| definition(name, link)).collect()
}

fn definition(name: &Spanned<String>, raw: &RawLink) -> Result<Link, Problem> {
    check_name(name)?;
    let changes = changes(name, raw)?;
    let (mut up, mut down) = (State::default(), State::default());
    let (mut up_steps, mut down_steps) = (Vec::new(), Vec::new());
    for change in &changes {
        apply(&mut up, change.both, change.up, change.place, change.at_ns, &mut up_steps)?;
        apply(&mut down, change.both, change.down, change.place, change.at_ns, &mut down_steps)?;
    }
    Ok(Link { name: name.value.clone(), up: up_steps, down: down_steps, source: raw.source.clone() })
}

/// Changes one direction and adds the step, unless nothing changes.
fn apply(
    state: &mut State,
    both: Keys<'_>,
    own: Option<&Spanned<RawDirection>>,
    place: Span,
    at_ns: u64,
    steps: &mut Vec<Step>,
) -> Result<(), Problem> {
    state.change(both)?;
    let mut named = vec![both];
    if let Some(own) = own {
        let keys = Keys { down: own.value.down.as_ref().map(|word| word.value), ..own.value.conditions() };
        state.change(keys)?;
        named.push(keys);
    }
    state.check(&named, place)?;
    let conditions = state.conditions();
    match steps.last_mut() {
        Some(last) if last.conditions == conditions => {}
        // A series may define the conditions from the start.
        Some(last) if last.at_ns == at_ns => last.conditions = conditions,
        _ => steps.push(Step { at_ns, conditions }),
    }
    Ok(())
}

fn check_name(name: &Spanned<String>) -> Result<(), Problem> {
    names::check_name(name)?;
    if name.value.contains('/') || name.value == NO_LINK {
        return Err(Problem::new(ProblemKind::BadName, format!("`{}` cannot be the name of a link", name.value))
            .at(name.span, "not a name")
            .help("names of links have letters, digits, `-` and `_`; `none` stands for no link"));
    }
    Ok(())
}

/// The changes of the link itself, and those of its series.
fn changes<'a>(name: &Spanned<String>, raw: &'a RawLink) -> Result<Vec<Change<'a>>, Problem> {
    let (down, is_down) = down(raw.down.as_ref(), raw.up.as_ref())?;
    let both = Keys { down: is_down, ..raw.conditions() };
    let mut changes = vec![Change { at_ns: 0, place: name.span, both, up: raw.up.as_ref(), down }];
    let Some(series) = &raw.series else { return Ok(changes) };
    if series.value.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "a series without steps changes nothing")
            .at(series.span, "empty")
            .help("write for instance `series: [{at: 10s, down: true}, {at: 15s, down: false}]`, or leave it out"));
    }
    if series.value.len() > MOST_STEPS {
        return Err(value::too_many("steps", series.value.len() as u64, MOST_STEPS as u64, series.span));
    }
    for (number, step) in series.value.iter().enumerate() {
        let change = step_change(step)?;
        if number > 0 && changes.last().is_some_and(|last| last.at_ns >= change.at_ns) {
            return Err(value::impossible(format!("`{}` is not later than the step before it", step.at.text))
                .at(step.at.span, "not rising")
                .help("steps stand in the order of their times, one for each time"));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn step_change(step: &RawStep) -> Result<Change<'_>, Problem> {
    let at = value::duration(&step.at)?;
    let (down, is_down) = down(step.down.as_ref(), step.up.as_ref())?;
    let both = Keys { down: is_down, ..step.conditions() };
    if both.is_empty() && step.up.is_none() && down.is_none() {
        return Err(Problem::new(ProblemKind::Empty, "a step that names nothing changes nothing")
            .at(step.at.span, "this step")
            .help("say what changes, for instance `{at: 10s, loss: 5%}`"));
    }
    // A duration is at most ten years, so it fits.
    Ok(Change { at_ns: at.as_nanos() as u64, place: step.at.span, both, up: step.up.as_ref(), down })
}

/// `down` says either that a link is down, or what differs in the direction down; beside `up` only the second is possible.
#[allow(clippy::type_complexity, reason = "the two meanings, one of them or none")]
fn down<'a>(
    raw: Option<&'a Form<Spanned<Word<bool>>, Spanned<RawDirection>>>,
    up: Option<&Spanned<RawDirection>>,
) -> Result<(Option<&'a Spanned<RawDirection>>, Option<bool>), Problem> {
    match (raw, up) {
        (None, _) => Ok((None, None)),
        (Some(Form::Full(direction)), _) => Ok((Some(direction), None)),
        (Some(Form::Short(word)), None) => Ok((None, Some(word.value.value))),
        (Some(Form::Short(word)), Some(up)) => {
            let down = word.value.value;
            Err(Problem::new(ProblemKind::Conflict, format!("`down: {down}` beside `up` can be read two ways"))
                .at(word.span, "the link, or the way down?")
                .at(up.span, "the way up")
                .help(format!(
                    "write `down: {{down: {down}}}` for the way down alone, or `down: {down}` inside `up` too for both"
                )))
        }
    }
}

/// A group with its link.
struct GroupLink<'a> {
    client: Option<&'a str>,
    link: Option<&'a Spanned<String>>,
    place: Span,
}

/// The link that a group names, unless it is `none`.
pub(crate) fn of_group(link: Option<&Spanned<String>>) -> Option<String> {
    link.map(|link| link.value.clone()).filter(|name| name != NO_LINK)
}

/// Finds the links that groups name: first in the file, then among the presets, which are added to the workload's links.
pub(crate) fn resolve(workload: &mut Workload, raw: &RawWorkload) -> Result<(), Problem> {
    let groups = groups(raw);
    if raw.links.0.is_empty() && groups.iter().all(|group| group.link.is_none()) {
        return Ok(());
    }
    workload.links = definitions(&raw.links)?;
    let presets = presets::read()?;
    if let Some((name, _)) = raw.links.0.iter().find(|(name, _)| presets.iter().any(|link| link.name == name.value)) {
        return Err(Problem::new(ProblemKind::BadName, format!("`{}` is the name of a preset", name.value))
            .at(name.span, "taken")
            .help(format!(
                "call it otherwise, for instance `my-{}`; `pubmark list links` shows the presets",
                name.value
            )));
    }
    for group in &groups {
        let Some(link) = group.link.filter(|link| link.value != NO_LINK) else { continue };
        if workload.links.iter().any(|known| known.name == link.value) {
            continue;
        }
        match presets.iter().find(|preset| preset.name == link.value) {
            Some(preset) => workload.links.push(preset.clone()),
            None => return Err(unknown(link, workload, &presets)),
        }
    }
    check_clients(&groups)
}

fn unknown(link: &Spanned<String>, workload: &Workload, presets: &[Link]) -> Problem {
    let names: Vec<&str> = workload.links.iter().chain(presets).map(|link| link.name.as_str()).collect();
    Problem::new(ProblemKind::UnknownName, format!("there is no link `{}`", link.value))
        .at(link.span, "neither among `links` nor a preset")
        .help(suggest::among(&link.value, &names))
}

fn groups(raw: &RawWorkload) -> Vec<GroupLink<'_>> {
    fn behind<'a>(
        name: Option<&Spanned<String>>,
        otherwise: Span,
        client: Option<&'a Spanned<String>>,
        link: Option<&'a Spanned<String>>,
    ) -> GroupLink<'a> {
        let place = name.map_or(otherwise, |name| name.span);
        GroupLink { client: client.map(|client| client.value.as_str()), link, place }
    }
    let devices = raw.devices.iter().map(|group| {
        let name = group.name.as_ref().or(group.r#type.as_ref());
        behind(name, Span::default(), group.client.as_ref(), group.link.as_ref())
    });
    let subscribers = raw
        .subscribers
        .iter()
        .map(|group| behind(group.name.as_ref(), group.filters.span, group.client.as_ref(), group.link.as_ref()));
    let requesters = raw.requesters.iter().map(|group| behind(None, group.name.span, None, group.link.as_ref()));
    let responders = raw.responders.iter().map(|group| behind(None, group.name.span, None, group.link.as_ref()));
    devices.chain(subscribers).chain(requesters).chain(responders).collect()
}

/// Groups on one connection must use the same link.
fn check_clients(groups: &[GroupLink<'_>]) -> Result<(), Problem> {
    let mut first_of: BTreeMap<&str, &GroupLink<'_>> = BTreeMap::new();
    for group in groups {
        let Some(client) = group.client else { continue };
        let first = *first_of.entry(client).or_insert(group);
        let of = |group: &GroupLink<'_>| of_group(group.link).unwrap_or_else(|| NO_LINK.to_owned());
        let (one, other) = (of(first), of(group));
        if one != other {
            let place = |group: &GroupLink<'_>| group.link.map_or(group.place, |link| link.span);
            return Err(Problem::new(
                ProblemKind::Conflict,
                format!("groups on one connection (`client: {client}`) are behind different links"),
            )
            .at(place(group), format!("`{other}` here"))
            .at(place(first), format!("`{one}` here"))
            .help(format!("give every group of `client: {client}` the same `link`")));
        }
    }
    Ok(())
}
