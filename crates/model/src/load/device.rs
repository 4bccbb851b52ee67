//! Device groups, checked.

use std::time::Duration;

use super::credentials::{self, Of};
use super::diagnostic::{Problem, ProblemKind, Span};
use super::files::Files;
use super::names::check_name;
use super::raw::{
    ArrivalWord, ChecksWord, LeaveWord, PhaseWord, RawArrival, RawChurn, RawGroup, SessionWord, is_isolated,
};
use super::shape::{Form, Spanned, Word};
use super::{links, options, payload, topics, value};
use crate::arrival::{Arrival, Phase};
use crate::churn::{CheckPhase, Churn, Leave};
use crate::payload::{Body, SizeDistribution};
use crate::qos::Qos;
use crate::reaction::{Reaction, Think};
use crate::topic::TopicTemplate;
use crate::workload::{DeviceGroup, SessionKind};

/// Messages in flight at most where a group says nothing.
pub(crate) const DEFAULT_IN_FLIGHT_WINDOW: u16 = 20;
/// Where a group sends that does not say.
const DEFAULT_TOPIC: &str = "{workload}/{domain}/{type}/{device}";
/// Most devices of one group.
const MOST_DEVICES: u32 = 1 << 24;
/// Most times of one trace.
const MOST_TRACE_TIMES: usize = 1_000_000;

/// Checks one group, counted out at a scale; `place` is what to underline where the group as a whole is meant.
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
    let count = value::scaled(raw.count.as_ref(), if scales(raw) { scale } else { 1 }, MOST_DEVICES)?;
    let group = DeviceGroup {
        name: name.value.clone(),
        count,
        arrival: arrival(raw, || missing("when it sends", "add `every: 5s` or `rate: 10/s`"))?,
        size,
        body,
        header,
        properties: options::properties(raw.properties.as_ref(), name)?,
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
    };
    payload::with_body(group, raw)
}

fn scales(raw: &RawGroup) -> bool {
    raw.scales.as_ref().is_none_or(|scales| scales.value)
}

/// What a session keeps.
pub(crate) fn session(word: Option<&Word<SessionWord>>) -> SessionKind {
    match word.map(|word| word.value) {
        Some(SessionWord::Persistent) => SessionKind::Persistent,
        Some(SessionWord::Clean) | None => SessionKind::Clean,
    }
}

fn arrival(raw: &RawGroup, missing: impl Fn() -> Problem) -> Result<Arrival, Problem> {
    if let (Some(every), Some(rate)) = (&raw.every, &raw.rate) {
        return Err(Problem::new(ProblemKind::Conflict, "`every` and `rate` say the same thing twice")
            .at(rate.span, "this")
            .at(every.span, "and this")
            .help("keep one of the two"));
    }
    match &raw.arrival {
        None => periodic(raw, missing),
        Some(Form::Short(word)) => match word.value {
            ArrivalWord::Periodic => periodic(raw, missing),
            ArrivalWord::Poisson => match (&raw.every, &raw.rate) {
                (_, Some(rate)) => Ok(Arrival::Poisson { rate_per_s: value::rate(rate)? }),
                (Some(every), None) => Ok(Arrival::Poisson { rate_per_s: 1.0 / value::interval(every)?.as_secs_f64() }),
                (None, None) => Err(missing()),
            },
            ArrivalWord::Flood => without_pace(raw, "a flood", Arrival::Flood),
        },
        Some(Form::Full(full)) => match (&full.value.trace, &full.value.reaction_to) {
            (_, Some(to)) => without_pace(raw, "a reaction", reaction(&full.value, to)?),
            (Some(_), None) => without_pace(raw, "a trace", trace(&full.value, full.span)?),
            (None, None) => on_off(raw, &full.value, full.span, missing),
        },
    }
}

fn pace(raw: &RawGroup, missing: impl Fn() -> Problem) -> Result<(Duration, Span), Problem> {
    match (&raw.every, &raw.rate) {
        (Some(every), _) => Ok((value::interval(every)?, every.span)),
        (None, Some(rate)) => {
            let interval = Duration::try_from_secs_f64(1.0 / value::rate(rate)?).unwrap_or(Duration::MAX);
            Ok((interval, rate.span))
        }
        (None, None) => Err(missing()),
    }
}

fn periodic(raw: &RawGroup, missing: impl Fn() -> Problem) -> Result<Arrival, Problem> {
    let (interval, pace_span) = pace(raw, missing)?;
    let jitter = raw.jitter.as_ref().map_or(Ok(Duration::ZERO), value::duration)?;
    if let Some(text) = raw.jitter.as_ref().filter(|_| jitter >= interval / 2) {
        return Err(value::impossible(format!("a jitter of {} would let messages overtake each other", text.text))
            .at(text.span, "half the interval or more")
            .at(pace_span, "the interval")
            .help(format!("keep it below {:?}", interval / 2)));
    }
    let phase = match raw.phase.as_ref().map(|phase| phase.value) {
        Some(PhaseWord::Aligned) => Phase::Aligned,
        Some(PhaseWord::Spread) | None => Phase::Spread,
    };
    Ok(Arrival::Periodic { interval, phase, jitter })
}

fn without_pace(raw: &RawGroup, what: &str, arrival: Arrival) -> Result<Arrival, Problem> {
    let pace = raw.every.as_ref().map(|every| every.span).or(raw.rate.as_ref().map(|rate| rate.span));
    match pace {
        None => Ok(arrival),
        Some(span) => Err(Problem::new(ProblemKind::Conflict, format!("{what} has a pace of its own"))
            .at(span, "not read")
            .help("leave `every` and `rate` out, or add `arrival: periodic` here")),
    }
}

fn on_off(raw: &RawGroup, full: &RawArrival, span: Span, missing: impl Fn() -> Problem) -> Result<Arrival, Problem> {
    let (Some(on), Some(off)) = (&full.on, &full.off) else {
        return Err(Problem::new(
            ProblemKind::MissingKey,
            "an arrival in full is `{on: …, off: …}`, `{trace: […]}` or `{reaction_to: …}`",
        )
        .at(span, "incomplete")
        .help("write for instance `arrival: {on: 5s, off: 20s}` beside `every: 100ms`"));
    };
    if let Some(think) = &full.think {
        return Err(Problem::new(ProblemKind::Conflict, "`think` belongs to a reaction").at(think.span, "not read"));
    }
    if let Some(repeat) = &full.repeat {
        return Err(Problem::new(ProblemKind::Conflict, "`repeat` belongs to a trace").at(repeat.span, "not read"));
    }
    Ok(Arrival::OnOff {
        interval: pace(raw, missing)?.0,
        mean_on: value::long_period(on, "an on period")?,
        mean_off: value::long_period(off, "an off period")?,
    })
}

fn reaction(full: &RawArrival, to: &Spanned<String>) -> Result<Arrival, Problem> {
    let others = [&full.on, &full.off, &full.repeat].into_iter().flatten().map(|text| text.span);
    let trace = full.trace.as_ref().and_then(|times| times.first()).map(|time| time.span);
    if let Some(span) = others.chain(trace).next() {
        return Err(Problem::new(ProblemKind::Conflict, "a reaction has no times of its own").at(span, "not read"));
    }
    let think = full.think.as_ref().map_or(Ok(Think::Fixed(Duration::ZERO)), value::think)?;
    Ok(Arrival::Reaction(Reaction { to: topics::reaction(to)?, think }))
}

fn trace(full: &RawArrival, span: Span) -> Result<Arrival, Problem> {
    if let Some(other) = full.on.as_ref().or(full.off.as_ref()) {
        return Err(Problem::new(ProblemKind::Conflict, "a trace has no on and off periods").at(other.span, "not read"));
    }
    let times = full.trace.as_deref().unwrap_or_default();
    if times.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "`trace` is empty")
            .at(span, "here")
            .help("list at least one time"));
    }
    if times.len() > MOST_TRACE_TIMES {
        return Err(value::too_many("times", times.len() as u64, MOST_TRACE_TIMES as u64, span));
    }
    let mut offsets_ns: Vec<u64> = Vec::with_capacity(times.len());
    for time in times {
        let offset = value::duration(time)?.as_nanos() as u64;
        if offsets_ns.last().is_some_and(|last| *last > offset) {
            return Err(value::impossible(format!("`{}` comes before the time in front of it", time.text))
                .at(time.span, "not ascending")
                .help("a trace's times count from its start and ascend"));
        }
        offsets_ns.push(offset);
    }
    let period = match &full.repeat {
        None => None,
        Some(text) => {
            let period = value::period(text, "`repeat`")?;
            if u128::from(offsets_ns.last().copied().unwrap_or(0)) >= period.as_nanos() {
                return Err(value::impossible("the trace starts again before it is over".to_owned())
                    .at(text.span, "too short")
                    .help("make `repeat` longer than the last time"));
            }
            Some(period)
        }
    };
    let arrival = Arrival::Trace { offsets_ns: offsets_ns.into(), period };
    match full.repeat.as_ref().filter(|_| arrival.is_too_fast()) {
        Some(text) => Err(value::too_fast(text.span).help("make `repeat` longer, or use more devices")),
        None => Ok(arrival),
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
