//! The workload of a run: what was sent by whom.

use pubmark_model::qos::Qos;
use pubmark_model::workload::Variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workload of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadInfo {
    /// Its name.
    pub name: String,
    /// The reading of a published workload that was run.
    pub variant: Variant,
    /// Does the workload have two readings?
    #[serde(default)]
    pub has_readings: bool,
    /// Multiplier of device counts.
    pub scale: u32,
    /// Seed of every random draw.
    pub seed: u64,
    /// Hash over (device, due, configured size, churn); `none` where the schedule is not fixed before the run (flood).
    pub schedule_hash: String,
    /// Messages due in the measured window, counted from the schedule itself; `null` where it is not fixed before the run (flood).
    #[serde(default)]
    pub scheduled: Option<u64>,
    /// Devices.
    pub devices: u64,
    /// Subscribers.
    pub subscribers: u64,
    /// Topics published to.
    pub topics: u64,
    /// Where its figures come from.
    pub source: Option<String>,
    /// QoS levels of devices.
    pub qos: Vec<Qos>,
}

impl WorkloadInfo {
    /// The reading in brackets, where there are two or it is not the usual one; empty otherwise.
    pub fn reading(&self) -> Option<&'static str> {
        (self.has_readings || self.variant == Variant::Published).then(|| self.variant.as_str())
    }

    /// QoS levels of devices as they are typed: `QoS 0`, `QoS 0, 1`; empty if there are none.
    pub fn typed_levels(&self) -> String {
        let levels: Vec<String> = self.qos.iter().map(|qos| qos.level().to_string()).collect();
        if levels.is_empty() { String::new() } else { format!("QoS {}", levels.join(", ")) }
    }

    /// QoS levels of devices in words.
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
