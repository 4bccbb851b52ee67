//! Lines that the caller of a run writes in addition to those of the run: a start, an end, notes for people.

use std::path::Path;

use pubmark_record::record::{Record, Status};

use super::{Begins, Counted, Ends, EventStream, Failed, STREAM_VERSION, StreamEvent};
use crate::repetition::Repetition;

impl EventStream {
    /// Writes that an experiment or a search with a folder begins.
    pub fn begins(&self, folder: &Path, name: &str) {
        self.write(&StreamEvent::Begins(self.beginning(folder, name)));
    }

    /// Writes that a run begins.
    pub fn run_begins(&self, repetition: &Repetition<'_>) {
        let run = repetition.run();
        let [warmup_s, duration_s] =
            [run.spec.window.warmup, run.spec.window.duration].map(|time| Some(time.as_secs_f64()));
        self.write(&StreamEvent::Begins(Begins {
            repetition: repetition.number(),
            repetitions: run.spec.repetitions,
            system: Some(run.system_name().to_owned()),
            protocol: Some(run.protocol_pair.publish.capabilities.name.to_owned()),
            warmup_s,
            duration_s,
            ..self.beginning(repetition.folder(), &run.workload.name)
        }));
    }

    fn beginning(&self, folder: &Path, name: &str) -> Begins {
        Begins {
            t_s: self.now_s(),
            stream_version: STREAM_VERSION,
            folder: folder.display().to_string(),
            name: name.to_owned(),
            repetition: 1,
            repetitions: 1,
            system: None,
            protocol: None,
            warmup_s: None,
            duration_s: None,
        }
    }

    /// Writes that the folder of an experiment or a search is complete.
    pub fn ends(&self, folder: &Path, status: Status) {
        self.write(&StreamEvent::Ends(self.end(folder, status)));
    }

    /// Writes that the folder of a run is complete.
    pub fn run_ends(&self, folder: &Path, record: &Record) {
        let messages = &record.delivery.messages;
        let (offered, sent) = (messages.offered, messages.sent);
        self.write(&StreamEvent::Ends(Ends {
            verdict: Some(record.verdict.status.as_str().to_owned()),
            counted: Some(Counted {
                offered,
                sent,
                delivered: messages.delivered,
                lost: messages.lost,
                unknown: Some(messages.unknown),
            }),
            ..self.end(folder, record.run.status)
        }));
    }

    fn end(&self, folder: &Path, status: Status) -> Ends {
        Ends {
            t_s: self.now_s(),
            folder: folder.display().to_string(),
            status: status.as_str().to_owned(),
            verdict: None,
            counted: None,
        }
    }

    /// Writes a sentence for people.
    pub fn note(&self, text: String) {
        self.write(&StreamEvent::Note { t_s: self.now_s(), text });
    }

    /// Writes that the command failed: its exit code, what was tried with the causes, and what to do.
    pub fn fails(&self, exit_code: u8, chain: &[String], hint: Option<&str>) {
        let (chain, hint) = (chain.to_vec(), hint.map(str::to_owned));
        self.write(&StreamEvent::Failed(Failed { t_s: self.now_s(), exit_code, chain, hint }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[test]
    fn what_came_what_is_lost_and_what_is_unknown_add_up_to_what_was_expected() {
        let ended: Arc<Mutex<Option<Counted>>> = Arc::default();
        let sink = Arc::clone(&ended);
        let listener = move |event: &StreamEvent| {
            let StreamEvent::Ends(ends) = event else { return };
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = ends.counted;
        };
        let mut record = pubmark_record::sample::record();
        let messages = &mut record.delivery.messages;
        (messages.expected, messages.delivered, messages.lost, messages.unknown) = (1_000, 957, 3, 40);
        EventStream::new(None, Some(Box::new(listener))).run_ends(Path::new("runs/a"), &record);
        let counted = ended.lock().unwrap_or_else(PoisonError::into_inner).expect("it has ended");
        assert_eq!(counted.unknown, Some(40));
        assert_eq!(counted.delivered + counted.lost + counted.unknown.unwrap_or_default(), 1_000);
    }
}
