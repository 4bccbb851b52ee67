//! The table of built-in workloads.

use pubmark_model::listing::{self, Listed};
use pubmark_model::workload::Variant;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::figures::{bytes_per_s, count, three_digits};
use crate::wrapping::wrap_parts;

fn rows() -> Result<Vec<Listed>, Failure> {
    listing::list()
        .map_err(|error| Failure::from_error(ExitCode::Internal, &error).during("failed to load a built-in workload"))
}

/// For the terminal: a line of figures each, then what it is and what can be set, unless it only scales the one above.
pub fn text() -> Result<String, Failure> {
    let mut text = String::new();
    let mut above = String::new();
    for row in rows()? {
        let devices = format!("{} {}", count(row.devices), if row.devices == 1 { "device" } else { "devices" });
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
            if !row.parameters.is_empty() {
                // As they are typed: the option before each.
                let set: Vec<String> = row
                    .parameters
                    .iter()
                    .map(|parameter| format!("--set {}={}", parameter.name, parameter.default))
                    .collect();
                text.push_str(&wrap_parts("  ", 2, set.iter().map(String::as_str)));
            }
        }
        above = row.description;
    }
    Ok(text)
}

/// The page `docs/reference/workloads.md`.
pub fn markdown() -> Result<String, Failure> {
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
            row.messages_per_s.map_or_else(|| "—".to_owned(), three_digits),
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

fn rate(messages_per_s: Option<f64>) -> String {
    messages_per_s.map_or_else(|| "—".to_owned(), |rate| format!("{} msg/s", three_digits(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_shown_with_the_option_that_sets_it() {
        let text = text().expect("built in");
        for row in rows().expect("built in") {
            for parameter in &row.parameters {
                let typed = format!("--set {}={}", parameter.name, parameter.default);
                assert!(text.contains(&typed), "{}: {typed} is missing", row.name);
            }
        }
        assert!(text.lines().all(|line| line.chars().count() <= crate::wrapping::COLUMNS), "{text}");
    }
}
