//! Where programs are found: what was asked for by an environment variable, what `pubmark install` placed, what the
//! machine has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::definition::{ProcessBackEnd, VersionCommand};
use crate::error::SystemError;
use crate::process::run_to_end;

/// Environment variable that names the folder for programs.
pub const FOLDER_VARIABLE: &str = "PUBMARK_PROGRAMS";
/// Start of the environment variables that name one program each: `PUBMARK_PROGRAM_NATS_SERVER`.
pub const PROGRAM_VARIABLE: &str = "PUBMARK_PROGRAM_";
/// Program that stands for the running one.
pub const SELF: &str = "{self}";
/// Longest run of a command that tells a version: a Java program on a busy machine takes seconds.
pub(crate) const VERSION_WITHIN: Duration = Duration::from_secs(30);

/// Folder where `pubmark install` puts programs: `$PUBMARK_PROGRAMS`, else `$XDG_DATA_HOME/pubmark/programs`, else
/// `~/.local/share/pubmark/programs`; in the folder for temporary files if there is no home. It need not exist.
pub fn folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen = variable(FOLDER_VARIABLE)
        .or_else(|| variable("XDG_DATA_HOME").map(|data| data.join("pubmark/programs")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/share/pubmark/programs")))
        .unwrap_or_else(|| std::env::temp_dir().join("pubmark/programs"));
    // Fails only without a working directory; then a relative path is as good.
    std::path::absolute(&chosen).unwrap_or(chosen)
}

/// Environment variable that overrides a program: `PUBMARK_PROGRAM_NATS_SERVER` for `nats-server`.
pub fn variable_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    let words = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    PROGRAM_VARIABLE.chars().chain(words).collect()
}

/// Finds a program: by its environment variable, by its path, in the back end's folders, in `PATH`.
pub fn find_program(program: &str, back_end: &ProcessBackEnd) -> Result<PathBuf, SystemError> {
    if program == SELF {
        return std::env::current_exe()
            .map_err(|source| SystemError::Run { program: "this program".to_owned(), source });
    }
    let program = with_folder(program);
    let variable = variable_of(&program);
    if let Some(chosen) = std::env::var_os(&variable) {
        let path = PathBuf::from(&chosen);
        return Some(path)
            .filter(|path| is_executable(path))
            .ok_or_else(|| SystemError::NotAProgram { variable, value: chosen.to_string_lossy().into_owned() });
    }
    let missing = || SystemError::Missing { program: program.clone(), install: back_end.install.trim().to_owned() };
    if program.contains('/') {
        return Some(PathBuf::from(&program)).filter(|path| is_executable(path)).ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let search = back_end.search.iter().map(|folder| PathBuf::from(with_folder(&folder.to_string_lossy())));
    search
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(&program))
        .find(|path| is_executable(path))
        .ok_or_else(missing)
}

/// What the program says its version is; `None` where it does not say so in the expected words.
pub fn read_version(program: &Path, back_end: &ProcessBackEnd) -> Result<Option<String>, SystemError> {
    let Some((version, program)) = version_words(back_end, program)? else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(version.arguments.iter().map(|argument| with_folder(argument)));
    // Some programs end with a failure after printing their help, so the status says nothing.
    let (_, output) = run_to_end(command, VERSION_WITHIN)?;
    Ok(version_in(&output, &version.after))
}

/// The command that tells the version, and its program.
pub(crate) fn version_words<'a>(
    back_end: &'a ProcessBackEnd,
    program: &Path,
) -> Result<Option<(&'a VersionCommand, PathBuf)>, SystemError> {
    let Some(version) = &back_end.version else { return Ok(None) };
    let program = match &version.program {
        Some(other) => find_program(other, back_end)?,
        None => program.to_owned(),
    };
    Ok(Some((version, program)))
}

/// The word after the text that comes before a version.
pub(crate) fn version_in(output: &str, after: &str) -> Option<String> {
    output.split_once(after).and_then(|(_, rest)| rest.split_whitespace().next()).map(str::to_owned)
}

/// Fills in the one placeholder that is known before any start.
fn with_folder(text: &str) -> String {
    text.replace("{programs}", &folder().display().to_string())
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_variable_of_its_own() {
        assert_eq!(variable_of("nats-server"), "PUBMARK_PROGRAM_NATS_SERVER");
        assert_eq!(variable_of("/opt/x/java.bin"), "PUBMARK_PROGRAM_JAVA_BIN");
    }

    #[test]
    fn the_folder_for_programs_is_an_absolute_path_that_ends_as_documented() {
        let folder = folder();
        assert!(std::env::var_os(FOLDER_VARIABLE).is_some() || folder.ends_with("pubmark/programs"), "{folder:?}");
    }
}
