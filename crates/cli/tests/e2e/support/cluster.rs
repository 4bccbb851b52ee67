//! A coordinator's folder and port, and nodes that join it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pubmark_conformance::ports;

use super::place::{Call, Called, PUBMARK, Place};
use super::processes::{children_of, wait_for};

/// Devices that stay connected, and devices that connect and disconnect.
pub const WORKLOAD: &str = "\
name: spread
devices:
  - {name: meter, count: 23, every: 50ms, payload: 100B, topic: 'spread/{index}', qos: 1}
  - name: phone
    count: 10
    every: 20ms
    payload: 100B
    topic: 'spread/phone/{index}'
    qos: 0
    churn: {disconnect: 20% every 200ms, reconnect: 50% every 200ms}
subscribers:
  - {name: reader, count: 3, filters: ['spread/#'], qos: 1}
";

/// Longest wait for a process or a file to appear or to disappear.
const LIMIT: Duration = Duration::from_secs(20);
/// No part of a run continues for longer without its coordinator, or without its node.
pub const ORPHANED: Duration = Duration::from_secs(5);

/// A folder with credentials, and a port for nodes.
pub struct Cluster {
    /// The folder.
    pub place: Place,
    /// Address where nodes join.
    pub listen: SocketAddr,
}

impl Cluster {
    /// Creates both.
    pub fn new() -> Cluster {
        let place = Place::new();
        place.write("spread.yaml", WORKLOAD);
        assert_eq!(place.call(&["cluster", "init"]).code(), 0);
        Cluster { place, listen: ports::free() }
    }

    /// Starts a node of this name.
    pub fn node(&self, name: &str, options: &[&str]) -> Call {
        let join = self.listen.to_string();
        self.place.start(&[&["node", "--join", &join, "--name", name][..], options].concat())
    }

    /// Starts a node of this name that does not see the files of a folder, as a node on another machine. `at` is the
    /// beginning of a command of `unshare` where the node runs.
    pub fn node_without(&self, mut at: Command, hidden: &Path, join: &str, name: &str) -> Call {
        at.args(["--mount", "sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\""]).arg(hidden).arg(PUBMARK);
        self.place.start_by(at, &["node", "--join", join, "--name", name])
    }

    /// Starts a run on N nodes.
    pub fn run(&self, nodes: u16, options: &[&str]) -> Call {
        let (listen, nodes) = (self.listen.to_string(), nodes.to_string());
        self.place.start(&[&["run", "spread.yaml", "--listen", &listen, "--nodes", &nodes][..], options].concat())
    }

    /// As [`Cluster::run`], with events ([`Place::events`]).
    pub fn run_with_events(&self, nodes: u16, options: &[&str]) -> Call {
        let (listen, nodes) = (self.listen.to_string(), nodes.to_string());
        let words = ["run", "spread.yaml", "--listen", &listen, "--nodes", &nodes];
        self.place.start_with_events(&[&words[..], options].concat())
    }

    /// Starts a run in this process with one observer.
    pub fn observed(&self, options: &[&str]) -> Call {
        let listen = self.listen.to_string();
        self.place.start(&[&["run", "spread.yaml", "--listen", &listen, "--observers", "1"][..], options].concat())
    }
}

/// Stops a node and waits until it has ended. A node that has just been started may not watch for signals yet, and ignores
/// SIGINT then if the tests were started in the background of a shell: SIGTERM ends it at any time.
pub fn stop(node: Call) -> Called {
    node.signal(libc::SIGTERM);
    node.wait()
}

/// Whether a process can have mounts of its own; prints a message if not.
pub fn can_hide_files() -> bool {
    let can = Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        pubmark_testing::skip("`unshare --mount` needs root and util-linux");
    }
    can
}

/// The worker of a node.
pub fn worker_of(node: &Call) -> u32 {
    let mut found = vec![];
    wait_for("a worker", LIMIT, || {
        found = children_of(node.pid());
        !found.is_empty()
    });
    found[0]
}
