//! The commands on a host: first a command line for its shell, then the copied program, which supervises a node.
//!
//! Both end and remove the private folder at the end of standard input, which means that the connection or pubmark at its
//! other end has ended.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_runner::{ErrorKind, RunError, workers};

/// Prefix of a line for pubmark: the shell of a host may print other lines.
pub const MARK: &str = "pubmark-host ";
/// Name of the program in the folder.
pub const PROGRAM: &str = "pubmark";
/// Subfolder of the node's credentials.
const CREDENTIALS: &str = "credentials";
/// Longest line with the settings of a node, bytes.
const LONGEST_ORDERS: u64 = 1 << 20;
/// Interval at which the node is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time from the request to a node to end until it is killed.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Settings of a node: the files of its credentials by name, and its arguments. They are a line of JSON on standard input,
/// so that no other user of the host sees them.
pub type Orders = (BTreeMap<String, String>, Vec<String>);

/// The command for a host's shell. It is one line of characters that all shells read in the same way. It creates a private
/// folder below `base`, prints the properties of the host, waits for the line `start`, and then starts the program that was
/// copied to the folder meanwhile. `base` must satisfy [`is_plain`].
pub fn command(base: Option<&str>) -> String {
    let base = base.unwrap_or("${TMPDIR:-/tmp}");
    let steps = [
        "umask 077; d=",
        "clean() { if [ -n \"$d\" ]; then rm -rf \"$d\" && echo pubmark-host removed; d=; fi; }",
        "trap clean EXIT; trap \"exit 129\" HUP; trap \"exit 130\" INT; trap \"exit 141\" PIPE; trap \"exit 143\" TERM",
        &format!("d=$(mktemp -d \"{base}/pubmark.XXXXXXXXXX\") || exit 73"),
        "echo pubmark-host folder \"$d\"; echo pubmark-host system $(uname -s); echo pubmark-host machine $(uname -m)",
        "echo pubmark-host files $(ulimit -Hn); echo pubmark-host connection $SSH_CONNECTION",
        "set -- $(df -Pk \"$d\" | tail -n 1); echo pubmark-host space $4; echo pubmark-host ready",
        "read -r word || exit 0; [ \"$word\" = start ] || exit 0",
        &format!("\"$d/{PROGRAM}\" hosted-node \"$d\"; code=$?; clean; exit $code"),
    ];
    format!("sh -c '{}'", steps.join("; "))
}

/// The command that writes standard input to the program's file, and executes it as a test.
pub fn copy_command(folder: &str) -> String {
    format!(
        "sh -c 'umask 077; cat > {folder}/{PROGRAM} && chmod 700 {folder}/{PROGRAM} && v=$({folder}/{PROGRAM} --version) && \
         echo pubmark-host version $v'"
    )
}

/// Returns whether the path is absolute and has only characters that no shell interprets.
pub fn is_plain(path: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%=:,".contains(letter);
    path.starts_with('/') && path.len() < 1_000 && path.chars().all(fits)
}

/// Runs a node until it ends or standard input ends, then removes `folder`. Returns the node's exit code.
///
/// # Errors
/// The settings cannot be read, the folder cannot be written, or the node cannot be started.
pub fn attend(folder: &Path, stop: &AtomicBool) -> Result<i32, RunError> {
    refuse_another_folder(folder)?;
    let attended = read_orders().and_then(|orders| supervise(folder, &orders, stop));
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove the node's folder", &error)),
        _ => Ok(()),
    };
    attended.and_then(|code| removed.map(|()| code))
}

/// The folder is removed at the end: it must be the one that [`command`] created and that contains this program.
fn refuse_another_folder(folder: &Path) -> Result<(), RunError> {
    let is_named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pubmark."));
    let same = |program: std::path::PathBuf| Ok(fs::canonicalize(folder.join(PROGRAM))? == fs::canonicalize(program)?);
    match std::env::current_exe().and_then(same) {
        Ok(true) if is_named => Ok(()),
        _ => {
            Err(RunError::input(format!("`{}` is not the folder that this program was copied into", folder.display()))
                .hint("`pubmark deploy ssh` runs this on hosts; it has no other use"))
        }
    }
}

fn failed(what: &str, error: &io::Error) -> RunError {
    RunError::from_error(ErrorKind::Internal, error).during(format!("failed to {what}"))
}

fn read_orders() -> Result<Orders, RunError> {
    let mut line = vec![];
    let read = io::stdin().lock().take(LONGEST_ORDERS).read_until(b'\n', &mut line);
    read.map_err(|error| failed("read what this node is to do", &error))?;
    let unusable = |error: serde_json::Error| failed("read what this node is to do", &io::Error::from(error));
    let (files, words): Orders = serde_json::from_slice(&line).map_err(unusable)?;
    match files.keys().find(|name| name.contains('/') || name.starts_with('.')) {
        Some(name) => Err(RunError::input(format!("`{name}` is no name of a file among credentials"))),
        None => Ok((files, words)),
    }
}

/// Starts the node and waits until it ends, or until standard input ends.
fn supervise(folder: &Path, (files, words): &Orders, stop: &AtomicBool) -> Result<i32, RunError> {
    let credentials = folder.join(CREDENTIALS);
    write(&credentials, files).map_err(|error| failed("write the node's credentials", &error))?;
    let program = std::env::current_exe().map_err(|error| failed("find the program", &error))?;
    let mut command = Command::new(program);
    command.args(["node", "--once", "--credentials"]).arg(&credentials).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    workers::end_with_parent(&mut command);
    let mut child = command.spawn().map_err(|error| failed("start the node", &error))?;
    let is_over = watch_input();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| failed("wait for the node", &error))? {
            return Ok(code(status));
        }
        if is_over.load(Relaxed) || stop.load(Relaxed) {
            return end(&mut child).map(code).map_err(|error| failed("end the node", &error));
        }
        thread::sleep(LOOK);
    }
}

fn write(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    for (name, text) in files {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Returns a flag that is set when standard input ends.
fn watch_input() -> Arc<AtomicBool> {
    let is_over: Arc<AtomicBool> = Arc::default();
    let set = Arc::clone(&is_over);
    thread::spawn(move || {
        // No more input is expected; any input is dropped. A read error counts as the end, too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        set.store(true, Relaxed);
    });
    is_over
}

/// Requests the node to end, and kills it after a time limit; the kernel then ends its workers.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    signal(child, libc::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < END_LIMIT {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    signal(child, libc::SIGKILL);
    child.wait()
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: a plain system call; the child has not been waited for, so its process ID cannot have been reused.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// The exit code as a shell reports it: 128 + the number of the signal, if one ended the process.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_nothing_that_a_shell_reads_in_its_own_way() {
        let command = command(Some("/var/tmp"));
        let inside = command.strip_prefix("sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap_or_default();
        assert!(inside.contains("/var/tmp/pubmark."), "{command}");
        assert!(!inside.contains(['\'', '\\', '!', '\n', '`']), "{command}");
    }

    #[test]
    fn only_plain_paths_are_put_into_commands() {
        assert!(is_plain("/tmp/pubmark.a0X") && is_plain("/home/ann-1/x_y"));
        for path in ["", "tmp", "/a b", "/a;b", "/a'b", "/a$b", "/a`b", "/a\nb", "/a\"b", "/a*"] {
            assert!(!is_plain(path), "{path:?}");
        }
    }
}
