//! What a system is, as its YAML file says: the files in `systems/` are the reference of this format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::condition::When;
use crate::error::SystemError;

/// File name (without `.yaml`) and text of every definition in `systems/`.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
/// Profile that every system has.
pub const DEFAULT_PROFILE: &str = "default";
/// Profile for benchmarks: without defaults that mislead.
pub const TUNED_PROFILE: &str = "tuned";

/// A system under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name on the command line and in records.
    pub name: String,
    /// Its name as its makers write it.
    pub title: String,
    /// One sentence for `pubmark list systems`.
    pub description: String,
    /// Where it comes from.
    #[serde(default)]
    pub homepage: Option<String>,
    /// May it be ranked against others? The built-in broker may not.
    pub ranked: bool,
    /// Versions that published measurements used.
    #[serde(default)]
    pub papers: Vec<PaperVersion>,
    /// Its ports by name.
    pub listeners: BTreeMap<String, Listener>,
    /// What it speaks, by the names of pubmark's protocols.
    pub protocols: BTreeMap<String, Offer>,
    /// What it does not take.
    #[serde(default)]
    pub limits: Limits,
    /// Ways to run it.
    pub back_ends: BackEnds,
    /// What every profile changes.
    #[serde(default)]
    pub deviations: Vec<Change>,
    /// Settings by name; `default` is always there.
    pub profiles: BTreeMap<String, Profile>,
}

/// Which version a publication measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperVersion {
    /// The publication.
    pub paper: String,
    /// The version it names.
    pub version: String,
}

/// One port of a system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// Scheme of its endpoint.
    pub scheme: String,
    /// Scheme when it encrypts; `None` if it cannot.
    #[serde(default)]
    pub tls_scheme: Option<String>,
}

/// What a system really offers over a protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Name of the listener.
    pub listener: String,
    /// Highest MQTT-like level granted, 0 to 2.
    pub highest_qos: u8,
    /// Keeps retained messages.
    #[serde(default)]
    pub retain: bool,
    /// Keeps sessions beyond a connection.
    #[serde(default)]
    pub persistent_sessions: bool,
    /// Shares a subscription among several clients.
    #[serde(default)]
    pub shared_subscriptions: bool,
}

/// What a system does not take, with the settings used here.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Largest packet it takes, bytes.
    #[serde(default)]
    pub maximum_packet_bytes: Option<u32>,
}

/// Ways to run a system.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackEnds {
    /// As a program of this machine.
    #[serde(default)]
    pub process: Option<ProcessBackEnd>,
}

/// How a system is run as a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessBackEnd {
    /// Program: a name looked up in `PATH` and `search`, a path, or `{self}` for the running program.
    pub program: String,
    /// Folders to look in besides `PATH`.
    #[serde(default)]
    pub search: Vec<PathBuf>,
    /// Command that installs it.
    pub install: String,
    /// How to learn its version.
    #[serde(default)]
    pub version: Option<VersionCommand>,
    /// Its command line.
    #[serde(default)]
    pub arguments: Vec<ArgumentPart>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files written into its private directory before the start. The first is the one shown in records.
    #[serde(default)]
    pub files: Vec<ConfigurationFile>,
    /// Commands run before the start.
    #[serde(default)]
    pub prepare: Vec<PrepareCommand>,
    /// Longest time from start to readiness, seconds.
    #[serde(default = "ten")]
    pub ready_within_s: f64,
    /// Longest time from SIGTERM to its end, seconds; then SIGKILL.
    #[serde(default = "five")]
    pub stop_within_s: f64,
}

fn ten() -> f64 {
    10.0
}

fn five() -> f64 {
    5.0
}

impl ProcessBackEnd {
    /// Does any part of it apply only where clients log in?
    pub fn can_ask_for_login(&self) -> bool {
        let arguments = self.arguments.iter().map(|part| part.when);
        let texts = self.files.iter().flat_map(|file| file.parts.iter().map(|part| part.when).chain([file.when]));
        arguments.chain(texts).any(|when| when == When::Password)
    }

    /// Longest time from start to readiness.
    pub fn ready_within(&self) -> Duration {
        Duration::try_from_secs_f64(self.ready_within_s).unwrap_or(Duration::from_secs(10))
    }

    /// Longest time from SIGTERM to its end.
    pub fn stop_within(&self) -> Duration {
        Duration::try_from_secs_f64(self.stop_within_s).unwrap_or(Duration::from_secs(5))
    }
}

/// A command whose output names the version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionCommand {
    /// Arguments of the system's program.
    pub arguments: Vec<String>,
    /// The version is the word after the first occurrence of this text.
    pub after: String,
}

/// Some arguments of a command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentPart {
    /// When they are given.
    #[serde(default)]
    pub when: When,
    /// The arguments, placeholders filled in.
    pub add: Vec<String>,
}

/// A file in a system's private directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationFile {
    /// Its name.
    pub name: String,
    /// When it is written.
    #[serde(default)]
    pub when: When,
    /// Its text, part after part.
    pub parts: Vec<TextPart>,
}

/// Some text of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    /// When it is there.
    #[serde(default)]
    pub when: When,
    /// The text, placeholders filled in.
    pub text: String,
}

/// A command run before the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareCommand {
    /// When it is run.
    #[serde(default)]
    pub when: When,
    /// The program, looked up as the system's is.
    pub program: String,
    /// Its arguments, placeholders filled in.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// A setting that differs from the system's default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Short stable name.
    pub name: String,
    /// When it is made.
    #[serde(default)]
    pub when: When,
    /// The setting, placeholders filled in.
    pub setting: String,
    /// Why.
    pub reason: String,
}

/// A named set of settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One phrase for lists.
    pub description: String,
    /// Text that stands for `{profile}` in files.
    #[serde(default)]
    pub text: String,
    /// What it changes.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

impl Definition {
    /// All embedded definitions, by name.
    pub fn embedded() -> Result<Vec<Definition>, SystemError> {
        EMBEDDED.iter().map(|(name, text)| Definition::parse(text, &format!("systems/{name}.yaml"))).collect()
    }

    /// Names of the embedded definitions.
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(name, _)| *name).collect()
    }

    /// The embedded definition of that name, or the one in a file if `name_or_path` has a `/` or ends in `.yaml`.
    pub fn load(name_or_path: &str) -> Result<Definition, SystemError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".yaml") {
            let text = std::fs::read_to_string(name_or_path).map_err(|source| SystemError::File {
                action: "read",
                path: Path::new(name_or_path).into(),
                source,
            })?;
            return Definition::parse(&text, name_or_path);
        }
        match EMBEDDED.iter().find(|(name, _)| *name == name_or_path) {
            Some((name, text)) => Definition::parse(text, &format!("systems/{name}.yaml")),
            None => Err(SystemError::Unknown { name: name_or_path.to_owned(), known: Definition::names().join(", ") }),
        }
    }

    /// Reads and checks a definition; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Definition, SystemError> {
        let wrong = |reason: String| SystemError::Definition { origin: origin.to_owned(), reason };
        let definition: Definition = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        if !self.profiles.contains_key(DEFAULT_PROFILE) {
            return Err(format!("profile `{DEFAULT_PROFILE}` is missing"));
        }
        for (name, offer) in &self.protocols {
            if !self.listeners.contains_key(&offer.listener) {
                return Err(format!("protocol `{name}` names listener `{}`, which is not defined", offer.listener));
            }
            if offer.highest_qos > 2 {
                return Err(format!("protocol `{name}` has highest_qos {}, at most 2 is known", offer.highest_qos));
            }
        }
        if let Some(process) = &self.back_ends.process {
            for (field, seconds) in
                [("ready_within_s", process.ready_within_s), ("stop_within_s", process.stop_within_s)]
            {
                if !(seconds > 0.0 && seconds <= 600.0) {
                    return Err(format!("{field} is {seconds}, expected above 0 and at most 600"));
                }
            }
            if let Some(file) =
                process.files.iter().find(|file| file.name.is_empty() || file.name.contains(['/', '\0']))
            {
                return Err(format!("file name `{}` is not a plain name", file.name));
            }
        }
        crate::template::check(self)
    }

    /// The profile of that name.
    pub fn profile(&self, name: &str) -> Result<&Profile, SystemError> {
        self.profiles.get(name).ok_or_else(|| SystemError::Profile {
            system: self.name.clone(),
            profile: name.to_owned(),
            known: self.profiles.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// What the system offers over a protocol.
    pub fn offer(&self, protocol: &str) -> Result<&Offer, SystemError> {
        self.protocols.get(protocol).ok_or_else(|| SystemError::Protocol {
            system: self.name.clone(),
            protocol: protocol.to_owned(),
            known: self.protocols.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}
