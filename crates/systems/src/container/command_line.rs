//! The command line that runs a container.

use std::path::Path;
use std::process::Command;

use super::ContainerError;
use super::engine::{Engine, EngineKind};
use super::files::share;
use super::owner::{OURS, OWNER, Owner};
use crate::cgroup::control::ration;
use crate::error::SystemError;
use crate::launch::{CommandLine, ContainerOrder};
use crate::limits::ResourceLimits;

impl Engine {
    /// The commands that run a container in the foreground and that remove it. The image must be present
    /// ([`Engine::prepare`]). In each folder of the order, files are copied into a subfolder (`container`) that the
    /// container's user may read, and the subfolder is mounted.
    pub fn command_line(&self, order: &ContainerOrder<'_>) -> Result<CommandLine, SystemError> {
        let mut arguments = self.global_arguments();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["run", "--name", &order.name, "--label", OURS]);
        if let Some(owner) = Owner::this() {
            add(&["--label", &format!("{OWNER}={owner}")]);
        }
        // The output of this command is the log; the engine need not write it a second time.
        add(&["--pull", "never", "--network", "host", "--log-driver", "none"]);
        // With SELinux, a container cannot read files of the host without a label for it, and these files have none.
        add(&["--security-opt", "label=disable"]);
        for (folder, inside) in &order.mounts {
            add(&["--volume", &format!("{}:{inside}", share(folder)?.display())]);
        }
        add(&self.ulimits.iter().map(String::as_str).collect::<Vec<_>>());
        add(&self.limit_flags(order)?.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some(user) = &order.back_end.user {
            add(&["--user", user]);
        }
        let mut environment = Vec::new();
        for (name, value) in &order.environment {
            // A variable without a value takes it from the environment of this command, where other users cannot read
            // it.
            if is_read_by_engines(name) {
                add(&["--env", &format!("{name}={value}")]);
            } else {
                add(&["--env", name]);
                environment.push((name.clone(), value.clone()));
            }
        }
        if let Some(entry_point) = &order.back_end.entrypoint {
            add(&["--entrypoint", entry_point]);
        }
        add(&[order.image]);
        add(&order.arguments.iter().map(String::as_str).collect::<Vec<_>>());
        Ok(CommandLine {
            program: self.program.clone(),
            arguments,
            environment,
            clean_up: self.clean_up(order),
            limits_held_by_container: true,
            container: Some(order.name.clone()),
        })
    }

    /// Removes a container at once, running or not, with its anonymous volumes. No error if the container does not
    /// exist.
    pub(super) fn removal(&self, name: &str) -> Command {
        self.command(&self.removal_words(name))
    }

    /// The same as a command for another process.
    pub(crate) fn removal_command(&self, name: &str) -> Vec<String> {
        self.words(&self.removal_words(name))
    }

    fn removal_words<'a>(&self, name: &'a str) -> Vec<&'a str> {
        match self.kind {
            // Without `--time 0`, podman asks the container to end and waits 10 s.
            EngineKind::Podman => vec!["rm", "--force", "--time", "0", "--volumes", "--ignore", name],
            EngineKind::Docker => vec!["rm", "--force", "--volumes", name],
        }
    }

    fn clean_up(&self, order: &ContainerOrder<'_>) -> Vec<Vec<String>> {
        // A paused container cannot be killed, so it is resumed first. For one that is not paused, that command only
        // fails.
        let mut commands = vec![self.words(&["unpause", &order.name]), self.words(&self.removal_words(&order.name))];
        if self.leaves_files_of_others() {
            for (folder, _) in &order.mounts {
                commands.push(self.emptying(folder, order.image));
            }
        }
        commands
    }

    /// Files that a container writes belong to its user. We cannot remove them unless we are root or that user.
    fn leaves_files_of_others(&self) -> bool {
        // SAFETY: the call has no arguments and cannot fail.
        unsafe { libc::geteuid() != 0 }
    }

    /// A command that removes a container's files with the rights of the user they belong to.
    fn emptying(&self, folder: &Path, image: &str) -> Vec<String> {
        let shared = folder.join(super::files::SHARED).display().to_string();
        match self.kind {
            EngineKind::Podman => self.words(&["unshare", "rm", "-rf", &shared]),
            EngineKind::Docker => {
                let mount = format!("{shared}:/pubmark-files");
                let all = "rm -rf /pubmark-files/* /pubmark-files/.[!.]*";
                let run = ["run", "--rm", "--pull", "never", "--network", "none", "--user", "0", "--volume", &mount];
                self.words(&[&run[..], &["--entrypoint", "/bin/sh", image, "-c", all]].concat())
            }
        }
    }

    fn limit_flags(&self, order: &ContainerOrder<'_>) -> Result<Vec<String>, SystemError> {
        let mut flags = Vec::new();
        let mut add = |limit: &'static str, words: Vec<String>| {
            flags.extend(words);
            if self.limits_left_out.contains(&limit) { Err(self.leaves_out(limit)) } else { Ok(()) }
        };
        if let Some(cpu) = order.limits.and_then(|limits| limits.cpu) {
            let (quota, period) = ration(cpu);
            add("cpu", vec![format!("--cpu-period={period}"), format!("--cpu-quota={quota}")])?;
        }
        if let Some(bytes) = order.limits.and_then(|limits: &ResourceLimits| limits.memory_bytes) {
            // `--memory-swap` is the sum of memory and swap, so an equal value means no swap.
            add("memory", vec![format!("--memory={bytes}b"), format!("--memory-swap={bytes}b")])?;
        }
        if !order.cores.is_empty() {
            let cores: Vec<String> = order.cores.iter().map(u32::to_string).collect();
            add("cores", vec![format!("--cpuset-cpus={}", cores.join(","))])?;
        }
        Ok(flags)
    }

    fn leaves_out(&self, limit: &'static str) -> ContainerError {
        ContainerError::Limit {
            engine: self.title(),
            limit,
            reason: if self.rootless {
                "without root's rights it needs control groups of version 2, with this controller delegated to it; as \
                 root it can"
                    .to_owned()
            } else {
                "the kernel lacks the controller".to_owned()
            },
        }
    }
}

/// Variables that would change the behaviour of the engine's own command if they were set for it.
fn is_read_by_engines(name: &str) -> bool {
    let prefixes = [
        "XDG_",
        "LD_",
        "DOCKER_",
        "CONTAINER",
        "PODMAN_",
        "STORAGE_",
        "BUILDAH_",
        "DBUS_",
        "REGISTRY_",
        "NOTIFY_",
        "GO",
    ];
    ["PATH", "HOME", "USER", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"].contains(&name)
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
        || name.to_ascii_uppercase().ends_with("_PROXY")
}
