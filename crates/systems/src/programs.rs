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
/// As a program name, the running program; in arguments, the system's program that was found.
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
    match first_distrusted(&program) {
        Some((path, why)) => Err(SystemError::Untrusted { program: program.display().to_string(), path, why }),
        None => Ok(program),
    }
}

/// The first file or folder on the way to a program that is not trusted, and why.
fn first_distrusted(program: &Path) -> Option<(PathBuf, String)> {
    // The target of a link is what is executed; the folders of the link and those of its target are both checked.
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    program.ancestors().chain(real.ancestors()).find_map(|path| {
        let found = fs::symlink_metadata(path).ok()?;
        distrust(&found).map(|why| (path.to_owned(), why))
    })
}

/// Why a file or folder is not trusted; `None` if it is.
fn distrust(found: &fs::Metadata) -> Option<String> {
    // SAFETY: the call has no arguments and cannot fail.
    let own_user = unsafe { libc::geteuid() };
    distrust_of(found.uid(), found.gid(), found.mode(), own_user)
}

/// Why `own_user` does not trust a file or folder with this owner, group and mode; the mode contains the type (inode(7)).
fn distrust_of(owner: u32, group: u32, mode: u32, own_user: u32) -> Option<String> {
    if owner != 0 && owner != own_user {
        return Some(format!("it belongs to user {owner}, who is neither root nor the one who runs pubmark"));
    }
    // In a folder like /tmp, only owners can change their entries, although every user can create some. The mode of a
    // link has no effect.
    let kind = mode & libc::S_IFMT;
    let is_sticky = kind == libc::S_IFDIR && mode & libc::S_ISVTX != 0;
    if is_sticky || kind == libc::S_IFLNK {
        return None;
    }
    // A group with the same id as the owner is private to that user (Debian, Ubuntu, Fedora).
    let of_others = mode & 0o020 != 0 && group != owner;
    (mode & 0o002 != 0 || of_others).then(|| format!("others can change it (mode {:04o})", mode & 0o7777))
}

/// The version that the program prints; `None` if its output does not have the expected form.
pub fn read_version(program: &Path, back_end: &ProcessBackEnd) -> Result<Option<String>, SystemError> {
    let Some((version, command)) = version_words(back_end, program)? else { return Ok(None) };
    let own = program.display().to_string();
    let mut command = Command::new(command);
    command.args(version.arguments.iter().map(|argument| with_folder(argument).replace(SELF, &own)));
    // Some programs exit with a failure after they print their help, so the status is ignored.
    let (_, output) = run_to_end(command, VERSION_WITHIN)?;
    Ok(version_in(&output, &version.after))
}

/// The command that prints the version of `program`, and the program of that command.
pub(crate) fn version_words<'a>(
    back_end: &'a ProcessBackEnd,
    program: &Path,
) -> Result<Option<(&'a VersionCommand, PathBuf)>, SystemError> {
    let Some(version) = &back_end.version else { return Ok(None) };
    let command = match &version.program {
        Some(other) => find_program(other, back_end)?,
        None => program.to_owned(),
    };
    Ok(Some((version, command)))
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

    #[test]
    fn programs_of_root_and_of_our_user_are_trusted_and_no_others() {
        let file = libc::S_IFREG | 0o755;
        assert_eq!(distrust_of(0, 0, file, 1_000), None);
        assert_eq!(distrust_of(1_000, 1_000, file, 1_000), None);
        for own_user in [0, 1_000] {
            assert!(distrust_of(1_001, 1_001, file, own_user).is_some_and(|why| why.contains("user 1001")));
        }
    }

    #[test]
    fn a_private_group_a_sticky_folder_and_a_link_are_no_danger() {
        let distrust = |kind: u32, mode: u32, group: u32| distrust_of(1_000, group, kind | mode, 1_000);
        assert_eq!(distrust(libc::S_IFREG, 0o775, 1_000), None);
        assert!(distrust(libc::S_IFREG, 0o775, 100).is_some_and(|why| why.contains("0775")));
        assert_eq!(distrust(libc::S_IFDIR, 0o1777, 100), None);
        assert!(distrust(libc::S_IFREG, 0o1777, 100).is_some(), "the bit protects the entries of folders only");
        assert_eq!(distrust(libc::S_IFLNK, 0o777, 100), None);
    }

    #[test]
    fn a_program_its_folder_and_what_a_link_leads_to_are_all_checked() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let [links, programs] = ["links", "programs"].map(|name| place.join(name));
        fs::create_dir(&links).unwrap();
        fs::create_dir(&programs).unwrap();
        let (link, program) = (links.join("program"), programs.join("program"));
        fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let all = [&links, &programs, &program];
        all.iter().for_each(|path| set(path, 0o755));
        assert_eq!(first_distrusted(&link), None);
        for path in all {
            set(path, 0o777);
            assert_eq!(first_distrusted(&link).map(|(found, _)| found).as_ref(), Some(path));
            set(path, 0o755);
        }
    }
}
