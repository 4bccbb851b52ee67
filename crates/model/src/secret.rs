//! Passwords, as a type that cannot be printed, and functions that mask them in command lines and files.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Text that replaces a secret in output.
pub const MASK: &str = "…";

/// A text that is never printed: `Debug`, `Display` and every text format of serde (JSON, YAML) write [`MASK`]. Only a
/// binary format, with which processes of one run exchange it, contains the text itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret from a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for authentication with the system.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::new(text)
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Secret, Self::Err> {
        Ok(Secret::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = if serializer.is_human_readable() { MASK } else { &self.0 };
        serializer.serialize_str(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        struct Text;
        impl Text {
            /// The usual error message of serde would contain the value.
            fn refused<T, E: Error>() -> Result<T, E> {
                Err(E::invalid_type(Unexpected::Other("a value that is not text"), &Text))
            }
        }
        impl Visitor<'_> for Text {
            type Value = Secret;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text in quotes")
            }

            fn visit_str<E>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret::new(text))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Secret, E> {
                Text::refused()
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
                Text::refused()
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
                Text::refused()
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
                Text::refused()
            }
        }
        // If a text format expects a text and finds something else, its error message would contain the value.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Text)
        } else {
            deserializer.deserialize_str(Text)
        }
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Whether a key or an option with this name holds a secret. Similar names count as well, because they may be misspellings.
pub fn is_named(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let is_a_place = key.ends_with("_env") || key.ends_with("-env") || key.ends_with("_file") || key.ends_with("-file");
    !is_a_place && ["passw", "passphrase", "secret"].iter().any(|word| key.contains(word))
}

/// A text in which [`MASK`] replaces each of these secrets. If one is part of another, the longer one is replaced first.
pub fn without(text: &str, secrets: &[&str]) -> String {
    let hide = |text: String, secret: &&str| if text.contains(secret) { text.replace(secret, MASK) } else { text };
    secrets.iter().filter(|secret| !secret.is_empty()).fold(text.to_owned(), hide)
}

/// A URL, or any text that contains one, without its password. In a malformed URL, what may be a password is removed as
/// well: everything after the user name up to the last `@`, or after a `:` that is not followed by a port.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `ann:word@host`, or `mqtt:ann:word@host` without the slashes.
        return match url.rsplit_once('@') {
            Some((login, place)) if login.contains(':') => {
                format!("{}:{MASK}@{place}", login.split(':').next().unwrap_or_default())
            }
            _ => url.to_owned(),
        };
    };
    if let Some((login, place)) = rest.rsplit_once('@') {
        return match login.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:{MASK}@{place}"),
            None => url.to_owned(),
        };
    }
    let is_port = |text: &str| {
        let port = text.split(['/', '?']).next().unwrap_or_default();
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    match rest.split_once(':') {
        Some((host, behind)) if !rest.starts_with('[') && !is_port(behind) && host.find(['/', '?']).is_none() => {
            format!("{scheme}://{host}:{MASK}")
        }
        _ => url.to_owned(),
    }
}

/// YAML text, or one setting of it, in which `*` replaces each byte of values whose key [`is_named`] like a secret, and of
/// passwords in URLs. Positions do not change, so that labels of diagnostics stay correct.
pub fn masked_yaml(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    // Indentation of a key whose value is on the following lines.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start().len();
        if let Some(of_key) = block {
            if line.trim().is_empty() || indentation > of_key {
                push_masked(line, &mut masked);
                continue;
            }
            block = None;
        }
        let mut rest = line;
        while let Some((before, value, behind)) = secret_value(rest) {
            push_without_passwords_of_urls(before, &mut masked);
            push_masked(value, &mut masked);
            let is_block = behind.trim().is_empty() && (value.is_empty() || value.starts_with(['|', '>', '"', '\'']));
            block = is_block.then_some(indentation);
            rest = behind;
        }
        push_without_passwords_of_urls(rest, &mut masked);
    }
    masked
}

/// A text in which `*` replaces each byte from `start` on.
pub fn masked_at(text: &str, start: usize, bytes: usize) -> String {
    let end = start.saturating_add(bytes).min(text.len());
    let (Some(before), Some(hidden), Some(behind)) = (text.get(..start), text.get(start..end), text.get(end..)) else {
        return "*".repeat(text.len());
    };
    let mut masked = before.to_owned();
    push_masked(hidden, &mut masked);
    masked.push_str(behind);
    masked
}

/// Whether the value is a token where the mapping with the rules of tokens is expected.
fn is_token(key: &str, value: &str) -> bool {
    let is_scalar = !value.trim_end().is_empty() && !value.starts_with(['{', '&', '*', '#', '$']);
    key.rsplit('.').next() == Some("token") && is_scalar
}

/// Appends a text in which passwords of URLs (`mqtt://ann:word@host`) are masked; positions do not change.
fn push_without_passwords_of_urls(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = behind.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        let (url, after) = behind.split_at(end.unwrap_or(behind.len()));
        match url.rsplit_once('@').and_then(|(login, place)| Some((login.split_once(':')?, place))) {
            Some(((user, password), place)) => {
                out.push_str(user);
                out.push(':');
                push_masked(password, out);
                out.push('@');
                out.push_str(place);
            }
            None => out.push_str(url),
        }
        rest = after;
    }
    out.push_str(rest);
}

fn push_masked(text: &str, out: &mut String) {
    out.extend(text.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { char::from(byte) } else { '*' }));
}

/// The first value of a line whose key is that of a secret: the text before it, the value, the text after it.
fn secret_value(line: &str) -> Option<(&str, &str, &str)> {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\'');
    for (colon, _) in line.match_indices([':', '=']) {
        let head = line[..colon].trim_end();
        let from =
            head.rfind(|c| !is_of_key(c)).map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let key = head[from..].trim_matches(['"', '\'']);
        let behind = &line[colon + 1..];
        let start = colon + 1 + (behind.len() - behind.trim_start_matches([' ', '\t']).len());
        let value = &line[start..];
        if !is_named(key) && !is_token(key, value) {
            continue;
        }
        let in_braces = line[..from].contains(['{', '[']);
        let length = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.trim_end().len(), |length| length + 2),
            _ if in_braces => value.find([',', '}', ']']).unwrap_or(value.trim_end().len()),
            _ => value.trim_end().len(),
        };
        return Some((&line[..start], &line[start..start + length], &line[start + length..]));
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_in_no_text() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:#?}", Some(&secret)), "… … Some(\n    …,\n)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"…\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_value_that_is_no_text_is_not_shown_either() {
        let error = serde_json::from_str::<Secret>("4711").unwrap_err().to_string();
        assert!(error.contains("a text in quotes") && !error.contains("4711"), "{error}");
    }

    #[test]
    fn passwords_are_removed_even_from_malformed_urls() {
        for (written, shown) in [
            ("mqtt://ann:word@host:1", "mqtt://ann:…@host:1"),
            ("--endpoint=mqtt://ann:word@host", "--endpoint=mqtt://ann:…@host"),
            ("mqtt://ann:w@rd@host:1", "mqtt://ann:…@host:1"),
            ("mqtt://ann:w/rd@host", "mqtt://ann:…@host"),
            ("mqtt://ann:word", "mqtt://ann:…"),
            ("mqtt://ann:word/x?y", "mqtt://ann:…"),
            ("mqtt://ann:?word", "mqtt://ann:…"),
            ("ann:word@host", "ann:…@host"),
            ("mqtt:/ann:word@host", "mqtt:…@host"),
            ("mqtt://ann@host:1883", "mqtt://ann@host:1883"),
            ("mqtt://host:1883/", "mqtt://host:1883/"),
            ("ws://host/a:b", "ws://host/a:b"),
            ("mqtt://[::1]:1883", "mqtt://[::1]:1883"),
            ("lte", "lte"),
        ] {
            assert_eq!(without_password(written), shown, "{written}");
        }
    }

    #[test]
    fn the_value_of_a_password_in_a_file_is_masked_in_place() {
        let text = "credentials: {user: ann, password: 'a, }b', x: 1}\n  password: two words # c\nafter: 1\n\
                    \x20 password: |\n    block\n    lines\n  user: b\npasswrd: x\npassword_env: NAME\n\
                    devices.0.credentials.password=ä\n";
        let masked = masked_yaml(text);
        assert_eq!(masked.len(), text.len());
        assert_eq!(
            masked,
            "credentials: {user: ann, password: *******, x: 1}\n  password: *************\nafter: 1\n\
             \x20 password: *\n*********\n*********\n  user: b\npasswrd: *\npassword_env: NAME\n\
             devices.0.credentials.password=**\n"
        );
        let tokens =
            "credentials: {token: eyJ.a.b, user: x}\n  token: {algorithm: ES256}\n  token:\n    file: a\na.token=eyJ\n";
        let masked =
            "credentials: {token: *******, user: x}\n  token: {algorithm: ES256}\n  token:\n    file: a\na.token=***\n";
        assert_eq!(masked_yaml(tokens), masked);
        assert_eq!((&*masked_at("abcd", 1, 2), &*masked_at("ab", 1, 9), &*masked_at("ä", 1, 1)), ("a**d", "a*", "**"));
        let urls = "{endpoint: 'mqtt://ann:word@host:1', label: a}\nmqtt://ann@host:1 http://b:c@d/e\n";
        let masked = "{endpoint: 'mqtt://ann:****@host:1', label: a}\nmqtt://ann@host:1 http://b:*@d/e\n";
        assert_eq!(masked_yaml(urls), masked);
    }
}
