//! Machines that join an experiment or a search. They join once and are used by all its runs.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use pubmark_runner::spec::Nodes;
use pubmark_runner::{JoinedNodes, RunError, RunEvent, RunObserver, RunSpec};

use crate::observer::{Event, Observer};

/// The machines of an experiment. They are not part of its definition, which does not depend on machines.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    /// Machines that join, and the address for them.
    pub nodes: Nodes,
    /// Address of this machine on which started systems listen.
    pub system_host: Option<Ipv4Addr>,
    /// Node that starts systems, unless the experiment names another one.
    pub system_node: Option<String>,
    /// Those that joined, which experiments that follow use, too: they stay until the last copy of this is gone.
    pub joined: Arc<OnceLock<Arc<JoinedNodes>>>,
}

impl Machines {
    /// Number of machines that join; `None` if all clients are on this machine.
    pub fn count(&self) -> Option<u16> {
        self.nodes.nodes
    }

    /// Refuses options for machines that join if none does; `names_node`: a node starts one of the experiment's
    /// systems.
    ///
    /// # Errors
    /// The first such option.
    pub fn check(&self, names_node: bool) -> Result<(), RunError> {
        let nodes = &self.nodes;
        let given = [
            ("--listen", nodes.listen.is_some()),
            ("--credentials", nodes.credentials.is_some()),
            ("--join-limit", nodes.join_limit.is_some()),
            ("--announce", nodes.announce),
            ("--system-host", self.system_host.is_some()),
        ];
        // A node that only starts or observes systems joins, too.
        let joins = self.count().is_some() || self.system_node.is_some() || nodes.observers.is_some() || names_node;
        match given.iter().find(|(_, is_given)| *is_given && !joins) {
            Some((option, _)) => {
                Err(RunError::input(format!("`{option}` is for machines that join, and none is to join"))
                    .hint("`--nodes N` runs it on N machines"))
            }
            None => Ok(()),
        }
    }

    /// Waits for the machines that these runs share; `None` if everything is on this one. Machines that have joined before are
    /// used again.
    ///
    /// # Errors
    /// Observers have not one endpoint to stand beside, machines did not join in time, or `stop` was set.
    pub fn join<'a>(
        &self,
        runs: impl Iterator<Item = &'a RunSpec>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Option<Arc<JoinedNodes>>, RunError> {
        let runs: Vec<&RunSpec> = runs.collect();
        let endpoints: BTreeSet<&str> = runs.iter().filter_map(|run| run.target.endpoint.as_deref()).collect();
        if self.nodes.observers.is_some() && endpoints.len() != 1 {
            return Err(RunError::input(format!(
                "observers stand beside one system at an endpoint, and the runs have {}",
                endpoints.len()
            ))
            .hint("leave `--observers` out, or measure one endpoint at a time"));
        }
        if let Some(joined) = self.joined.get() {
            gather(joined, stop, observer)?;
            return Ok(Some(Arc::clone(joined)));
        }
        let system_hosts: BTreeSet<&str> = runs.iter().filter_map(|run| run.target.node.as_deref()).collect();
        let system_hosts = system_hosts.into_iter().map(str::to_owned).collect();
        let joined = JoinedNodes::of(&self.nodes, system_hosts, stop, &mut NodeEvents(observer))?;
        Ok(joined.map(|joined| Arc::clone(self.joined.get_or_init(|| Arc::new(joined)))))
    }

    /// Options to resume an experiment, as typed on the command line, each preceded by a space.
    pub fn options(&self) -> String {
        let nodes = &self.nodes;
        let words = [
            nodes.nodes.map(|count| format!("--nodes {count}")),
            nodes.listen.map(|address| format!("--listen {address}")),
            nodes.credentials.as_ref().map(|folder| format!("--credentials {}", folder.display())),
            nodes.announce.then(|| "--announce".to_owned()),
            nodes.observers.map(|count| format!("--observers {count}")),
            self.system_host.map(|host| format!("--system-host {host}")),
            self.system_node.as_ref().map(|node| format!("--system-node {node}")),
        ];
        words.into_iter().flatten().map(|word| format!(" {word}")).collect()
    }
}

/// Waits for machines that an earlier run lost.
///
/// # Errors
/// One stayed away ([`pubmark_runner::ErrorKind::NodeLost`]), or `stop` was set.
pub fn gather(joined: &JoinedNodes, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<(), RunError> {
    joined.gather(&mut NodeEvents(observer), stop)
}

/// Passes events of nodes between runs to the observer of the experiment.
pub(crate) struct NodeEvents<'a>(pub &'a mut dyn Observer);

impl RunObserver for NodeEvents<'_> {
    fn event(&mut self, event: &RunEvent) {
        self.0.event(&Event::Nodes(event));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn options_for_machines_are_refused_where_none_join() {
        let mut machines = Machines { system_host: Some(Ipv4Addr::LOCALHOST), ..Machines::default() };
        let error = machines.check(false).unwrap_err();
        assert_eq!(error.to_string(), "`--system-host` is for machines that join, and none is to join");
        machines.nodes.nodes = Some(2);
        machines.check(false).unwrap();
        machines.nodes.listen = Some("0.0.0.0:7701".parse().unwrap());
        assert_eq!(machines.options(), " --nodes 2 --listen 0.0.0.0:7701 --system-host 127.0.0.1");
        assert_eq!(Machines::default().options(), "");
    }
}
