//! Metrics of the user's own: each is a program that reads the message log of a run and prints its value
//! (docs/how-to/metrics-of-your-own.md).

mod output;
mod program;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_model::metric::{self, MetricProgram};
use pubmark_model::units::UnitError;
use pubmark_model::workload::Workload;
use pubmark_record::custom::CustomMetric;
use pubmark_record::message_log::{LogFormat, MessageLogInfo};
use pubmark_record::record::{Record, Status};
use pubmark_record::store::RECORD_FILE;
use pubmark_record::threshold::Objectives;
use pubmark_systems::programs;
use ring::digest::{SHA256, digest};

use crate::error::RunError;
use crate::message_log::MessageLog;
use crate::spec::RunSpec;
use program::{ProgramInput, ProgramOutcome};

/// Largest file whose hash enters the record, bytes: larger ones are data, not sources.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Metrics that a run computes when it is saved.
#[derive(Clone, Debug)]
pub struct CustomMetrics {
    /// Their programs.
    pub programs: Vec<MetricProgram>,
    /// Limits of the run; some may be about these metrics.
    pub objectives: Option<Objectives>,
    /// Set when the run is to end: running programs are then stopped.
    pub stop: Arc<AtomicBool>,
}

/// The metrics of a run: those of its workload and of its specification. One of the specification replaces one of the workload with the
/// same name.
///
/// # Errors
/// One of them cannot be used.
pub fn of(spec: &RunSpec, workload: &Workload) -> Result<Vec<MetricProgram>, RunError> {
    let is_replaced = |metric: &&MetricProgram| spec.metrics.iter().any(|own| own.name == metric.name);
    let metrics: Vec<MetricProgram> =
        workload.metrics.iter().filter(|metric| !is_replaced(metric)).chain(&spec.metrics).cloned().collect();
    metric::check(&metrics).map_err(|error| unusable(&error))?;
    if let Some(metric) = metrics.iter().find(|metric| !programs::can_be_started(&metric.command[0])) {
        let message = format!("metric `{}`: there is no program `{}`", metric.name, metric.command[0]);
        return Err(RunError::input(message)
            .hint("a name is searched in `PATH`; a path counts from the folder in which pubmark is started"));
    }
    Ok(metrics)
}

fn unusable(error: &UnitError) -> RunError {
    let refused = RunError::input(&error.message).during("failed to read the metrics of the run".to_owned());
    match &error.hint {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Reads a metric as the command line writes it: `NAME=COMMAND`, `NAME:UNIT=COMMAND`.
///
/// # Errors
/// A sentence for the user.
pub fn read(text: &str) -> Result<MetricProgram, String> {
    let example = "write it like `jitter:ms=python3 jitter.py`";
    let (head, command) = text.split_once('=').ok_or_else(|| format!("a metric has a command: {example}"))?;
    let (name, unit) = head.split_once(':').unwrap_or((head, ""));
    let command = pubmark_protocol::client_program::ClientProgram::words(command)
        .map_err(|error| format!("the command of `{name}` cannot be read: {error}; {example}"))?;
    let metric = MetricProgram {
        name: name.trim().to_owned(),
        command,
        unit: unit.trim().to_owned(),
        within: metric::USUAL_LIMIT,
    };
    metric.check().map_err(|error| format!("{}: {}", error.message, error.hint.unwrap_or_default()))?;
    Ok(metric)
}

/// The format of the message log: the chosen one, or one that metrics can read.
pub fn log_format(chosen: Option<LogFormat>, metrics: &[MetricProgram]) -> Option<LogFormat> {
    let usual = if cfg!(feature = "parquet") { LogFormat::Parquet } else { LogFormat::Ndjson };
    chosen.or((!metrics.is_empty()).then_some(usual))
}

impl CustomMetrics {
    /// Runs the programs one after the other on a folder that has its record and its message log, enters the printed values into the
    /// record, and evaluates the limits again.
    pub fn enter(&self, record: &mut Record, log: Option<&MessageLog>, folder: &Path) {
        record.custom = self.programs.iter().map(|one| self.compute(one, record, log, folder)).collect();
        if let Some(objectives) = &self.objectives {
            pubmark_record::objectives::assess(record, objectives);
        }
    }

    fn compute(&self, one: &MetricProgram, record: &Record, log: Option<&MessageLog>, folder: &Path) -> CustomMetric {
        let mut metric = CustomMetric {
            name: one.name.clone(),
            unit: one.unit.clone(),
            command: one.command.clone(),
            sources: sources(&one.command),
            partial: record.message_log.as_ref().is_some_and(MessageLogInfo::is_partial),
            ..CustomMetric::default()
        };
        if record.run.status == Status::Interrupted || self.stop.load(Ordering::Relaxed) {
            metric.failure = Some("not computed: the run was stopped".to_owned());
            return metric;
        }
        let (Some(log), Some(info)) = (log, &record.message_log) else {
            metric.failure = Some("not computed: the run has no message log".to_owned());
            return metric;
        };
        let input = ProgramInput { log, log_file: &folder.join(&info.file), record_file: &folder.join(RECORD_FILE) };
        let ProgramOutcome { seconds, printed } = program::run(one, &input, &self.stop);
        metric.ran_s = seconds;
        match printed.and_then(|printed| output::read(&printed, &one.name)) {
            Ok(values) => {
                (metric.lower, metric.upper) = (values.whole.map(|it| it.lower), values.whole.map(|it| it.upper));
                metric.by = values.by;
            }
            Err(why) => metric.failure = Some(why),
        }
        metric
    }
}

/// Files among the words of a command, with the SHA-256 of their content in hexadecimal digits.
fn sources(words: &[String]) -> BTreeMap<String, String> {
    let hash = |word: &String| {
        let found = std::fs::metadata(word).ok()?;
        // A word that is not a readable file is treated as an ordinary argument.
        let content = (found.is_file() && found.len() <= LARGEST_SOURCE).then(|| std::fs::read(word).ok())??;
        let digits = digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Some((word.clone(), digits))
    };
    words.iter().filter_map(hash).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_read_from_the_command_line() {
        let metric = read("jitter:ms=python3 'my jitter.py' --per type").unwrap();
        assert_eq!((&*metric.name, &*metric.unit), ("jitter", "ms"));
        assert_eq!(metric.command, ["python3", "my jitter.py", "--per", "type"]);
        assert_eq!(read("hops=./hops --key=value").unwrap().command, ["./hops", "--key=value"]);
        for (text, words) in [
            ("jitter", "a metric has a command"),
            ("jitter=", "cannot be read"),
            ("Jitter=true", "is no name of a metric"),
            ("jitter:a b=true", "is no unit"),
            ("jitter=a 'b", "cannot be read"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text}: {}", read(text).unwrap_err());
        }
    }

    #[test]
    fn the_specification_replaces_metrics_of_the_workload_by_name() {
        let mut spec = RunSpec::new("hello");
        let mut workload = spec.load().unwrap();
        workload.metrics = vec![read("a=sh").unwrap(), read("b=true").unwrap()];
        spec.metrics = vec![read("b=false").unwrap()];
        let commands: Vec<String> = of(&spec, &workload).unwrap().iter().map(|one| one.command.join(" ")).collect();
        assert_eq!(commands, ["sh", "false"]);
    }

    #[test]
    fn a_metric_of_a_log_that_lacks_rows_is_marked() {
        let metrics = CustomMetrics { programs: vec![read("a=true").unwrap()], objectives: None, stop: Arc::default() };
        let marked = |missing: u64, reason: Option<&str>| {
            let mut record = pubmark_record::sample::record();
            let reason = reason.map(str::to_owned);
            record.message_log = Some(MessageLogInfo { missing, reason, ..MessageLogInfo::default() });
            metrics.enter(&mut record, None, Path::new("/nonexistent"));
            record.custom[0].partial
        };
        assert!(!marked(0, None));
        assert!(marked(1, None) && marked(0, Some("a worker was lost")));
    }

    #[test]
    fn a_source_is_a_file_among_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jitter.py").display().to_string();
        std::fs::write(&file, "abc").unwrap();
        let found = sources(&["python3".to_owned(), file.clone(), "--fast".to_owned()]);
        // FIPS 180-2, appendix B.1.
        assert_eq!(found[&file], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(found.len(), 1);
    }
}
