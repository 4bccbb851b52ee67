//! Machines on one network: namespaces whose cables are connected to a bridge.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::place::PUBMARK;

/// Calls `ip`; true on success.
pub fn ip(words: &[&str]) -> bool {
    let called = Command::new("ip").args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    called.is_ok_and(|status| status.success())
}

/// Calls `ip` where namespaces can be created: a failure is no reason for a skip.
pub fn require_ip(words: &[&str]) {
    assert!(ip(words), "failed to call `ip {}`", words.join(" "));
}

/// Namespaces with a bridge between them; all are removed when this is dropped.
pub struct Bridge {
    /// Names of the machines, then of the bridge.
    names: Vec<String>,
}

impl Bridge {
    /// Creates this number of machines, at most 250. If namespaces cannot be created, it prints that and returns
    /// `None`.
    pub fn new(machines: usize) -> Option<Bridge> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let name = |end: usize| format!("pubmark-e2e-{}-{number}m{end}", std::process::id());
        let bridge = Bridge { names: (0..=machines).map(name).collect() };
        let made = bridge.make();
        if !made {
            pubmark_testing::skip("`ip netns add` and bridges need root and iproute2");
        }
        made.then_some(bridge)
    }

    /// False if this user or kernel can have no namespaces or no bridge.
    fn make(&self) -> bool {
        let Some((switch, machines)) = self.names.split_last() else { return false };
        if !ip(&["netns", "add", switch]) || !ip(&["-n", switch, "link", "add", "bridge", "type", "bridge"]) {
            return false;
        }
        require_ip(&["-n", switch, "link", "set", "bridge", "up"]);
        for (machine, name) in machines.iter().enumerate() {
            let (port, address) = (format!("port{machine}"), format!("{}/24", Bridge::address(machine)));
            require_ip(&["netns", "add", name]);
            require_ip(&["-n", name, "link", "add", "cable", "type", "veth", "peer", "name", &port, "netns", switch]);
            require_ip(&["-n", switch, "link", "set", &port, "master", "bridge", "up"]);
            require_ip(&["-n", name, "addr", "add", &address, "dev", "cable"]);
            require_ip(&["-n", name, "link", "set", "cable", "up"]);
            require_ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        true
    }

    /// Address of a machine.
    pub fn address(machine: usize) -> String {
        format!("10.99.8.{}", machine + 1)
    }

    /// The beginning of a command of pubmark on a machine.
    pub fn at(&self, machine: usize) -> Command {
        self.program_at(machine, PUBMARK)
    }

    /// The same for another program.
    pub fn program_at(&self, machine: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[machine], program]);
        command
    }

    /// Blocks datagrams to other machines, or stops blocking them; false if the kernel has no rules for that.
    pub fn holds_datagrams(&self, machine: usize, holds: bool) -> bool {
        let verb = if holds { "add" } else { "delete" };
        ip(&["-n", &self.names[machine], "rule", verb, "ipproto", "udp", "to", "10.99.8.0/24", "blackhole"])
    }

    /// Disconnects a machine's cable.
    pub fn cut(&self, machine: usize) {
        assert!(ip(&["-n", &self.names[machine], "link", "set", "cable", "down"]));
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for name in &self.names {
            // A namespace that was not created does not exist.
            ip(&["netns", "delete", name]);
        }
    }
}
