//! A run: a specification whose most common fields can also be at the top level.

use std::time::Duration;

use pubmark_model::metric::MetricProgram;
use pubmark_record::message_log::LogFormat;
use pubmark_runner::spec::{Connection, Generator, Load, Nodes, Protocols, SPEC_VERSION, TargetSpec, Window, text};
use pubmark_runner::{RunError, RunSpec, WorkloadSource};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::Problem;

/// A run: the content of `run.yaml` (`pubmark schema run`), whose most common fields can also be at the top level, under
/// their names on the command line of `pubmark run`. A field may be in only one of both places.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSubmission {
    /// Version of the format, 1.
    #[serde(default)]
    pub spec_version: Option<u32>,
    /// A built-in workload, or `file_name` and `text` of one.
    pub workload: WorkloadSource,
    /// `target.system`: system to start, `builtin` if left out.
    #[serde(default)]
    pub system: Option<String>,
    /// `target.endpoint`: URL of a system that already runs.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// `protocols.protocol`.
    #[serde(default)]
    pub protocol: Option<String>,
    /// `window.duration`, such as `4s`.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// `window.warmup`, such as `1s`.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub warmup: Option<Duration>,
    /// `window.drain`, such as `10s`.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub drain: Option<Duration>,
    /// `load.scale`.
    #[serde(default)]
    pub scale: Option<u32>,
    /// `load.rate`.
    #[serde(default)]
    pub rate: Option<f64>,
    /// `load.qos`.
    #[serde(default)]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// `load.seed`.
    #[serde(default)]
    pub seed: Option<u64>,
    /// `connection.tls`.
    #[serde(default)]
    pub tls: Option<bool>,
    /// `objectives`, under its name on the command line.
    #[serde(default)]
    pub slo: Option<String>,
    /// Changes to the workload.
    #[serde(default)]
    pub load: Option<Load>,
    /// The system under test.
    #[serde(default)]
    pub target: Option<TargetSpec>,
    /// Protocols of the clients.
    #[serde(default)]
    pub protocols: Option<Protocols>,
    /// How clients connect.
    #[serde(default)]
    pub connection: Option<Connection>,
    /// When messages are sent and measured.
    #[serde(default)]
    pub window: Option<Window>,
    /// How pubmark generates the load.
    #[serde(default)]
    pub generator: Option<Generator>,
    /// Nodes that the fleet is distributed over.
    #[serde(default)]
    pub nodes: Option<Nodes>,
    /// Limits that the run has to meet, such as `p99<50ms,loss=0`.
    #[serde(default)]
    pub objectives: Option<String>,
    /// Write a row for each message and each subscriber to a file beside the record.
    #[serde(default)]
    pub message_log: Option<LogFormat>,
    /// Metrics of your own: programs that read the message log and print a value.
    #[serde(default)]
    pub metrics: Vec<MetricProgram>,
    /// Number of repetitions of the run: 1 to 1,000.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub repetitions: Option<u32>,
}

impl RunSubmission {
    /// Converts the submission to a specification.
    ///
    /// # Errors
    /// A field is in both places.
    pub fn spec(self) -> Result<RunSpec, Problem> {
        let groups = [
            (
                self.load.is_some(),
                "load",
                &[
                    ("scale", self.scale.is_some()),
                    ("rate", self.rate.is_some()),
                    ("qos", self.qos.is_some()),
                    ("seed", self.seed.is_some()),
                ][..],
            ),
            (
                self.target.is_some(),
                "target",
                &[("system", self.system.is_some()), ("endpoint", self.endpoint.is_some())][..],
            ),
            (self.protocols.is_some(), "protocols", &[("protocol", self.protocol.is_some())][..]),
            (self.connection.is_some(), "connection", &[("tls", self.tls.is_some())][..]),
            (
                self.window.is_some(),
                "window",
                &[
                    ("duration", self.duration.is_some()),
                    ("warmup", self.warmup.is_some()),
                    ("drain", self.drain.is_some()),
                ][..],
            ),
            (self.objectives.is_some(), "objectives", &[("slo", self.slo.is_some())][..]),
        ];
        for (_, group, fields) in groups.into_iter().filter(|(is_there, ..)| *is_there) {
            if let Some((field, _)) = fields.iter().find(|(_, is_there)| *is_there) {
                return Err(Problem::from(RunError::input(format!(
                    "`{field}` is at the top level, and `{group}` is given, too"
                )))
                .hint(format!("put `{field}` into `{group}`")));
            }
        }
        let mut spec = RunSpec {
            spec_version: self.spec_version.unwrap_or(SPEC_VERSION),
            workload: self.workload,
            load: self.load.unwrap_or_default(),
            target: self.target.unwrap_or_default(),
            protocols: self.protocols.unwrap_or_default(),
            connection: self.connection.unwrap_or_default(),
            window: self.window.unwrap_or_default(),
            generator: self.generator.unwrap_or_default(),
            nodes: self.nodes.unwrap_or_default(),
            objectives: self.objectives.or(self.slo),
            message_log: self.message_log,
            metrics: self.metrics,
            repetitions: self.repetitions.unwrap_or(1),
        };
        spec.target.system = spec.target.system.or(self.system);
        spec.target.endpoint = spec.target.endpoint.or(self.endpoint);
        spec.protocols.protocol = spec.protocols.protocol.or(self.protocol);
        spec.load.qos = spec.load.qos.or(self.qos);
        put(&mut spec.load.scale, self.scale);
        put(&mut spec.load.rate, self.rate);
        put(&mut spec.load.seed, self.seed);
        put(&mut spec.window.duration, self.duration);
        put(&mut spec.window.warmup, self.warmup);
        put(&mut spec.window.drain, self.drain);
        put(&mut spec.connection.tls, self.tls);
        Ok(spec)
    }
}

fn put<Value>(place: &mut Value, given: Option<Value>) {
    if let Some(given) = given {
        *place = given;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::spec::file::document;

    use super::*;

    #[test]
    fn the_shortest_submission_is_a_run() {
        let text = r#"{"workload": "smart-home", "system": "builtin", "duration": "4s", "warmup": "1s"}"#;
        let spec = document::<RunSubmission>(text).unwrap().spec().unwrap();
        assert_eq!(spec.window.duration, Duration::from_secs(4));
        assert_eq!(spec.window.warmup, Duration::from_secs(1));
        assert_eq!(spec.target.system.as_deref(), Some("builtin"));
        assert_eq!(spec.window.drain, Window::default().drain);
    }

    #[test]
    fn what_a_run_wrote_can_be_submitted() {
        let mut spec = RunSpec::new("smart-home");
        spec.load.scale = 3;
        let text = spec.to_yaml(&[]).unwrap();
        assert_eq!(document::<RunSubmission>(&text).unwrap().spec().unwrap(), spec);
    }

    #[test]
    fn a_field_in_two_places_and_one_that_is_none_are_refused() {
        let both = "workload: hello\nduration: 4s\nwindow: {duration: 5s}\n";
        let problem = document::<RunSubmission>(both).unwrap().spec().unwrap_err();
        assert!(problem.body.error.contains("`duration`"), "{problem:?}");
        let error = document::<RunSubmission>("workload: hello\nduratoin: 4s\n").unwrap_err();
        assert_eq!(error.place, Some((2, 1)), "{error:?}");
        assert!(error.message.contains("duratoin"), "{error:?}");
    }
}
