//! Machines with parts of a cluster: namespaces with a network between them.

use super::bridge::Bridge;
use super::cluster::Cluster;
use super::place::{Call, PUBMARK};

/// Machines with one node each; the coordinator is on the first.
pub struct Bed {
    /// The coordinator's folder.
    pub cluster: Cluster,
    /// The machines.
    pub bridge: Bridge,
    /// Address where nodes join.
    pub listen: String,
}

impl Bed {
    /// Creates this number of machines; `None`, with a message, if namespaces cannot be created.
    pub fn new(machines: usize) -> Option<Bed> {
        let bridge = Bridge::new(machines)?;
        let cluster = Cluster::new();
        let listen = format!("{}:{}", Bridge::address(0), cluster.listen.port());
        Some(Bed { cluster, bridge, listen })
    }

    /// Starts the node of a machine.
    pub fn node(&self, machine: usize, join: &str, options: &[&str]) -> Call {
        let name = format!("edge-{}", machine + 1);
        let words = [&["node", "--join", join, "--name", &name][..], options].concat();
        self.cluster.place.start_by(self.bridge.at(machine), &words)
    }

    /// Starts a run whose coordinator is on the first machine.
    pub fn run(&self, words: &[&str]) -> Call {
        self.cluster.place.start_by(self.bridge.at(0), &[&["run"], words, &["--json", "--quiet"]].concat())
    }

    /// Starts a node on a machine that has no device for tunnels, so that links cannot be emulated there.
    pub fn node_without_tunnels(&self, machine: usize) -> Call {
        let hidden = "mount --bind /dev/null /dev/net/tun && exec \"$@\"";
        let mut command = self.bridge.program_at(machine, "unshare");
        command.args(["--mount", "sh", "-c", hidden, "sh", PUBMARK]);
        let name = format!("edge-{}", machine + 1);
        self.cluster.place.start_by(command, &["node", "--join", &self.listen, "--name", &name])
    }
}
