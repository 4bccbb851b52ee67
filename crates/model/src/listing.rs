//! The built-in workloads with their load, as `pubmark list workloads` shows them.

use crate::builtin::{self, Parameter};
use crate::load::{self, LoadOptions};
use crate::plan::{Plan, PlanOptions, Traffic};
use crate::workload::{Variant, Workload};

/// A row of `pubmark list workloads`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Name of the workload.
    pub name: &'static str,
    /// Devices of one copy.
    pub devices: u64,
    /// Subscribers of one copy.
    pub subscribers: u64,
    /// Messages per second sent while all devices are online; `None` for a flood.
    pub messages_per_s: Option<f64>,
    /// Payload bytes per second sent while all devices are online, by mean sizes; `None` for a flood.
    pub bytes_per_s: Option<f64>,
    /// Variants that differ.
    pub variants: Vec<Variant>,
    /// Description in one sentence.
    pub description: String,
    /// Parameters that `--set NAME=VALUE` changes.
    pub parameters: Vec<Parameter>,
}

/// The rows of `pubmark list workloads`, computed for the corrected variant.
pub fn list() -> Result<Vec<Listed>, load::LoadError> {
    builtin::all()
        .map(|builtin| {
            let workload = load::load(builtin.name, &LoadOptions::default())?;
            let outline = load::outline(&builtin.file_name(), builtin.text())?;
            Ok(Listed {
                name: builtin.name,
                devices: workload.devices.iter().map(|group| u64::from(group.count)).sum(),
                subscribers: workload.subscribers.iter().map(|group| u64::from(group.count)).sum(),
                messages_per_s: messages_per_s(&workload),
                bytes_per_s: bytes_per_s(&workload),
                variants: match outline.has_published {
                    true => vec![Variant::Corrected, Variant::Published],
                    false => vec![Variant::Corrected],
                },
                description: workload.description,
                parameters: outline.parameters,
            })
        })
        .collect()
}

/// Traffic of one copy, including reactions and replies.
fn whole(workload: &Workload) -> Option<Traffic> {
    Plan::new(workload, &PlanOptions::default()).incoming
}

/// Messages per second that one copy of a workload offers while all devices are online; `None` with a flood in it.
pub fn messages_per_s(workload: &Workload) -> Option<f64> {
    if workload.has_reactions() {
        return whole(workload).map(|flow| flow.messages_per_s);
    }
    workload.devices.iter().map(|group| Some(f64::from(group.count) * group.arrival.mean_rate_per_s()?)).sum()
}

/// Payload bytes per second of one copy, from the means of the distributions; `None` with a flood in it.
pub fn bytes_per_s(workload: &Workload) -> Option<f64> {
    if workload.has_reactions() {
        return whole(workload).map(|flow| flow.bytes_per_s);
    }
    let of_group = |group: &crate::workload::DeviceGroup| {
        Some(f64::from(group.count) * group.arrival.mean_rate_per_s()? * group.size.mean())
    };
    workload.devices.iter().map(of_group).sum()
}
