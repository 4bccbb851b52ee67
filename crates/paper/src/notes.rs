//! Notes for the user about the experiments of a call.

use pubmark_model::experiment::{Experiment, cells};
use pubmark_record::by_reason::{by_reason, named};
use pubmark_report::numbers::counted;
use pubmark_runner::RunError;

/// A note about cells that a call does not select, and that it runs if `made`, the complete experiment of the folder, does not have them.
pub(crate) fn further(whole: &Experiment, selected: &Experiment, made: Option<&Experiment>) -> Option<String> {
    let known: Vec<_> = [Some(selected), made].into_iter().flatten().flat_map(cells).map(|cell| cell.values).collect();
    let count = cells(whole).into_iter().filter(|cell| !known.contains(&cell.values)).count() as u64;
    (count > 0).then(|| {
        format!(
            "also runs what is missing of {} that this call does not select, because an experiment has all combinations of \
             its values",
            counted(count, "cell", "cells")
        )
    })
}

/// A note about an experiment that needs more nodes than join.
pub(crate) fn left_out(error: &RunError) -> String {
    let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
    format!("not measured, {error}{hint}")
}

/// Notes about experiments, each once with the names of its experiments.
pub(crate) fn with_names(notes: &[(String, String)]) -> Vec<String> {
    let notes = by_reason(notes.iter().map(|(name, note)| (name.as_str(), note)));
    notes.into_iter().map(|(note, names)| format!("{note}: {}", named(&names))).collect()
}
