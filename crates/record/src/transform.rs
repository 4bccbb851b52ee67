//! Effects and cost of the steps of `transform`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of a device group. Measured messages only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransformRow {
    /// Name of the device group.
    pub group: String,
    /// The step with its level, as in the workload: `compress zstd 3`.
    pub step: String,
    /// Work of the publishers, for messages that the system accepted. Its CPU time is part of both latency bounds.
    pub publishing: StepUse,
    /// Work of the subscribers to reverse the step, for every copy received. It is done after a message has been
    /// received, so its CPU time is not part of any latency.
    pub receiving: StepUse,
    /// Copies for which this step could not be reversed because the content had changed; they do not count as
    /// delivered.
    pub failed: u64,
}

/// Work of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepUse {
    /// Bodies processed.
    pub messages: u64,
    /// CPU time, seconds. It is part of pubmark's CPU time (`cost.generator`).
    pub cpu_s: f64,
    /// Bytes of the bodies before the step, without headers.
    pub bytes_before: u64,
    /// Bytes of the bodies after the step.
    pub bytes_after: u64,
}

impl StepUse {
    /// CPU time per body, µs; `None` without bodies.
    pub fn cpu_us_each(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.cpu_s * 1e6 / self.messages as f64)
    }

    /// Bytes after the step over bytes before it; `None` without bytes.
    pub fn size_ratio(&self) -> Option<f64> {
        (self.bytes_before > 0).then(|| self.bytes_after as f64 / self.bytes_before as f64)
    }
}
