//! The table of systems.

use std::thread;

use pubmark_systems::definition::{Change, Offer};
use pubmark_systems::{Definition, install, programs};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::protocols::{
    self,
    known::{self, KNOWN, Known},
};
use crate::wrapping::wrap;

/// Columns before what is said of a system.
const INDENT: usize = 12;

fn rows() -> Result<Vec<Definition>, Failure> {
    Definition::embedded().map_err(|error| Failure::from_error(ExitCode::Internal, &error))
}

/// For the terminal, at most 80 columns wide.
pub fn text() -> Result<String, Failure> {
    let systems = rows()?;
    let mut text = String::new();
    for (system, here) in systems.iter().zip(here(&systems)) {
        let ranked = if system.ranked { "" } else { " (never ranked)" };
        text.push_str(&format!("{:<INDENT$}{}{ranked}\n", system.name, system.title));
        let spoken: Vec<String> = system.protocols.iter().map(|(name, offer)| spoken(name, offer)).collect();
        for (head, words) in [
            ("", system.description.clone()),
            ("speaks", spoken.join(", ")),
            ("runs as", ways(system).join(", ")),
            ("profiles", system.profiles.keys().cloned().collect::<Vec<_>>().join(", ")),
        ] {
            text.push_str(&wrap(&format!("  {head:<10}"), INDENT, &words));
        }
        if let Some(here) = here {
            text.push_str(&wrap("  here      ", INDENT, &here));
        }
    }
    text.push_str("endpoint    any system that runs already: `--endpoint mqtt://host:port`\n");
    text.push_str(&wrap(
        "* ",
        2,
        &format!("pubmark's clients do not speak it yet; they speak {}", protocols::names().join(", ")),
    ));
    let left_out: Vec<&Known> = KNOWN.iter().filter(|known| known::left_out(known.name).is_some()).collect();
    if !left_out.is_empty() {
        let mut features: Vec<&str> = left_out.iter().map(|known| known.feature).collect();
        features.dedup();
        let words = format!("this build lacks it; cargo features that it was built without: {}", features.join(", "));
        text.push_str(&wrap("† ", 2, &words));
    }
    Ok(text)
}

/// A protocol with its highest level; marked if no adapter speaks it, or none of this build.
fn spoken(name: &str, offer: &Offer) -> String {
    let mark = match (protocols::find(name), known::left_out(name)) {
        (Some(_), _) => "",
        (None, Some(_)) => "†",
        (None, None) => "*",
    };
    format!("{name}{mark} (QoS {})", levels(offer))
}

fn levels(offer: &Offer) -> String {
    if offer.highest_qos == 0 { "0".to_owned() } else { format!("0–{}", offer.highest_qos) }
}

/// How it can be run.
fn ways(system: &Definition) -> Vec<String> {
    let mut ways = Vec::new();
    if system.back_ends.process.is_some() {
        ways.push("program".to_owned());
    }
    if system.back_ends.container.is_some() {
        ways.push("container".to_owned());
    }
    if let Some(brokerless) = &system.back_ends.brokerless {
        ways.push(format!("nothing: {}", brokerless.how));
    }
    if system.topology.bridge.is_some() {
        ways.push("bridged brokers".to_owned());
    }
    if system.topology.cluster.is_some() {
        ways.push("cluster".to_owned());
    }
    ways
}

/// Whether each is installed, and which version; `None` for those that are no program. All are asked at the same time: a
/// version may take a second to be told.
fn here(systems: &[Definition]) -> Vec<Option<String>> {
    let ask = |system: &Definition| {
        system.back_ends.process.as_ref()?;
        Some(match install::found(system) {
            Some(found) => {
                let version = found.version.unwrap_or_else(|| "version unknown".to_owned());
                let place =
                    if system.back_ends.process.as_ref().is_some_and(|process| process.program == programs::SELF) {
                        "this program".to_owned()
                    } else if programs::is_own(&found.program) {
                        "installed by pubmark".to_owned()
                    } else {
                        found.program.display().to_string()
                    };
                format!("{version}, {place}")
            }
            None => format!("no: `pubmark install {}`", system.name),
        })
    };
    thread::scope(|scope| {
        let asked: Vec<_> = systems.iter().map(|system| scope.spawn(move || ask(system))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
    })
}

/// The page `docs/reference/systems.md`. The same on every machine.
pub fn markdown() -> Result<String, Failure> {
    let mut text = String::from(
        "# Systems\n\nWhat pubmark can start by itself, and what it knows of systems without a broker. Each is one file in \
         `systems/`; `--system path/to/file.yaml` takes another. `pubmark list systems` says which are installed here.\n",
    );
    for system in rows()? {
        text.push_str(&format!("\n## {}: {}\n\n{}\n", system.name, system.title, system.description));
        if let Some(homepage) = &system.homepage {
            text.push_str(&format!("<{homepage}>\n"));
        }
        text.push_str(&offers(&system));
        text.push_str(&back_ends(&system));
        text.push_str(&limits(&system));
        for paper in &system.papers {
            text.push_str(&format!("\nMeasured by {}: version {}.\n", paper.paper, paper.version));
        }
        text.push_str(&changes(&system));
        for (name, profile) in &system.profiles {
            text.push_str(&format!("\n`{name}`: {}.\n", profile.description));
        }
    }
    Ok(text)
}

fn offers(system: &Definition) -> String {
    let mut text = String::from(
        "\n| protocol | highest QoS | retained | persistent sessions | shared subscriptions | pubmark speaks it |\n\
         |---|---|---|---|---|---|\n",
    );
    let yes = |has: bool| if has { "yes" } else { "no" };
    for (name, offer) in &system.protocols {
        let ours = match (protocols::find(name), &offer.probe) {
            (Some(_), _) => "yes",
            (None, Some(_)) => "only a probe",
            (None, None) => "no",
        };
        text.push_str(&format!(
            "| `{name}` | {} | {} | {} | {} | {ours} |\n",
            offer.highest_qos,
            yes(offer.retain),
            yes(offer.persistent_sessions),
            yes(offer.shared_subscriptions)
        ));
    }
    for (name, note) in system.protocols.iter().filter_map(|(name, offer)| Some((name, offer.note.as_ref()?))) {
        text.push_str(&format!("\n`{name}`: {note}.\n"));
    }
    text
}

fn back_ends(system: &Definition) -> String {
    let mut text = String::new();
    if let Some(process) = &system.back_ends.process {
        text.push_str(&format!("\nAs a program, installed by:\n\n```sh\n{}\n```\n", process.install.trim_end()));
    }
    if let Some(container) = &system.back_ends.container {
        text.push_str(&format!("\nIn a container: image `{}`.\n", container.image));
    }
    if let Some(brokerless) = &system.back_ends.brokerless {
        text.push_str(&format!("\nNothing runs: {}.\n", brokerless.how));
    }
    for (mode, phrase) in [("bridge", &system.topology.bridge), ("cluster", &system.topology.cluster)] {
        if let Some(phrase) = phrase {
            text.push_str(&format!("\nSeveral brokers, `{mode}`: {phrase}.\n"));
        }
    }
    text
}

fn limits(system: &Definition) -> String {
    match (system.limits.maximum_packet_bytes, system.limits.raised_to_at_most_bytes) {
        (Some(limit), Some(most)) => {
            format!("\nLargest packet: {limit} B by default; raised to at most {most} B where a workload needs it.\n")
        }
        (Some(limit), None) => format!("\nLargest packet: {limit} B.\n"),
        (None, _) => String::new(),
    }
}

/// The table of settings that are not the system's defaults; empty where there are none.
fn changes(system: &Definition) -> String {
    let everywhere = system.deviations.iter().map(|change| ("all", change));
    let own = system
        .profiles
        .iter()
        .flat_map(|(name, profile)| profile.deviations.iter().map(move |change| (name.as_str(), change)));
    let row = |(profile, change): (&str, &Change)| {
        let when = change.when.shown();
        format!("| {profile} | `{}` | {when} | {} |\n", change.setting, change.reason)
    };
    let rows: String = everywhere.chain(own).map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("\n| profile | setting | when | why |\n|---|---|---|---|\n{rows}")
}
