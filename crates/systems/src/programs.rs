//! Finds programs: those in an environment variable, those that `pubmark install` installed, and those of the machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::definition::{ProcessBackEnd, VersionCommand};
use crate::error::SystemError;
use crate::process::run_to_end;

/// Environment variable for the folder for programs.
pub const FOLDER_VARIABLE: &str = "PUBMARK_PROGRAMS";
/// Prefix of environment variables for one program each: `PUBMARK_PROGRAM_NATS_SERVER`.
pub const PROGRAM_VARIABLE: &str = "PUBMARK_PROGRAM_";
/// Replaces the folder for programs if there is none (Debian policy, 9.2.3: this path never exists).
const NOWHERE: &str = "/nonexistent";
/// Program name that means the running program.
pub const SELF: &str = "{self}";
/// Longest run of a command that prints a version: a Java program on a busy machine takes seconds.
pub(crate) const VERSION_WITHIN: Duration = Duration::from_secs(30);

/// Folder where `pubmark install` puts programs: `$PUBMARK_PROGRAMS`, otherwise `$XDG_DATA_HOME/pubmark/programs`,
/// otherwise `~/.local/share/pubmark/programs`. It need not exist. `None` if no variable has an absolute path: a folder
/// that others can write to is not safe for programs.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let chosen = std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty());
    // Fails only if there is no working directory.
    chosen
        .and_then(|chosen| std::path::absolute(chosen).ok())
        .or_else(|| variable("XDG_DATA_HOME").map(|data| data.join("pubmark/programs")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/share/pubmark/programs")))
}

/// The folder for use in texts; a path that never exists if there is none.
pub(crate) fn folder_text() -> String {
    folder().map_or_else(|| NOWHERE.to_owned(), |folder| folder.display().to_string())
}

/// Was this program installed by `pubmark install`?
pub fn is_own(program: &Path) -> bool {
    folder().is_some_and(|folder| program.starts_with(folder))
}

/// Environment variable that overrides a program: `PUBMARK_PROGRAM_NATS_SERVER` for `nats-server`.
pub fn variable_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    let words = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    PROGRAM_VARIABLE.chars().chain(words).collect()
}

/// Whether a program can be started by this word: the path of a program, or its name in `PATH`.
pub fn can_be_started(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match program.contains('/') {
        true => is_executable(Path::new(program)),
        false => std::env::split_paths(&path).any(|folder| is_executable(&folder.join(program))),
    }
}

/// Finds a program by its environment variable, by its path, in the back end's folders, or in `PATH`.
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
        let found = Some(PathBuf::from(&program)).filter(|path| is_executable(path)).ok_or_else(missing)?;
        return trusted(found);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let search = back_end.search.iter().map(|folder| PathBuf::from(with_folder(&folder.to_string_lossy())));
    search
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(&program))
        .find(|path| is_executable(path))
        .ok_or_else(missing)
        .and_then(trusted)
}

/// Checks that a program in the folder for programs belongs to root or to our user, and that no other user can change
/// it or a folder that contains it: it would run as our user.
fn trusted(program: PathBuf) -> Result<PathBuf, SystemError> {
    if !is_own(&program) {
        return Ok(program);
    }
    // The target of a link is what is executed; the folders of the link and those of its target are both checked.
    let real = program.canonicalize().unwrap_or_else(|_| program.clone());
    for path in program.ancestors().chain(real.ancestors()) {
        let Ok(found) = fs::symlink_metadata(path) else { continue };
        if let Some(why) = distrust(&found) {
            return Err(SystemError::Untrusted { program: program.display().to_string(), path: path.to_owned(), why });
        }
    }
    Ok(program)
}

/// Why a file or folder is not trusted; `None` if it is.
fn distrust(found: &fs::Metadata) -> Option<String> {
    // SAFETY: the call has no arguments and cannot fail.
    let own_user = unsafe { libc::geteuid() };
    let (owner, mode) = (found.uid(), found.mode());
    if owner != 0 && owner != own_user {
        return Some(format!("it belongs to user {owner}, who is neither root nor the one who runs pubmark"));
    }
    // In a folder like /tmp, only owners can change their entries, although every user can create some. The mode of a
    // link has no effect.
    let is_sticky = found.is_dir() && mode & libc::S_ISVTX != 0;
    if is_sticky || found.file_type().is_symlink() {
        return None;
    }
    // A group with the same id as the owner is private to that user (Debian, Ubuntu, Fedora).
    let of_others = mode & 0o020 != 0 && found.gid() != owner;
    (mode & 0o002 != 0 || of_others).then(|| format!("others can change it (mode {:04o})", mode & 0o7777))
}

/// The version that the program prints; `None` if its output does not have the expected form.
pub fn read_version(program: &Path, back_end: &ProcessBackEnd) -> Result<Option<String>, SystemError> {
    let Some((version, program)) = version_words(back_end, program)? else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(version.arguments.iter().map(|argument| with_folder(argument)));
    // Some programs exit with a failure after they print their help, so the status is ignored.
    let (_, output) = run_to_end(command, VERSION_WITHIN)?;
    Ok(version_in(&output, &version.after))
}

/// The command that prints the version, and its program.
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

/// Fills in the only placeholder that is known before a start: `{programs}`, the folder for programs.
pub fn with_folder(text: &str) -> String {
    text.replace("{programs}", &folder_text())
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_variable_of_its_own() {
        assert_eq!(variable_of("nats-server"), "PUBMARK_PROGRAM_NATS_SERVER");
        assert_eq!(variable_of("/opt/x/java.bin"), "PUBMARK_PROGRAM_JAVA_BIN");
    }

    #[test]
    fn the_folder_for_programs_is_an_absolute_path_that_ends_as_documented() {
        let Some(folder) = folder() else { return };
        assert!(std::env::var_os(FOLDER_VARIABLE).is_some() || folder.ends_with("pubmark/programs"), "{folder:?}");
    }

    #[test]
    fn files_that_others_can_change_are_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        fs::write(&file, "").unwrap();
        let refusal = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            distrust(&fs::symlink_metadata(&file).unwrap())
        };
        assert_eq!(refusal(0o755), None);
        assert!(refusal(0o777).is_some_and(|why| why.contains("0777")));
        assert!(refusal(0o757).is_some());
        // All users can write to the folder for temporary files, but only owners can change their entries.
        assert_eq!(distrust(&fs::symlink_metadata("/tmp").unwrap()), None);
    }
}
