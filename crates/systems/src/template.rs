//! Placeholders in definitions: `{port:mqtt}`, `{directory}` and the like.

use std::collections::BTreeMap;

use crate::definition::Definition;

/// Placeholders that every start knows; `port:LISTENER` comes to these for each listener.
const NAMES: [&str; 10] =
    ["self", "host", "directory", "user", "profile", "authority", "certificate", "key", "login_user", "login_password"];

/// Values of placeholders.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, String>);

impl std::fmt::Debug for Values {
    /// The names alone: a value may be a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Values {
    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Fills in a text. A placeholder without a value stays as it is; [`check`] has seen that all are known. Values are
    /// not searched for placeholders.
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

/// Cuts a text at placeholders: braces around lower-case letters, digits, `_` and `:`. Other braces are text, as
/// configuration languages need them.
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

/// Are all placeholders of a definition known?
pub fn check(definition: &Definition) -> Result<(), String> {
    let known = |name: &str| match name.strip_prefix("port:") {
        Some(listener) => definition.listeners.contains_key(listener),
        None => NAMES.contains(&name),
    };
    for text in texts(definition) {
        for piece in pieces(text) {
            if let Piece::Placeholder(name) = piece
                && !known(name)
            {
                let ports: Vec<String> =
                    definition.listeners.keys().map(|listener| format!("port:{listener}")).collect();
                return Err(format!(
                    "unknown placeholder `{{{name}}}`: known are {}, {}",
                    NAMES.join(", "),
                    ports.join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// Every text of a definition that is filled in.
fn texts(definition: &Definition) -> Vec<&str> {
    let profiles = definition.profiles.values();
    let changes = definition.deviations.iter().chain(profiles.clone().flat_map(|profile| &profile.deviations));
    let mut texts: Vec<&str> = changes.map(|change| change.setting.as_str()).collect();
    texts.extend(profiles.map(|profile| profile.text.as_str()));
    texts.extend(definition.files.iter().flat_map(|file| &file.parts).map(|part| part.text.as_str()));
    if let Some(process) = &definition.back_ends.process {
        texts.push(&process.program);
        texts.extend(process.arguments.iter().flat_map(|part| &part.add).map(String::as_str));
        texts.extend(process.environment.values().map(String::as_str));
        texts.extend(process.prepare.iter().flat_map(|command| &command.arguments).map(String::as_str));
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
