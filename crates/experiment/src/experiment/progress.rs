//! Progress of an experiment, from its journal: runs that are done, cells that are given up, and cells that lack runs.

use std::collections::{BTreeMap, BTreeSet};

use pubmark_record::experiment::FailureKind;

use super::journal::Event;
use super::result;

/// Failures of one kind since the last start after which the remaining repetitions of a cell are left out: a system that never
/// starts would take its whole time limit each time without a new result.
pub const LEFT_OUT_AFTER: usize = 2;

/// Blocks without progress after which an experiment stops, because a further block would most likely have the same
/// result.
pub const BLOCKS_WITHOUT_PROGRESS: usize = 2;

/// The reason why an experiment makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Code of the rule that made every run invalid.
    pub code: String,
    /// Text of the last of these reasons, code included.
    pub text: String,
    /// Folders of the runs that have a record.
    pub folders: Vec<String>,
}

/// Was every run of the last [`BLOCKS_WITHOUT_PROGRESS`] blocks since the last start invalid for the same reason?
/// Failures of a system are results and do not count.
pub fn stalled(events: &[Event]) -> Option<Stalled> {
    let began = events.iter().rposition(|event| matches!(event, Event::Started { .. })).unwrap_or(0);
    let mut blocks: Vec<(u32, Vec<&Event>)> = vec![];
    for event in &events[began..] {
        let (Event::Counted { place, .. } | Event::Failed { place, .. }) = event else { continue };
        match blocks.last_mut() {
            Some((block, ends)) if *block == place.repetition => ends.push(event),
            _ => blocks.push((place.repetition, vec![event])),
        }
    }
    let last = blocks.len().checked_sub(BLOCKS_WITHOUT_PROGRESS)?;
    let mut found: Option<Stalled> = None;
    for event in blocks[last..].iter().flat_map(|(_, ends)| ends) {
        let Event::Failed { kind, code: Some(code), text, folder, .. } = event else { return None };
        if !kind.may_pass() {
            return None;
        }
        let stalled = found.get_or_insert_with(|| Stalled { code: code.clone(), text: String::new(), folders: vec![] });
        if stalled.code != *code {
            return None;
        }
        stalled.text.clone_from(text);
        stalled.folders.extend(folder.clone());
    }
    found
}

/// Runs that need no repetition: cells, each with a repetition.
pub fn done(events: &[Event]) -> BTreeSet<(String, u32)> {
    let is_done = |event: &Event| matches!(event, Event::Counted { .. } | Event::Failed { .. } | Event::Skipped(_));
    result::ends(events).into_iter().filter(|(_, event)| is_done(event)).map(|(place, _)| place.run()).collect()
}

/// Outcomes of the runs of a cell so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs that count.
    counted: usize,
    /// Kinds of the failed runs, except of those on a busy machine, which a repetition may avoid.
    failed: BTreeSet<FailureKind>,
    /// Such runs since the last start, by kind. Earlier ones do not count against the cell: whoever starts again may have mended
    /// the cause, or a busy machine may have become quiet.
    failed_since_start: BTreeMap<FailureKind, usize>,
    has_failed_while_busy: bool,
}

/// Outcomes of the runs of every cell of which a run began, by its id.
pub fn tallies(events: &[Event]) -> BTreeMap<&str, Tally> {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for event in events {
        match event {
            Event::Counted { place, .. } => tallies.entry(&place.cell).or_default().counted += 1,
            Event::Failed { place, kind, effort, .. } => {
                let tally = tallies.entry(&place.cell).or_default();
                if effort.busy && kind.may_pass() {
                    tally.has_failed_while_busy = true;
                    continue;
                }
                tally.failed.insert(*kind);
                *tally.failed_since_start.entry(*kind).or_default() += 1;
            }
            Event::Started { .. } => tallies.values_mut().for_each(|tally| tally.failed_since_start.clear()),
            // It has a run that is to be made again.
            Event::Began(place) | Event::Stopped { place, .. } => {
                tallies.entry(&place.cell).or_default();
            }
            Event::Planned(_) | Event::Extended(_) | Event::Skipped(_) => {}
        }
    }
    tallies
}

impl Tally {
    /// Has the cell failed so often in one way since the last start that it is left out? Failures that a repetition may avoid
    /// matter only if no run counts yet, and failures on a busy machine never do.
    pub fn is_given_up(&self) -> bool {
        let matters = |kind: FailureKind| self.counted == 0 || !kind.may_pass();
        self.failed_since_start.iter().any(|(kind, count)| *count >= LEFT_OUT_AFTER && matters(*kind))
    }

    /// Should runs that do not count be replaced by others? Only if the generator or the machine was the reason: a
    /// failure of the system is a result, and repeating runs until it succeeds would be selection.
    pub fn is_short(&self, repetitions: u32) -> bool {
        let has_failed = self.has_failed_while_busy || !self.failed.is_empty();
        let all_may_pass = self.failed.iter().all(|kind| kind.may_pass());
        self.counted < repetitions as usize && has_failed && all_may_pass && !self.is_given_up()
    }
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::VerdictStatus;

    use super::*;
    use crate::experiment::journal::{Effort, RunPosition};

    fn place(repetition: u32) -> RunPosition {
        RunPosition { order: repetition, cell: "a".to_owned(), repetition }
    }

    fn counts(repetition: u32) -> Event {
        let (place, folder, effort) = (place(repetition), String::new(), Effort::default());
        Event::Counted { place, folder, verdict: VerdictStatus::Valid, effort }
    }

    fn fails(repetition: u32, kind: FailureKind) -> Event {
        let effort = Effort::default();
        Event::Failed { place: place(repetition), kind, code: None, text: String::new(), folder: None, effort }
    }

    fn starts() -> Event {
        Event::Started { at: String::new(), pubmark_version: String::new() }
    }

    fn is_short(events: &[Event], cell: &str, repetitions: u32) -> bool {
        tallies(events).get(cell).is_some_and(|tally| tally.is_short(repetitions))
    }

    fn is_given_up(events: &[Event]) -> bool {
        tallies(events)["a"].is_given_up()
    }

    #[test]
    fn runs_that_the_generator_spoilt_are_repeated_and_those_that_the_system_failed_are_not() {
        let ours = FailureKind::GeneratorLimited;
        assert!(!is_short(&[counts(1), counts(2), counts(3)], "a", 3));
        assert!(is_short(&[counts(1), fails(2, ours), counts(3)], "a", 3));
        assert!(!is_short(&[counts(1), fails(2, ours), counts(3), counts(4)], "a", 3), "it was made up for");
        assert!(is_short(&[counts(1), fails(2, ours), fails(3, ours), fails(4, ours)], "a", 3));
        assert!(!is_short(&[fails(1, ours), fails(2, ours)], "a", 3), "nothing ever counted: given up");
        assert!(!is_short(&[counts(1), fails(2, ours), fails(3, FailureKind::OutOfMemory)], "a", 3));
        assert!(!is_short(&[counts(1), counts(2)], "a", 3), "it was only stopped: its own turns are left");
        assert!(!is_short(&[counts(1), fails(2, ours)], "b", 3));
    }

    #[test]
    fn two_blocks_whose_runs_are_all_invalid_for_one_reason_are_no_progress() {
        let run = |cell: &str, repetition: u32, kind, text: &str| Event::Failed {
            place: RunPosition { order: repetition, cell: cell.to_owned(), repetition },
            kind,
            code: text.split_once(": ").map(|(code, _)| code.to_owned()),
            text: text.to_owned(),
            folder: Some(format!("runs/{cell}-{repetition}")),
            effort: Effort::default(),
        };
        let invalid = |cell: &str, repetition| run(cell, repetition, FailureKind::Invalid, "V28: it was starved");
        let all = [invalid("a", 1), invalid("b", 1), invalid("b", 2), invalid("a", 2)];
        let found = stalled(&all).unwrap();
        assert_eq!((found.code.as_str(), found.text.as_str(), found.folders.len()), ("V28", "V28: it was starved", 4));
        assert_eq!(stalled(&all[..2]), None, "one block");
        assert_eq!(
            stalled(&[&all[..], &[starts(), invalid("a", 3), invalid("b", 3)]].concat()),
            None,
            "somebody wanted more"
        );
        for other in [
            counts(2),
            run("a", 2, FailureKind::Invalid, "V07: other"),
            run("a", 2, FailureKind::OutOfMemory, "OOM-killed (256MB)"),
        ] {
            assert_eq!(stalled(&[&all[..3], &[other]].concat()), None);
        }
        let later = [invalid("a", 1), counts(2), invalid("a", 3), invalid("a", 4)];
        assert!(stalled(&later).is_some() && stalled(&later[..3]).is_none(), "the last two decide");
    }

    #[test]
    fn failures_before_a_new_start_do_not_count_against_a_cell() {
        for kind in [FailureKind::GeneratorLimited, FailureKind::DidNotStart] {
            let mut events = vec![starts(), fails(1, kind), fails(2, kind)];
            assert!(is_given_up(&events), "{kind:?}");
            events.push(starts());
            assert!(!is_given_up(&events), "{kind:?}");
            assert_eq!(
                is_short(&events, "a", 2),
                kind == FailureKind::GeneratorLimited,
                "what the system did is a result"
            );
            events.push(fails(3, kind));
            assert!(!is_given_up(&events), "{kind:?}: one of this start");
            events.push(fails(4, kind));
            assert!(is_given_up(&events), "{kind:?}");
        }
    }

    #[test]
    fn two_failures_of_a_kind_are_enough_unless_the_machine_was_busy() {
        let twice = |kind| [fails(1, kind), fails(2, kind)];
        assert!(is_given_up(&twice(FailureKind::DidNotStart)));
        assert!(is_given_up(&twice(FailureKind::Invalid)));
        assert!(!is_given_up(&[fails(1, FailureKind::Invalid), fails(2, FailureKind::GeneratorLimited)]));
        let mut busy = twice(FailureKind::Invalid);
        for event in &mut busy {
            if let Event::Failed { effort, .. } = event {
                effort.busy = true;
            }
        }
        assert!(!is_given_up(&busy));
        assert!(is_short(&busy, "a", 3), "a quieter moment may come");
        let expected = [("a".to_owned(), 2), ("a".to_owned(), 3)];
        assert_eq!(done(&[Event::Began(place(1)), counts(2), Event::Skipped(place(3))]), expected.into());
    }
}
