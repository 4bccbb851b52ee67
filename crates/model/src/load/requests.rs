//! Validates groups of requesters and responders. They become device groups and subscriber groups with an additional
//! property ([`crate::requests`]).

use std::time::Duration;

use super::credentials::{self, Of};
use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::Files;
use super::names::{MOST_FILTERS, MOST_GROUPS, MOST_SUBSCRIBERS, Names, check_name};
use super::raw::{RawGroup, RawWorkload, is_isolated};
use super::raw_requests::{RawProcessing, RawRequester, RawResponder};
use super::shape::{CountText, DurationText, Form, SizeText, Spanned, Text};
use super::{device, links, options, topics, value};
use crate::fleet::Fleet;
use crate::qos::Qos;
use crate::requests::{self, ProcessingTime, Requests, Responds, SMALLEST_REPLY_BYTES};
use crate::units;
use crate::workload::{DeviceGroup, FilterPlace, SessionKind, SubscriberGroup, Workload};

/// Defaults of a group, those of mq-bench's requesters and responders (its `--timeout`, `--concurrency`, `--reply-size`).
const USUAL_TIMEOUT: Duration = Duration::from_secs(5);
const USUAL_IN_FLIGHT: u16 = 10;
const USUAL_REPLY_BYTES: u32 = 1_024;
/// Default maximum of requests that wait at a responder.
const USUAL_QUEUE: u32 = 1_000;
/// Maximum timeout: a run cannot end while a request is open.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum queue of one responder.
const LONGEST_QUEUE: u32 = 1_000_000;
/// Maximum size of a reply, bytes: the limit of one MQTT packet (MQTT 5.0 §1.5.5).
const LARGEST_ANSWER_BYTES: f64 = 268_435_455.0;

/// Adds a file's requesters to its devices and its responders to its subscribers.
pub(crate) fn add_groups(
    raw: &RawWorkload,
    scale: u32,
    files: &Files,
    devices: &mut Vec<DeviceGroup>,
    subscribers: &mut Vec<SubscriberGroup>,
) -> Result<(), Problem> {
    let mut names = Names::default();
    for group in &raw.devices {
        if let Some(name) = group.name.as_ref().or(group.r#type.as_ref()) {
            names.add("device group", &name.value, name.span)?;
        }
    }
    for group in &raw.requesters {
        names.add("group", &group.name.value, group.name.span)?;
        devices.push(requesters(group, scale, files)?);
    }
    let mut names = Names::default();
    for name in raw.subscribers.iter().filter_map(|group| group.name.as_ref()) {
        names.add("subscriber group", &name.value, name.span)?;
    }
    let mut shared: Vec<(&str, Span)> = raw.subscribers.iter().filter_map(|group| of_shared(&group.shared)).collect();
    for group in &raw.responders {
        names.add("group", &group.name.value, group.name.span)?;
        if let Some((name, span)) = of_shared(&group.shared) {
            if let Some((_, first)) = shared.iter().find(|(known, _)| *known == name) {
                return Err(options::shared_twice(name, span, *first));
            }
            shared.push((name, span));
        }
        subscribers.push(responders(group, scale, files)?);
    }
    for count in [devices.len(), subscribers.len()] {
        if count > MOST_GROUPS {
            return Err(value::too_many("groups", count as u64, MOST_GROUPS as u64, raw.name.span));
        }
    }
    Ok(())
}

fn of_shared(shared: &Option<Spanned<String>>) -> Option<(&str, Span)> {
    shared.as_ref().map(|name| (name.value.as_str(), name.span))
}

fn requesters(raw: &RawRequester, scale: u32, files: &Files) -> Result<DeviceGroup, Problem> {
    let timeout = raw.timeout.as_ref().map_or(Ok(USUAL_TIMEOUT), timeout)?;
    let in_flight = |count| value::count(count, "`in_flight`", 1, u32::from(u16::MAX));
    let in_flight = raw.in_flight.as_ref().map(in_flight).transpose()?;
    let in_flight = in_flight.map_or(USUAL_IN_FLIGHT, |count| count as u16);
    let group = device::group(&as_device(raw), scale, raw.name.span, files)?;
    if group.reaction().is_some() {
        return Err(Problem::new(ProblemKind::Conflict, "requests are sent on a schedule, not as reactions")
            .at(raw.name.span, "this group reacts")
            .help("give it `every` or `rate`; to answer messages, write a group in `responders`"));
    }
    let ids = group.identity.rows.iter().flat_map(|file| file.rows.iter()).filter_map(|row| row.client_id.as_ref());
    if let Some(id) = ids.chain(&group.identity.client_id).find(|id| id.contains(['+', '#'])) {
        return Err(Problem::new(ProblemKind::BadName, format!("the client id `{id}` of a requester has a wildcard"))
            .at(raw.name.span, "its answers go to a topic with the client id in it")
            .help("leave `+` and `#` out"));
    }
    Ok(DeviceGroup {
        // Acknowledgements of the requests themselves must not delay requests that `in_flight` allows.
        in_flight_window: group.in_flight_window.max(in_flight),
        requests: Some(Requests { timeout, in_flight }),
        ..group
    })
}

/// What a requester has in common with a device.
fn as_device(raw: &RawRequester) -> RawGroup {
    let raw = raw.clone();
    RawGroup {
        name: Some(raw.name),
        r#type: None,
        count: raw.count,
        scales: None,
        client: None,
        every: raw.every,
        rate: raw.rate,
        arrival: raw.arrival,
        phase: raw.phase,
        jitter: raw.jitter,
        profile: None,
        payload: raw.payload,
        body: raw.body,
        header: None,
        properties: None,
        transform: None,
        topic: raw.topic,
        qos: raw.qos,
        retain: None,
        session: None,
        churn: None,
        will: None,
        mqtt: None,
        in_flight_window: None,
        credentials: raw.credentials,
        link: raw.link,
        isolate: raw.isolate,
        when: None,
    }
}

fn timeout(text: &Text<DurationText>) -> Result<Duration, Problem> {
    let timeout = value::duration(text)?;
    if timeout < Duration::from_millis(1) || timeout > LONGEST_TIMEOUT {
        return Err(value::impossible(format!("a time-out cannot be {}", text.text))
            .at(text.span, "out of range")
            .help("it lies between 1ms and 10m"));
    }
    Ok(timeout)
}

fn responders(raw: &RawResponder, scale: u32, files: &Files) -> Result<SubscriberGroup, Problem> {
    check_name(&raw.name)?;
    let filters = &raw.filters.value.0;
    if filters.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "a responder without filters receives no requests")
            .at(raw.filters.span, "empty")
            .help("write the topic of the requests, for instance `filters: [\"requests/#\"]`"));
    }
    if filters.len() > MOST_FILTERS {
        return Err(value::too_many("filters", filters.len() as u64, MOST_FILTERS as u64, raw.filters.span));
    }
    let count = |text: &Option<Text<CountText>>, what, least, most, usual| {
        text.as_ref().map_or(Ok(usual), |text| value::count(text, what, least, most))
    };
    let scales = raw.scales.as_ref().is_some_and(|scales| scales.value);
    let own_count = value::scaled(raw.count.as_ref(), if scales { scale } else { 1 }, MOST_SUBSCRIBERS as u32)?;
    Ok(SubscriberGroup {
        name: raw.name.value.clone(),
        count: own_count,
        filters: filters.iter().map(topics::filter).collect::<Result<_, _>>()?,
        qos: raw.qos.as_ref().map_or(Ok(Qos::BestEffort), value::qos)?,
        session: SessionKind::Clean,
        identity: credentials::identity(raw.credentials.as_ref(), Of::Subscribers, own_count, files)?,
        shared: raw.shared.as_ref().map(|name| options::shared(name, &raw.filters.value)).transpose()?,
        processing: Duration::ZERO,
        client: None,
        link: links::of_group(raw.link.as_ref()),
        isolate: is_isolated(raw.isolate.as_ref()),
        responds: Some(Responds {
            reply_bytes: raw.reply.as_ref().map_or(Ok(USUAL_REPLY_BYTES), reply_bytes)?,
            processing: raw.processing.as_ref().map_or(Ok(ProcessingTime::Fixed(Duration::ZERO)), processing)?,
            concurrency: count(&raw.concurrency, "`concurrency`", 1, u32::from(u16::MAX), 1)? as u16,
            queue: count(&raw.queue, "`queue`", 0, LONGEST_QUEUE, USUAL_QUEUE)?,
        }),
        predicate: None,
        filtered_at: FilterPlace::Client,
    })
}

fn reply_bytes(text: &Text<SizeText>) -> Result<u32, Problem> {
    let bytes = value::unit(text, units::size)?;
    if bytes < f64::from(SMALLEST_REPLY_BYTES) || bytes > LARGEST_ANSWER_BYTES {
        return Err(value::impossible(format!("a reply cannot have {}", text.text))
            .at(text.span, "out of range")
            .help(format!("it has {SMALLEST_REPLY_BYTES}B, which its header takes, to 268435455B")));
    }
    if (bytes - bytes.round()).abs() > 1e-6 {
        return Err(value::impossible(format!("`{}` is not a whole number of bytes", text.text))
            .at(text.span, "an answer has whole bytes")
            .help(format!("write `{}B`", bytes.round())));
    }
    Ok(bytes.round() as u32)
}

fn processing(raw: &Form<Text<DurationText>, Spanned<RawProcessing>>) -> Result<ProcessingTime, Problem> {
    let full = match raw {
        Form::Short(time) => return value::duration(time).map(ProcessingTime::Fixed),
        Form::Full(full) => full,
    };
    let time = |text: &Option<Text<DurationText>>| text.as_ref().map(value::duration).transpose();
    let RawProcessing { mean, sd, min, max } = &full.value;
    match (time(mean)?, time(sd)?, time(min)?, time(max)?) {
        (Some(mean), None, None, None) => Ok(ProcessingTime::Exponential { mean }),
        (Some(mean), Some(sd), None, None) if !mean.is_zero() => Ok(ProcessingTime::Lognormal { mean, sd }),
        (None, None, Some(min), Some(max)) if min <= max => Ok(ProcessingTime::Uniform { min, max }),
        (None, None, Some(_), Some(_)) => Err(value::impossible("the longest time is below the shortest".to_owned())
            .at(full.span, "`max` is below `min`")
            .help("swap them")),
        _ => Err(Problem::new(ProblemKind::Conflict, "a processing time has exactly one distribution")
            .at(full.span, "here")
            .help("give one of: `mean`; `mean` above zero with `sd`; `min` and `max`")),
    }
}

/// Every request must have exactly one responder, or one shared group of them: otherwise it would be random which reply is
/// counted.
pub(crate) fn check_directions(workload: &Workload, raw: &RawWorkload) -> Result<(), Problem> {
    if !workload.has_requests() {
        return match raw.responders.first() {
            None => Ok(()),
            Some(group) => Err(Problem::new(ProblemKind::Conflict, "responders without requesters")
                .at(group.name.span, "it receives no requests")
                .help("add `requesters`, or write `subscribers` in place of `responders`")),
        };
    }
    let Some(found) = requests::misdirected(workload, &Fleet::new(workload, 1)) else { return Ok(()) };
    let name = &workload.devices[usize::from(found.group)].name;
    let place = raw.requesters.iter().find(|group| group.name.value == *name);
    let span = place.map_or(raw.name.span, |group| group.topic.as_ref().map_or(group.name.span, |topic| topic.span));
    Err(match found.responders.as_slice() {
        [] => Problem::new(ProblemKind::Conflict, format!("no responder replies to requests to `{}`", found.topic))
            .at(span, "no responder's filter matches it")
            .help("add it to the `filters` of a group in `responders`"),
        several => Problem::new(
            ProblemKind::Conflict,
            format!("several responders would reply to requests to `{}`", found.topic),
        )
        .at(span, format!("matched by {}", several.join(", ")))
        .help("make them one group with `shared: NAME`, or give each topics of its own"),
    })
}
