//! Machines that join an experiment or a search. They join once and are used by all its runs.

use std::net::Ipv4Addr;

use pubmark_runner::spec::Nodes;
use pubmark_runner::{RunError, RunEvent, RunObserver};

use crate::observer::{Event, Observer};

/// The machines of an experiment. They are not part of its definition, which does not depend on machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    /// Machines that join, and the address for them.
    pub nodes: Nodes,
    /// Address of this machine on which started systems listen.
    pub system_host: Option<Ipv4Addr>,
    /// Node that starts systems, unless the experiment names another one.
    pub system_node: Option<String>,
}

impl Machines {
    /// Number of machines that join; `None` if all clients are on this machine.
    pub fn count(&self) -> Option<u16> {
        self.nodes.nodes
    }

    /// Refuses options for machines that join if none does; `names_node`: a node starts one of the experiment's
    /// systems.
    pub(crate) fn check(&self, names_node: bool) -> Result<(), RunError> {
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
                Err(RunError::input(format!("`{option}` is for machines that join, and the experiment wants none"))
                    .hint("`--nodes N` runs it on N machines"))
            }
            None => Ok(()),
        }
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
        assert_eq!(error.to_string(), "`--system-host` is for machines that join, and the experiment wants none");
        machines.nodes.nodes = Some(2);
        machines.check(false).unwrap();
        machines.nodes.listen = Some("0.0.0.0:7701".parse().unwrap());
        assert_eq!(machines.options(), " --nodes 2 --listen 0.0.0.0:7701 --system-host 127.0.0.1");
        assert_eq!(Machines::default().options(), "");
    }
}
