//! Placeholders in definitions: `{port:mqtt}`, `{directory}` and the like.

use std::collections::BTreeMap;

use crate::definition::{Definition, Probe};

/// Placeholders that every broker has. In addition, each listener has `port:LISTENER` and `first:port:LISTENER`.
const NAMES: [&str; 18] = [
    "self",
    "host",
    "directory",
    "shared_directory",
    "programs",
    "user",
    "profile",
    "authority",
    "certificate",
    "key",
    "login_user",
    "login_password",
    "packet_bytes",
    "index",
    "brokers",
    "name",
    "first:host",
    "first:name",
];
/// Additional placeholders in parts of files with `for_each_other`. In addition, each listener has
/// `other:port:LISTENER`.
const OTHER_NAMES: [&str; 2] = ["other:host", "other:name"];
/// Additional placeholder in probes.
const PROBE_NAMES: [&str; 1] = ["token"];

/// Values of placeholders.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, String>);

impl std::fmt::Debug for Values {
    /// Prints only the names, because a value may be a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Values {
    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value of a placeholder.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Fills in the placeholders of a text. A placeholder without a value is not changed; [`check`] has verified that
    /// all are known. Values are not searched for placeholders.
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Placeholder(name) => match self.0.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.extend(["{", name, "}"]),
                },
            }
        }
        out
    }
}

enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Splits a text at placeholders: braces around lower-case letters, digits, `_` and `:`. Other braces are part of the
/// text, because configuration languages use them.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_:".contains(&byte))
    };
    let mut found = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(open) = rest[from..].find('{').map(|at| at + from) {
        match rest[open + 1..].find(['{', '}']) {
            Some(length)
                if rest[open + 1 + length..].starts_with('}') && is_name(&rest[open + 1..open + 1 + length]) =>
            {
                found.push(Piece::Text(&rest[..open]));
                found.push(Piece::Placeholder(&rest[open + 1..open + 1 + length]));
                rest = &rest[open + 2 + length..];
                from = 0;
            }
            _ => from = open + 1,
        }
    }
    found.push(Piece::Text(rest));
    found
}

/// Are all placeholders of a definition known and allowed where they are used?
pub fn check(definition: &Definition) -> Result<(), String> {
    let check_all = |texts: Vec<&str>, further: &[&str]| -> Result<(), String> {
        texts.into_iter().try_for_each(|text| check_text(definition, text, further))
    };
    check_all(texts(definition), &[])?;
    check_all(parts(definition, false), &[])?;
    check_all(parts(definition, true), &OTHER_NAMES)?;
    check_all(probes(definition), &PROBE_NAMES)
}

fn check_text(definition: &Definition, text: &str, further: &[&str]) -> Result<(), String> {
    let has_listener = |name: &str| definition.listeners.contains_key(name);
    for piece in pieces(text) {
        let Piece::Placeholder(name) = piece else { continue };
        let known = match name.rsplit_once("port:") {
            Some(("" | "first:", listener)) => has_listener(listener),
            Some(("other:", listener)) => further.contains(&"other:name") && has_listener(listener),
            _ => NAMES.contains(&name) || further.contains(&name),
        };
        if !known {
            let ports = definition.listeners.keys().map(|listener| format!("port:{listener}"));
            let names = NAMES.iter().chain(further).map(|name| (*name).to_owned()).chain(ports);
            return Err(format!(
                "unknown placeholder `{{{name}}}`: known here are {}",
                names.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    Ok(())
}

/// Every text of a definition that is filled in, except those of files and probes.
fn texts(definition: &Definition) -> Vec<&str> {
    let profiles = definition.profiles.values();
    let changes = definition.deviations.iter().chain(profiles.clone().flat_map(|profile| &profile.deviations));
    let mut texts: Vec<&str> = changes.map(|change| change.setting.as_str()).collect();
    for profile in profiles {
        texts.push(&profile.text);
        texts.extend(profile.environment.values().chain(&profile.arguments).map(String::as_str));
    }
    if let Some(process) = &definition.back_ends.process {
        texts.push(&process.program);
        texts.extend(process.search.iter().filter_map(|folder| folder.to_str()));
        texts.extend(process.arguments.iter().flat_map(|part| &part.add).map(String::as_str));
        texts.extend(process.environment.values().map(String::as_str));
        texts.extend(process.version.iter().flat_map(|version| &version.arguments).map(String::as_str));
        for command in process.prepare.iter().chain(&process.clean_up) {
            texts.push(&command.program);
            texts.extend(command.arguments.iter().map(String::as_str));
        }
    }
    if let Some(container) = &definition.back_ends.container {
        texts.extend(container.arguments.iter().flat_map(|part| &part.add).map(String::as_str));
        texts.extend(container.environment.values().map(String::as_str));
    }
    texts
}

/// Texts of the parts of files that are repeated for other brokers, or of those that are not.
fn parts(definition: &Definition, for_each_other: bool) -> Vec<&str> {
    let parts = definition.files.iter().flat_map(|file| &file.parts);
    parts.filter(|part| part.for_each_other == for_each_other).map(|part| part.text.as_str()).collect()
}

fn probes(definition: &Definition) -> Vec<&str> {
    let mut texts = Vec::new();
    for probe in definition.protocols.values().filter_map(|offer| offer.probe.as_ref()) {
        match probe {
            Probe::Dialogue(lines) => {
                texts.extend(lines.iter().flat_map(|line| [&line.say, &line.hear]).flatten().map(String::as_str));
            }
            Probe::Command(words) => texts.extend(words.iter().map(String::as_str)),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_braces_are_placeholders() {
        let mut values = Values::default();
        values.set("port:mqtt", "1883");
        values.set("user", "{host}");
        assert_eq!(
            values.fill("mqtt { port {port:mqtt} } {{user}} {Other} {"),
            "mqtt { port 1883 } {{host}} {Other} {"
        );
        assert_eq!(values.fill("{host}"), "{host}", "no value, left alone");
    }
}
