//! Parses single values of axes.

use std::collections::BTreeSet;

use super::raw::{BytesText, FactorText, LevelText, LimitText, SwitchText, TopologyText, WholeText};
use super::{Judge, LARGEST_SCALE, Word};
use crate::adjust::LARGEST_RATE_FACTOR;
use crate::fault::choice::FaultChoice;
use crate::link::choice::LinkChoice;
use crate::load::diagnostic::{Problem, ProblemKind, Span};
use crate::load::payload::whole as whole_bytes;
use crate::load::shape::{AnyText, OneOrMany, Text};
use crate::load::value::impossible;
use crate::topology::Topology;

/// Text for no limits; the judge is not called for it.
pub(super) const NO_LIMIT: &str = "none";
/// Maximum number of nodes that can join; worker processes on one machine have a lower limit.
const LARGEST_NODES: u32 = 1_000;

/// Limits as written; `None` for no limits.
pub(super) fn requested_limit(limit: &str) -> Option<String> {
    (limit != NO_LIMIT).then(|| limit.to_owned())
}

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

/// Parses the values of an axis and refuses repetitions.
pub(super) fn read<'a, K: 'a, T: PartialEq>(
    raw: impl IntoIterator<Item = &'a OneOrMany<Text<K>>>,
    read: impl Fn(&Text<K>) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let mut found: Vec<T> = vec![];
    for text in raw.into_iter().flat_map(|many| &many.0) {
        let value = read(text)?;
        if found.contains(&value) {
            return Err(twice(&text.text, text.span));
        }
        found.push(value);
    }
    Ok(found)
}

fn twice(text: &str, span: Span) -> Problem {
    Problem::new(ProblemKind::BadName, format!("`{text}` is given twice")).at(span, "again").help("keep one of the two")
}

/// Parses a name, and calls the judge if it stands for a `word`.
pub(super) fn name<'a>(
    judge: Judge<'a>,
    word: Option<Word<'a>>,
) -> impl Fn(&Text<AnyText>) -> Result<String, Problem> + 'a {
    move |text| {
        word.map_or(Ok(()), |word| judged(judge, word, &text.text, text.span))?;
        Ok(text.text.clone())
    }
}

/// Parses the values of the axis `client`: each needs a unique name for the results.
pub(super) fn clients(raw: &Option<OneOrMany<Text<AnyText>>>, judge: Judge<'_>) -> Result<Vec<String>, Problem> {
    let found = read(raw, name(judge, None))?;
    let mut labels = BTreeSet::new();
    match raw.iter().flat_map(|many| &many.0).find(|text| !labels.insert(client_parts(&text.text).0)) {
        Some(text) => {
            Err(twice(client_parts(&text.text).0, text.span)
                .help("give each client a label of its own: `LABEL=COMMAND`"))
        }
        None => Ok(found),
    }
}

/// Name of pubmark's own client among the values of the axis `client`.
pub const OWN_CLIENT: &str = "pubmark";

/// Label and program of a value of the axis `client`; the program is `None` for pubmark's own client.
pub fn client_parts(text: &str) -> (&str, Option<&str>) {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
    };
    match text.split_once('=') {
        _ if text == OWN_CLIENT => (text, None),
        Some((label, client)) if is_label(label) && client == OWN_CLIENT => (label, None),
        Some((label, client)) if is_label(label) => (label, Some(client)),
        _ => (text, Some(text)),
    }
}

/// Parses a whole number from 1 to `most`.
pub(super) fn whole(text: &Text<WholeText>, what: &str, most: u32) -> Result<u32, Problem> {
    match text.text.parse::<u32>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(_) => Err(impossible(format!("{what} of {} cannot be", text.text))
            .at(text.span, "out of range")
            .help(format!("write a whole number from 1 to {most}"))),
        Err(_) => Err(Problem::new(ProblemKind::WrongKind, format!("`{}` is not a whole number", text.text))
            .at(text.span, "here")
            .help(format!("write a whole number from 1 to {most}"))),
    }
}

/// Parses a multiplier of device counts.
pub(super) fn scale(text: &Text<WholeText>) -> Result<u32, Problem> {
    whole(text, "a scale", LARGEST_SCALE)
}

/// Parses a number of nodes.
pub(super) fn nodes(text: &Text<WholeText>) -> Result<u16, Problem> {
    whole(text, "a number of nodes", LARGEST_NODES).map(|nodes| nodes as u16)
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
    let help = format!("write a number from 1/{LARGEST_RATE_FACTOR} to {LARGEST_RATE_FACTOR}, such as `0.5` or `10`");
    match text.text.parse::<f64>() {
        Ok(factor) if (1.0 / LARGEST_RATE_FACTOR..=LARGEST_RATE_FACTOR).contains(&factor) => Ok(factor),
        Ok(_) => Err(impossible(format!("a rate multiplied by {} cannot be", text.text))
            .at(text.span, "out of range")
            .help(help)),
        Err(_) => Err(Problem::new(ProblemKind::WrongKind, format!("`{}` is not a number", text.text))
            .at(text.span, "rates are multiplied by it")
            .help(help)),
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
    whole_bytes(text).map(|_| text.text.clone())
}

/// A text that YAML reads as the same string: plain if it cannot be anything else, otherwise as JSON, which YAML also
/// reads.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<K>(value: &str) -> Text<K> {
        Text::new(value.to_owned(), Span::default())
    }

    #[test]
    fn a_rate_factor_that_no_run_accepts_is_refused() {
        for (value, expected) in [("0.5", 0.5), ("10", 10.0), ("0.000001", 1e-6), ("1000000", 1e6)] {
            assert_eq!(factor(&text(value)).ok(), Some(expected), "{value}");
        }
        for value in ["0", "-1", "1e7", "0.0000001", "inf", "NaN", "fast"] {
            assert!(factor(&text(value)).is_err(), "{value}");
        }
    }

    #[test]
    fn a_payload_that_no_message_can_carry_is_refused() {
        for value in ["1B", "1.5KB", "268435455B"] {
            assert_eq!(payload(&text(value)).ok().as_deref(), Some(value));
        }
        for value in ["0B", "1.5B", "268435456B", "4GiB", "large"] {
            assert!(payload(&text(value)).is_err(), "{value}");
        }
    }
}
