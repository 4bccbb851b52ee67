//! The table of built-in links.

use pubmark_model::link::{Link, presets};
use pubmark_runner::{ErrorKind, RunError};

use pubmark_report::wrapping::wrap;

fn rows() -> Result<Vec<Link>, RunError> {
    presets::all()
        .map_err(|error| RunError::from_error(ErrorKind::Internal, &error).during("failed to load the built-in links"))
}

/// Column at which the description of a link starts.
const INDENT: usize = 28;

/// For the terminal: the effect of each link on packets.
pub fn text() -> Result<String, RunError> {
    let line = |link: &Link| wrap(&format!("{:<INDENT$}", link.name), INDENT, &link.lines().join("; "));
    Ok(rows()?.iter().map(line).collect())
}

/// Names of the links.
pub fn names() -> Result<Vec<String>, RunError> {
    Ok(rows()?.into_iter().map(|link| link.name).collect())
}

/// Details of one link, with the source of its figures.
pub fn details(name: &str) -> Result<Option<String>, RunError> {
    Ok(find(name)?.as_ref().map(one))
}

/// One link, formatted for the terminal.
pub fn one(link: &Link) -> String {
    let mut text = format!("{}\n", link.name);
    for line in link.lines() {
        text.push_str(&wrap("  ", 4, &line));
    }
    if let Some(source) = &link.source {
        text.push_str(&wrap("  from ", 7, source));
    }
    text
}

/// The preset of that name.
pub fn find(name: &str) -> Result<Option<Link>, RunError> {
    Ok(rows()?.into_iter().find(|link| link.name == name))
}

/// The page `docs/reference/links.md`.
pub fn markdown() -> Result<String, RunError> {
    let mut text = String::from(
        "# Built-in links\n\n\
         `link: NAME` in a workload or `--link NAME` puts groups behind one ([guide](../how-to/emulate-a-network.md)). Times are one way. \
         The file `links/presets.yaml` holds the figures as a workload would write them.\n\n\
         | link | what happens to packets | from |\n|---|---|---|\n",
    );
    for link in rows()? {
        let lines = link.lines().join("<br>");
        text.push_str(&format!("| `{}` | {lines} | {} |\n", link.name, link.source.as_deref().unwrap_or("—")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_report::wrapping::COLUMNS;

    #[test]
    fn the_table_names_every_preset_and_fits_a_terminal_and_details_have_the_source() {
        let text = text().expect("built in");
        for link in rows().expect("built in") {
            assert!(text.lines().any(|line| line.starts_with(&format!("{} ", link.name))), "{} is missing", link.name);
            let details = details(&link.name).expect("built in").expect("there");
            assert!(details.contains("  from "), "{details}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }
}
