//! Validates the whole workload: from the shape of the file to [`Workload`].

use std::time::Duration;

use serde::Deserialize;

use super::credentials::{self, Of};
use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::Files;
use super::names::{MOST_FILTERS, MOST_GROUPS, MOST_SUBSCRIBERS, Names, check_name};
use super::node::Node;
use super::raw::{RawPublished, RawSubscriber, RawWorkload, is_isolated};
use super::reader::Reader;
use super::shape::Spanned;
use super::{
    LoadOptions, clients, content, device, faults, links, options, overlay, payload, placement, requests, topics, value,
};
use crate::metric::{self, MetricProgram};
use crate::placement::Placements;
use crate::qos::Qos;
use crate::workload::{Deviation, DeviceGroup, FilterPlace, SubscriberGroup, Variant, Workload};

/// Maximum number of devices in total.
const MOST_DEVICES: u64 = crate::fleet::MOST_PUBLISHERS;

/// The tree for one variant, with its settings applied. `settings` are (key, value, number of the text).
pub(crate) fn prepared(mut root: Node, variant: Variant, settings: &[(String, String, u16)]) -> Result<Node, Problem> {
    let published = root.remove("published");
    if let Some(published) = &published {
        let mut published = published.clone();
        overlay::substitute_below(&mut published, &overlay::parameters(&root)?)?;
        RawPublished::deserialize(Reader(&published))?;
    }
    if variant == Variant::Published {
        overlay::publish(&mut root, published)?;
    }
    for (key, value, source) in settings {
        overlay::set(&mut root, key, value, *source)?;
    }
    overlay::substitute(&mut root)?;
    // Deserialised once as written, so that a misplaced key is reported at its position and not in every group that
    // inherits it.
    RawWorkload::deserialize(Reader(&root))?;
    overlay::inherit(&mut root)?;
    Ok(root)
}

/// Validates a prepared tree.
pub(crate) fn checked(
    root: &Node,
    options: &LoadOptions,
    scale: u32,
    has_published: bool,
    files: &Files,
) -> Result<Workload, Problem> {
    let raw = RawWorkload::deserialize(Reader(root))?;
    check_workload_name(&raw.name)?;
    let mut devices = device_groups(root, &raw, scale, files)?;
    let mut subscribers = subscriber_groups(&raw, scale, files)?;
    requests::add_groups(&raw, scale, files, &mut devices, &mut subscribers)?;
    check_totals(&devices, &subscribers, root)?;
    if let Some(qos) = options.qos {
        apply_qos(&mut devices, &mut subscribers, qos);
    }
    let mut deviations: Vec<Deviation> = devices.iter().filter_map(payload::raised_to_header).collect();
    if options.variant == Variant::Published && !has_published {
        deviations.push(Deviation {
            name: "no-published-reading".to_owned(),
            detail: format!("{} has one reading only; it was used", raw.name.value),
        });
    }
    let mut workload = Workload {
        name: raw.name.value.clone(),
        description: raw.description.clone(),
        source: raw.source.clone(),
        variant: options.variant,
        has_readings: has_published,
        scale,
        devices,
        subscribers,
        links: Vec::new(),
        faults: Vec::new(),
        objectives: raw.objectives.iter().map(|limit| limit.value.clone()).collect(),
        metrics: metrics(&raw.metrics)?,
        placement: Placements::default(),
        deviations,
        secret_parameters: Vec::new(),
    };
    placement::resolve(&mut workload, &raw.placement)?;
    links::resolve(&mut workload, &raw)?;
    faults::resolve(&mut workload, &raw.faults)?;
    clients::check(&workload, &raw)?;
    requests::check_directions(&workload, &raw)?;
    content::check(&workload, &raw)?;
    Ok(workload)
}

/// Metrics of the user, each validated at its position.
fn metrics(raw: &[Spanned<MetricProgram>]) -> Result<Vec<MetricProgram>, Problem> {
    let metrics: Vec<MetricProgram> = raw.iter().map(|metric| metric.value.clone()).collect();
    for (place, metric) in raw.iter().enumerate() {
        if let Err(error) = metric::check(&metrics[..=place]) {
            let problem = Problem::new(ProblemKind::ImpossibleValue, error.message);
            return Err(problem.at(metric.span, "here").maybe_help(error.hint));
        }
    }
    Ok(metrics)
}

fn check_workload_name(name: &Spanned<String>) -> Result<(), Problem> {
    check_name(name)?;
    match name.value.contains('/') {
        false => Ok(()),
        true => Err(Problem::new(ProblemKind::BadName, "a workload's name has no `/`")
            .at(name.span, "here")
            .help("use `-` instead")),
    }
}

fn device_groups(root: &Node, raw: &RawWorkload, scale: u32, files: &Files) -> Result<Vec<DeviceGroup>, Problem> {
    let list = root.get("devices").map(|devices| devices.span).unwrap_or_default();
    if raw.devices.is_empty() && raw.requesters.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "no device sends anything")
            .at(list, "empty")
            .help("add a group: `- {name: sensor, count: 10, every: 1s, payload: 100B}`"));
    }
    if raw.devices.len() > MOST_GROUPS {
        return Err(value::too_many("device groups", raw.devices.len() as u64, MOST_GROUPS as u64, list));
    }
    let nodes = root.get("devices").map(Node::items).unwrap_or_default();
    let mut names = Names::default();
    raw.devices
        .iter()
        .zip(nodes)
        .map(|(group, node)| {
            let checked = device::group(group, scale, first_key(node), files)?;
            let span = group.name.as_ref().or(group.r#type.as_ref()).map(|name| name.span).unwrap_or_default();
            names.add("device group", &checked.name, span)?;
            Ok(checked)
        })
        .collect()
}

fn first_key(node: &Node) -> Span {
    node.entries().first().map_or(node.span, |entry| entry.key_span)
}

fn subscriber_groups(raw: &RawWorkload, scale: u32, files: &Files) -> Result<Vec<SubscriberGroup>, Problem> {
    let mut names = Names::default();
    let mut shared = std::collections::HashMap::new();
    let mut groups = Vec::with_capacity(raw.subscribers.len());
    for (number, subscriber) in (1..).zip(&raw.subscribers) {
        let group = subscriber_group(subscriber, number, scale, files)?;
        let span = subscriber.name.as_ref().map_or(subscriber.filters.span, |name| name.span);
        names.add("subscriber group", &group.name, span)?;
        if let Some(name) = &subscriber.shared
            && let Some(first) = shared.insert(&name.value, name.span)
        {
            return Err(options::shared_twice(&name.value, name.span, first));
        }
        groups.push(group);
    }
    if groups.len() > MOST_GROUPS {
        return Err(value::too_many("subscriber groups", groups.len() as u64, MOST_GROUPS as u64, raw.name.span));
    }
    Ok(groups)
}

fn subscriber_group(raw: &RawSubscriber, number: u32, scale: u32, files: &Files) -> Result<SubscriberGroup, Problem> {
    if let Some(name) = &raw.name {
        check_name(name)?;
    }
    let filters = &raw.filters.value.0;
    if filters.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "a subscriber without filters receives nothing")
            .at(raw.filters.span, "empty")
            .help("`\"#\"` receives everything"));
    }
    if filters.len() > MOST_FILTERS {
        return Err(value::too_many("filters", filters.len() as u64, MOST_FILTERS as u64, raw.filters.span));
    }
    let scales = raw.scales.as_ref().is_some_and(|scales| scales.value);
    let count = value::scaled(raw.count.as_ref(), if scales { scale } else { 1 }, MOST_SUBSCRIBERS as u32)?;
    Ok(SubscriberGroup {
        name: raw.name.as_ref().map_or_else(|| format!("subscriber-{number}"), |name| name.value.clone()),
        count,
        filters: filters.iter().map(topics::filter).collect::<Result<_, _>>()?,
        qos: raw.qos.as_ref().map_or(Ok(Qos::BestEffort), value::qos)?,
        session: device::session(raw.session.as_ref()),
        identity: credentials::identity(raw.credentials.as_ref(), Of::Subscribers, count, files)?,
        shared: raw.shared.as_ref().map(|name| options::shared(name, &raw.filters.value)).transpose()?,
        processing: raw.processing.as_ref().map_or(Ok(Duration::ZERO), value::duration)?,
        client: raw.client.as_ref().map(|client| check_name(client).map(|()| client.value.clone())).transpose()?,
        link: links::of_group(raw.link.as_ref()),
        isolate: is_isolated(raw.isolate.as_ref()),
        responds: None,
        predicate: raw.r#where.as_ref().map(content::predicate).transpose()?,
        filtered_at: raw.r#where.as_ref().map_or(FilterPlace::Client, content::place),
    })
}

fn check_totals(devices: &[DeviceGroup], subscribers: &[SubscriberGroup], root: &Node) -> Result<(), Problem> {
    let place = |section: &str| root.get(section).map(|node| node.span).unwrap_or_default();
    let device_total: u64 = devices.iter().map(|group| u64::from(group.count)).sum();
    if device_total > MOST_DEVICES {
        return Err(value::too_many("devices", device_total, MOST_DEVICES, place("devices")));
    }
    let subscriber_total: u64 = subscribers.iter().map(|group| u64::from(group.count)).sum();
    if subscriber_total > MOST_SUBSCRIBERS {
        return Err(value::too_many("subscribers", subscriber_total, MOST_SUBSCRIBERS, place("subscribers")));
    }
    Ok(())
}

fn apply_qos(devices: &mut [DeviceGroup], subscribers: &mut [SubscriberGroup], qos: Qos) {
    for group in devices {
        group.qos = qos;
        group.will.iter_mut().for_each(|will| will.qos = qos);
    }
    subscribers.iter_mut().for_each(|group| group.qos = qos);
}
