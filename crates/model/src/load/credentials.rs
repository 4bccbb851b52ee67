//! Validates the identities of a group's clients: the same credentials for all, or a row of a file for each.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::diagnostic::{Problem, ProblemKind};
use super::files::{Files, read_regular, wrong_line};
use super::raw_credentials::RawCredentials;
use super::shape::Spanned;
use super::{csv, tokens, topics, value};
use crate::identity::{ClientPem, GroupIdentity, GroupToken, IdentityFile, IdentityRow};
use crate::secret::Secret;
use crate::workload::Credentials;

/// Columns that a file may have.
const COLUMNS: [&str; 7] = ["client_id", "user", "password", "certificate", "key", "token", "nkey"];
/// Maximum number of rows of a file.
const MOST_ROWS: usize = 1 << 20;
/// Maximum length of an identifier, user name, password or token, bytes: the limit of an MQTT field (MQTT 5.0 §1.5.4).
const LONGEST_BYTES: usize = 65_535;
/// Maximum length of these with placeholders, bytes: a quarter, so that the values of placeholders fit.
const LONGEST_TEMPLATE_BYTES: usize = 16_000;
/// Maximum size of a certificate with its chain, or of a key, bytes.
const LARGEST_PEM_BYTES: u64 = 64 << 10;
/// Maximum size of all certificates and keys of a file, bytes.
const MOST_PEM_BYTES: usize = 256 << 20;

/// Kind of clients, which decides the available placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Devices,
    Subscribers,
}

/// Identities of the clients of a group that has at least `count` clients.
pub(crate) fn identity(
    raw: Option<&Spanned<RawCredentials>>,
    of: Of,
    count: u32,
    files: &Files,
) -> Result<GroupIdentity, Problem> {
    let Some(raw) = raw else { return Ok(GroupIdentity::default()) };
    let words: &[&str] = match of {
        Of::Devices => &topics::TOPIC_WORDS[..8],
        Of::Subscribers => &topics::FILTER_WORDS,
    };
    let RawCredentials { user, password, password_env, client_id, file, token } = &raw.value;
    let rules = token.as_ref().map(|token| tokens::rules(token, words, files)).transpose()?.map(Arc::new);
    if let Some(file) = file {
        let others = [user, client_id, password_env].into_iter().flatten().map(|text| text.span).next();
        if others.is_some() || password.is_some() {
            return Err(Problem::new(ProblemKind::Conflict, "a log-in is in a file and in the workload")
                .at(others.unwrap_or(raw.span), "and here")
                .at(file.span, "the file has it")
                .help("leave everything but `file` and `token` out"));
        }
        let rows = rows(file, count, rules.is_some(), files)?;
        let token = rules.map(|rules| GroupToken { user: None, rules });
        return Ok(GroupIdentity { rows: Some(rows), token, ..GroupIdentity::default() });
    }
    for text in [user, client_id].into_iter().flatten() {
        value::placeholders(&text.value, words, text.span)?;
        if let Some(reason) = unusable(&text.value, LONGEST_TEMPLATE_BYTES) {
            return Err(Problem::new(ProblemKind::BadName, format!("{reason} in a client id or a user name"))
                .at(text.span, "here"));
        }
    }
    if let Some(id) = client_id.as_ref().filter(|id| id.value.is_empty()) {
        return Err(Problem::new(ProblemKind::BadName, "a client id without a letter").at(id.span, "here"));
    }
    let client_id = client_id.as_ref().map(|id| id.value.clone());
    let Some(rules) = rules else {
        return Ok(GroupIdentity { client_id, credentials: log_in(raw)?, ..GroupIdentity::default() });
    };
    if password.is_some() || password_env.is_some() {
        return Err(Problem::new(ProblemKind::Conflict, "a token is sent in place of a password, and there is one")
            .at(raw.span, "here")
            .help("leave `password`, `password_env` or `token` out"));
    }
    let token = Some(GroupToken { user: user.as_ref().map(|user| user.value.clone()), rules });
    Ok(GroupIdentity { client_id, token, ..GroupIdentity::default() })
}

/// The credentials with a password, if there are any.
fn log_in(raw: &Spanned<RawCredentials>) -> Result<Option<Credentials>, Problem> {
    let RawCredentials { user, password, password_env, client_id, .. } = &raw.value;
    let credentials = match user {
        Some(user) => Credentials { user: user.value.clone(), password: given_password(raw, password, password_env)? },
        None if client_id.is_some() && password.is_none() && password_env.is_none() => return Ok(None),
        None => {
            return Err(Problem::new(ProblemKind::MissingKey, "a log-in has no user name")
                .at(raw.span, "here")
                .help("add `user: NAME`; or `file: devices.csv` with a row for each client"));
        }
    };
    match unusable(credentials.password.expose(), LONGEST_BYTES) {
        Some(reason) => {
            Err(Problem::new(ProblemKind::ImpossibleValue, format!("{reason} in a password")).at(raw.span, "here"))
        }
        None => Ok(Some(credentials)),
    }
}

/// Reason why no system would accept a text, if there is one: MQTT allows servers to close a connection that sends it (MQTT
/// 5.0 §1.5.4).
fn unusable(text: &str, longest: usize) -> Option<String> {
    if text.chars().any(char::is_control) {
        return Some("a control character".to_owned());
    }
    (text.len() > longest).then(|| format!("more than {longest} B"))
}

fn given_password(
    raw: &Spanned<RawCredentials>,
    password: &Option<Secret>,
    variable: &Option<Spanned<String>>,
) -> Result<Secret, Problem> {
    match (password, variable) {
        (Some(password), None) => Ok(password.clone()),
        (None, Some(variable)) => of_variable(variable, "the password"),
        (Some(_), Some(variable)) => Err(Problem::new(ProblemKind::Conflict, "the password is given twice")
            .at(variable.span, "and here")
            .help("keep `password_env`, which others cannot read in the file")),
        (None, None) => Err(Problem::new(ProblemKind::MissingKey, "a log-in has no password")
            .at(raw.span, "here")
            .help("`password_env: NAME` names the environment variable that holds it; or `password: \"…\"`")),
    }
}

/// Reads a secret from an environment variable; `what` describes it in messages.
pub(super) fn of_variable(variable: &Spanned<String>, what: &str) -> Result<Secret, Problem> {
    std::env::var(&variable.value).map(Secret::new).map_err(|error| {
        let why = match error {
            std::env::VarError::NotPresent => "is not set",
            std::env::VarError::NotUnicode(_) => "is not UTF-8",
        };
        let name = &variable.value;
        Problem::new(ProblemKind::ImpossibleValue, format!("the environment variable `{name}` {why}"))
            .at(variable.span, format!("{what} is taken from it"))
            .help(format!("`export {name}=…` first"))
    })
}

/// Reads the rows of a file. No message contains a cell, except client identifiers.
fn rows(name: &Spanned<String>, count: u32, has_token: bool, files: &Files) -> Result<IdentityFile, Problem> {
    let text = files.read(name)?;
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((heading_line, heading)) = lines.next() else {
        return Err(wrong_line(name, 1, "the file is empty").help(format!("its first line names {}", shown_columns())));
    };
    let columns = columns(name, heading_line, heading, has_token)?;
    let folder = files.path(&name.value);
    let folder = folder.parent().unwrap_or(Path::new(""));
    let mut rows: Vec<IdentityRow> = Vec::new();
    let mut pem_bytes = 0;
    let mut ids: HashMap<String, usize> = HashMap::new();
    for (line, text) in lines {
        if rows.len() == MOST_ROWS {
            return Err(wrong_line(name, line, &format!("more than {MOST_ROWS} rows")));
        }
        let row = row(name, line, text, &columns, folder)?;
        if let Some(id) = &row.client_id
            && let Some(first) = ids.insert(id.clone(), line)
        {
            return Err(wrong_line(name, line, &format!("the client id `{id}` is that of line {first}"))
                .help("a system ends one of two clients with one identifier"));
        }
        pem_bytes += row.certificate.as_ref().map_or(0, |pem| pem.certificate.len() + pem.key.expose().len());
        if pem_bytes > MOST_PEM_BYTES {
            return Err(wrong_line(name, line, &format!("certificates and keys of more than {MOST_PEM_BYTES} B")));
        }
        rows.push(row);
    }
    if rows.len() < count as usize {
        return Err(wrong_line(name, text.lines().count(), &format!("{} rows for {count} clients", rows.len()))
            .help("the file has a row for each client of the group, `--scale` included"));
    }
    Ok(IdentityFile { name: name.value.clone(), rows: rows.into() })
}

fn shown_columns() -> String {
    let shown: Vec<String> = COLUMNS.iter().map(|column| format!("`{column}`")).collect();
    format!("some of {}", shown.join(", "))
}

fn columns(name: &Spanned<String>, line: usize, heading: &str, has_token: bool) -> Result<Vec<String>, Problem> {
    let columns = csv::cells(heading).map_err(|reason| wrong_line(name, line, reason))?;
    for (place, column) in columns.iter().enumerate() {
        if !COLUMNS.contains(&column.as_str()) {
            // If the heading is missing, this is a value, which no message may contain.
            let reason = format!("column {} of the first line is none that there is", place + 1);
            return Err(wrong_line(name, line, &reason).help(format!("it names {}", shown_columns())));
        }
        if columns[..place].contains(column) {
            return Err(wrong_line(name, line, &format!("the column `{column}` is there twice")));
        }
    }
    let has = |column: &str| columns.iter().any(|other| other == column);
    for (column, needed) in [("password", "user"), ("certificate", "key"), ("key", "certificate")] {
        if has(column) && !has(needed) {
            return Err(wrong_line(name, line, &format!("the column `{needed}` is missing, `{column}` needs it"))
                .help(format!("the first line names {}", shown_columns())));
        }
    }
    if let Some(column) = ["password", "token", "nkey"].into_iter().find(|column| has_token && has(column)) {
        return Err(wrong_line(name, line, &format!("a column `{column}`, and clients sign tokens of their own"))
            .help("leave the column or `token` of the workload out"));
    }
    if let Some(column) = ["user", "password"].into_iter().find(|column| has("nkey") && has(column)) {
        return Err(wrong_line(name, line, &format!("a column `{column}` beside `nkey`, which logs in without it")));
    }
    if has("user") && !has("password") && !has("token") && !has_token {
        return Err(wrong_line(name, line, "the column `password` is missing, `user` needs it")
            .help("a `token` in place of it is sent as the password"));
    }
    if has("password") && has("token") {
        return Err(wrong_line(name, line, "a `token` is sent as the password, and there is a `password`"));
    }
    Ok(columns)
}

fn row(
    name: &Spanned<String>,
    line: usize,
    text: &str,
    columns: &[String],
    folder: &Path,
) -> Result<IdentityRow, Problem> {
    let cells = csv::cells(text).map_err(|reason| wrong_line(name, line, reason))?;
    if cells.len() != columns.len() {
        let reason = format!("{} cells, and the first line names {} columns", cells.len(), columns.len());
        return Err(wrong_line(name, line, &reason).help("a cell with a comma in it stands in double quotes"));
    }
    let cell = |column: &str| columns.iter().position(|name| name == column).map(|place| cells[place].as_str());
    for (column, cell) in columns.iter().zip(&cells) {
        if cell.is_empty() || cell.len() > LONGEST_BYTES {
            let reason = if cell.is_empty() { "no" } else { "too long a" };
            return Err(wrong_line(name, line, &format!("{reason} `{column}`")));
        }
        if let Some(reason) = unusable(cell, LONGEST_BYTES) {
            return Err(wrong_line(name, line, &format!("{reason} in `{column}`")));
        }
    }
    let certificate = match (cell("certificate"), cell("key")) {
        (Some(certificate), Some(key)) => {
            let read = |column: &str, file: &str| pem(name, line, column, &folder.join(file));
            let (certificate, key) = (read("certificate", certificate)?, read("key", key)?);
            Some(Arc::new(ClientPem { certificate, key: Secret::new(key) }))
        }
        _ => None,
    };
    Ok(IdentityRow {
        line: line as u32,
        client_id: cell("client_id").map(str::to_owned),
        user: cell("user").map(str::to_owned),
        password: cell("password").or(cell("token")).map(Secret::new),
        nkey: cell("nkey").map(Secret::new),
        certificate,
    })
}

/// Text of a certificate or a key. Messages do not show the cell: it may contain the key itself instead of a path.
fn pem(name: &Spanned<String>, line: usize, column: &str, path: &Path) -> Result<String, Problem> {
    read_regular(path, LARGEST_PEM_BYTES).map_err(|error| {
        wrong_line(name, line, &format!("failed to read the file that `{column}` names: {error}"))
            .help("a path of a PEM file; a relative one counts from the folder of this file")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<IdentityFile, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("d.csv"), text).unwrap();
        let files = Files::beside(&folder.path().join("w.yaml").display().to_string());
        let name = Spanned { value: "d.csv".to_owned(), span: Default::default() };
        rows(&name, 1, false, &files).map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn headings_may_be_quoted_behind_a_byte_order_mark() {
        let file = read("\u{feff}\"client_id\", \"user\",password\r\na,b,c\r\n").unwrap();
        assert_eq!(file.rows[0].client_id.as_deref(), Some("a"));
    }

    #[test]
    fn a_setting_that_no_system_accepts_is_refused() {
        for (text, reason) in [
            ("client_id\na\u{0}b\n", "a control character in `client_id`"),
            ("user,password\na,planted\u{7f}\n", "a control character in `password`"),
            ("token\nplanted\u{1}\n", "a control character in `token`"),
            ("certificate,key\nplanted,planted\n", "the file that `certificate` names"),
            ("certificate,key\nd.csv,planted\n", "the file that `key` names"),
            ("\"client_id\n", "quote does not end"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason) && !error.contains("planted"), "{text:?}: {error}");
        }
    }
}
