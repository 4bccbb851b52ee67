//! The table of built-in workloads.

use pubmark_model::listing::{self, Listed};
use pubmark_model::workload::Variant;
use pubmark_report::numbers::{bytes, count, counted, missing, three_digits};
use pubmark_report::wrapping::wrap;
use pubmark_runner::{ErrorKind, RunError};

fn rows() -> Result<Vec<Listed>, RunError> {
    listing::list()
        .map_err(|error| RunError::from_error(ErrorKind::Internal, &error).during("failed to load a built-in workload"))
}

/// For the terminal: for each workload a line of figures, then its description, unless it only scales the workload above it.
pub fn text() -> Result<String, RunError> {
    let mut text = String::new();
    let mut above = String::new();
    for row in rows()? {
        let devices = counted(row.devices, "device", "devices");
        let line = format!(
            "{:<22}{devices:>13}{:>13} {:>11}  {}",
            row.name,
            rate(row.messages_per_s),
            bytes_per_s(row.bytes_per_s),
            if row.variants.contains(&Variant::Published) { "+published" } else { "" },
        );
        text.push_str(line.trim_end());
        text.push('\n');
        if row.description != above {
            text.push_str(&format!("  {}\n", row.description));
        }
        above = row.description;
    }
    Ok(text)
}

/// Names of the workloads.
pub fn names() -> Result<Vec<String>, RunError> {
    Ok(rows()?.into_iter().map(|row| row.name.to_owned()).collect())
}

/// Details of one workload, with its parameters.
pub fn details(name: &str) -> Result<Option<String>, RunError> {
    let Some(row) = rows()?.into_iter().find(|row| row.name == name) else { return Ok(None) };
    let mut text = format!("{}\n{}", row.name, wrap("  ", 2, &row.description));
    let readings: Vec<&str> = row.variants.iter().map(|variant| variant.as_str()).collect();
    let fleet = format!(
        "{}, {}",
        counted(row.devices, "device", "devices"),
        counted(row.subscribers, "subscriber", "subscribers")
    );
    let traffic = match row.messages_per_s {
        Some(_) => format!("{}, payload {}", rate(row.messages_per_s), bytes_per_s(row.bytes_per_s)),
        None => "as much as the system takes".to_owned(),
    };
    for (head, words) in [
        ("fleet", fleet),
        ("traffic", traffic),
        ("readings", if readings.len() > 1 { format!("{} (`--variant`)", readings.join(", ")) } else { String::new() }),
        ("type", format!("`pubmark run {name}`; with `--dry-run` it says what the run would need")),
    ] {
        if !words.is_empty() {
            text.push_str(&wrap(&format!("  {head:<10}"), 12, &words));
        }
    }
    for parameter in &row.parameters {
        // Each parameter is printed with its option, as it is typed.
        text.push_str(&format!("  --set {}={}\n", parameter.name, parameter.default));
        text.push_str(&wrap("      ", 6, &parameter.about));
    }
    Ok(Some(text))
}

/// The page `docs/reference/workloads.md`.
pub fn markdown() -> Result<String, RunError> {
    let mut text = String::from(
        "# Built-in workloads\n\n\
         Devices, messages and payload bytes a second are those of one copy while all devices are online, in the reading \
         `corrected`. The files in `workloads/` hold all figures and where they come from.\n\n\
         | workload | devices | subscribers | msg/s | payload | readings | what it is |\n|---|---:|---:|---:|---:|---|---|\n",
    );
    let rows = rows()?;
    for row in &rows {
        let readings: Vec<&str> = row.variants.iter().map(|variant| variant.as_str()).collect();
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            row.name,
            count(row.devices),
            count(row.subscribers),
            row.messages_per_s.map_or_else(missing, three_digits),
            bytes_per_s(row.bytes_per_s),
            readings.join(", "),
            row.description,
        ));
    }
    text.push_str("\n## Parameters\n\n`--set NAME=VALUE` changes one, `--set` again the next.\n\n| workload | parameter | default | is |\n|---|---|---|---|\n");
    for row in &rows {
        for parameter in &row.parameters {
            let (name, default, about) = (&parameter.name, &parameter.default, &parameter.about);
            text.push_str(&format!("| `{}` | `{name}` | `{default}` | {about} |\n", row.name));
        }
    }
    Ok(text)
}

/// Bytes a second; `—` if there is no value.
fn bytes_per_s(value: Option<f64>) -> String {
    value.map_or_else(missing, |value| format!("{}/s", bytes(Some(value))))
}

fn rate(messages_per_s: Option<f64>) -> String {
    messages_per_s.map_or_else(missing, |rate| format!("{} msg/s", three_digits(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_shown_with_the_option_that_sets_it() {
        let text = text().expect("built in");
        for row in rows().expect("built in") {
            let details = details(row.name).expect("built in").expect("there");
            for parameter in &row.parameters {
                let typed = format!("--set {}={}", parameter.name, parameter.default);
                assert!(details.contains(&typed), "{}: {typed} is missing", row.name);
            }
        }
        assert!(text.lines().all(|line| line.chars().count() <= pubmark_report::wrapping::COLUMNS), "{text}");
    }
}
