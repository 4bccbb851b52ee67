//! Values of axes, each read by itself.

use super::raw::{BytesText, FactorText, LevelText, LimitText, SwitchText, TopologyText};
use super::{Judge, Word};
use crate::fault::choice::FaultChoice;
use crate::link::choice::LinkChoice;
use crate::load::diagnostic::{Problem, ProblemKind, Span};
use crate::load::shape::{AnyText, Text};
use crate::load::value::{impossible, unit};
use crate::topology::Topology;
use crate::units;

/// Limits that are not asked for.
pub(super) const NO_LIMIT: &str = "none";

/// Asks whoever knows names.
pub(super) fn judged(judge: Judge<'_>, word: Word<'_>, text: &str, span: Span) -> Result<(), Problem> {
    judge(word, text).map_err(|objection| {
        Problem::new(ProblemKind::UnknownName, objection.message).at(span, "here").maybe_help(objection.hint)
    })
}

/// An axis without values.
pub(super) fn nothing(span: Span) -> Problem {
    Problem::new(ProblemKind::Empty, "an axis without values leaves nothing to run")
        .at(span, "empty")
        .help("give a value, or leave the axis out")
}

/// A delivery level.
pub(super) fn level(text: &Text<LevelText>) -> Result<u8, Problem> {
    text.text.parse().ok().filter(|level| *level <= 2).ok_or_else(|| {
        impossible(format!("there is no QoS {}", text.text))
            .at(text.span, "not a level")
            .help("levels are `0` (best-effort), `1` (at-least-once), `2` (exactly-once)")
    })
}

/// Brokers.
pub(super) fn topology(text: &Text<TopologyText>) -> Result<Topology, Problem> {
    Topology::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// Limits as written; whether they can be read is the judge's to say.
pub(super) fn limit(text: &Text<LimitText>, judge: Judge<'_>) -> Result<String, Problem> {
    if text.text != NO_LIMIT {
        judged(judge, Word::Limit, &text.text, text.span)?;
    }
    Ok(text.text.clone())
}

/// A multiplier of rates.
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

/// Yes or no.
pub(super) fn switch(text: &Text<SwitchText>) -> Result<bool, Problem> {
    text.text.parse::<bool>().map_err(|_| {
        Problem::new(ProblemKind::WrongKind, format!("`{}` is neither `true` nor `false`", text.text))
            .at(text.span, "here")
            .help("an axis takes both: `tls: [false, true]`")
    })
}

/// A link.
pub(super) fn link(text: &Text<AnyText>) -> Result<LinkChoice, Problem> {
    // Whether there is such a link and such a group is the workload's to tell.
    LinkChoice::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// A fault.
pub(super) fn fault(text: &Text<AnyText>) -> Result<FaultChoice, Problem> {
    // What its keys may say is the workload's to tell, too.
    FaultChoice::parse(&text.text).map_err(|message| impossible(message).at(text.span, "here"))
}

/// A size, as written.
pub(super) fn payload(text: &Text<BytesText>) -> Result<String, Problem> {
    let bytes = unit(text, units::size)?;
    match bytes {
        bytes if bytes >= 1.0 && bytes <= f64::from(u32::MAX) => Ok(text.text.clone()),
        _ => Err(impossible(format!("a payload of {} cannot be", text.text))
            .at(text.span, "out of range")
            .help("write a size from `1B` to `4GiB`")),
    }
}
