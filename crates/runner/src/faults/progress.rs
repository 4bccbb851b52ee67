//! Which faults begin and end during a run, by their planned times.

use std::collections::VecDeque;
use std::time::Duration;

use pubmark_model::fault::Occurrence;
use pubmark_model::workload::Workload;

use crate::observer::RunEvent;

/// Future beginnings and ends, in order of time since the start of the window.
pub struct FaultProgress {
    to_come: VecDeque<(Duration, RunEvent)>,
}

impl FaultProgress {
    /// Progress of these faults.
    pub fn new(workload: &Workload, occurrences: &[Occurrence]) -> FaultProgress {
        let mut to_come = vec![];
        for occurrence in occurrences {
            let (kind, target) = (occurrence.kind, workload.faults[occurrence.fault].target());
            let fault = format!("{kind} of {target}");
            to_come.push((occurrence.at_ns, RunEvent::FaultBegins { fault: fault.clone() }));
            if occurrence.length_ns.is_some() {
                to_come.push((occurrence.end_ns(), RunEvent::FaultEnds { fault }));
            }
        }
        // Stable: events at the same time have the order of the workload.
        to_come.sort_by_key(|(at_ns, _)| *at_ns);
        FaultProgress { to_come: to_come.into_iter().map(|(ns, event)| (Duration::from_nanos(ns), event)).collect() }
    }

    /// The next fault that has begun or ended by this time of the window; each is returned once.
    pub fn next(&mut self, elapsed: Duration) -> Option<RunEvent> {
        self.to_come.front().filter(|(at, _)| *at <= elapsed)?;
        self.to_come.pop_front().map(|(_, event)| event)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pubmark_model::fault::choice::FaultChoice;
    use pubmark_model::load::{self, LoadOptions};

    use super::*;

    #[test]
    fn a_fault_begins_and_ends_once_each() {
        let chosen = |text: &&str| FaultChoice::parse(text).expect("a choice");
        let faults = ["pause:at=1s,for=2s", "reset:at=4s,share=20%"].iter().map(chosen).collect();
        let options = LoadOptions { faults, ..LoadOptions::default() };
        let workload = load::load("smart-home", &options).expect("a built-in workload");
        let occurrences: Arc<[Occurrence]> =
            crate::faults::occurrences(&workload, 1, Duration::from_secs(10)).expect("its faults");
        let mut progress = FaultProgress::new(&workload, &occurrences);
        let mut seen = vec![];
        for tenth in 0..50 {
            while let Some(event) = progress.next(Duration::from_millis(100 * tenth)) {
                seen.push((tenth, event));
            }
        }
        let begins = |fault: &str| RunEvent::FaultBegins { fault: fault.to_owned() };
        let ends = |fault: &str| RunEvent::FaultEnds { fault: fault.to_owned() };
        let pause = "pause of the system";
        assert_eq!(seen, [(10, begins(pause)), (30, ends(pause)), (40, begins("reset of 20 % of the connections"))]);
    }
}
