//! The table of systems.

use pubmark_systems::Definition;
use pubmark_systems::definition::Change;

use crate::exit_code::ExitCode;
use crate::failure::Failure;

fn rows() -> Result<Vec<Definition>, Failure> {
    Definition::embedded().map_err(|error| Failure::from_error(ExitCode::Internal, &error))
}

fn protocols(system: &Definition) -> Vec<&str> {
    system.protocols.keys().map(String::as_str).collect()
}

fn profiles(system: &Definition) -> Vec<&str> {
    system.profiles.keys().map(String::as_str).collect()
}

/// For the terminal.
pub fn text() -> Result<String, Failure> {
    let mut text = String::new();
    for system in rows()? {
        let ranked = if system.ranked { "" } else { "  (never ranked)" };
        text.push_str(&format!("{:<11} {}{ranked}\n", system.name, system.title));
        text.push_str(&format!("  {}\n", system.description));
        text.push_str(&format!(
            "  protocols {}   profiles {}\n",
            protocols(&system).join(" "),
            profiles(&system).join(" ")
        ));
    }
    text.push_str("endpoint    any system that runs already: `--endpoint mqtt://host:port`\n");
    Ok(text)
}

/// The page `docs/reference/systems.md`.
pub fn markdown() -> Result<String, Failure> {
    let mut text = String::from(
        "# Systems\n\nWhat pubmark can start by itself. Each is one file in `systems/`; `--system path/to/file.yaml` takes \
         another.\n",
    );
    for system in rows()? {
        text.push_str(&format!("\n## {}: {}\n\n{}\n", system.name, system.title, system.description));
        if let Some(homepage) = &system.homepage {
            text.push_str(&format!("<{homepage}>\n"));
        }
        text.push_str("\n| protocol | highest QoS | retained | persistent sessions |\n|---|---|---|---|\n");
        for (name, offer) in &system.protocols {
            let yes = |has: bool| if has { "yes" } else { "no" };
            let (retain, sessions) = (yes(offer.retain), yes(offer.persistent_sessions));
            text.push_str(&format!("| `{name}` | {} | {retain} | {sessions} |\n", offer.highest_qos));
        }
        if let Some(limit) = system.limits.maximum_packet_bytes {
            text.push_str(&format!("\nLargest packet: {limit} B.\n"));
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
