//! The workloads that come with pubmark, by name. The files in `workloads/` are embedded, and are their own documentation.
//!
//! Adding one is a file there and a row in `FILES` and `ROWS`.

use crate::load::{self, LoadOptions};
use crate::plan::{Plan, PlanOptions, Traffic};
use crate::workload::{Variant, Workload};

/// The embedded files, by name.
const FILES: &[(&str, &str)] = &[
    ("smart-city", include_str!("../../../workloads/smart-city.yaml")),
    ("smart-factory", include_str!("../../../workloads/smart-factory.yaml")),
    ("smart-healthcare", include_str!("../../../workloads/smart-healthcare.yaml")),
    ("smart-home", include_str!("../../../workloads/smart-home.yaml")),
    ("pairs", include_str!("../../../workloads/pairs.yaml")),
    ("fan-in", include_str!("../../../workloads/fan-in.yaml")),
    ("supermarket", include_str!("../../../workloads/supermarket.yaml")),
    ("fan-out", include_str!("../../../workloads/fan-out.yaml")),
    ("payload-sweep", include_str!("../../../workloads/payload-sweep.yaml")),
    ("request-reply", include_str!("../../../workloads/request-reply.yaml")),
    ("hello", include_str!("../../../workloads/hello.yaml")),
];

/// A built-in workload: its name, its file, the scale that is part of the name, and other names that are taken for it.
struct Row {
    name: &'static str,
    file: &'static str,
    scale: u32,
    aliases: &'static [&'static str],
}

const fn row(name: &'static str, file: &'static str, scale: u32, aliases: &'static [&'static str]) -> Row {
    Row { name, file, scale, aliases }
}

const ROWS: &[Row] = &[
    row("smart-city", "smart-city", 1, &["city", "psmark-c"]),
    row("smart-city-2x", "smart-city", 2, &["city-2x", "psmark-c-2x"]),
    row("smart-city-10x", "smart-city", 10, &["city-10x", "psmark-c-10x"]),
    row("smart-factory", "smart-factory", 1, &["factory", "psmark-f"]),
    row("smart-factory-2x", "smart-factory", 2, &["factory-2x", "psmark-f-2x"]),
    row("smart-factory-10x", "smart-factory", 10, &["factory-10x", "psmark-f-10x"]),
    row("smart-healthcare", "smart-healthcare", 1, &["healthcare", "psmark-hc"]),
    row("smart-healthcare-2x", "smart-healthcare", 2, &["healthcare-2x", "psmark-hc-2x"]),
    row("smart-healthcare-10x", "smart-healthcare", 10, &["healthcare-10x", "psmark-hc-10x"]),
    row("smart-home", "smart-home", 1, &["home", "psmark-hm"]),
    row("smart-home-2x", "smart-home", 2, &["home-2x", "psmark-hm-2x"]),
    row("smart-home-10x", "smart-home", 10, &["home-10x", "psmark-hm-10x"]),
    row("pairs", "pairs", 1, &[]),
    row("fan-in", "fan-in", 1, &[]),
    row("fan-out", "fan-out", 1, &[]),
    row("payload-sweep", "payload-sweep", 1, &[]),
    row("supermarket", "supermarket", 1, &["specjms"]),
    row("request-reply", "request-reply", 1, &["req-qry"]),
    row("hello", "hello", 1, &[]),
];

/// A built-in workload, found by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// The scale that is part of the name.
    pub scale: u32,
    file: &'static str,
    text: &'static str,
}

impl Builtin {
    /// The YAML of its file.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Name of its file, for messages.
    pub fn file_name(&self) -> String {
        format!("workloads/{}.yaml", self.file)
    }
}

/// All built-in workloads, in the order in which they are listed.
pub fn all() -> impl Iterator<Item = Builtin> {
    ROWS.iter().filter_map(|row| {
        let (file, text) = FILES.iter().find(|(file, _)| *file == row.file)?;
        Some(Builtin { name: row.name, scale: row.scale, file, text })
    })
}

/// Names of all built-in workloads.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().map(|row| row.name).collect()
}

/// The built-in workload of that name or alias, whatever its case.
pub fn find(name: &str) -> Option<Builtin> {
    let name = name.to_ascii_lowercase();
    let row = ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name.as_str()))?;
    all().find(|builtin| builtin.name == row.name)
}

/// A row of `pubmark list workloads`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// Devices of one copy.
    pub devices: u64,
    /// Subscribers of one copy.
    pub subscribers: u64,
    /// Messages per second sent while all devices are online; `None` for a flood.
    pub messages_per_s: Option<f64>,
    /// Payload bytes per second sent while all devices are online, by mean sizes; `None` for a flood.
    pub bytes_per_s: Option<f64>,
    /// Readings that differ.
    pub variants: Vec<Variant>,
    /// One sentence.
    pub description: String,
    /// What `--set NAME=VALUE` changes.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value where none is set, as written.
    pub default: String,
    /// What it is.
    pub about: String,
}

/// The rows of `pubmark list workloads`, counted in the corrected reading.
pub fn list() -> Result<Vec<Listed>, load::LoadError> {
    all()
        .map(|builtin| {
            let workload = load::load(builtin.name, &LoadOptions::default())?;
            let outline = load::outline(&builtin.file_name(), builtin.text)?;
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

/// What one copy sends with all that follows from it.
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

/// Payload bytes per second likewise, by the distributions' means.
pub fn bytes_per_s(workload: &Workload) -> Option<f64> {
    if workload.has_reactions() {
        return whole(workload).map(|flow| flow.bytes_per_s);
    }
    let of_group = |group: &crate::workload::DeviceGroup| {
        Some(f64::from(group.count) * group.arrival.mean_rate_per_s()? * group.size.mean())
    };
    workload.devices.iter().map(of_group).sum()
}
