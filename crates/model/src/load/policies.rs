//! Validates devices that change their rate: by the time of day, from state to state, and after a received message.

use std::time::Duration;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::names::{Names, check_name};
use super::raw_policies::{RawProfile, RawState, RawWhen};
use super::shape::{ChanceText, Named, Spanned, Text};
use super::topics;
use super::value::{self, impossible};
use crate::arrival::Arrival;
use crate::profile::{MINUTES, Profile};
use crate::slowdown::Slowdown;
use crate::states::{MOST_STATES, State, States};
use crate::units;

/// Default length of a day of a profile.
const USUAL_DAY: Duration = Duration::from_secs(24 * 3600);
/// Largest multiplier of a profile. The time of a device's process is counted in ns with 63 bits, which a run of ten days
/// at this multiplier does not exceed.
const LARGEST_MULTIPLIER: f64 = 1e4;
/// Largest mean multiplier times the length of a day, ns, for the same reason.
const LONGEST_DEVICE_DAY_NS: f64 = (1u64 << 62) as f64;
/// Smallest mean multiplier of a profile: below it, devices would practically never send.
const SMALLEST_MEAN: f64 = 1e-6;

/// A group's arrival process with a rate that depends on the time of day.
pub(crate) fn profiled(
    base: Arrival,
    raw: &RawProfile,
    span: Span,
    name: &Spanned<String>,
) -> Result<Arrival, Problem> {
    if !matches!(base, Arrival::Periodic { .. } | Arrival::Poisson { .. }) {
        return Err(Problem::new(
            ProblemKind::Conflict,
            format!("`{}` has no rate that a profile could change", name.value),
        )
        .at(span, "a profile is for `arrival: periodic` and `arrival: poisson`")
        .help("leave it out, or write `profile: none` where a type or the defaults have one"));
    }
    let day = raw.day.as_ref().map_or(Ok(USUAL_DAY), |day| value::long_period(day, "a day"))?;
    let start = raw.start.as_ref().map_or(Ok(0), minute)?;
    let mut points: Vec<(u32, f64)> = Vec::with_capacity(raw.curve.value.0.len());
    for (time, multiplier) in &raw.curve.value.0 {
        let at = minute(time)?;
        if points.iter().any(|(known, _)| *known == at) {
            return Err(impossible(format!("the curve has two points at `{}`", time.value))
                .at(time.span, "the second one")
                .help("a step takes two points, a minute apart"));
        }
        let number = value::number(multiplier)?;
        if number > LARGEST_MULTIPLIER {
            return Err(impossible(format!("a multiplier of {} is more than {LARGEST_MULTIPLIER}", multiplier.text))
                .at(multiplier.span, "too large")
                .help("give the devices a higher `rate`, and write multipliers of it"));
        }
        points.push((at, number));
    }
    points.sort_by_key(|(at, _)| *at);
    if points.is_empty() {
        return Err(Problem::new(ProblemKind::Empty, "`curve` has no points")
            .at(raw.curve.span, "empty")
            .help("write for instance `curve: {\"00:00\": 0.2, \"08:00\": 1, \"18:00\": 1.5}`"));
    }
    let profile = Profile::new(day, start, &points);
    if profile.mean() < SMALLEST_MEAN {
        return Err(impossible("the devices of this curve never send".to_owned())
            .at(raw.curve.span, "zero all day")
            .help("give one point at least a multiplier above 0"));
    }
    if profile.mean() * day.as_nanos() as f64 >= LONGEST_DEVICE_DAY_NS {
        return Err(impossible("multipliers this high cannot be followed over a day this long".to_owned())
            .at(raw.curve.span, "too high for the length of the day")
            .help("give the devices a higher `rate`, and write multipliers of it, or make `day` shorter"));
    }
    let arrival = Arrival::Profiled { base: Box::new(base), profile };
    match arrival.is_too_fast() {
        true => Err(value::too_fast(raw.curve.span).help("lower the highest multiplier, or use more devices")),
        false => Ok(arrival),
    }
}

/// A time of day such as `06:30`, in minutes.
fn minute(text: &Spanned<String>) -> Result<u32, Problem> {
    let number = |part: &str, most: u32| {
        let digits = part.len() <= 2 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|number| digits && *number <= most)
    };
    let time = text.value.split_once(':').filter(|(_, minutes)| minutes.len() == 2);
    let minute = time.and_then(|(hours, minutes)| Some(number(hours, 23)? * 60 + number(minutes, 59)?));
    minute.filter(|minute| *minute < MINUTES).ok_or_else(|| {
        Problem::new(ProblemKind::BadUnit, format!("`{}` is not a time of day", text.value))
            .at(text.span, "cannot be read")
            .help("times of day go from \"00:00\" to \"23:59\", in quotes")
    })
}

/// The states of a group's devices.
pub(crate) fn states(raw: &Spanned<Vec<Spanned<RawState>>>) -> Result<Arrival, Problem> {
    let states = &raw.value;
    if states.len() < 2 {
        return Err(Problem::new(ProblemKind::Empty, "a device that changes has at least two states")
            .at(raw.span, "here")
            .help("write for instance `states: [{name: idle, rate: 1/min, for: 30s}, {name: active, rate: 10/s, for: 5s}]`"));
    }
    if states.len() > MOST_STATES {
        return Err(value::too_many("states", states.len() as u64, MOST_STATES as u64, raw.span));
    }
    let mut names = Names::default();
    for state in states {
        check_name(&state.value.name)?;
        names.add("state", &state.value.name.value, state.value.name.span)?;
    }
    let checked: Vec<State> =
        (0..states.len()).map(|place| state(&states[place].value, place, states)).collect::<Result<_, _>>()?;
    if checked.iter().all(|state| state.interval.is_none()) {
        return Err(impossible("the device sends in none of its states".to_owned())
            .at(raw.span, "all silent")
            .help("give one state at least a `rate` above `0/s`"));
    }
    let states = States::new(checked).map_err(|found| {
        let [state, from] = [found.state, found.from].map(|place| &states[place].value.name);
        impossible(format!("no way leads from state `{}` to state `{}`", from.value, state.value))
            .at(from.span, "never left for it")
            .help(format!("add `{}` to the `next` of a state that follows `{}`", state.value, from.value))
    })?;
    Ok(Arrival::States(states))
}

/// The lower rate of a group's devices after a received message; `arrival` is their arrival process.
pub(crate) fn slowdown(raw: &Spanned<RawWhen>, arrival: &Arrival) -> Result<Slowdown, Problem> {
    let RawWhen { receives, rate, every, r#for } = &raw.value;
    if matches!(arrival, Arrival::Flood | Arrival::Reaction(_)) {
        return Err(Problem::new(
            ProblemKind::Conflict,
            "devices without a schedule of their own have no rate to lower",
        )
        .at(raw.span, "not read")
        .help("`when` is for devices with `every`, `rate`, states, on and off periods, or a trace"));
    }
    let (interval, span) = match (rate, every) {
        (Some(rate), None) => (value::rate_or_silence(rate)?.map(value::interval_of), rate.span),
        (None, Some(every)) => (Some(value::interval(every)?), every.span),
        (Some(rate), Some(every)) => {
            return Err(Problem::new(ProblemKind::Conflict, "`every` and `rate` say the same thing twice")
                .at(rate.span, "this")
                .at(every.span, "and this")
                .help("keep one of the two"));
        }
        (None, None) => {
            return Err(Problem::new(ProblemKind::MissingKey, "`when` has no rate")
                .at(raw.span, "here")
                .help("add `rate: 1/s`, or `rate: 0/s` if the device is silent in that time"));
        }
    };
    let on = topics::reaction(receives)?;
    // The times of a trace may lie closer together than its mean rate says.
    let is_trace = matches!(arrival, Arrival::Trace { .. });
    let usual = arrival.highest_rate_per_s().filter(|_| !is_trace).map(value::interval_of);
    if interval.zip(usual).is_some_and(|(interval, usual)| interval <= usual) {
        let more = format!("`arrival: {{reaction_to: \"{}\", for: {}}}`", on.0, r#for.text);
        return Err(impossible("the rate of `when` is not below the rate that the devices have without it".to_owned())
            .at(span, "not lower")
            .help(format!("for messages in addition, add a group with the same `client` and {more}")));
    }
    Ok(Slowdown { on, interval, length: value::long_period(r#for, "`for`")? })
}

fn state(raw: &RawState, place: usize, all: &[Spanned<RawState>]) -> Result<State, Problem> {
    let interval = match (&raw.rate, &raw.every) {
        (Some(rate), None) => value::rate_or_silence(rate)?.map(value::interval_of),
        (None, Some(every)) => Some(value::interval(every)?),
        (Some(rate), Some(every)) => {
            return Err(Problem::new(ProblemKind::Conflict, "`every` and `rate` say the same thing twice")
                .at(rate.span, "this")
                .at(every.span, "and this")
                .help("keep one of the two"));
        }
        (None, None) => {
            return Err(Problem::new(ProblemKind::MissingKey, format!("state `{}` has no rate", raw.name.value))
                .at(raw.name.span, "this state")
                .help("add `rate: 1/s`, or `rate: 0/s` if the device is silent in it"));
        }
    };
    let length = value::random_time(&raw.r#for)?;
    value::not_below_shortest(length.mean(), "a state", raw.r#for.span)?;
    let next = match &raw.next {
        Some(next) => chances(next, all)?,
        None => (0..all.len()).map(|other| f64::from(u8::from(other == (place + 1) % all.len()))).collect(),
    };
    Ok(State { name: raw.name.value.clone(), interval, length, next })
}

/// Chances of the next states, by index.
fn chances(raw: &Spanned<Named<Text<ChanceText>>>, all: &[Spanned<RawState>]) -> Result<Vec<f64>, Problem> {
    let mut chances = vec![0.0; all.len()];
    for (name, chance) in &raw.value.0 {
        let place = all.iter().position(|state| state.value.name.value == name.value).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|state| format!("`{}`", state.value.name.value)).collect();
            impossible(format!("there is no state `{}`", name.value))
                .at(name.span, "not a state of this group")
                .help(format!("states are {}", names.join(", ")))
        })?;
        let share = value::unit(chance, units::chance)?;
        if !(0.0..=1.0).contains(&share) {
            return Err(impossible(format!("a chance of {} cannot be", chance.text))
                .at(chance.span, "out of range")
                .help("a chance lies between 0% and 100%"));
        }
        chances[place] = share;
    }
    let sum: f64 = chances.iter().sum();
    if (sum - 1.0).abs() > 1e-9 {
        return Err(impossible(format!("the chances of `next` add up to {} %", (sum * 1e4).round() / 100.0))
            .at(raw.span, "not 100 %")
            .help("something follows every state: make them add up to 100 %"));
    }
    Ok(chances.iter().map(|chance| chance / sum).collect())
}
