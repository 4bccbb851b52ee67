//! Validates when the devices of a group send.

use std::time::Duration;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::raw::{ArrivalWord, PhaseWord, RawArrival, RawGroup};
use super::shape::{DurationText, Form, Spanned, Text};
use super::{policies, topics, value};
use crate::arrival::{Arrival, Phase};
use crate::random::RandomTime;
use crate::reaction::{Burst, LONGEST_BURST, Reaction};

/// Maximum number of times of one trace.
const MOST_TRACE_TIMES: usize = 1_000_000;

/// The arrival process of a group; `missing` is the error if the group has none.
pub(crate) fn arrival(
    raw: &RawGroup,
    name: &Spanned<String>,
    missing: impl Fn() -> Problem,
) -> Result<Arrival, Problem> {
    let plain = without_profile(raw, missing)?;
    if let (Some(jitter), false) = (&raw.jitter, matches!(plain, Arrival::Periodic { .. })) {
        return Err(Problem::new(ProblemKind::Conflict, "`jitter` moves the due times of periodic devices only")
            .at(jitter.span, "not read")
            .help("leave it out, or write `jitter: null` where a type or the defaults have one"));
    }
    match &raw.profile {
        Some(Form::Full(profile)) => policies::profiled(plain, &profile.value, profile.span, name),
        Some(Form::Short(_)) | None => Ok(plain),
    }
}

fn without_profile(raw: &RawGroup, missing: impl Fn() -> Problem) -> Result<Arrival, Problem> {
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
        Some(Form::Full(full)) => in_full(raw, &full.value, full.span, missing),
    }
}

fn pace(raw: &RawGroup, missing: impl Fn() -> Problem) -> Result<(Duration, Span), Problem> {
    match (&raw.every, &raw.rate) {
        (Some(every), _) => Ok((value::interval(every)?, every.span)),
        (None, Some(rate)) => Ok((value::interval_of(value::rate(rate)?), rate.span)),
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

fn in_full(raw: &RawGroup, full: &RawArrival, span: Span, missing: impl Fn() -> Problem) -> Result<Arrival, Problem> {
    let RawArrival { on, off, trace, repeat, reaction_to, think, r#for, states } = full;
    let place = |text: &Option<Text<DurationText>>| text.as_ref().map(|text| text.span);
    // Keys that select a kind, with the other keys that belong to it.
    let keys = [
        ("on", place(on), "on and off periods"),
        ("off", place(off), "on and off periods"),
        ("trace", trace.as_ref().map(|times| times.first().map_or(span, |time| time.span)), "a trace"),
        ("repeat", place(repeat), "a trace"),
        ("reaction_to", reaction_to.as_ref().map(|to| to.span), "a reaction"),
        ("think", think.as_ref().map(|text| text.span), "a reaction"),
        ("for", place(r#for), "a reaction"),
        ("states", states.as_ref().map(|states| states.span), "states"),
    ];
    let kind = match () {
        () if reaction_to.is_some() => "a reaction",
        () if states.is_some() => "states",
        () if trace.is_some() => "a trace",
        () if on.is_some() && off.is_some() => "on and off periods",
        () => {
            return Err(Problem::new(
                ProblemKind::MissingKey,
                "an arrival in full is `{on: …, off: …}`, `{states: […]}`, `{trace: […]}` or `{reaction_to: …}`",
            )
            .at(span, "incomplete")
            .help("write for instance `arrival: {on: 5s, off: 20s}` beside `every: 100ms`"));
        }
    };
    let stray = keys.into_iter().find(|(_, place, of)| place.is_some() && *of != kind);
    if let Some((key, place, of)) = stray {
        return Err(Problem::new(ProblemKind::Conflict, format!("`{key}` belongs to {of}, and this is {kind}"))
            .at(place.unwrap_or(span), "not read")
            .help("an arrival is of one kind: leave this key out"));
    }
    if let Some(to) = reaction_to {
        return reaction(raw, full, to, missing);
    }
    match (states, on, off) {
        (Some(states), ..) => without_pace(raw, "each state", policies::states(states)?),
        (None, Some(on), Some(off)) => Ok(Arrival::OnOff {
            interval: pace(raw, missing)?.0,
            mean_on: value::long_period(on, "an on period")?,
            mean_off: value::long_period(off, "an off period")?,
        }),
        _ => without_pace(raw, "a trace", self::trace(full, span)?),
    }
}

fn reaction(
    raw: &RawGroup,
    full: &RawArrival,
    to: &Spanned<String>,
    missing: impl Fn() -> Problem,
) -> Result<Arrival, Problem> {
    let think = full.think.as_ref().map_or(Ok(RandomTime::Fixed(Duration::ZERO)), value::random_time)?;
    let reaction = |burst| -> Result<Arrival, Problem> {
        Ok(Arrival::Reaction(Reaction { to: topics::reaction(to)?, think, burst }))
    };
    let Some(length) = &full.r#for else {
        return without_pace(raw, "a reaction without `for`", reaction(Burst::ONE)?);
    };
    let interval = pace(raw, missing)?.0;
    let burst = Burst::of_length(value::period(length, "`for`")?, interval).ok_or_else(|| {
        Problem::new(ProblemKind::TooLarge, format!("a trigger makes at most {LONGEST_BURST} messages due"))
            .at(length.span, "more than that")
            .help("make `for` shorter, or the rate lower")
    })?;
    reaction(burst)
}

fn trace(full: &RawArrival, span: Span) -> Result<Arrival, Problem> {
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
