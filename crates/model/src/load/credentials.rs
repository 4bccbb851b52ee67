//! Who the clients of a group are, checked: one log-in for all, or a row of a file for each.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::diagnostic::{Problem, ProblemKind};
use super::files::{Files, wrong_line};
use super::raw::RawCredentials;
use super::shape::Spanned;
use super::{csv, topics, value};
use crate::identity::{ClientPem, GroupIdentity, IdentityFile, IdentityRow};
use crate::secret::Secret;
use crate::workload::Credentials;

/// Columns that a file may have.
const COLUMNS: [&str; 6] = ["client_id", "user", "password", "certificate", "key", "token"];
/// Most rows of a file.
const MOST_ROWS: usize = 1 << 20;
/// Longest identifier, user name, password or token, bytes: what a field of MQTT holds (MQTT 5.0 §1.5.4).
const LONGEST_BYTES: usize = 65_535;

/// Whose clients they are: which placeholders there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Devices,
    Subscribers,
}

/// Who the clients of a group are, of which there are `count` at least.
pub(crate) fn identity(
    raw: Option<&Spanned<RawCredentials>>,
    of: Of,
    count: u32,
    files: &Files,
) -> Result<GroupIdentity, Problem> {
    let Some(raw) = raw else { return Ok(GroupIdentity::default()) };
    let RawCredentials { user, password, password_env, client_id, file } = &raw.value;
    if let Some(file) = file {
        let others = [user, client_id, password_env].into_iter().flatten().map(|text| text.span).next();
        if others.is_some() || password.is_some() {
            return Err(Problem::new(ProblemKind::Conflict, "a log-in is in a file and in the workload")
                .at(others.unwrap_or(raw.span), "and here")
                .at(file.span, "the file has it")
                .help("leave everything but `file` out"));
        }
        return rows(file, count, files).map(|rows| GroupIdentity { rows: Some(rows), ..GroupIdentity::default() });
    }
    let words: &[&str] = match of {
        Of::Devices => &topics::TOPIC_WORDS[..8],
        Of::Subscribers => &topics::FILTER_WORDS,
    };
    for text in [user, client_id].into_iter().flatten() {
        value::placeholders(&text.value, words, text.span)?;
    }
    if let Some(id) = client_id.as_ref().filter(|id| id.value.is_empty()) {
        return Err(Problem::new(ProblemKind::BadName, "a client id without a letter").at(id.span, "here"));
    }
    let credentials = match user {
        Some(user) => {
            Some(Credentials { user: user.value.clone(), password: given_password(raw, password, password_env)? })
        }
        None if client_id.is_some() && password.is_none() && password_env.is_none() => None,
        None => {
            return Err(Problem::new(ProblemKind::MissingKey, "a log-in has no user name")
                .at(raw.span, "here")
                .help("add `user: NAME`; or `file: devices.csv` with a row for each client"));
        }
    };
    Ok(GroupIdentity { client_id: client_id.as_ref().map(|id| id.value.clone()), credentials, rows: None })
}

fn given_password(
    raw: &Spanned<RawCredentials>,
    password: &Option<Secret>,
    variable: &Option<Spanned<String>>,
) -> Result<Secret, Problem> {
    match (password, variable) {
        (Some(password), None) => Ok(password.clone()),
        (None, Some(variable)) => password_of(variable),
        (Some(_), Some(variable)) => Err(Problem::new(ProblemKind::Conflict, "the password is given twice")
            .at(variable.span, "and here")
            .help("keep `password_env`, which others cannot read in the file")),
        (None, None) => Err(Problem::new(ProblemKind::MissingKey, "a log-in has no password")
            .at(raw.span, "here")
            .help("`password_env: NAME` names the environment variable that holds it; or `password: \"…\"`")),
    }
}

fn password_of(variable: &Spanned<String>) -> Result<Secret, Problem> {
    std::env::var(&variable.value).map(Secret::new).map_err(|error| {
        let why = match error {
            std::env::VarError::NotPresent => "is not set",
            std::env::VarError::NotUnicode(_) => "is not UTF-8",
        };
        let name = &variable.value;
        Problem::new(ProblemKind::ImpossibleValue, format!("the environment variable `{name}` {why}"))
            .at(variable.span, "the password is taken from it")
            .help(format!("`export {name}=…` first"))
    })
}

/// The rows of a file. No message holds what stands in one, but for client ids.
fn rows(name: &Spanned<String>, count: u32, files: &Files) -> Result<IdentityFile, Problem> {
    let text = files.read(name)?;
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((heading_line, heading)) = lines.next() else {
        return Err(wrong_line(name, 1, "the file is empty").help(format!("its first line names {}", shown_columns())));
    };
    let columns = columns(name, heading_line, heading)?;
    let folder = files.path(&name.value);
    let folder = folder.parent().unwrap_or(Path::new(""));
    let mut rows: Vec<IdentityRow> = Vec::new();
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

fn columns<'a>(name: &Spanned<String>, line: usize, heading: &'a str) -> Result<Vec<&'a str>, Problem> {
    let columns: Vec<&str> = heading.split(',').map(str::trim).collect();
    for (place, column) in columns.iter().enumerate() {
        if !COLUMNS.contains(column) {
            // Where the heading was forgotten, this is a value, which no message may hold.
            let reason = format!("column {} of the first line is none that there is", place + 1);
            return Err(wrong_line(name, line, &reason).help(format!("it names {}", shown_columns())));
        }
        if columns[..place].contains(column) {
            return Err(wrong_line(name, line, &format!("the column `{column}` is there twice")));
        }
    }
    let has = |column: &str| columns.contains(&column);
    for (column, needed) in [("password", "user"), ("certificate", "key"), ("key", "certificate")] {
        if has(column) && !has(needed) {
            return Err(wrong_line(name, line, &format!("the column `{needed}` is missing, `{column}` needs it"))
                .help(format!("the first line names {}", shown_columns())));
        }
    }
    if has("user") && !has("password") && !has("token") {
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
    columns: &[&str],
    folder: &Path,
) -> Result<IdentityRow, Problem> {
    let cells = csv::cells(text).map_err(|reason| wrong_line(name, line, reason))?;
    if cells.len() != columns.len() {
        let reason = format!("{} cells, and the first line names {} columns", cells.len(), columns.len());
        return Err(wrong_line(name, line, &reason).help("a cell with a comma in it stands in double quotes"));
    }
    let cell = |column: &str| columns.iter().position(|name| *name == column).map(|place| cells[place].as_str());
    for (column, cell) in columns.iter().zip(&cells) {
        if cell.is_empty() || cell.len() > LONGEST_BYTES {
            let reason = if cell.is_empty() { "no" } else { "too long a" };
            return Err(wrong_line(name, line, &format!("{reason} `{column}`")));
        }
    }
    let secret = cell("password").or(cell("token"));
    let credentials = secret
        .map(|secret| Credentials { user: cell("user").unwrap_or_default().to_owned(), password: Secret::new(secret) });
    let certificate = match (cell("certificate"), cell("key")) {
        (Some(certificate), Some(key)) => {
            let read = |file: &str| pem(name, line, &folder.join(file));
            Some(Arc::new(ClientPem { certificate: read(certificate)?, key: Secret::new(read(key)?) }))
        }
        _ => None,
    };
    Ok(IdentityRow { line: line as u32, client_id: cell("client_id").map(str::to_owned), credentials, certificate })
}

fn pem(name: &Spanned<String>, line: usize, path: &Path) -> Result<String, Problem> {
    use std::io::Read;
    /// Largest certificate with its chain, or key, bytes.
    const LARGEST_PEM_BYTES: u64 = 64 << 10;
    let failed = |reason: String| {
        wrong_line(name, line, &format!("failed to read `{}`: {reason}", path.display()))
            .help("a relative path counts from the folder of the file")
    };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_PEM_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| failed(error.to_string()))?;
    match text.len() as u64 > LARGEST_PEM_BYTES {
        true => Err(failed(format!("it is larger than {LARGEST_PEM_BYTES} B"))),
        false => Ok(text),
    }
}
