//! The program that runs containers: podman or docker, by their command line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ContainerError;
use super::host::Host;
use crate::error::SystemError;
use crate::process::run_to_end;

/// Engines that are looked for in `PATH`, in this order.
const PROGRAMS: [&str; 2] = ["podman", "docker"];
/// Environment variable with an engine to use instead: a name that is looked up in `PATH`, or a path.
pub const ENGINE_VARIABLE: &str = "PUBMARK_CONTAINER_ENGINE";
/// All limits that an engine can set.
const LIMITS: [&str; 3] = ["cpu", "memory", "cores"];
/// Longest run of a query to the engine. The first one after an installation sets up its storage.
pub(crate) const QUERY_LIMIT: Duration = Duration::from_secs(20);
/// Exit status for a failure of the engine itself, not of the program in the container (podman-start(1); Docker's `run`
/// has the same).
pub(crate) const FAILED: i32 = 125;
/// Prefix of the line with the result: engines print warnings on other lines.
pub(super) const ANSWER: &str = "pubmark-answer:";

/// The kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Podman: no daemon, containers are children of the command that starts them.
    Podman,
    /// Docker, or an engine with the same command line: a daemon runs the containers.
    Docker,
}

/// An engine that works on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Path of the engine's program.
    pub program: PathBuf,
    /// The kind of engine.
    pub kind: EngineKind,
    /// The engine's version, without a leading word.
    pub version: String,
    /// OCI runtime to pass to the engine, because the engine's own choice cannot run here.
    pub runtime: Option<PathBuf>,
    /// Flags that are needed where the engine's default limits on descriptors and processes exceed what we may set.
    pub ulimits: Vec<String>,
    /// The engine runs without root privileges.
    pub rootless: bool,
    /// Limits that the engine would ignore with only a warning: `cpu`, `memory`, `cores`.
    pub limits_left_out: Vec<&'static str>,
}

impl Engine {
    /// Returns the engine of `PUBMARK_CONTAINER_ENGINE`, otherwise the first of podman and docker that works. A docker
    /// client without a daemon does not count. Nothing is cached between calls; one takes about 0.1 s.
    pub fn find() -> Result<Engine, SystemError> {
        match std::env::var(ENGINE_VARIABLE) {
            Ok(program) if !program.is_empty() => Engine::find_among(&[&program]),
            _ => Engine::find_among(&PROGRAMS),
        }
    }

    /// Returns the first of these programs, given as names or paths, that is an engine and works.
    pub fn find_among(programs: &[&str]) -> Result<Engine, SystemError> {
        let mut found = Vec::new();
        for name in programs {
            let Some(program) = find_in_path(name) else {
                found.push(format!("`{name}` is not installed"));
                continue;
            };
            match Engine::probe(&program) {
                Ok(engine) => return Ok(engine),
                // The engine is present and needs one more step, which the message names.
                Err(SystemError::Container(error @ ContainerError::NoRuntime { .. })) => return Err(error.into()),
                Err(SystemError::Command { outcome, output, .. }) => {
                    found.push(format!("`{name}` {outcome}, saying \"{}\"", last_line(&output)));
                }
                Err(error) => found.push(format!("`{name}` cannot be used: {error}")),
            }
        }
        Err(ContainerError::NoEngine { found: found.join("; ") }.into())
    }

    /// The engine's name with its version, for messages: `podman 4.3.1`.
    pub fn title(&self) -> String {
        let name = match self.kind {
            EngineKind::Podman => "podman",
            EngineKind::Docker => "docker",
        };
        format!("{name} {}", self.version)
    }

    /// Arguments that come before the engine's subcommand.
    pub(super) fn global_arguments(&self) -> Vec<String> {
        match &self.runtime {
            Some(runtime) => vec!["--runtime".to_owned(), runtime.display().to_string()],
            None => vec![],
        }
    }

    /// The engine's command with these arguments, to be run now.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.global_arguments()).args(arguments);
        command
    }

    /// The same command as a list of words, to be run later.
    pub(super) fn words(&self, arguments: &[&str]) -> Vec<String> {
        let mut words = vec![self.program.display().to_string()];
        words.extend(self.global_arguments());
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        words
    }

    fn probe(program: &Path) -> Result<Engine, SystemError> {
        let output = answer_of(program, &["--version"])?;
        if output.to_lowercase().contains("podman") {
            Engine::probe_podman(program)
        } else {
            Engine::probe_docker(program)
        }
    }

    fn probe_podman(program: &Path) -> Result<Engine, SystemError> {
        let fields = format!(
            "{ANSWER}{{{{.Version.Version}}}}|{{{{.Host.CgroupsVersion}}}}|{{{{.Host.Security.Rootless}}}}|\
             {{{{.Host.OCIRuntime.Name}}}}"
        );
        let output = answer_of(program, &["info", "--format", &fields])?;
        let [version, cgroups, rootless, runtime] = fields_of(program, &output)?;
        let rootless = rootless == "true";
        let host = Host::read();
        let mut engine = Engine {
            program: program.to_owned(),
            kind: EngineKind::Podman,
            version,
            runtime: None,
            ulimits: if rootless { vec![] } else { host.ulimit_flags() },
            rootless,
            // podman-run(1): "not supported on cgroups V1 rootless systems". Elsewhere a missing controller is an error.
            limits_left_out: if rootless && cgroups.ends_with('1') { LIMITS.to_vec() } else { vec![] },
        };
        // crun refuses such machines ("cgroups in hybrid mode not supported, drop all controllers from cgroupv2").
        if runtime == "crun" && host.hybrid_cgroups_with_controllers {
            engine.runtime = Some(find_in_path("runc").ok_or_else(|| {
                ContainerError::NoRuntime {
                    engine: engine.title(),
                    reason:
                        "its runtime crun refuses machines with control groups of both versions, and runc, which takes \
                         them, is not installed"
                            .to_owned(),
                    fix: "apt-get install runc".to_owned(),
                }
            })?);
        }
        Ok(engine)
    }

    fn probe_docker(program: &Path) -> Result<Engine, SystemError> {
        let fields = format!(
            "{ANSWER}{{{{.ServerVersion}}}}|{{{{.SecurityOptions}}}}|{{{{.CPUCfsQuota}}}}|{{{{.MemoryLimit}}}}|\
             {{{{.CPUSet}}}}"
        );
        let output = answer_of(program, &["info", "--format", &fields])?;
        let [version, security, cpu, memory, cores] = fields_of(program, &output)?;
        let held = LIMITS.into_iter().zip([cpu, memory, cores]);
        Ok(Engine {
            program: program.to_owned(),
            kind: EngineKind::Docker,
            version,
            runtime: None,
            // The daemon sets the limits of containers itself.
            ulimits: vec![],
            rootless: security.contains("rootless"),
            limits_left_out: held.filter(|(_, held)| held != "true").map(|(limit, _)| limit).collect(),
        })
    }
}

/// Output of a command of the engine, if it succeeds.
pub(super) fn output_of(command: Command, within: Duration) -> Result<String, SystemError> {
    let shown = shown(&command);
    let (status, output) = run_to_end(command, within)?;
    if status.success() {
        Ok(output)
    } else {
        Err(SystemError::Command { command: shown, outcome: format!("failed ({status})"), output })
    }
}

/// A command as a person would type it.
pub(super) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The text after the prefix [`ANSWER`] in an engine's output.
pub(super) fn answer_in(output: &str) -> Option<&str> {
    output.lines().find_map(|line| line.strip_prefix(ANSWER)).map(str::trim)
}

fn answer_of(program: &Path, arguments: &[&str]) -> Result<String, SystemError> {
    let mut command = Command::new(program);
    command.args(arguments);
    output_of(command, QUERY_LIMIT)
}

fn fields_of<const COUNT: usize>(program: &Path, output: &str) -> Result<[String; COUNT], SystemError> {
    let fields: Option<Vec<String>> = answer_in(output).map(|line| line.split('|').map(str::to_owned).collect());
    // In some versions, a docker client without a daemon exits with success and prints empty fields.
    fields
        .and_then(|fields| fields.try_into().ok())
        .filter(|fields: &[String; COUNT]| !fields[0].is_empty())
        .ok_or_else(|| {
            ContainerError::Answer {
                command: format!("{} info", program.display()),
                output: last_line(output).to_owned(),
            }
            .into()
        })
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or("nothing")
}

/// Finds a program by its path, or by its name in `PATH` and in the folders that are usually only in root's `PATH`.
fn find_in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Writes a program that can be executed at once. Another process writes it: a file that any process has open for
    /// writing cannot be executed (`ETXTBSY`), and processes that other tests start at this moment inherit the
    /// descriptors of this process.
    fn program(folder: &Path, name: &str, script: &str) -> String {
        let path = folder.join(name);
        let mut writer = Command::new("sh")
            .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        path.display().to_string()
    }

    #[test]
    fn a_client_without_a_daemon_is_no_engine_and_the_message_says_what_to_type() {
        let folder = tempfile::tempdir().unwrap();
        let client = "case $1 in --version) echo Docker version 28.2.2;; \
                      *) echo warning; echo Is the docker daemon running? >&2; exit 1;; esac";
        let docker = program(folder.path(), "docker", client);
        let error = Engine::find_among(&["/no/such/podman", &docker]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "no container engine found: `/no/such/podman` is not installed; `{docker}` failed (exit status: 1), \
                 saying \"Is the docker daemon running?\"; `apt-get install podman runc` brings one"
            )
        );
        let silent =
            program(folder.path(), "silent", "[ $1 = --version ] && echo Docker || echo 'pubmark-answer:||||'");
        let error = Engine::find_among(&[&silent]).unwrap_err().to_string();
        assert!(error.contains("cannot be used: failed to read what `"), "{error}");
    }

    #[test]
    fn a_container_of_a_daemon_is_not_below_the_command_that_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "case $1 in --version) echo Docker version 28;; info) echo 'pubmark-answer:28|[]|true|true|true';; \
                      *) exit 1;; esac";
        let docker = Engine::find_among(&[&program(folder.path(), "docker", script)]).unwrap();
        assert_eq!(docker.root_process("pubmark-1-a", 7), None, "the container cannot be examined");
        let podman = Engine { kind: EngineKind::Podman, ..docker };
        assert_eq!(podman.root_process("pubmark-1-a", 7), Some(7));
    }

    #[test]
    fn a_responding_daemon_is_an_engine() {
        let folder = tempfile::tempdir().unwrap();
        let script = "[ $1 = --version ] && echo Docker version 28 || \
                      echo 'pubmark-answer:28.2.2|[name=seccomp,profile=builtin name=rootless]|true|true|false'";
        let docker = program(folder.path(), "docker", script);
        let engine = Engine::find_among(&[&docker]).unwrap();
        assert_eq!((engine.title().as_str(), engine.rootless), ("docker 28.2.2", true));
        assert_eq!(engine.limits_left_out, ["cores"]);
        assert_eq!((engine.kind, engine.runtime, engine.ulimits), (EngineKind::Docker, None, vec![]));
    }
}
