//! The conclusion of a repetition, and why no client connected.

use pubmark_protocol::events::ANSWERED;
use pubmark_protocols as protocols;
use pubmark_record::conclusion::Conclusion;
use pubmark_record::record::{Record, Status, VerdictStatus};

use crate::certificates::hint_for_cause;
use crate::error::{ErrorKind, RunError};
use crate::prepared::RunOutcome;

impl RunOutcome {
    /// The conclusion of the repetition, except for its limits.
    pub fn conclusion(&self) -> Conclusion {
        if self.system_ended.is_some() {
            return Conclusion::SystemFailed;
        }
        if self.record.was_stopped() {
            return Conclusion::Interrupted;
        }
        match self.record.verdict.status {
            _ if self.unreachable => Conclusion::SystemFailed,
            VerdictStatus::Invalid => Conclusion::Invalid,
            VerdictStatus::Valid | VerdictStatus::Suspect => Conclusion::Done,
        }
    }

    /// How the system failed, where [`RunOutcome::conclusion`] states that it did: a summary of the record has no field for it.
    pub fn failure(&self) -> Option<RunError> {
        if let Some(ended) = &self.system_ended {
            let name = &self.record.system.name;
            return Some(RunError::new(ErrorKind::System, format!("`{name}` ended during the run: {ended}")));
        }
        (self.conclusion() == Conclusion::SystemFailed).then(|| unreachable(&self.record))
    }

    /// Whether no client connected, with no other explanation. Then nothing was measured, and there is nothing to save.
    pub fn never_connected(&self) -> bool {
        let is_interrupted = self.record.run.status == Status::Interrupted;
        self.unreachable && self.system_ended.is_none() && !is_interrupted && !self.record.has_lost()
    }
}

/// Error for a run in which no client connected: what listens there instead of the system, or why the connections failed.
fn unreachable(record: &Record) -> RunError {
    let endpoint = &record.system.endpoint;
    let cause = record.connections.causes.first().map_or("", |first| first.cause.as_str());
    let address = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, address)| address);
    if let Some((_, answer)) = cause.split_once(ANSWERED) {
        let protocol = protocols::find(&record.protocol.publish).map_or("the protocol", |one| one.capabilities.title);
        let message = format!("`{address}` does not speak {protocol}: it answered {answer}");
        return RunError::new(ErrorKind::System, message)
            .hint("check host and port of `--endpoint`, or choose its protocol with `--protocol`");
    }
    let error = RunError::new(ErrorKind::System, format!("failed to connect to `{endpoint}`: {cause}"));
    match hint_for_cause(cause) {
        Some(hint) => error.hint(hint),
        None if cause.starts_with("unreachable: ") => {
            error.hint("start the system, or check host and port of `--endpoint`")
        }
        None if cause.starts_with("not authorized: ") => error.hint(
            "check `--user` and `--password`, or the `credentials` of the workload: the system refuses the log-in",
        ),
        None => error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pubmark_record::record::CauseCount;
    use pubmark_record::sample;

    fn unconnected(cause: &str) -> RunOutcome {
        let mut record = sample::record();
        record.run.status = Status::Complete;
        record.connections.causes = vec![CauseCount { cause: cause.to_owned(), count: 1 }];
        RunOutcome {
            message_log: None,
            custom: None,
            spec: String::new(),
            record,
            histograms: vec![],
            unreachable: true,
            system_ended: None,
        }
    }

    #[test]
    fn an_unreachable_system_has_failed_and_leaves_no_folder() {
        let outcome = unconnected("unreachable: connection refused");
        assert!(outcome.never_connected() && outcome.conclusion() == Conclusion::SystemFailed);
        let error = outcome.failure().unwrap();
        assert!(error.chain[0].ends_with("unreachable: connection refused"), "{error}");
        assert!(error.hint.unwrap().starts_with("start the system"));
    }

    #[test]
    fn a_refused_log_in_says_what_to_check() {
        let error = unconnected("not authorized: bad user name or password (0x86)").failure().unwrap();
        assert!(error.hint.unwrap().starts_with("check `--user` and `--password`"));
    }

    #[test]
    fn what_answers_with_another_protocol_is_named() {
        let error = unconnected(&format!("broken: {ANSWERED}HTTP/1.1 400")).failure().unwrap();
        assert!(error.chain[0].ends_with("it answered HTTP/1.1 400"), "{error}");
        assert!(error.hint.unwrap().contains("--protocol"));
    }

    #[test]
    fn an_end_of_the_system_says_more_than_an_interruption() {
        let mut outcome = unconnected("");
        outcome.record.run.status = Status::Interrupted;
        assert_eq!((outcome.conclusion(), outcome.failure().is_none()), (Conclusion::Interrupted, true));
        assert!(!outcome.never_connected());
        outcome.system_ended = Some("signal 9".to_owned());
        assert_eq!(outcome.conclusion(), Conclusion::SystemFailed);
        assert!(outcome.failure().unwrap().chain[0].ends_with("ended during the run: signal 9"));
    }
}
