//! Options for machines that join a run, an experiment or a search.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_experiment::Machines;
use pubmark_runner::spec::Nodes;

use crate::commands::setup::{replace, replace_some};
use crate::values::duration;

/// How many machines join, and where.
#[derive(Clone, Debug, Default, Args)]
pub struct JoinOptions {
    /// Spread the clients over N machines, which join with `pubmark node`; begin when all have joined. With --dry-run,
    /// plan for N machines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "Nodes", hide_short_help = true)]
    pub nodes: Option<u16>,

    /// Measure the resource usage of a system at an endpoint on its machines, once N nodes have joined with `pubmark
    /// node --observe`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100),
          help_heading = "Nodes", hide_short_help = true)]
    pub observers: Option<u16>,

    /// Address where nodes join [default: 0.0.0.0:7700]
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes", hide_short_help = true)]
    pub listen: Option<SocketAddr>,

    /// Announce on local networks where nodes join, while the coordinator waits for them: `pubmark node --join mdns`
    /// finds it
    #[arg(long, help_heading = "Nodes", hide_short_help = true)]
    pub announce: bool,

    /// The coordinator's folder that `pubmark cluster init` created [default: cluster/coordinator]
    #[arg(long, value_name = "DIR", help_heading = "Nodes", hide_short_help = true)]
    pub credentials: Option<PathBuf>,

    /// Longest wait for nodes to join [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration,
          help_heading = "Nodes", hide_short_help = true)]
    pub join_limit: Option<Duration>,
}

impl JoinOptions {
    /// Writes the given options into a specification.
    pub fn apply(&self, nodes: &mut Nodes) {
        replace_some(&mut nodes.nodes, self.nodes);
        replace_some(&mut nodes.observers, self.observers);
        replace_some(&mut nodes.listen, self.listen);
        replace(&mut nodes.announce, self.announce.then_some(true));
        replace_some(&mut nodes.credentials, self.credentials.clone());
        replace_some(&mut nodes.join_limit, self.join_limit);
    }
}

/// Machines that all runs of an experiment share.
#[derive(Clone, Debug, Default, Args)]
pub struct MachineOptions {
    #[command(flatten)]
    pub join: JoinOptions,

    /// Address of this machine on which systems that pubmark starts listen, for nodes on other machines [default:
    /// 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes", hide_short_help = true)]
    pub system_host: Option<Ipv4Addr>,

    /// Name of the node that starts the systems: it joined with `pubmark node --start-systems`
    #[arg(long, value_name = "NAME", help_heading = "Nodes", hide_short_help = true)]
    pub system_node: Option<String>,
}

impl From<&MachineOptions> for Machines {
    fn from(options: &MachineOptions) -> Machines {
        let mut nodes = Nodes::default();
        options.join.apply(&mut nodes);
        let (system_host, system_node) = (options.system_host, options.system_node.clone());
        Machines { nodes, system_host, system_node, ..Machines::default() }
    }
}
