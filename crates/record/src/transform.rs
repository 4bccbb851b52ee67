//! What the steps of `transform` did, and what they cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of a device group. Measured messages only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransformRow {
    /// The device group.
    pub group: String,
    /// The step as the workload has it, with its level: `compress zstd 3`.
    pub step: String,
    /// What the publishers did, with messages that were handed over. Its CPU time is in their latency, in both bounds.
    pub publishing: StepUse,
    /// What the subscribers did to undo it, with every copy that they received. It comes after a message has been received, so that its
    /// CPU time is in no latency.
    pub receiving: StepUse,
    /// Copies that could not be undone at this step: they arrived changed, and are not delivered.
    pub failed: u64,
}

/// What one side did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepUse {
    /// Bodies that went through.
    pub messages: u64,
    /// CPU time, seconds. It is part of pubmark's own (`cost.generator`).
    pub cpu_s: f64,
    /// Bytes of the bodies before, without headers.
    pub bytes_before: u64,
    /// Bytes behind.
    pub bytes_after: u64,
}

impl StepUse {
    /// CPU time for one body, µs; `None` where there was none.
    pub fn cpu_us_each(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.cpu_s * 1e6 / self.messages as f64)
    }

    /// Bytes behind over bytes before; `None` where there were none.
    pub fn size_ratio(&self) -> Option<f64> {
        (self.bytes_before > 0).then(|| self.bytes_after as f64 / self.bytes_before as f64)
    }
}
