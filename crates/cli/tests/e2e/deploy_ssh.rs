//! Runs on hosts by ssh: real OpenSSH servers in namespaces, leftovers, and refusals before any host is contacted.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pubmark_testing::assert_count;
use serde_json::Value;

use crate::links::can_be_made;
use crate::message_log::{assert_counts_agree, rows};
use crate::support::books::{assert_closed, assert_delivered_once};
use crate::support::bridge::Bridge;
use crate::support::mosquitto;
use crate::support::place::{Call, Called, EVENTS, PUBMARK, Place};
use crate::support::processes::{children_of, family_of, signal, wait_for, with_files_in};

const SSHD: &str = "/usr/sbin/sshd";
/// Longest wait for a process or a file to appear or to disappear.
const LIMIT: Duration = Duration::from_secs(20);

/// A coordinator's machine, and hosts with an sshd each: `edge-1` and so on, whose folders for temporary files are in the place.
struct Edge {
    place: Place,
    bridge: Bridge,
    daemons: Vec<Child>,
}

impl Edge {
    /// `None`, with a message, if the namespaces cannot be created.
    fn new(hosts: usize) -> Option<Edge> {
        if !Path::new(SSHD).exists() {
            pubmark_testing::skip("there is no sshd: `apt-get install openssh-server`");
            return None;
        }
        let place = Place::new();
        let bridge = Bridge::new(hosts + 1)?;
        let mut edge = Edge { place, bridge, daemons: vec![] };
        // It is copied once for each host, and its symbols are not needed.
        edge.make(Command::new("strip").args(["-o", "program", PUBMARK]));
        edge.make(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "key"]));
        let mut list = String::new();
        let mut config = String::new();
        let mut known = String::new();
        for host in 1..=hosts {
            let (name, address) = (format!("edge-{host}"), Bridge::address(host));
            edge.make(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &name]));
            let key = fs::read_to_string(edge.path(&format!("{name}.pub"))).unwrap();
            known.push_str(&format!("{address} {key}"));
            config.push_str(&format!("Host {name}\n  HostName {address}\n"));
            list.push_str(&format!("{name} site={name}\n"));
            fs::create_dir(edge.left(host)).unwrap();
            edge.serve(host, &edge.left(host));
        }
        let shown = |name: &str| edge.path(name).display().to_string();
        config.push_str(&format!(
            "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
            shown("key"),
            shown("known_hosts")
        ));
        edge.place.write("hosts.txt", list);
        edge.place.write("known_hosts", known);
        edge.place.write("ssh_config", config);
        Some(edge)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A host's folder for temporary files.
    fn left(&self, host: usize) -> PathBuf {
        self.path(&format!("temporary-{host}"))
    }

    fn make(&self, command: &mut Command) {
        let output = command.current_dir(self.place.path()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
    }

    /// Starts a host's sshd, for which `temporary` is the folder for temporary files.
    fn serve(&mut self, host: usize, temporary: &Path) {
        // The privilege separation directory (sshd(8)).
        fs::create_dir_all("/run/sshd").unwrap();
        let shown = |name: &str| self.path(name).display().to_string();
        let config = format!(
            "ListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\nSetEnv TMPDIR={}\n",
            Bridge::address(host),
            shown(&format!("edge-{host}")),
            shown("key.pub"),
            temporary.display()
        );
        let file = format!("sshd-{host}");
        self.place.write(&file, config);
        let mut command = self.bridge.program_at(host, SSHD);
        command.args(["-D", "-e", "-f"]).arg(self.path(&file)).stdin(Stdio::null()).stdout(Stdio::null());
        self.daemons
            .push(command.stderr(fs::File::create(self.path(&format!("log-{host}"))).unwrap()).spawn().unwrap());
        let mut open = Command::new("true");
        wait_for("an sshd", LIMIT, || {
            open = self.bridge.program_at(0, "bash");
            open.args(["-c", &format!("exec 3<> /dev/tcp/{}/22", Bridge::address(host))]).stderr(Stdio::null());
            open.status().unwrap().success()
        });
    }

    /// Starts a run on the hosts.
    fn deploy(&self, options: &[&str], of_run: &[&str]) -> Call {
        let words = ["deploy", "ssh", "hosts.txt", "smart-home", "--ssh-config", "ssh_config", "--program", "program"];
        let words = [&words[..], options, &["--", "--warmup", "0s"], of_run].concat();
        self.place.start_by(self.bridge.at(0), &words)
    }

    /// The same, once all nodes measure.
    fn long_run(&self) -> Call {
        let call = self.deploy(&[], &["--duration", "50s", "--events", EVENTS]);
        wait_for("three nodes", LIMIT, || (1..=3).all(|host| call.has_said(&format!("`edge-{host}` joined"))));
        self.place.wait_until_measured(1.0);
        call
    }

    fn hosts(&self) -> usize {
        self.daemons.len()
    }

    /// Waits until no host has a process or a file of pubmark.
    fn assert_nothing_is_left(&self, limit: Duration) {
        for host in 1..=self.hosts() {
            let folder = self.left(host);
            let here = || fs::read_dir(&folder).unwrap().count();
            wait_for(&format!("the end of what is on host {host}"), limit, || {
                with_files_in(&folder).is_empty() && here() == 0
            });
        }
    }

    /// The coordinator's disk has no private keys any more.
    fn assert_no_keys_are_left(&self) {
        assert_eq!(fs::read_dir(self.place.temporary()).unwrap().count(), 0, "something is left here");
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            // Its sessions end with it.
            for pid in family_of(daemon.id()).into_iter().rev() {
                // SAFETY: a plain system call; each process was started for this test.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
            daemon.wait().unwrap();
        }
    }
}

fn nodes(record: &Value) -> &Vec<Value> {
    record["tables"]["nodes"].as_array().unwrap()
}

/// The output without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_on_three_hosts_delivers_everything_and_leaves_nothing_there() {
    let Some(edge) = Edge::new(3) else { return };
    let called = edge.deploy(&[], &["--duration", "3s", "--json", "--quiet"]).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(called.errors.is_empty(), "it is not quiet: {called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count!(nodes(&record).len() == 3, "{}", record["tables"]["nodes"]);
    let mut names: Vec<&str> = nodes(&record).iter().map(|node| node["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["edge-1", "edge-2", "edge-3"]);
    for node in nodes(&record) {
        assert_eq!(node["labels"]["site"], node["name"]);
        assert!(node["lost"].is_null() && node["address"].as_str().unwrap().starts_with("10.99.8."), "{node}");
    }
    let endpoint = record["system"]["endpoint"].as_str().unwrap();
    assert!(endpoint.contains("10.99.8.1:"), "the system listens where hosts reach it: {endpoint}");
    edge.assert_nothing_is_left(Duration::ZERO);
    edge.assert_no_keys_are_left();
    // The run's specification repeats it, and names no removed keys.
    let folder = &edge.place.runs()[0].0;
    let spec = fs::read_to_string(folder.join("run.yaml")).unwrap();
    assert!(!spec.contains("credentials") && !spec.contains("pubmark-keys"), "{spec}");
}

#[test]
fn a_host_starts_the_system_and_the_others_send_and_receive() {
    if !mosquitto::is_installed() {
        return;
    }
    let Some(edge) = Edge::new(3) else { return };
    let system = ["--system", "mosquitto", "--system-node", "edge-2", "--message-log=ndjson"];
    let called = edge.deploy(&[], &[&system[..], &["--duration", "3s", "--json", "--quiet"]].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    let names: Vec<&str> = nodes(&record).iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["edge-1", "edge-3"]);
    let (system, cost) = (&record["system"], &record["cost"]["system"]);
    assert_eq!((&system["name"], &system["node"]), (&"mosquitto".into(), &"edge-2".into()), "{system}");
    assert!(system["endpoint"].as_str().unwrap().contains(&Bridge::address(2)), "{system}");
    assert!(cost["cpu_seconds"].as_f64() > Some(0.0), "{cost}");
    let folder = &edge.place.runs()[0].0;
    assert_counts_agree(&rows(folder), &record);
    edge.assert_nothing_is_left(Duration::ZERO);
    edge.assert_no_keys_are_left();
}

#[test]
fn ctrl_c_ends_a_system_on_a_host_too() {
    if !mosquitto::is_installed() {
        return;
    }
    let Some(edge) = Edge::new(2) else { return };
    let system = ["--system", "mosquitto", "--system-node", "edge-2"];
    let call = edge.deploy(&[], &[&system[..], &["--duration", "50s", "--events", EVENTS]].concat());
    wait_for("two nodes", LIMIT, || (1..=2).all(|host| call.has_said(&format!("`edge-{host}` joined"))));
    edge.place.wait_until_measured(1.0);
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    edge.assert_nothing_is_left(Duration::ZERO);
    assert_eq!(edge.place.only_record()["run"]["status"], "interrupted");
}

#[test]
fn links_are_made_on_the_hosts_and_nothing_of_them_is_left() {
    if !can_be_made() {
        return;
    }
    let Some(edge) = Edge::new(2) else { return };
    let called = edge.deploy(&[], &["--link", "{delay: 20ms}", "--duration", "3s", "--json", "--quiet"]).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    // Devices and subscribers are behind links: each message crosses two.
    assert!(record["latency"]["total"]["upper"]["min_us"].as_f64() >= Some(40_000.0), "{}", record["latency"]["total"]);
    let groups = record["conditions"]["links"]["groups"].as_array().unwrap();
    for host in ["edge-1", "edge-2"] {
        let its = groups.iter().filter(|group| group["group"].as_str().unwrap().ends_with(&format!(" at {host}")));
        assert_count!(its.count() * 2 == groups.len(), "{groups:?}");
    }
    edge.assert_nothing_is_left(Duration::ZERO);
}

#[test]
fn ctrl_c_ends_the_nodes_and_writes_a_record() {
    let Some(edge) = Edge::new(3) else { return };
    let call = edge.long_run();
    for host in 1..=3 {
        let folder = fs::read_dir(edge.left(host)).unwrap().next().unwrap().unwrap().path();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("credentials"))), (0o700, 0o700));
        assert_eq!(mode(&folder.join("credentials/key.pem")), 0o600);
        let token = fs::read_to_string(folder.join("credentials/token")).unwrap();
        for pid in family_of(edge.daemons[host - 1].id()) {
            let seen = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(token.trim());
            assert!(!holds(&seen("cmdline")) && !holds(&seen("environ")), "process {pid} shows the token");
        }
    }
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    edge.assert_nothing_is_left(Duration::ZERO);
    edge.assert_no_keys_are_left();
    let record = edge.place.only_record();
    assert_eq!(record["run"]["status"], "interrupted");
    assert!(nodes(&record).iter().all(|node| node["lost"].is_null()), "{}", record["tables"]["nodes"]);
}

#[test]
fn a_connection_that_is_cut_loses_its_node_by_name() {
    let Some(edge) = Edge::new(3) else { return };
    let call = edge.long_run();
    // The process of sshd that serves the connection, and the one below it that has the user's rights.
    let served = children_of(edge.daemons[1].id());
    assert_eq!(served.len(), 1, "{served:?}");
    let below: Vec<u32> = family_of(served[0]).into_iter().filter(|pid| is_sshd(*pid)).collect();
    below.iter().rev().for_each(|pid| signal(*pid, libc::SIGKILL));
    let called = call.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    let record = edge.place.only_record();
    let lost = nodes(&record).iter().filter(|node| !node["lost"].is_null());
    assert_eq!(lost.map(|node| node["name"].as_str().unwrap()).collect::<Vec<_>>(), ["edge-2"]);
    assert!(called.printed.contains("edge-2"), "{called:?}");
    edge.assert_nothing_is_left(LIMIT);
}

fn is_sshd(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sshd")
}

#[test]
fn nodes_end_with_a_coordinator_that_is_killed() {
    let Some(edge) = Edge::new(3) else { return };
    let call = edge.long_run();
    let coordinator = call.pid();
    let ssh = children_of(coordinator);
    signal(coordinator, libc::SIGKILL);
    edge.assert_nothing_is_left(Duration::from_secs(10));
    edge.assert_no_keys_are_left();
    wait_for("the end of ssh", LIMIT, || !ssh.iter().any(|pid| crate::support::processes::is_there(*pid)));
    drop(call);
}

#[test]
fn hosts_that_cannot_be_used_are_all_named_and_the_others_left_clean() {
    let Some(mut edge) = Edge::new(3) else { return };
    // Another key than the one that is known, and no folder that can be written.
    let known = fs::read_to_string(edge.path("known_hosts")).unwrap();
    let own = fs::read_to_string(edge.path("edge-3.pub")).unwrap();
    let lines: Vec<String> = known
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            0 => format!("{} {}", Bridge::address(1), own.trim()),
            _ => line.to_owned(),
        })
        .collect();
    edge.place.write("known_hosts", lines.join("\n") + "\n");
    let mut second = edge.daemons.remove(1);
    second.kill().unwrap();
    second.wait().unwrap();
    edge.serve(2, Path::new("/proc/self"));
    let mut list = fs::read_to_string(edge.path("hosts.txt")).unwrap();
    list.push_str("10.99.8.99\n");
    edge.place.write("hosts.txt", list);
    let called = edge.deploy(&[], &["--duration", "1s"]).wait();
    assert_eq!(called.code(), 2, "{called:?}");
    let said = words(&called);
    assert!(said.contains("3 of 4 hosts cannot be used"), "{said}");
    assert!(said.contains("edge-1: ") && said.contains("Host key verification failed"), "{said}");
    assert!(said.contains("edge-2: ") && said.contains("/proc/self/pubmark."), "{said}");
    assert!(said.contains("10.99.8.99: ssh: connect to host 10.99.8.99 port 22"), "{said}");
    assert!(!said.contains("edge-3: "), "{said}");
    assert!(edge.place.runs().is_empty(), "nothing was run");
    edge.assert_nothing_is_left(Duration::ZERO);
    edge.assert_no_keys_are_left();
}

#[test]
fn a_host_without_the_programs_libraries_says_so() {
    let Some(edge) = Edge::new(1) else { return };
    let interpreter = b"/lib64/ld-linux-x86-64.so.2";
    let mut bytes = fs::read(edge.path("program")).unwrap();
    let found = bytes.windows(interpreter.len()).position(|window| window == interpreter);
    let Some(at) = found else {
        pubmark_testing::skip("this build of pubmark needs no libraries");
        return;
    };
    bytes[at + 8..at + 10].copy_from_slice(b"xx");
    edge.place.write("program", &bytes);
    let called = edge.deploy(&[], &["--duration", "1s"]).wait();
    assert_eq!(called.code(), 2, "{called:?}");
    let said = words(&called);
    assert!(said.contains("1 of 1 host cannot run the program") && said.contains("shared libraries"), "{said}");
    edge.assert_nothing_is_left(Duration::ZERO);
}

#[test]
fn what_a_run_on_nodes_cannot_have_is_refused_before_any_host_is_touched() {
    let place = Place::new();
    // These names do not resolve.
    place.write("hosts.txt", "edge-1.invalid site=edge-1\nedge-2.invalid site=edge-2\n");
    place.write("one.txt", "edge-1.invalid\n");
    place.write("bad.txt", "edge-1\n\n# a comment\nedge-2 site\n");
    place.write(
        "placed.yaml",
        "name: placed\ndevices: [{name: cameras, every: 1s, payload: 30B, topic: c}]\nsubscribers: [{name: screens, \
         filters: [c]}]\nplacement: {cameras: site=cloud}\n",
    );
    for (words_of_call, said) in [
        (&["bad.txt", "smart-home"][..], "line 4: `site` is no label"),
        (&["none.txt", "smart-home"], "failed to read the hosts in `none.txt`"),
        (&["hosts.txt", "placed.yaml"], "`site=cloud`, and none has it"),
        (&["hosts.txt", "smart-home", "--", "--nodes", "2"], "each has one node"),
        (&["hosts.txt", "smart-home", "--", "--credentials", "x"], "each has one node"),
        (&["hosts.txt", "smart-home", "--", "--observers", "1"], "nodes that this does not start"),
        (
            &["hosts.txt", "smart-home", "--", "--system", "mosquitto", "--system-node", "edge-9"],
            "`--system-node edge-9` is no host of `hosts.txt`",
        ),
        (
            &["one.txt", "smart-home", "--", "--system", "mosquitto", "--system-node", "edge-1.invalid"],
            "has no other host that sends and receives",
        ),
        (&["hosts.txt", "smart-home", "--host-folder", "a b"], "is no folder of hosts"),
        (&["hosts.txt", "smart-home", "--program", "hosts.txt"], "it is no 64-bit ELF program"),
    ] {
        let called = place.call(&[&["deploy", "ssh"][..], words_of_call].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        assert!(words(&called).contains(said), "{words_of_call:?}: {called:?}");
    }
    // Word for word what a run on nodes is refused with.
    let peers_behind_links = ["--link", "lte", "--netem", "kernel", "--system", "zenoh-peers", "--qos", "0"];
    for options in [&peers_behind_links[..], &["--isolate", "nosuch"], &["--system", "nosuch"]] {
        let by_ssh = place.call(&[&["deploy", "ssh", "hosts.txt", "smart-home", "--"][..], options].concat());
        let by_hand = place.call(&[&["run", "smart-home", "--nodes", "2"][..], options].concat());
        assert_eq!((by_ssh.code(), &by_ssh.errors), (2, &by_hand.errors), "{options:?}");
    }
    let planned = place.call(&["deploy", "ssh", "hosts.txt", "smart-home", "--", "--dry-run"]);
    assert!(planned.code() == 0 && planned.printed.contains("node"), "{planned:?}");
}

#[test]
fn a_folder_that_is_not_a_nodes_own_is_never_removed() {
    let place = Place::new();
    for folder in ["victim", "pubmark.victim"] {
        fs::create_dir(place.path().join(folder)).unwrap();
        place.write(&format!("{folder}/file"), "precious");
        let called = place.call(&["hosted-node", folder]);
        assert!(called.code() == 2 && called.errors.contains("is not the folder"), "{called:?}");
        assert_eq!(fs::read_to_string(place.path().join(folder).join("file")).unwrap(), "precious");
    }
}
