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
    /// What runs a container in the foreground and what removes it. Its image must be there ([`Engine::prepare`]).
    /// The files of the order's folders are copied for the container's user into a folder inside each
    /// (`container`), and that one is mounted.
    pub fn command_line(&self, order: &ContainerOrder<'_>) -> Result<CommandLine, SystemError> {
        let mut arguments = self.global_arguments();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["run", "--name", &order.name, "--label", OURS]);
        if let Some(owner) = Owner::this() {
            add(&["--label", &format!("{OWNER}={owner}")]);
        }
        // The log is what comes out of this command; the engine need not write it a second time.
        add(&["--pull", "never", "--network", "host", "--log-driver", "none"]);
        // With SELinux, a container reads no files of the host that are not labelled for it, and these are not.
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
            // A name alone takes the value from the environment of this command, where other users do not see it.
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

    /// Removes a container at once, running or not, with what it kept in volumes without a name. No error if it is not
    /// there.
    pub(super) fn removal(&self, name: &str) -> Command {
        self.command(&self.removal_words(name))
    }

    fn removal_words<'a>(&self, name: &'a str) -> Vec<&'a str> {
        match self.kind {
            // Without a time, podman asks the container to end and waits 10 s.
            EngineKind::Podman => vec!["rm", "--force", "--time", "0", "--volumes", "--ignore", name],
            EngineKind::Docker => vec!["rm", "--force", "--volumes", name],
        }
    }

    fn clean_up(&self, order: &ContainerOrder<'_>) -> Vec<Vec<String>> {
        // A paused container is not removed: it has to run to be killed. Of one that is not paused, this only fails.
        let mut commands = vec![self.words(&["unpause", &order.name]), self.words(&self.removal_words(&order.name))];
        if self.leaves_files_of_others() {
            for (folder, _) in &order.mounts {
                commands.push(self.emptying(folder, order.image));
            }
        }
        commands
    }

    /// What a container writes belongs to its user. We may not remove that unless we are root, or that user is us.
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
            // The second counts memory and swap together, so that there is no swap.
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

/// Variables that would change what the engine's own command does, were they set for it.
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
