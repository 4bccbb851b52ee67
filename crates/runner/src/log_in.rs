//! Credentials of a run: where the password is read from.

use std::env::VarError;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use pubmark_model::secret::Secret;
use pubmark_model::workload::Credentials;

use crate::error::RunError;
use crate::spec::Connection;

/// Credentials of all clients for which the workload has none, if the run has some.
pub fn of(connection: &Connection) -> Result<Option<Credentials>, RunError> {
    let Some(user) = connection.user.clone() else { return Ok(None) };
    let password = match (&connection.password, &connection.password_env, &connection.password_file) {
        (Some(password), ..) => password.clone(),
        (None, Some(variable), _) => std::env::var(variable).map(Secret::new).map_err(|error| {
            let why = match error {
                VarError::NotPresent => "environment variable not found",
                VarError::NotUnicode(_) => "it is not UTF-8",
            };
            RunError::input(why)
                .during(format!("failed to read the password from the environment variable `{variable}`"))
                .hint(format!("`export {variable}=…` first"))
        })?,
        (None, None, Some(file)) => password_in(file)?,
        (None, None, None) => Secret::default(),
    };
    Ok(Some(Credentials { user, password }))
}

/// Longest password that is read from a file, in bytes.
const LONGEST_PASSWORD: u64 = 4_096;

/// The first line of a file. No error message contains the content.
///
/// # Errors
/// The file cannot be read, or its first line is no password.
pub fn password_in(file: &Path) -> Result<Secret, RunError> {
    let failed = |why: String| {
        RunError::input(why)
            .during(format!("failed to read the password from `{}`", file.display()))
            .hint("a text file with the password in its first line, readable by you alone: `chmod 600`")
    };
    let mut text = Vec::new();
    let opened = File::open(file).map_err(|error| failed(error.to_string()))?;
    opened.take(LONGEST_PASSWORD + 1).read_to_end(&mut text).map_err(|error| failed(error.to_string()))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() || line.len() as u64 > LONGEST_PASSWORD {
        return Err(failed(format!("its first line is empty, or longer than {LONGEST_PASSWORD} bytes")));
    }
    let line = std::str::from_utf8(line).map_err(|_| failed("its first line is not UTF-8".to_owned()))?;
    Ok(Secret::from(line))
}
