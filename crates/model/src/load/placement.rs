//! Validates placements: names for several groups first, whatever the order in the file.

use super::diagnostic::{Problem, ProblemKind, Span};
use super::shape::{Named, PlacementText, Text};
use crate::placement::{self, DEFAULT, DEVICES, Placement, SUBSCRIBERS};
use crate::workload::Workload;

/// Reads the placements of a file; the groups of the workload must be known.
pub(crate) fn resolve(workload: &mut Workload, raw: &Named<Text<PlacementText>>) -> Result<(), Problem> {
    let mut entries: Vec<(&str, Span, Placement)> = Vec::with_capacity(raw.0.len());
    for (subject, text) in &raw.0 {
        let placement = Placement::parse(&text.text).map_err(|why| {
            let (message, help) = why.rsplit_once(": ").unwrap_or((&why, ""));
            Problem::new(ProblemKind::ImpossibleValue, message).at(text.span, "cannot be read").help(help)
        })?;
        entries.push((&subject.value, subject.span, placement));
    }
    let rank = |subject: &str| match subject {
        DEFAULT => 0,
        DEVICES | SUBSCRIBERS => 1,
        _ => 2,
    };
    entries.sort_by_key(|(subject, _, _)| rank(subject));
    for (subject, _, placement) in &entries {
        workload.placement.put(subject, placement.clone());
    }
    placement::check(workload).map_err(|wrong| {
        let place = |word: &str| entries.iter().find(|(subject, _, _)| *subject == word).map(|(_, span, _)| *span);
        let span = place(&wrong.subject).or_else(|| place(DEFAULT)).unwrap_or_default();
        let kind = if wrong.is_unknown { ProblemKind::UnknownName } else { ProblemKind::Conflict };
        Problem::new(kind, wrong.message).at(span, "placed here").help(wrong.hint)
    })
}
