//! Parses single values of axes.

use super::raw::{BytesText, FactorText, LevelText, LimitText, SwitchText, TopologyText};
use super::{Judge, Word};
use crate::fault::choice::FaultChoice;
use crate::link::choice::LinkChoice;
use crate::load::diagnostic::{Problem, ProblemKind, Span};
use crate::load::shape::{AnyText, Text};
use crate::load::value::{impossible, unit};
use crate::topology::Topology;
use crate::units;

/// Text for no limits; the judge is not called for it.
pub(super) const NO_LIMIT: &str = "none";

/// Calls the judge for a name.
pub(super) fn judged(judge: Judge<'_>, word: Word<'_>, text: &str, span: Span) -> Result<(), Problem> {
    judge(word, text).map_err(|objection| {
        Problem::new(ProblemKind::UnknownName, objection.message).at(span, "here").maybe_help(objection.hint)
    })
}

/// The problem of an axis without values.
pub(super) fn nothing(span: Span) -> Problem {
    Problem::new(ProblemKind::Empty, "an axis without values leaves nothing to run")
        .at(span, "empty")
        .help("give a value, or leave the axis out")
}

/// Parses a QoS.
pub(super) fn level(text: &Text<LevelText>) -> Result<u8, Problem> {
    text.text.parse().ok().filter(|level| *level <= 2).ok_or_else(|| {
        impossible(format!("there is no QoS {}", text.text))
            .at(text.span, "not a level")
            .help("levels are `0` (best-effort), `1` (at-least-once), `2` (exactly-once)")
    })
}

/// Parses a topology.
pub(super) fn topology(text: &Text<TopologyText>) -> Result<Topology, Problem> {
    Topology::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// Limits as written; the judge validates them.
pub(super) fn limit(text: &Text<LimitText>, judge: Judge<'_>) -> Result<String, Problem> {
    if text.text != NO_LIMIT {
        judged(judge, Word::Limit, &text.text, text.span)?;
    }
    Ok(text.text.clone())
}

/// Parses a multiplier of rates.
pub(super) fn factor(text: &Text<FactorText>) -> Result<f64, Problem> {
    match text.text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        Ok(_) => Err(impossible(format!("a rate multiplied by {} cannot be", text.text))
            .at(text.span, "out of range")
            .help("write a number above 0, for instance `0.5` or `10`")),
        Err(_) => Err(Problem::new(ProblemKind::WrongKind, format!("`{}` is not a number", text.text))
            .at(text.span, "rates are multiplied by it")
            .help("write a number above 0, for instance `0.5` or `10`")),
    }
}

/// Parses a Boolean.
pub(super) fn switch(text: &Text<SwitchText>) -> Result<bool, Problem> {
    text.text.parse::<bool>().map_err(|_| {
        Problem::new(ProblemKind::WrongKind, format!("`{}` is neither `true` nor `false`", text.text))
            .at(text.span, "here")
            .help("an axis takes both: `tls: [false, true]`")
    })
}

/// Parses a link.
pub(super) fn link(text: &Text<AnyText>) -> Result<LinkChoice, Problem> {
    // Whether the link and the group exist is checked with the workload.
    LinkChoice::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// Parses a fault.
pub(super) fn fault(text: &Text<AnyText>) -> Result<FaultChoice, Problem> {
    // The values of its keys are checked with the workload.
    FaultChoice::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// A size, as written; it is validated.
pub(super) fn payload(text: &Text<BytesText>) -> Result<String, Problem> {
    let bytes = unit(text, units::size)?;
    match bytes {
        bytes if bytes >= 1.0 && bytes <= f64::from(u32::MAX) => Ok(text.text.clone()),
        _ => Err(impossible(format!("a payload of {} cannot be", text.text))
            .at(text.span, "out of range")
            .help("write a size from `1B` to `4GiB`")),
    }
}
