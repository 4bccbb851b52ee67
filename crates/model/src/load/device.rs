//! Validates device groups.

use std::time::Duration;

use super::credentials::{self, Of};
use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::Files;
use super::names::check_name;
use super::raw::{ChecksWord, LeaveWord, RawChurn, RawGroup, SessionWord, is_isolated};
use super::shape::{Form, Word};
use super::{arrival, links, options, payload, policies, topics, transform, value};
use crate::churn::{CheckPhase, Churn, Leave};
use crate::payload::{Body, SizeDistribution};
use crate::qos::Qos;
use crate::topic::TopicTemplate;
use crate::workload::{DeviceGroup, SessionKind};

/// Default in-flight window of a group.
pub(crate) const DEFAULT_IN_FLIGHT_WINDOW: u16 = 20;
/// Default topic of a group.
const DEFAULT_TOPIC: &str = "{workload}/{domain}/{type}/{device}";
/// Maximum number of devices of one group.
const MOST_DEVICES: u32 = 1 << 24;

/// Validates a group at a scale; `place` is the span for errors that concern the whole group.
pub(crate) fn group(raw: &RawGroup, scale: u32, place: Span, files: &Files) -> Result<DeviceGroup, Problem> {
    let name = raw.name.as_ref().or(raw.r#type.as_ref()).ok_or_else(|| {
        Problem::new(ProblemKind::MissingKey, "a device group needs a `type` or a `name`")
            .at(place, "this group has neither")
            .help("add `type: domain/type` of one of `device_types`, or a `name`")
    })?;
    check_name(name)?;
    let missing = |what: &str, help: &str| {
        Problem::new(ProblemKind::MissingKey, format!("`{}` does not say {what}", name.value))
            .at(name.span, "nor do its type and the defaults")
            .help(help)
    };
    let header = options::header(raw)?;
    let body = payload::body(raw.body.as_ref())?;
    let size = match (&raw.payload, &body) {
        (Some(size), _) => payload::distribution(size, files)?,
        (None, Body::Template(template)) => SizeDistribution::Rendered { template: template.clone(), header_bytes: 0 },
        (None, _) => return Err(missing("how large its messages are", "add `payload: 100B`")),
    };
    let window = |count| value::count(count, "`in_flight_window`", 1, u32::from(u16::MAX));
    let window = raw.in_flight_window.as_ref().map(window).transpose()?;
    let session = session(raw.session.as_ref());
    let arrival = arrival::arrival(raw, name, || missing("when it sends", "add `every: 5s` or `rate: 10/s`"))?;
    let count = value::scaled(raw.count.as_ref(), if scales(raw) { scale } else { 1 }, MOST_DEVICES)?;
    let group = DeviceGroup {
        name: name.value.clone(),
        count,
        size,
        body,
        header,
        properties: options::properties(raw.properties.as_ref(), name)?,
        transform: transform::steps(raw.transform.as_ref())?,
        topic: raw.topic.as_ref().map_or_else(|| Ok(TopicTemplate(DEFAULT_TOPIC.to_owned())), topics::template)?,
        qos: raw.qos.as_ref().map_or(Ok(Qos::BestEffort), value::qos)?,
        retain: raw.retain.as_ref().is_some_and(|retain| retain.value),
        session,
        churn: match &raw.churn {
            Some(Form::Full(churn)) => Some(self::churn(&churn.value, churn.span)?),
            Some(Form::Short(_)) | None => None,
        },
        will: options::will(raw, session)?,
        mqtt: options::mqtt(raw.mqtt.as_ref())?,
        in_flight_window: window.map_or(DEFAULT_IN_FLIGHT_WINDOW, |window| window as u16),
        identity: credentials::identity(raw.credentials.as_ref(), Of::Devices, count, files)?,
        client: raw.client.as_ref().map(|client| check_name(client).map(|()| client.value.clone())).transpose()?,
        link: links::of_group(raw.link.as_ref()),
        isolate: is_isolated(raw.isolate.as_ref()),
        requests: None,
        slowdown: raw.when.as_ref().map(|when| policies::slowdown(when, &arrival)).transpose()?,
        arrival,
    };
    payload::with_body(group, raw)
}

fn scales(raw: &RawGroup) -> bool {
    raw.scales.as_ref().is_none_or(|scales| scales.value)
}

/// What the system retains of a session.
pub(crate) fn session(word: Option<&Word<SessionWord>>) -> SessionKind {
    match word.map(|word| word.value) {
        Some(SessionWord::Persistent) => SessionKind::Persistent,
        Some(SessionWord::Clean) | None => SessionKind::Clean,
    }
}

fn churn(raw: &RawChurn, span: Span) -> Result<Churn, Problem> {
    let (disconnect_chance, disconnect_check) = value::check(&raw.disconnect)?;
    let reconnect = raw.reconnect.as_ref().map(value::check).transpose()?;
    let (reconnect_chance, reconnect_check) = reconnect.unwrap_or((0.0, Duration::ZERO));
    if disconnect_chance > 0.0 && (reconnect_chance == 0.0 || reconnect_check.is_zero()) {
        let place = raw.reconnect.as_ref().map_or(span, |text| text.span);
        return Err(value::impossible("a device that leaves would never come back".to_owned())
            .at(place, "no reconnect")
            .help("add for instance `reconnect: 50% every 5s`"));
    }
    Ok(Churn {
        disconnect_check,
        disconnect_chance,
        reconnect_check,
        reconnect_chance,
        phase: match raw.checks.as_ref().map(|checks| checks.value) {
            Some(ChecksWord::Together) => CheckPhase::Together,
            Some(ChecksWord::Random) | None => CheckPhase::Random,
        },
        leave: match raw.leave.as_ref().map(|leave| leave.value) {
            Some(LeaveWord::Cut) => Leave::Cut,
            Some(LeaveWord::Graceful) | None => Leave::Graceful,
        },
    })
}
