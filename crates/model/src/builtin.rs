//! The workloads that come with pubmark, by name. The files in `workloads/` are embedded, and are their own documentation.
//!
//! Adding one is a file there and a row in `FILES` and `ROWS`.

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

/// A built-in workload: its name, its file, the scale that is part of the name, and its aliases.
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

/// The built-in workload with this name or alias, ignoring case.
pub fn find(name: &str) -> Option<Builtin> {
    let name = name.to_ascii_lowercase();
    let row = ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name.as_str()))?;
    all().find(|builtin| builtin.name == row.name)
}

/// A parameter of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Default value, as written.
    pub default: String,
    /// Description of the parameter.
    pub about: String,
}
