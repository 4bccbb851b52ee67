//! Validates faults one by one, from a file or the command line. Whether a run can inject them is checked before the run.

use serde::Deserialize;

use super::diagnostic::{Diagnostic, Problem, ProblemKind, Sources, Span};
use super::node::{Entry, Node, Value};
use super::raw_faults::RawFault;
use super::reader::Reader;
use super::shape::{DurationText, Spanned, Text};
use super::{suggest, value};
use crate::fault::{Fault, FaultKind, Scope, Timing};
use crate::units;
use crate::workload::Workload;

/// Maximum number of faults of one workload.
const MOST_FAULTS: usize = 1_000;
/// Largest number of a server.
const MOST_SERVERS: u32 = 1_000;

/// Reads the faults of a file; the groups of the workload must be known.
pub(crate) fn resolve(workload: &mut Workload, raw: &[Spanned<RawFault>]) -> Result<(), Problem> {
    if let Some(first) = raw.get(MOST_FAULTS) {
        return Err(value::too_many("faults", raw.len() as u64, MOST_FAULTS as u64, first.span));
    }
    workload.faults = raw.iter().map(|fault| checked(&fault.value, fault.span, workload)).collect::<Result<_, _>>()?;
    Ok(())
}

/// Parses a fault of the command line, `KIND:KEY=VALUE,…`.
pub(crate) fn of_text(text: &str, workload: &Workload) -> Result<Fault, Box<Diagnostic>> {
    let mut sources = Sources::default();
    sources.add("--fault", text);
    let node = tree(text);
    let read = RawFault::deserialize(Reader(&node)).and_then(|raw| checked(&raw, node.span, workload));
    read.map_err(|problem: Problem| Box::new(problem.into_diagnostic(&sources)))
}

/// A fault of the command line as the mapping that a file would have; each part has its position in the text.
fn tree(text: &str) -> Node {
    let span = |start: usize, part: &str| Span { source: 0, start: start as u32, length: part.len() as u32 };
    let scalar = |start: usize, part: &str| Node { span: span(start, part), value: Value::Text(part.to_owned()) };
    let (kind, keys) = text.split_once(':').unwrap_or((text, ""));
    let mut entries = vec![Entry { key: "kind".to_owned(), key_span: span(0, kind), node: scalar(0, kind) }];
    let mut start = kind.len() + 1;
    for pair in keys.split(',').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let node = scalar(start + key.len() + 1, value);
        entries.push(Entry { key: key.trim().to_owned(), key_span: span(start, key), node });
        start += pair.len() + 1;
    }
    Node { span: span(0, text), value: Value::Map(entries) }
}

fn checked(raw: &RawFault, place: Span, workload: &Workload) -> Result<Fault, Problem> {
    let kind = raw.kind.value;
    let span = raw.kind.span;
    refuse_strangers(raw, kind)?;
    let group = raw.group.as_ref().map(|group| known_group(group, workload)).transpose()?;
    let missing = |key: &str, help: &str| {
        let message = format!("`{}` without `{key}` does not say what is broken", kind.as_str());
        Err(Problem::new(ProblemKind::MissingKey, message).at(span, format!("`{key}` is missing")).help(help))
    };
    match kind {
        FaultKind::Partition if group.is_none() => return missing("group", "name a group that is behind a link"),
        FaultKind::LinkDown if raw.link.is_none() => {
            return missing("link", "name a link; `partition` cuts off one group");
        }
        _ => {}
    }
    let server = raw.server.as_ref();
    Ok(Fault {
        kind,
        timing: timing(raw, kind, place)?,
        share: raw.share.as_ref().map_or(Ok(1.0), share)?,
        group,
        link: raw.link.as_ref().map(|link| link.value.clone()),
        server: server.map(|text| value::count(text, "a server's number", 1, MOST_SERVERS)).transpose()?,
    })
}

/// Refuses keys that this kind does not have.
fn refuse_strangers(raw: &RawFault, kind: FaultKind) -> Result<(), Problem> {
    let scope = kind.scope();
    let keys = [
        ("share", raw.share.as_ref().map(|text| text.span), scope == Scope::Connections),
        (
            "group",
            raw.group.as_ref().map(|group| group.span),
            scope == Scope::Connections || kind == FaultKind::Partition,
        ),
        ("link", raw.link.as_ref().map(|link| link.span), kind == FaultKind::LinkDown),
        ("server", raw.server.as_ref().map(|text| text.span), scope == Scope::System),
    ];
    match keys.into_iter().find_map(|(key, span, fits)| span.filter(|_| !fits).map(|span| (key, span))) {
        None => Ok(()),
        Some((key, span)) => {
            let message = format!("`{key}` means nothing to `{}`", kind.as_str());
            let help = match scope {
                Scope::System => "the system is broken as a whole, or one `server` of it",
                Scope::Connections => "connections are chosen by `share` and `group`",
                Scope::Links => "`partition` takes a `group`, `link-down` a `link`",
            };
            Err(Problem::new(ProblemKind::Conflict, message).at(span, "here").help(help))
        }
    }
}

fn timing(raw: &RawFault, kind: FaultKind, place: Span) -> Result<Timing, Problem> {
    let conflict = |one: &Text<DurationText>, other: &Text<DurationText>, names: &str| {
        let message = format!("{names} say two things about one time");
        Err(Problem::new(ProblemKind::Conflict, message)
            .at(one.span, "this")
            .at(other.span, "and this")
            .help("write `at: 30s, for: 5s`, or `mttf: 30s, mttr: 5s`"))
    };
    match (&raw.at, &raw.length, &raw.mttf, &raw.mttr) {
        (Some(at), _, Some(mttf), _) => conflict(at, mttf, "`at` and `mttf`"),
        (_, Some(length), _, Some(mttr)) => conflict(length, mttr, "`for` and `mttr`"),
        (None, Some(length), Some(mttf), None) => conflict(length, mttf, "`for` and `mttf`"),
        (Some(at), None, None, Some(mttr)) => conflict(at, mttr, "`at` and `mttr`"),
        (Some(at), length, None, None) => {
            let length = length.as_ref().map(|text| value::period(text, "the length of a fault")).transpose()?;
            if length.is_none() && kind.needs_length() {
                let message = format!("`{}` without `for` has no end", kind.as_str());
                return Err(Problem::new(ProblemKind::MissingKey, message)
                    .at(raw.kind.span, "`for` is missing")
                    .help("write how long it is, for instance `for: 5s`"));
            }
            Ok(Timing::Once { at: value::duration(at)?, length })
        }
        (None, _, Some(mttf), Some(mttr)) => Ok(Timing::Random {
            mttf: value::period(mttf, "the mean time to a failure")?,
            mttr: value::period(mttr, "the mean time to a repair")?,
        }),
        (None, ..) => {
            let message = "a fault without a time never happens";
            Err(Problem::new(ProblemKind::MissingKey, message)
                .at(place, "`at`, or `mttf` with `mttr`, is missing")
                .help("write `at: 30s`, or `mttf: 30s, mttr: 5s` for faults by chance"))
        }
    }
}

/// A share of connections; a bare `1` is ambiguous.
fn share(text: &Text<super::raw_links::ChanceText>) -> Result<f64, Problem> {
    let share = value::unit(text, units::chance)?;
    if share > 0.0 && share <= 1.0 && (share < 1.0 || text.text.ends_with('%')) {
        return Ok(share);
    }
    Err(value::impossible(format!("a share of {} cannot be", text.text))
        .at(text.span, "out of range")
        .help("write a share above 0 % and at most `100%`"))
}

fn known_group(group: &Spanned<String>, workload: &Workload) -> Result<String, Problem> {
    if workload.count_of(&group.value).is_some() {
        return Ok(group.value.clone());
    }
    let devices = workload.devices.iter().map(|group| group.name.as_str());
    let names: Vec<&str> = devices.chain(workload.subscribers.iter().map(|group| group.name.as_str())).collect();
    Err(Problem::new(ProblemKind::UnknownName, format!("there is no group `{}`", group.value))
        .at(group.span, "not a group of this workload")
        .help(suggest::among(&group.value, &names)))
}
