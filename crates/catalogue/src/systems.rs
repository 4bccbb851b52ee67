//! The table of systems.

use std::thread;

use pubmark_protocols as protocols;
use pubmark_protocols::known::{self, KNOWN};
use pubmark_report::wrapping::wrap;
use pubmark_runner::{ErrorKind, RunError};
use pubmark_systems::definition::{Change, Offer, TestedBy};
use pubmark_systems::{Definition, install, programs};

/// Column at which the description of a system starts.
const INDENT: usize = 14;
/// Width of the column with the installed version.
const HERE: usize = 16;
/// Width of the column that says how the system is tested.
const TESTED: usize = 13;

fn rows() -> Result<Vec<Definition>, RunError> {
    Definition::embedded().map_err(|error| RunError::from_error(ErrorKind::Internal, &error))
}

/// For the terminal, at most 80 columns wide: whether each system is installed, and its protocols.
pub fn text() -> Result<String, RunError> {
    let systems = rows()?;
    let mut text = format!("{:<INDENT$}{:<HERE$}{:<TESTED$}speaks\n", "system", "here", "tested");
    for (system, here) in systems.iter().zip(here(&systems)) {
        let version = match here {
            Some(Some(here)) => here.version,
            Some(None) => "not installed".to_owned(),
            None if system.back_ends.brokerless.is_some() => "no broker".to_owned(),
            None => "container".to_owned(),
        };
        let protocols: Vec<String> = system.protocols.keys().map(|name| marked(name)).collect();
        let first = format!("{:<INDENT$}{version:<HERE$}{:<TESTED$}", system.name, system.tested.by.words());
        text.push_str(&wrap(&first, INDENT + HERE + TESTED, &protocols.join(", ")));
    }
    text.push_str("endpoint      any system that runs already: `--endpoint mqtt://host:port`\n");
    text.push_str(&marks(&systems));
    text.push_str("`pubmark list systems NAME` shows one, `pubmark install NAME` installs it\n");
    Ok(text)
}

/// Names of the systems.
pub fn names() -> Result<Vec<String>, RunError> {
    Ok(rows()?.into_iter().map(|system| system.name).collect())
}

/// Details of one system: its description, its features, whether it is installed.
pub fn details(name: &str) -> Result<Option<String>, RunError> {
    let Some(system) = rows()?.into_iter().find(|system| system.name == name) else { return Ok(None) };
    let ranked = if system.ranked { "" } else { " (never ranked)" };
    let mut text = format!("{:<INDENT$}{}{ranked}\n", system.name, system.title);
    let spoken: Vec<String> = system.protocols.iter().map(|(name, offer)| spoken(name, offer)).collect();
    let here = here(std::slice::from_ref(&system)).pop().flatten().map(|here| match here {
        Some(here) => format!("{}, {}", here.version, here.place),
        None => format!("no: `pubmark install {}`", system.name),
    });
    let largest = system.limits.maximum_packet_bytes.map(|bytes| format!("{bytes} B in a packet by default"));
    for (head, words) in [
        ("", Some(system.description.clone())),
        ("homepage", system.homepage.clone()),
        ("speaks", Some(spoken.join(", "))),
        ("runs as", Some(ways(&system).join(", "))),
        ("clients", clients(&system)),
        ("largest", largest),
        ("warm-up", system.warm_up_s.map(|seconds| format!("{seconds} s of load until it is warm"))),
        ("here", here),
        ("tested", Some(tested(&system))),
    ] {
        if let Some(words) = words {
            text.push_str(&wrap(&format!("  {head:<12}"), INDENT, &words));
        }
    }
    for (name, profile) in &system.profiles {
        text.push_str(&wrap("  profile     ", INDENT, &format!("{name}: {}", profile.description)));
    }
    text.push_str(&marks(std::slice::from_ref(&system)));
    Ok(Some(text))
}

/// Client programs in the definition of the system.
fn clients(system: &Definition) -> Option<String> {
    let names: Vec<String> = system.clients.keys().map(|name| format!("`--client {name}`")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The test that shows that pubmark works with the system.
fn tested(system: &Definition) -> String {
    let words = match system.tested.by {
        TestedBy::EachChange => "by the tests of each change (`make test`)",
        TestedBy::FullSuite => "by the tests of a release (`make test-all`)",
        TestedBy::Hand => "by hand",
        TestedBy::Nothing => "never",
    };
    let note = system.tested.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    format!("{words}{note}")
}

/// The meaning of the marks at these systems' protocols.
fn marks(systems: &[Definition]) -> String {
    let spoken: Vec<&String> = systems.iter().flat_map(|system| system.protocols.keys()).collect();
    let mut text = String::new();
    if spoken.iter().any(|name| mark(name) == "*") {
        let ours = format!("pubmark's clients do not speak it yet; they speak {}", protocols::names().join(", "));
        text.push_str(&wrap("* ", 2, &ours));
    }
    if spoken.iter().any(|name| mark(name) == "†") {
        let mut features: Vec<&str> =
            KNOWN.iter().filter(|known| known::left_out(known.name).is_some()).map(|known| known.feature).collect();
        features.dedup();
        let words = format!("this build lacks it; cargo features that it was built without: {}", features.join(", "));
        text.push_str(&wrap("† ", 2, &words));
    }
    text
}

/// A protocol with its highest QoS level; marked if no adapter supports it, or none in this build.
fn spoken(name: &str, offer: &Offer) -> String {
    format!("{} (QoS {})", marked(name), levels(offer))
}

fn marked(name: &str) -> String {
    format!("{name}{}", mark(name))
}

fn mark(name: &str) -> &'static str {
    match (protocols::find(name), known::left_out(name)) {
        (Some(_), _) => "",
        (None, Some(_)) => "†",
        (None, None) => "*",
    }
}

fn levels(offer: &Offer) -> String {
    if offer.highest_qos == 0 { "0".to_owned() } else { format!("0–{}", offer.highest_qos) }
}

/// The ways to start the system.
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

/// A program that was found on this machine.
struct Here {
    version: String,
    place: String,
}

/// Whether each system is installed: `None` for systems that are no program, `Some(None)` for those that are not installed.
/// All programs are started in parallel, as one may take a second to print its version.
fn here(systems: &[Definition]) -> Vec<Option<Option<Here>>> {
    let ask = |system: &Definition| {
        let process = system.back_ends.process.as_ref()?;
        Some(install::found(system).map(|found| {
            let place = if process.program == programs::SELF {
                "this program".to_owned()
            } else if programs::is_own(&found.program) {
                "installed by pubmark".to_owned()
            } else {
                found.program.display().to_string()
            };
            Here { version: found.version.unwrap_or_else(|| "version unknown".to_owned()), place }
        }))
    };
    thread::scope(|scope| {
        let asked: Vec<_> = systems.iter().map(|system| scope.spawn(move || ask(system))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
    })
}

/// The page `docs/reference/systems.md`. The same on every machine.
pub fn markdown() -> Result<String, RunError> {
    let mut text = String::from(
        "# Systems\n\nWhat pubmark can start by itself, and what it knows of systems without a broker. Each is one file in \
         `systems/`; `--system path/to/file.yaml` takes another. `pubmark list systems` says which are installed here.\n",
    );
    for system in rows()? {
        text.push_str(&format!("\n## {}: {}\n\n{}\n", system.name, system.title, system.description));
        if let Some(homepage) = &system.homepage {
            text.push_str(&format!("<{homepage}>\n"));
        }
        text.push_str(&format!("\nTested {}.\n", tested(&system)));
        text.push_str(&offers(&system));
        text.push_str(&back_ends(&system));
        text.push_str(&limits(&system));
        if let Some(seconds) = system.warm_up_s {
            text.push_str(&format!("\nNeeds {seconds} s of load until it is warm; a warm-up has at least as much.\n"));
        }
        for (name, command) in &system.clients {
            text.push_str(&format!("\nClient program `--client {name}`: `{command}`.\n"));
        }
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
        "\n| protocol | highest QoS | retained | persistent sessions | shared subscriptions | content filters | pubmark speaks it |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let yes = |has: bool| if has { "yes" } else { "no" };
    for (name, offer) in &system.protocols {
        let ours = match (protocols::find(name), &offer.probe) {
            (Some(_), _) => "yes",
            (None, Some(_)) => "only a probe",
            (None, None) => "no",
        };
        text.push_str(&format!(
            "| `{name}` | {} | {} | {} | {} | {} | {ours} |\n",
            offer.highest_qos,
            yes(offer.retain),
            yes(offer.persistent_sessions),
            yes(offer.shared_subscriptions),
            yes(offer.content_filters)
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

/// The table of deviations from the system's defaults; empty if there are none.
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
