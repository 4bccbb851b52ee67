//! The owner of a container. If an owner was killed together with its supervisor, the next start removes the container.

use std::fs;

use procfs::process::Process;

use super::engine::{ANSWER, Engine, EngineKind, QUERY_LIMIT, output_of};
use crate::environment;
use crate::error::SystemError;

/// Label on every container of ours.
pub(super) const OURS: &str = "pubmark=1";
/// Label with the owner.
pub(super) const OWNER: &str = "pubmark.owner";

/// Identity of a process, unambiguous even if another process gets the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Id of this boot of the machine.
    boot: String,
    /// PID namespace in which the id is valid.
    namespace: String,
    pid: i32,
    /// Start of the process, in clock ticks since the machine's start.
    started: u64,
}

impl Owner {
    /// This process; `None` if `/proc` does not have the values.
    pub(super) fn this() -> Option<Owner> {
        Owner::of(std::process::id() as i32)
    }

    fn of(pid: i32) -> Option<Owner> {
        Some(Owner {
            boot: Some(environment::boot_id()).filter(|boot| !boot.is_empty())?,
            namespace: fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned(),
            pid,
            started: Process::new(pid).ok()?.stat().ok()?.starttime,
        })
    }

    fn parse(label: &str) -> Option<Owner> {
        let mut parts = label.split('/');
        let (boot, namespace) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Owner { boot, namespace, pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
    }

    /// Has the owner ended? False for processes of another boot or another PID namespace, which cannot be checked.
    fn has_ended(&self) -> bool {
        let this = Owner::this();
        let comparable = this.is_some_and(|this| this.boot == self.boot && this.namespace == self.namespace);
        comparable && Owner::of(self.pid).as_ref() != Some(self)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.boot, self.namespace, self.pid, self.started)
    }
}

impl Engine {
    /// Removes pubmark's containers whose owners have ended; returns their names.
    pub fn remove_abandoned(&self) -> Result<Vec<String>, SystemError> {
        let label = match self.kind {
            EngineKind::Podman => format!("index .Labels {OWNER:?}"),
            EngineKind::Docker => format!(".Label {OWNER:?}"),
        };
        let format = format!("{ANSWER}{{{{.Names}}}}|{{{{{label}}}}}");
        let filter = format!("label={OURS}");
        let output = output_of(self.command(&["ps", "--all", "--filter", &filter, "--format", &format]), QUERY_LIMIT)?;
        let ours = output.lines().filter_map(|line| line.strip_prefix(ANSWER)?.split_once('|'));
        let mut removed = Vec::new();
        for (name, _) in ours.filter(|(_, owner)| Owner::parse(owner.trim()).is_some_and(|owner| owner.has_ended())) {
            // Only a paused container needs this; for others it fails.
            let _ = self.pause(name, false);
            // The removal fails if another start was faster. If it fails for another reason, the next start tries
            // again.
            if output_of(self.removal(name), QUERY_LIMIT).is_ok() {
                self.wait_for_monitor(name);
                removed.push(name.to_owned());
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_identified_by_more_than_its_process_id() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::parse(&this.to_string()), Some(this.clone()));
        assert!(!this.has_ended());
        assert!(Owner { started: this.started + 1, ..this.clone() }.has_ended());
        assert!(!Owner { boot: "another".to_owned(), started: 0, ..this.clone() }.has_ended());
        assert_eq!(Owner::parse("1234"), None);
    }
}
