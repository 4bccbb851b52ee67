//! Installation of a system by the script of its definition, and the check of the result.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::definition::{Definition, ProcessBackEnd};
use crate::error::SystemError;
use crate::process::Process;
use crate::programs::{self, FOLDER_VARIABLE, SELF};

/// Longest run of a script: a broker that is compiled on a small machine takes minutes.
pub const WITHIN: Duration = Duration::from_secs(20 * 60);
/// Time from an interruption of a script until it is killed.
const GRACE: Duration = Duration::from_secs(30);
/// Interval at which other events are checked while a script prints nothing.
const LOOK: Duration = Duration::from_millis(100);
/// The variable in scripts for the folder for programs.
const VARIABLE: &str = "$PROGRAMS";

/// A system that can be started as a program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Path of the program.
    pub program: PathBuf,
    /// The version that it prints; `None` if it prints none.
    pub version: Option<String>,
}

/// A system could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The system has no program to install.
    #[error("`{system}` has no program of this machine: {instead}")]
    NoProgram {
        /// The system.
        system: String,
        /// How the system runs instead.
        instead: String,
    },
    /// No environment variable determines the folder for programs.
    #[error("there is no folder to install `{system}` in: neither {FOLDER_VARIABLE}, XDG_DATA_HOME nor HOME names one")]
    NoFolder {
        /// The system.
        system: String,
    },
    /// The script needs root privileges.
    #[error("installing `{system}` needs root's rights")]
    NeedsRoot {
        /// The system.
        system: String,
        /// The command to type.
        command: String,
    },
    /// The script ended with a failure; its output was passed to the caller.
    #[error("the script that installs `{system}` failed ({status})")]
    Failed {
        /// The system.
        system: String,
        /// How it ended.
        status: String,
    },
    /// The script took too long.
    #[error("the script that installs `{system}` did not end within {seconds} s")]
    TooSlow {
        /// The system.
        system: String,
        /// Longest time that it had, seconds.
        seconds: u64,
    },
    /// The caller requested a stop.
    #[error("interrupted while `{system}` was installed")]
    Interrupted {
        /// The system.
        system: String,
    },
    /// The script succeeded, but the program was not found.
    #[error("the script that installs `{system}` ended well, and its program is not there")]
    NotThere {
        /// The system.
        system: String,
        /// The error of the search for the program.
        #[source]
        source: SystemError,
    },
    /// A folder or program could not be used.
    #[error("failed to {action} to install `{system}`")]
    Io {
        /// The operation.
        action: String,
        /// The system.
        system: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The system's program and version, if it is installed.
pub fn found(definition: &Definition) -> Option<Installed> {
    let back_end = definition.back_ends.process.as_ref()?;
    let program = programs::find_program(&back_end.program, back_end).ok()?;
    // A program whose version cannot be read still counts as installed.
    let version = programs::read_version(&program, back_end).ok().flatten();
    Some(Installed { program, version })
}

/// Is the system already installed as its script would do it? If the script puts a program into the folder for
/// programs, one from elsewhere does not count.
pub fn is_up_to_date(definition: &Definition) -> Option<Installed> {
    let back_end = definition.back_ends.process.as_ref()?;
    let here = found(definition)?;
    let own = back_end.install.contains(VARIABLE);
    (!own || programs::is_own(&here.program)).then_some(here)
}

/// The shell commands that install these systems, as a separate script.
pub fn scripts(definitions: &[Definition]) -> Result<String, InstallError> {
    let folder =
        programs::folder().map_or_else(|| "/opt/pubmark/programs".to_owned(), |folder| folder.display().to_string());
    let mut text = format!("PROGRAMS='{folder}'\n");
    for definition in definitions {
        text.push_str(&format!("\n# {}\n{}\n", definition.name, script(definition)?));
    }
    Ok(text)
}

/// The shell commands that install the system.
pub fn script(definition: &Definition) -> Result<&str, InstallError> {
    back_end(definition).map(|back_end| back_end.install.trim_end())
}

/// Runs the script and passes each line of its output to `line`, until the script ends, `stop` is set or [`WITHIN`] is
/// over. Then looks for the program. A script that does not end by itself is interrupted, and killed 30 s later. No process of
/// the script's session runs on afterwards.
pub fn run(definition: &Definition, stop: &AtomicBool, line: &mut dyn FnMut(&str)) -> Result<Installed, InstallError> {
    let folder = programs::folder().ok_or_else(|| InstallError::NoFolder { system: definition.name.clone() })?;
    run_under(&folder, definition, stop, line)
}

fn run_under(
    folder: &Path,
    definition: &Definition,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str),
) -> Result<Installed, InstallError> {
    let system = || definition.name.clone();
    let back_end = back_end(definition)?;
    if back_end.program != SELF {
        let script = back_end.install.trim_end();
        if needs_root(script) && !is_root() {
            let command = format!("sudo sh -c '{script}'");
            return Err(InstallError::NeedsRoot { system: system(), command });
        }
        std::fs::create_dir_all(folder).map_err(|source| InstallError::Io {
            action: format!("create `{}`", folder.display()),
            system: system(),
            source,
        })?;
        let mut command = Command::new("sh");
        // A program that other users of the group can change would not be run later, so the umask removes that
        // permission. `TAR_OPTIONS` ignores the owners in archives.
        let script = format!("umask 022\n{script}");
        command
            .args(["-eu", "-c", &script])
            .env("TAR_OPTIONS", "--no-same-owner")
            .env("PROGRAMS", folder)
            .env("DEBIAN_FRONTEND", "noninteractive");
        run_script(command, &definition.name, stop, line)?;
    }
    programs::find_program(&back_end.program, back_end)
        .map_err(|source| InstallError::NotThere { system: system(), source })?;
    found(definition).ok_or_else(|| InstallError::NoProgram { system: system(), instead: how_else(definition) })
}

fn back_end(definition: &Definition) -> Result<&ProcessBackEnd, InstallError> {
    definition
        .back_ends
        .process
        .as_ref()
        .ok_or_else(|| InstallError::NoProgram { system: definition.name.clone(), instead: how_else(definition) })
}

/// How a system runs that has no program for this machine.
fn how_else(definition: &Definition) -> String {
    match (&definition.back_ends.container, &definition.back_ends.brokerless) {
        (Some(container), _) => format!("it runs in a container (image {})", container.image),
        (None, Some(_)) => "nothing runs, its clients find each other".to_owned(),
        (None, None) => "it runs elsewhere".to_owned(),
    }
}

/// Package managers of the machine need root privileges.
fn needs_root(script: &str) -> bool {
    script.lines().any(|line| line.trim_start().starts_with("apt-get "))
}

fn is_root() -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Runs a command of an installation, and passes each line of its output to `line`.
pub(crate) fn run_script(
    mut command: Command,
    system: &str,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let failed = |source| InstallError::Io { action: "run `sh`".to_owned(), system: system.to_owned(), source };
    let (reader, writer) = io::pipe().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut process = Process::start(command).map_err(failed)?;
    let (output_lines, lines) = mpsc::channel();
    // Ends when the last writer of the pipe has ended, or the receiver is dropped.
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            if output_lines.send(String::from_utf8_lossy(&bytes).trim_end().to_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    let deadline = Instant::now() + WITHIN;
    let reason = loop {
        let is_silent = !pass_on(&lines, line);
        match process.ended().filter(|_| is_silent) {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(InstallError::Failed { system: system.to_owned(), status: status.to_string() });
            }
            None if stop.load(Ordering::Relaxed) => break InstallError::Interrupted { system: system.to_owned() },
            None if Instant::now() >= deadline => {
                break InstallError::TooSlow { system: system.to_owned(), seconds: WITHIN.as_secs() };
            }
            None => {}
        }
    };
    interrupt(process, &lines, line);
    Err(reason)
}

/// Passes on the next line of the output, if there is one within [`LOOK`].
fn pass_on(lines: &Receiver<String>, line: &mut dyn FnMut(&str)) -> bool {
    match lines.recv_timeout(LOOK) {
        Ok(text) => {
            line(&text);
            return true;
        }
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
    }
    false
}

/// Ends a script as Ctrl-C in its terminal would, and kills what is left of it after [`GRACE`]. `apt-get` lets `dpkg` finish its
/// step then, and configures what is unpacked (pkgDPkgPM::Go of apt); SIGTERM ends `apt-get` at once, as SIGKILL does.
fn interrupt(mut process: Process, lines: &Receiver<String>, line: &mut dyn FnMut(&str)) {
    process.interrupt();
    let kill_at = Instant::now() + GRACE;
    loop {
        let is_silent = !pass_on(lines, line);
        if process.ended().is_some_and(|_| is_silent) || Instant::now() >= kill_at {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn script_of(install: &str) -> Definition {
        let text = format!(
            "name: mine\ntitle: mine\ndescription: mine\nranked: false\nlisteners: {{mqtt: {{scheme: mqtt}}}}\n\
             protocols: {{mqtt5: {{listener: mqtt, highest_qos: 0}}}}\n\
             back_ends: {{process: {{program: no-such-program, install: {install:?}}}}}\n\
             profiles: {{default: {{description: as it is}}}}\n"
        );
        Definition::parse(&text, "mine.yaml").unwrap()
    }

    fn run_lines(definition: &Definition, stop: bool) -> (Result<Installed, InstallError>, Vec<String>) {
        let mut lines = Vec::new();
        let folder = tempfile::tempdir().unwrap();
        let outcome =
            run_under(folder.path(), definition, &AtomicBool::new(stop), &mut |line| lines.push(line.to_owned()));
        (outcome, lines)
    }

    #[test]
    fn a_failed_script_is_a_failure_and_its_output_is_passed_on() {
        let (outcome, lines) = run_lines(&script_of("echo one\necho two >&2\nfalse\necho never"), false);
        assert_eq!(lines, ["one", "two"]);
        let error = outcome.unwrap_err().to_string();
        assert_eq!(error, "the script that installs `mine` failed (exit status: 1)");
    }

    #[test]
    fn a_script_that_installs_nothing_is_a_failure() {
        let (outcome, _) = run_lines(&script_of("test -d \"$PROGRAMS\""), false);
        assert!(matches!(outcome, Err(InstallError::NotThere { .. })), "{outcome:?}");
    }

    #[test]
    fn a_script_stops_on_request() {
        let begun = Instant::now();
        let (outcome, _) = run_lines(&script_of("sleep 100"), true);
        assert!(matches!(outcome, Err(InstallError::Interrupted { .. })), "{outcome:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_program_that_handles_the_interruption_ends_in_order() {
        // As `apt-get` does: it notes the signal and finishes its step.
        let definition = script_of(
            "(is_interrupted=; trap 'is_interrupted=1' INT; echo begun\n\
             until [ \"$is_interrupted\" ]; do sleep 0.1 || :; done; echo ended > \"$PROGRAMS/step\")\necho next",
        );
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        // The program handles signals once it has printed something.
        let outcome = run_under(folder.path(), &definition, &stop, &mut |_| stop.store(true, Ordering::Relaxed));
        assert!(matches!(outcome, Err(InstallError::Interrupted { .. })), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(folder.path().join("step")).unwrap(), "ended\n");
    }

    #[test]
    fn only_packages_of_the_machine_need_root() {
        assert!(needs_root("set -e\n  apt-get install -y mosquitto"));
        assert!(!needs_root("pip install x # not apt-get"));
    }
}
