//! The shape of an experiment file. Values are validated later; the comments here are the descriptions in its JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use super::axes::RawAxes;
use crate::load::shape::{AnyText, Named, Spanned, Text, TextKind, text_kinds};

// Experiment files have no parameters: only these texts are valid.
text_kinds! {
    /// `10ms`, `1.5s`, `2m`, `1h`.
    TimeText = "Time", "a duration such as `60s`", r"^[0-9]*\.?[0-9]+(ns|us|ms|s|m|h)$", &["string"];
    /// A whole number.
    WholeText = "Whole", "a whole number", r"^[0-9]+$", &["string", "integer"];
    /// A number above zero.
    FactorText = "Factor", "a number above zero", r"^[0-9]*\.?[0-9]+$", &["string", "number"];
    /// `0`, `1`, `2`.
    LevelText = "Level", "a delivery level: `0`, `1`, `2`", r"^[012]$", &["string", "integer"];
    /// `16B`, `1KB`.
    BytesText = "Bytes", "a size such as `1KB`", r"^[0-9]*\.?[0-9]+(B|kB|KB|KiB|MB|MiB|GB|GiB)?$", &["string", "number"];
    /// `10%` or `0.1`.
    ShareText = "Share", "a share such as `10%`", r"^[0-9]*\.?[0-9]+%?$", &["string", "number"];
    /// `1`, `3:bridge`, `5:shard`.
    TopologyText = "Topology", "brokers and how they know each other, such as `3:bridge`",
    r"^(1|[0-9]+[: ](bridge|cluster|shard))$", &["string", "integer"];
    /// `true`, `false`.
    SwitchText = "Switch", "`true` or `false`", r"^(true|false)$", &["string", "boolean"];
    /// `none`, `cpu=0.5,memory=256MB`, or the name of a set.
    LimitText = "Limit", "limits such as `cpu=0.5,memory=256MB`, or `none`", "", &["string"];
}

/// A pubmark experiment: one workload, the settings that vary, the number of repetitions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `name`, `workload`, `axes`")]
#[schemars(title = "pubmark experiment")]
pub(crate) struct RawExperiment {
    /// Name of its folder: letters, digits, `-` and `_`.
    pub name: Spanned<String>,
    /// One line for the head of the report; the name if not given.
    pub title: Option<String>,
    /// One sentence for `pubmark list experiments`.
    #[serde(default)]
    pub description: String,
    /// A built-in workload (`pubmark list workloads`), or the path of a file, relative to this file's folder; left out if
    /// `axes` has several.
    pub workload: Option<Spanned<String>>,
    /// Variant of a published workload: `corrected` (default) or `published`.
    pub variant: Option<VariantWord>,
    /// Settings of the workload that all cells share: a parameter, or a dotted path, each with its value.
    #[serde(default)]
    pub set: Named<Text<AnyText>>,
    /// Seed of the schedules, 1 by default.
    pub seed: Option<Text<WholeText>>,
    /// Seed of the order of the runs; that of the schedules by default.
    pub order_seed: Option<Text<WholeText>>,
    /// Measured window of each run, 60s by default.
    pub duration: Option<Text<TimeText>>,
    /// Length of the warm-up before the window, which is not measured, 5s by default.
    pub warmup: Option<Text<TimeText>>,
    /// Warm up for exactly `warmup`, even where the definition of a system asks for more; `false` by default.
    #[serde(default)]
    pub exact_warmup: bool,
    /// Maximum wait for late messages after the window, 10s by default.
    pub drain: Option<Text<TimeText>>,
    /// Repetitions of each cell, 5 by default.
    pub repeat: Option<Text<WholeText>>,
    /// When the machine is quiet enough for a run.
    pub quiet_machine: Option<RawQuietMachine>,
    /// Cores that the system and the generator may use.
    pub pin: Option<RawPins>,
    /// How the load is generated.
    pub generator: Option<RawGenerator>,
    /// Do not raise limits of the systems, even if messages are too large for them; `false` by default.
    #[serde(default)]
    pub strict_defaults: bool,
    /// Lengths of `pubmark experiment --quick`.
    pub quick: Option<RawQuick>,
    /// Settings that vary: every combination is a cell.
    pub axes: Spanned<RawAxes>,
    /// Figures of publications, shown beside the results.
    #[serde(default)]
    pub papers: Vec<RawPaper>,
}

/// One figure as a publication prints it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `source`, `figure`, `columns`, `values`")]
pub(crate) struct RawPaper {
    /// The publication, with its table or section.
    pub source: String,
    /// Systems and versions that it measured.
    #[serde(default)]
    pub versions: String,
    /// The figure of the experiment that it is compared with, such as `latency p50`.
    pub figure: Spanned<String>,
    /// Why the results of the experiment differ, if known.
    #[serde(default)]
    pub differs: String,
    /// Axes whose values identify the cell.
    pub columns: Vec<Spanned<String>>,
    /// Rows: a value of each column, then the figure with its unit (`3.94ms`, `98%`, `474`).
    pub values: Vec<Vec<Text<AnyText>>>,
}

/// Variant of a workload.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VariantWord {
    /// As the paper's text means it.
    Corrected,
    /// With the errors that are in the paper's figures.
    Published,
}

/// When a run may begin.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `below`, `within`")]
pub(crate) struct RawQuietMachine {
    /// Maximum share of the machine's CPU time that other programs may use, 10% by default.
    pub below: Option<Text<ShareText>>,
    /// Maximum wait for that, 30s by default; after it the run is executed anyway, and marked.
    pub within: Option<Text<TimeText>>,
}

/// Cores as the kernel writes them, such as `0-1,3`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `system`, `generator`")]
pub(crate) struct RawPins {
    /// Of the system.
    pub system: Option<Text<AnyText>>,
    /// Of pubmark's own threads.
    pub generator: Option<Text<AnyText>>,
}

/// How the load is generated.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `shards`, `realtime`, `awake`, `netem`")]
pub(crate) struct RawGenerator {
    /// Threads for publishers, and as many for subscribers; 1 by default.
    pub shards: Option<Text<WholeText>>,
    /// Run them under SCHED_FIFO, where the machine allows it; `false` by default.
    #[serde(default)]
    pub realtime: bool,
    /// Prevent CPU idle states on the machine, where this is possible; `false` by default.
    #[serde(default)]
    pub awake: bool,
    /// Emulator of links: `user` (pubmark itself, the default), or `kernel`, if the kernel has netem.
    pub netem: Option<NetemWord>,
}

/// Emulator of links.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NetemWord {
    /// pubmark's emulator in user space.
    User,
    /// The kernel's netem.
    Kernel,
}

/// Lengths for a quick first result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `duration`, `warmup`, `repeat`")]
pub(crate) struct RawQuick {
    /// Measured window, 10s by default.
    pub duration: Option<Text<TimeText>>,
    /// Length of the warm-up, 2s by default.
    pub warmup: Option<Text<TimeText>>,
    /// Repetitions, 3 by default.
    pub repeat: Option<Text<WholeText>>,
}

/// A system with its own settings: one that pubmark starts, or one that already runs at an `endpoint`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `system` or `endpoint`")]
#[schemars(extend("anyOf" = [{"required": ["system"]}, {"required": ["endpoint"]}]))]
pub(crate) struct RawSystem {
    /// Its name, or the path of its definition; beside `endpoint`, the system that is assumed to run there.
    pub system: Option<Text<AnyText>>,
    /// URL of a system that already runs, without a password: `mqtts://broker.example:8883`.
    pub endpoint: Option<Text<AnyText>>,
    /// Name in the report; the system's name if not given. Required for an endpoint.
    pub label: Option<Spanned<String>>,
    /// Its protocol.
    pub protocol: Option<Text<AnyText>>,
    /// Its profile.
    pub profile: Option<Text<AnyText>>,
    /// QoS of all devices and subscribers of its runs.
    pub qos: Option<Text<LevelText>>,
    /// Resource limits of each of its brokers.
    pub limit: Option<Text<LimitText>>,
    /// Its brokers.
    pub topology: Option<Text<TopologyText>>,
    /// Whether connections to it are encrypted.
    pub tls: Option<Text<SwitchText>>,
    /// How it is run: `process` or `container`.
    pub back_end: Option<Text<AnyText>>,
    /// Node that starts it (`pubmark node --start-systems`), by its name.
    pub node: Option<Text<AnyText>>,
    /// Image of its container.
    pub image: Option<Text<AnyText>>,
    /// For an endpoint: address for subscribers, if it is different.
    pub subscribe_endpoint: Option<Text<AnyText>>,
    /// For an endpoint: the node_exporter of its machine, which provides the resource use of the whole machine:
    /// `http://host:9100`.
    pub node_exporter: Option<Text<AnyText>>,
    /// For an endpoint: user name of all clients that have none in the workload.
    pub user: Option<Text<AnyText>>,
    /// For an endpoint: environment variable with the password.
    pub password_env: Option<Text<AnyText>>,
    /// For an endpoint: file with the password in its first line.
    pub password_file: Option<Text<AnyText>>,
    /// For an endpoint: certificate authorities (PEM) for its certificate; the machine's if not given.
    pub tls_ca: Option<Text<AnyText>>,
    /// For an endpoint: accept any certificate; `false` by default.
    pub tls_insecure: Option<Text<SwitchText>>,
    /// For an endpoint: client certificate (PEM).
    pub tls_cert: Option<Text<AnyText>>,
    /// For an endpoint: private key (PEM) of the client certificate.
    pub tls_key: Option<Text<AnyText>>,
}
