//! Parses single values from texts: units, counts, QoS, checks, each with specific problems.

use std::time::Duration;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::shape::{CheckText, CountText, DurationText, NumberText, QosText, RateText, ShareText, Text, ThinkText};
use super::suggest;
use crate::qos::Qos;
use crate::random::RandomTime;
use crate::units::{self, UnitError};

/// Shortest accepted time between two messages of a device.
const SHORTEST_INTERVAL: Duration = Duration::from_nanos(1000);

/// Shortest time between two checks of a device's connectivity, and shortest mean of its on and off periods: no connection
/// is established in less, and the draws of a schedule of nanoseconds would not end.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// A value that is not possible.
pub(crate) fn impossible(message: String) -> Problem {
    Problem::new(ProblemKind::ImpossibleValue, message)
}

/// A number above its maximum.
pub(crate) fn too_many(what: &str, count: u64, most: u64, span: Span) -> Problem {
    Problem::new(ProblemKind::TooLarge, format!("{count} {what} are more than {most}")).at(span, "here")
}

/// Reads a text with a unit.
pub(crate) fn unit<K, T>(text: &Text<K>, read: fn(&str) -> Result<T, UnitError>) -> Result<T, Problem> {
    read(&text.text).map_err(|error| {
        Problem::new(ProblemKind::BadUnit, error.message).at(text.span, "cannot be read").maybe_help(error.hint)
    })
}

/// A duration, zero included.
pub(crate) fn duration(text: &Text<DurationText>) -> Result<Duration, Problem> {
    unit(text, units::duration)
}

/// A duration above zero.
pub(crate) fn period(text: &Text<DurationText>, what: &str) -> Result<Duration, Problem> {
    let period = duration(text)?;
    if period.is_zero() {
        return Err(impossible(format!("{what} cannot be zero"))
            .at(text.span, "zero")
            .help("write how long it is, for instance `1s`; for as fast as possible, `arrival: flood`"));
    }
    Ok(period)
}

/// A duration of at least a millisecond: a device cannot follow shorter ones.
pub(crate) fn long_period(text: &Text<DurationText>, what: &str) -> Result<Duration, Problem> {
    let period = period(text, what)?;
    not_below_shortest(period, what, text.span).map(|()| period)
}

pub(crate) fn not_below_shortest(period: Duration, what: &str, span: Span) -> Result<(), Problem> {
    if period >= SHORTEST_PERIOD {
        return Ok(());
    }
    Err(impossible(format!("{what} cannot be shorter than {SHORTEST_PERIOD:?}"))
        .at(span, "shorter than that")
        .help("write for instance `100ms` or `5s`"))
}

/// Time between two messages, from `every`.
pub(crate) fn interval(text: &Text<DurationText>) -> Result<Duration, Problem> {
    not_too_short(period(text, "the time between two messages")?, text.span)
}

/// Messages per second, above zero.
pub(crate) fn rate(text: &Text<RateText>) -> Result<f64, Problem> {
    rate_or_silence(text)?.ok_or_else(|| {
        impossible("a rate cannot be zero".to_owned())
            .at(text.span, "no messages")
            .help("write for instance `1/s` or `1/min`")
    })
}

/// Messages per second; `None` for `0/s`.
pub(crate) fn rate_or_silence(text: &Text<RateText>) -> Result<Option<f64>, Problem> {
    let rate = unit(text, units::rate)?;
    if rate <= 0.0 {
        return Ok(None);
    }
    not_too_short(interval_of(rate), text.span)?;
    Ok(Some(rate))
}

/// Time between two messages at a rate, messages per second.
pub(crate) fn interval_of(rate_per_s: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / rate_per_s).unwrap_or(Duration::MAX)
}

fn not_too_short(interval: Duration, span: Span) -> Result<Duration, Problem> {
    if interval < SHORTEST_INTERVAL {
        return Err(too_fast(span).help("use more devices, or `arrival: flood`"));
    }
    Ok(interval)
}

/// The rate is above the maximum of a device.
pub(crate) fn too_fast(span: Span) -> Problem {
    Problem::new(ProblemKind::TooLarge, "a device sends at most a million messages per second")
        .at(span, "faster than that")
}

/// A whole number from `least` to `most`.
pub(crate) fn count(text: &Text<CountText>, what: &str, least: u32, most: u32) -> Result<u32, Problem> {
    let Ok(number) = text.text.parse::<i64>() else {
        return Err(Problem::new(ProblemKind::WrongKind, format!("{what} is a whole number, not `{}`", text.text))
            .at(text.span, "not a whole number"));
    };
    match u32::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(impossible(format!("{what} cannot be {number}"))
            .at(text.span, "out of range")
            .help(format!("it lies between {least} and {most}"))),
    }
}

/// A group's count at a scale, rounded up; at least one, at most `most`. The default is one for each unit of the scale.
pub(crate) fn scaled(text: Option<&Text<ShareText>>, scale: u32, most: u32) -> Result<u32, Problem> {
    let Some(text) = text else { return Ok(scale) };
    let wrong = |why: String| Problem::new(ProblemKind::WrongKind, why).at(text.span, "not a count");
    let share: f64 =
        text.text.parse().map_err(|_| wrong(format!("a group's count is a number, not `{}`", text.text)))?;
    // Decimal fractions are not exact in binary: 0.2 of 15 is a little more than 3.
    let count = (share * f64::from(scale) - 1e-9).ceil();
    match count >= 1.0 && count <= f64::from(most) {
        true => Ok(count as u32),
        false => {
            Err(impossible(format!("`count` gives the group {} members", if count > 1.0 { "too many" } else { "no" }))
                .at(text.span, "out of range")
                .help(format!("it lies between 1 and {most}, times the scale")))
        }
    }
}

/// A constant or random time: `20ms`, `exponential 20ms`.
pub(crate) fn random_time(text: &Text<ThinkText>) -> Result<RandomTime, Problem> {
    let (rest, exponential) = match text.text.trim().strip_prefix("exponential ") {
        Some(rest) => (rest, true),
        None => (text.text.as_str(), false),
    };
    let time = duration(&Text::new(rest.trim().to_owned(), text.span))?;
    Ok(if exponential { RandomTime::Exponential(time) } else { RandomTime::Fixed(time) })
}

/// A number of at least zero.
pub(crate) fn number(text: &Text<NumberText>) -> Result<f64, Problem> {
    match text.text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Ok(_) => Err(impossible(format!("`{}` is below zero", text.text)).at(text.span, "out of range")),
        Err(_) => Err(Problem::new(ProblemKind::WrongKind, format!("`{}` is not a number", text.text))
            .at(text.span, "a plain number, without unit")),
    }
}

/// A QoS.
pub(crate) fn qos(text: &Text<QosText>) -> Result<Qos, Problem> {
    let word = |qos: Qos| match qos {
        Qos::BestEffort => "best-effort",
        Qos::AtLeastOnce => "at-least-once",
        Qos::ExactlyOnce => "exactly-once",
    };
    let known = Qos::ALL.into_iter().find(|qos| text.text == qos.level().to_string() || text.text == word(*qos));
    known.ok_or_else(|| {
        impossible(format!("there is no QoS {}", text.text))
            .at(text.span, "not a level")
            .help("levels are `0` (best-effort), `1` (at-least-once), `2` (exactly-once)")
    })
}

/// A chance with the time between checks: `20% every 5s`.
pub(crate) fn check(text: &Text<CheckText>) -> Result<(f64, Duration), Problem> {
    let words: Vec<&str> = text.text.split_whitespace().collect();
    let [chance, "every", period] = words.as_slice() else {
        return Err(Problem::new(ProblemKind::BadUnit, format!("`{}` is not a chance with a period", text.text))
            .at(text.span, "cannot be read")
            .help("write it like `20% every 5s`"));
    };
    let part = |error: UnitError| {
        Problem::new(ProblemKind::BadUnit, error.message).at(text.span, "cannot be read").maybe_help(error.hint)
    };
    let period = units::duration(period).map_err(part)?;
    let share = units::chance(chance).map_err(part)?;
    if !(0.0..=1.0).contains(&share) {
        return Err(impossible(format!("a chance of {chance} cannot be"))
            .at(text.span, "out of range")
            .help("a chance lies between 0% and 100%"));
    }
    if period.is_zero() && share > 0.0 {
        return Err(impossible("a check every 0 s never ends".to_owned())
            .at(text.span, "zero")
            .help(format!("write for instance `{chance} every 1s`")));
    }
    if share > 0.0 {
        not_below_shortest(period, "the time between two checks", text.span)?;
    }
    Ok((share, period))
}

/// Checks the `{placeholders}` of a topic or filter.
pub(crate) fn placeholders(text: &str, known: &[&str], span: Span) -> Result<(), Problem> {
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let close = rest[open..].find('}');
        let (Some(close), true) = (close, rest[open..].starts_with('{')) else {
            return Err(Problem::new(ProblemKind::UnknownPlaceholder, format!("an unpaired brace in `{text}`"))
                .at(span, "here")
                .help(format!("placeholders are {}", braced(known))));
        };
        let name = &rest[open + 1..open + close];
        let modulo = name.split_once('%').filter(|(number, _)| matches!(*number, "index" | "trigger"));
        let word = modulo.map_or(name, |(number, _)| number);
        if !known.contains(&word) {
            let near = suggest::nearest(word, known.iter().copied());
            let lead = near.map(|near| format!("did you mean `{{{near}}}`? ")).unwrap_or_default();
            return Err(Problem::new(ProblemKind::UnknownPlaceholder, format!("unknown placeholder `{{{name}}}`"))
                .at(span, "nothing fills it in")
                .help(format!("{lead}There are: {}", braced(known))));
        }
        rest = &rest[open + close + 1..];
    }
    Ok(())
}

fn braced(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", ")
}
