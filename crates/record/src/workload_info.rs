//! The workload of a run: what was sent, and by which clients.

use std::collections::BTreeMap;

use pubmark_model::qos::Qos;
use pubmark_model::workload::Variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workload of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadInfo {
    /// Name of the workload.
    pub name: String,
    /// Which reading of a published workload was run.
    pub variant: Variant,
    /// Whether the workload has two readings.
    #[serde(default)]
    pub has_readings: bool,
    /// Factor applied to the device counts.
    pub scale: u32,
    /// Seed of all random draws.
    pub seed: u64,
    /// Hash over (device, due, configured size, churn); `none` where the schedule is not fixed before the run (flood).
    pub schedule_hash: String,
    /// Messages due in the measured window, counted from the schedule; `null` where it is not fixed before the run
    /// (flood).
    #[serde(default)]
    pub scheduled: Option<u64>,
    /// Number of devices.
    pub devices: u64,
    /// Number of subscribers.
    pub subscribers: u64,
    /// Number of topics published to.
    pub topics: u64,
    /// Source of the workload's figures.
    pub source: Option<String>,
    /// QoS levels of the devices.
    pub qos: Vec<Qos>,
    /// Settings of the groups that `schedule_hash` does not include, by name: one value if all groups have the same, otherwise
    /// each with its groups. Empty in records of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group_settings: BTreeMap<String, String>,
}

impl WorkloadInfo {
    /// The reading for display in brackets, if there are two or it is not the usual one; otherwise `None`.
    pub fn reading(&self) -> Option<&'static str> {
        (self.has_readings || self.variant == Variant::Published).then(|| self.variant.as_str())
    }

    /// QoS levels of the devices as typed on the command line: `QoS 0`, `QoS 0, 1`; empty if there are none.
    pub fn typed_levels(&self) -> String {
        let levels: Vec<String> = self.qos.iter().map(|qos| qos.level().to_string()).collect();
        if levels.is_empty() { String::new() } else { format!("QoS {}", levels.join(", ")) }
    }

    /// QoS levels of the devices in words.
    pub fn levels(&self) -> Vec<&'static str> {
        self.qos.iter().map(|level| level.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reading_is_named_where_there_are_two_or_it_is_the_published_one() {
        let workload = |has_readings, variant| WorkloadInfo { has_readings, variant, ..WorkloadInfo::default() };
        assert_eq!(workload(false, Variant::Corrected).reading(), None);
        assert_eq!(workload(true, Variant::Corrected).reading(), Some("corrected"));
        assert_eq!(
            workload(false, Variant::Published).reading(),
            Some("published"),
            "records of before do not say more"
        );
    }

    #[test]
    fn levels_are_shown_as_they_are_typed() {
        let workload = |qos: &[Qos]| WorkloadInfo { qos: qos.to_vec(), ..WorkloadInfo::default() };
        assert_eq!(workload(&[Qos::BestEffort, Qos::ExactlyOnce]).typed_levels(), "QoS 0, 2");
        assert_eq!(workload(&[]).typed_levels(), "");
    }
}
