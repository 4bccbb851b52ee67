//! Events of an experiment or a search: as a line for people, and as an event of the stream for programs.

use std::time::Duration;

use pubmark_record::by_reason::named;
use pubmark_report::{numbers, terminal, words};
use pubmark_runner::RunObserver as _;
use pubmark_runner::stream::{EventStream, RunBegins, StreamEvent, TrialBegins};

use crate::end::End;
use crate::experiment::pace::about;
use crate::observer::{Event, RunPlace};

/// Largest length of a failure's text in a line on a terminal, characters; the record has the whole text.
const SHOWN: usize = 80;

impl Event<'_> {
    /// A line for people; `None` if the event has none. A terminal, where progress is redrawn, shows more than a log,
    /// which has one line per run.
    pub fn line(&self, on_terminal: bool) -> Option<String> {
        Some(match self {
            Event::RunBegins(run) if on_terminal => {
                format!("{} (repetition {}; about {} left)", heading(run), run.repetition, about(run.left))
            }
            Event::WaitsForQuiet { share, below } if on_terminal => {
                let percent = |share: f64| (share * 100.0).round();
                let (used, limit) = (percent(*share), percent(*below));
                format!("  waiting for a quiet machine: others use {used} % of it, more than {limit} %")
            }
            Event::RunEnded { run, end, p99_us, took, busy } => {
                let line = ended(end, *p99_us, on_terminal);
                let busy = if *busy { "; the machine was busy" } else { "" };
                match on_terminal {
                    true => format!("  {line}{busy}"),
                    false => {
                        format!("{}: {line}{busy}; about {} left", heading(run), about(run.left.saturating_sub(*took)))
                    }
                }
            }
            event => return event.text(),
        })
    }

    /// The line that terminals and logs have in common; `None` for events that only one of them shows.
    fn text(&self) -> Option<String> {
        Some(match self {
            Event::LocatesImage { system } => format!("{system}: looking for its image"),
            Event::Nodes(event) => event.to_string(),
            Event::CellsRefused { cells, refusal } => {
                format!("{}: {}: {}", named(cells), refusal.kind.words(), refusal.text)
            }
            Event::Caution(text) => (*text).to_owned(),
            Event::Reruns(count) => format!(
                "{} in place of those that could not be measured",
                numbers::counted(*count as u64, "more run", "more runs")
            ),
            Event::StaysBusy { share, waited } => stays_busy(*share, *waited),
            Event::RunEnded { run, end, p99_us, .. } => format!("{}: {}", heading(run), ended(end, *p99_us, false)),
            Event::TrialEnded { number, trial } => terminal::trial_line(*number, trial),
            Event::RunBegins(_) | Event::TrialBegins { .. } | Event::WaitsForQuiet { .. } => return None,
        })
    }

    /// Writes the event for programs. Waits for a quiet machine are left out: there are several per second without
    /// news.
    pub fn write(&self, stream: &EventStream) {
        let t_s = stream.now_s();
        match self {
            Event::RunBegins(run) => stream.write(&StreamEvent::RunBegins(RunBegins {
                t_s,
                number: run.number as u64,
                of: run.of as u64,
                cell: run.cell.to_owned(),
                workload: Some(run.workload.to_owned()),
                system: Some(run.system.to_owned()),
                protocol: Some(run.protocol.to_owned()),
                repetition: run.repetition,
                left_s: run.left.as_secs_f64(),
            })),
            Event::TrialBegins { place, offered_per_s, workload, system, protocol } => {
                stream.write(&StreamEvent::TrialBegins(TrialBegins {
                    t_s,
                    number: place.number as u64,
                    candidate: place.candidate.map(str::to_owned),
                    workload: Some((*workload).to_owned()),
                    system: Some((*system).to_owned()),
                    protocol: Some((*protocol).to_owned()),
                    offered_per_s: *offered_per_s,
                    attempt: place.attempt,
                    left_s: place.left.as_secs_f64(),
                }));
            }
            Event::Nodes(event) => stream.observer().event(event),
            event => {
                if let Some(text) = event.text() {
                    stream.write(&StreamEvent::Note { t_s, text });
                }
            }
        }
    }
}

/// Shown once: the consequence for the runs, and what to do.
fn stays_busy(share: Option<f64>, waited: Duration) -> String {
    let used = match share {
        Some(share) => format!("others use {} % of it", (share * 100.0).round()),
        None => "how much others use of it cannot be read".to_owned(),
    };
    let waited = numbers::seconds(waited.as_secs_f64().round());
    format!(
        "the machine did not become quiet within {waited} ({used}): runs go on without waiting, and those on a busy machine \
         are marked; end other programs, or give the systems cores of their own with `--pin`"
    )
}

fn heading(run: &RunPlace<'_>) -> String {
    format!("run {} of {}: {}", run.number, run.of, run.cell)
}

fn ended(end: &End, p99_us: Option<f64>, on_terminal: bool) -> String {
    match end {
        End::Counts(verdict) => format!("{}, p99 {}", words::verdict_word(*verdict), numbers::time(p99_us)),
        End::Fails { kind, text, .. } => format!("{}: {}", kind.words(), shown(text, on_terminal)),
        End::Stopped => "stopped".to_owned(),
    }
}

/// A failure in a progress line. Redirected output has the whole text, because it ends with the path of a log.
fn shown(text: &str, on_terminal: bool) -> String {
    match text.char_indices().nth(SHOWN).filter(|_| on_terminal) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirected_output_has_the_whole_of_a_failure() {
        let text = format!("`mosquitto` did not start: its log is {}/system.log", "/tmp/measurements".repeat(5));
        assert_eq!(shown(&text, false), text);
        assert!(shown(&text, true).ends_with('…'));
        assert_eq!(shown("no", true), "no");
    }

    #[test]
    fn a_log_has_one_line_a_run_and_a_terminal_has_its_beginning_too() {
        let run = RunPlace {
            number: 2,
            of: 9,
            cell: "nats",
            workload: "hello",
            system: "nats",
            protocol: "nats",
            repetition: 1,
            left: Duration::from_secs(60),
        };
        let begins = Event::RunBegins(&run);
        assert_eq!(begins.line(false), None);
        assert_eq!(begins.line(true).as_deref(), Some("run 2 of 9: nats (repetition 1; about 60 s left)"));
        let (end, took) = (End::Stopped, Duration::from_secs(20));
        let ends = Event::RunEnded { run: &run, end: &end, p99_us: None, took, busy: true };
        assert_eq!(ends.line(true).as_deref(), Some("  stopped; the machine was busy"));
        let line = "run 2 of 9: nats: stopped; the machine was busy; about 40 s left";
        assert_eq!(ends.line(false).as_deref(), Some(line));
    }
}
