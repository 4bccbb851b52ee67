//! Nodes on hosts that are reached by `ssh`: without a daemon or an orchestrator, and nothing remains on the host.
//!
//! One connection per host stays open for the whole run ([`on_host::command`]): the process at its other end owns a private
//! folder and supervises the node, and ends the node and removes the folder when the connection ends. A second connection
//! copies the program. All hosts are handled in parallel, so that the slowest one determines the time.

pub mod hosted_nodes;
pub mod hosts;
pub mod on_host;
pub mod program;
pub mod session;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use pubmark_cluster::credentials::Files;
use pubmark_runner::{ErrorKind, RunError};

use hosts::Host;
use program::Program;
use session::{Caller, Session};

/// Longest wait until all hosts have reported their properties.
const CHECK_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for the copies: a program of 40 MB over 1 Mbit/s takes five minutes.
const COPY_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait for the ends of all nodes and the removal of their folders.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Interval at which the hosts are checked.
const LOOK: Duration = Duration::from_millis(20);
/// Longest text of a host in an error message, characters.
const WORDS: usize = 300;

/// Settings for starting nodes on hosts.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How `ssh` is called.
    pub caller: Caller,
    /// Folder on the hosts in which a private one is created; `TMPDIR` of the host or `/tmp`, if none.
    pub folder: Option<String>,
    /// Address at which nodes join; if none, the address from which a host sees its SSH connection come.
    pub address: Option<IpAddr>,
    /// Name of the host whose node starts the system.
    pub system_host: Option<String>,
}

/// Properties that a host reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    folder: String,
    system: String,
    machine: String,
    /// Open files that a process may have; `None` without limit.
    files: Option<u64>,
    /// Free disk space for the program, bytes; `None` if `df` does not report it.
    space_bytes: Option<u64>,
    /// Address from which the host sees the connection come: `SSH_CONNECTION` of ssh(1).
    seen_from: Option<IpAddr>,
    is_ready: bool,
}

impl Facts {
    /// Parses a line that the host printed for pubmark.
    fn take(&mut self, line: &str) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "folder" => self.folder = value.to_owned(),
            "system" => self.system = value.to_owned(),
            "machine" => self.machine = value.to_owned(),
            "files" => self.files = value.parse().ok(),
            "space" => self.space_bytes = value.parse::<u64>().ok().and_then(|blocks| blocks.checked_mul(1_024)),
            "connection" => self.seen_from = value.split(' ').next().and_then(|address| address.parse().ok()),
            "ready" => self.is_ready = true,
            _ => {}
        }
    }

    /// The reason why a node that needs this many open files cannot run on this host, if there is one.
    fn objection(&self, program: &Program, settings: &Settings, needed_files: u64) -> Option<String> {
        if !on_host::is_plain(&self.folder) {
            return Some(format!("its folder `{}` has characters that shells read", shortened(&self.folder)));
        }
        if let Some(why) = program.unfit(&shortened(&self.system), &shortened(&self.machine)) {
            return Some(why);
        }
        if let Some(files) = self.files.filter(|files| *files < needed_files) {
            return Some(format!("its node needs {needed_files} open files, its limit is {files} (`ulimit -Hn`)"));
        }
        if let Some(space) = self.space_bytes.filter(|space| *space < program.bytes) {
            return Some(format!("the program has {} bytes, and there is room for {space}", program.bytes));
        }
        match self.seen_from {
            _ if settings.address.is_some() => None,
            None => {
                Some("it does not report the address of this machine (SSH_CONNECTION): give `--address`".to_owned())
            }
            // A jump host's, or a router's.
            Some(address) if UdpSocket::bind((address, 0)).is_err() => Some(format!(
                "it sees us at {address}, which is no address of this machine: `--address` says where its node joins"
            )),
            Some(_) => None,
        }
    }
}

/// A connected host with a private folder.
struct Reached {
    host: Host,
    /// Open files that its node needs.
    needed_files: u64,
    session: Session,
    facts: Facts,
    /// The reason why the host cannot be used.
    objection: Option<String>,
}

/// The hosts of a run. Dropping them ends all nodes.
pub struct Hosts {
    reached: Vec<Reached>,
    settings: Settings,
}

impl Hosts {
    /// Connects to all hosts, each given with the open files that its node needs, creates a private folder on each, and checks
    /// the requirements. Call it on the thread that owns the result.
    ///
    /// # Errors
    /// Hosts cannot be used: the error lists all of them with the reasons. Or `stop` was set.
    pub fn reach(
        hosts: Vec<(Host, u64)>,
        program: &Program,
        settings: Settings,
        stop: &AtomicBool,
    ) -> Result<Hosts, RunError> {
        if let Some(folder) = settings.folder.as_deref().filter(|folder| !on_host::is_plain(folder)) {
            return Err(RunError::input(format!("`{}` is no folder of hosts", folder.escape_debug()))
                .hint("an absolute path of letters, digits, `/`, `.`, `_` and `-`, such as `/var/tmp`"));
        }
        let command = on_host::command(settings.folder.as_deref());
        let mut reached = vec![];
        for (host, needed_files) in hosts {
            let session = settings.caller.start(&host, &command, Stdio::piped())?;
            reached.push(Reached { host, needed_files, session, facts: Facts::default(), objection: None });
        }
        let mut hosts = Hosts { reached, settings };
        let deadline = Instant::now() + CHECK_LIMIT;
        while hosts.reached.iter().any(|one| !one.facts.is_ready && one.objection.is_none()) {
            hosts.reached.iter_mut().for_each(|one| one.listen(deadline));
            interrupted(stop, "hosts were reached")?;
            std::thread::sleep(LOOK);
        }
        for one in hosts.reached.iter_mut().filter(|one| one.objection.is_none()) {
            one.objection = one.facts.objection(program, &hosts.settings, one.needed_files);
        }
        match hosts.objections("cannot be used") {
            None => Ok(hosts),
            Some(error) => {
                let mut error = error.hint(
                    "`ssh -o BatchMode=yes HOST true` must work without a prompt: an address, a key that the host accepts, a known host key",
                );
                error.chain.extend(hosts.end());
                Err(error)
            }
        }
    }

    /// Copies the program to all hosts, and executes it there as a test.
    ///
    /// # Errors
    /// The copy or the test failed on hosts: the error lists all of them with the reasons. Or `stop` was set.
    pub fn copy(&mut self, program: &Program, stop: &AtomicBool) -> Result<(), RunError> {
        let mut copies = vec![];
        for one in &self.reached {
            let file = File::open(&program.path).map_err(|error| {
                RunError::from_error(ErrorKind::Input, &error)
                    .during(format!("failed to read the program `{}`", program.path.display()))
            })?;
            let command = on_host::copy_command(&one.facts.folder);
            copies.push(self.settings.caller.start(&one.host, &command, Stdio::from(file))?);
        }
        let deadline = Instant::now() + COPY_LIMIT;
        while copies.iter_mut().any(|copy| copy.ended().is_none()) && Instant::now() < deadline {
            interrupted(stop, "the program was copied")?;
            std::thread::sleep(LOOK);
        }
        let own = format!("version pubmark {}", env!("CARGO_PKG_VERSION"));
        for (one, copy) in self.reached.iter_mut().zip(&mut copies) {
            one.objection = match copy.wait_until(deadline) {
                None => Some(format!("the program was not there within {} s", COPY_LIMIT.as_secs())),
                Some(status) if !status.success() => Some(format!(
                    "it does not run the program: {}",
                    or(copy.last_output(), &format!("`--version` ended with {status}"))
                )),
                Some(_) => match copy.line(Duration::ZERO) {
                    Ok(version) if version == own => None,
                    other => {
                        let said = shortened(other.as_deref().unwrap_or("nothing"));
                        Some(format!("the program says `{said}`, not `{own}`"))
                    }
                },
            };
        }
        self.objections("cannot run the program").map_or(Ok(()), |error| Err(error.hint(program.hint())))
    }

    /// The address of this machine at which all hosts reach it; `None` if they see different ones.
    pub fn address(&self) -> Option<IpAddr> {
        let mut seen = self.reached.iter().filter_map(|one| self.joins_at(one));
        let first = seen.next()?;
        seen.all(|other| other == first).then_some(first)
    }

    /// Returns whether nodes must join over IPv6.
    pub fn over_ipv6(&self) -> bool {
        self.reached.iter().any(|one| self.joins_at(one).is_some_and(|address| address.is_ipv6()))
    }

    fn joins_at(&self, one: &Reached) -> Option<IpAddr> {
        self.settings.address.or(one.facts.seen_from)
    }

    /// Starts a node on each host. The nodes join at this port with these credentials.
    ///
    /// # Errors
    /// The connection to a host has ended.
    pub fn start(&mut self, port: u16, credentials: &Files) -> Result<(), RunError> {
        let files: BTreeMap<&str, &str> = credentials.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let addresses: Vec<Option<IpAddr>> = self.reached.iter().map(|one| self.joins_at(one)).collect();
        for (one, address) in self.reached.iter_mut().zip(addresses) {
            let join = address.map_or_else(|| format!("localhost:{port}"), |ip| SocketAddr::new(ip, port).to_string());
            let mut words = vec!["--join".to_owned(), join, "--name".to_owned(), one.host.name.clone()];
            let labels = one.host.labels.iter();
            words.extend(labels.flat_map(|(key, value)| ["--label".to_owned(), format!("{key}={value}")]));
            let starts_system = self.settings.system_host.as_ref() == Some(&one.host.name);
            words.extend(starts_system.then(|| "--start-systems".to_owned()));
            let orders = serde_json::json!([files, words]);
            one.objection = one
                .session
                .write(&format!("start\n{orders}\n"))
                .err()
                .map(|error| format!("{error}: {}", or(one.session.last_output(), "the connection is gone")));
        }
        self.objections("are gone").map_or(Ok(()), Err)
    }

    /// The last message of each node that printed one; it may have the reason why a node did not join.
    pub fn last_output(&self) -> Vec<String> {
        let words = |one: &Reached| Some(format!("{}: {}", one.host.name, shortened(&one.session.last_error()?)));
        self.reached.iter().filter_map(words).collect()
    }

    /// A flag for each host, set when its connection has ended.
    pub fn over(&self) -> Vec<Arc<AtomicBool>> {
        self.reached.iter().map(|one| one.session.over()).collect()
    }

    /// Ends all nodes and removes the folders on the hosts. Returns the hosts where this may have failed, each with the
    /// reason.
    pub fn end(mut self) -> Vec<String> {
        let lost: Vec<bool> = self.reached.iter_mut().map(|one| one.session.ended().is_some()).collect();
        self.reached.iter_mut().for_each(|one| one.session.close());
        let deadline = Instant::now() + END_LIMIT;
        let mut uncertain = vec![];
        for (one, was_lost) in self.reached.iter_mut().zip(lost) {
            one.session.wait_until(deadline);
            let lines = || std::iter::from_fn(|| one.session.line(Duration::ZERO).ok());
            let removed = || lines().any(|line| line == "removed");
            if one.facts.folder.is_empty() || removed() {
                continue;
            }
            let why = if was_lost { "the connection was lost" } else { "it did not answer" };
            uncertain.push(format!(
                "{}: {why}; `{}` goes when the host notices that",
                one.host.name,
                shortened(&one.facts.folder)
            ));
        }
        uncertain
    }

    /// All hosts with an objection, combined into one error.
    fn objections(&self, verb: &str) -> Option<RunError> {
        let found: Vec<String> = self
            .reached
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.host.name, shortened(one.objection.as_deref()?))))
            .collect();
        let of_all = self.reached.len();
        let mut error = match found.len() {
            0 => return None,
            count => RunError::new(ErrorKind::Input, format!("{count} of {of_all} {} {verb}", hosts_in_words(of_all))),
        };
        error.chain.extend(found);
        Some(error)
    }
}

impl Reached {
    /// Reads the lines that the host has printed.
    fn listen(&mut self, deadline: Instant) {
        while !self.facts.is_ready && self.objection.is_none() {
            match self.session.line(Duration::ZERO) {
                Ok(_) if Instant::now() >= deadline => {
                    self.objection = Some("it prints more than expected".to_owned());
                }
                Ok(line) => self.facts.take(&line),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.objection = Some(format!("it did not answer within {} s", CHECK_LIMIT.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.session.wait_until(deadline);
                    self.objection = Some(or(self.session.last_output(), "`ssh` ended without a word"));
                }
            }
        }
    }
}

fn hosts_in_words(count: usize) -> &'static str {
    if count == 1 { "host" } else { "hosts" }
}

fn interrupted(stop: &AtomicBool, while_what: &str) -> Result<(), RunError> {
    match stop.load(Relaxed) {
        true => Err(RunError::new(ErrorKind::Interrupted, format!("interrupted while {while_what}"))),
        false => Ok(()),
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// Shortens a host's text so that it fits into an error message.
fn shortened(text: &str) -> String {
    text.chars().take(WORDS).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    fn facts(lines: &[&str]) -> Facts {
        let mut facts = Facts::default();
        lines.iter().filter_map(|line| line.strip_prefix(on_host::MARK)).for_each(|line| facts.take(line));
        facts
    }

    #[test]
    fn a_host_says_what_it_is() {
        let facts = facts(&[
            "pubmark-host folder /tmp/pubmark.1",
            "pubmark-host system Linux",
            "pubmark-host machine x86_64",
            "pubmark-host files unlimited",
            "pubmark-host space 2048",
            "pubmark-host connection 10.0.0.9 40000 10.0.0.1 22",
            "pubmark-host more than we know",
            "pubmark-host ready",
        ]);
        let wanted = Facts {
            folder: "/tmp/pubmark.1".to_owned(),
            system: "Linux".to_owned(),
            machine: "x86_64".to_owned(),
            files: None,
            space_bytes: Some(2 << 20),
            seen_from: Some(IpAddr::from([10, 0, 0, 9])),
            is_ready: true,
        };
        assert_eq!(facts, wanted);
    }

    #[test]
    fn a_host_without_a_requirement_is_named() {
        let program = Program { path: "/x".into(), bytes: 1_000_000, machine: Some("x86_64"), is_dynamic: true };
        let objection = |facts: Facts| facts.objection(&program, &Settings::default(), 1_000);
        let good = [
            "pubmark-host folder /tmp/p",
            "pubmark-host system Linux",
            "pubmark-host machine x86_64",
            "pubmark-host connection 127.0.0.1 1 10.0.0.1 22",
        ];
        assert_eq!(objection(facts(&good)), None);
        for (line, words) in [
            ("pubmark-host folder /tmp/p q", "has characters that shells read"),
            ("pubmark-host machine aarch64", "its processor is aarch64, and the program is for x86_64"),
            ("pubmark-host system FreeBSD", "it runs FreeBSD"),
            ("pubmark-host files 256", "its node needs 1000 open files, its limit is 256"),
            ("pubmark-host space 3", "there is room for 3072"),
            ("pubmark-host connection", "give `--address`"),
            // 192.0.2.1 is a documentation address (RFC 5737), which no machine has.
            ("pubmark-host connection 192.0.2.1 1 10.0.0.1 22", "no address of this machine: `--address`"),
        ] {
            let objection = objection(facts(&[&good[..], &[line]].concat())).unwrap();
            assert!(objection.contains(words), "{line}: {objection}");
        }
    }

    /// The command for a host's shell, executed by shells of this machine.
    #[test]
    fn the_command_makes_a_private_folder_and_removes_it_when_its_input_ends() {
        let base = std::env::temp_dir().join(format!("pubmark-deploy-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        for shell in ["sh", "bash"] {
            let mut command = Command::new(shell);
            command.arg("-c").arg(on_host::command(base.to_str())).env("d", "/nowhere");
            let output = command.stdin(Stdio::null()).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let facts = facts(&printed.lines().collect::<Vec<_>>());
            assert!(output.status.success() && facts.is_ready && facts.system == "Linux", "{shell}: {printed}");
            assert!(facts.space_bytes.unwrap() > 0 && printed.ends_with("pubmark-host removed\n"), "{printed}");
            assert_eq!(std::fs::read_dir(&base).unwrap().count(), 0, "{shell} left something");
        }
        std::fs::remove_dir(&base).unwrap();
        let mut command = Command::new("sh");
        let output = command.arg("-c").arg(on_host::command(base.to_str())).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(73), "no folder can be made there: {output:?}");
    }
}
