//! Which processes belong to a program: its descendants, and the remaining processes of its session.

use std::collections::{HashMap, HashSet};

use procfs::process::{FDTarget, Process, Stat, all_processes};
use procfs::{ProcError, ProcResult};

use crate::sockets;
use crate::supervisor::NAME;

/// Ids of all processes of a session.
pub fn session(leader: u32) -> Vec<u32> {
    stats().into_iter().filter(|stat| stat.session == leader as i32).map(|stat| stat.pid as u32).collect()
}

/// Ids of a program and all processes that belong to it: descendants, processes of its session that have lost their
/// parent, and, if a supervisor started it, all other children of the supervisor: programs that put themselves into the
/// background.
pub fn members(root: u32) -> Vec<u32> {
    let stats = stats();
    let children = children(&stats);
    let mut open: Vec<i32> = stats.iter().filter(|stat| stat.session == root as i32).map(|stat| stat.pid).collect();
    open.push(root as i32);
    let parent = stats.iter().find(|stat| stat.pid == root as i32).map(|stat| stat.ppid);
    if let Some(supervisor) =
        stats.iter().find(|stat| Some(stat.pid) == parent && stat.comm.as_bytes() == NAME.to_bytes())
    {
        open.extend(children.get(&supervisor.pid).into_iter().flatten());
    }
    descend(&children, open)
}

/// Ids of all descendants of a process, without itself.
pub fn below(root: u32) -> Vec<u32> {
    let children = children(&stats());
    descend(&children, children.get(&(root as i32)).cloned().unwrap_or_default())
}

/// Ids of the descendants of a process that were started with this variable in their environment, and of all processes
/// below them.
pub fn marked_below(root: u32, variable: &str) -> Vec<u32> {
    let children = children(&stats());
    let all = descend(&children, children.get(&(root as i32)).cloned().unwrap_or_default());
    let mark = format!("{variable}=");
    let carries = |pid: &u32| {
        let path = format!("/proc/{pid}/environ");
        // A process that has ended meanwhile has no environment.
        std::fs::read(path)
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|word| word.starts_with(mark.as_bytes())))
    };
    descend(&children, all.into_iter().filter(carries).map(|pid| pid as i32).collect())
}

/// Ids of our user's processes that were started with this variable and value in their environment.
pub fn marked(variable: &str, value: &str) -> Vec<u32> {
    let mark = format!("{variable}={value}");
    let carries = |process: &Process| {
        let path = format!("/proc/{}/environ", process.pid());
        std::fs::read(path).is_ok_and(|text| text.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
    };
    all_processes().into_iter().flatten().flatten().filter(carries).map(|process| process.pid() as u32).collect()
}

/// Ids of the processes that run a program of this name, except those below another of them: the roots of the process
/// trees.
pub fn called(name: &str) -> Vec<u32> {
    let stats = stats();
    let is_called = |stat: &Stat| stat.comm == truncated(name) || first_word(stat.pid).is_some_and(|word| word == name);
    let found = stats.iter().filter(|stat| is_called(stat)).map(|stat| stat.pid).collect();
    roots_of(&stats, &found)
}

/// Those of these processes that are not below another of them, sorted: what is in two trees would count twice.
fn roots_of(stats: &[Stat], found: &HashSet<i32>) -> Vec<u32> {
    let children = children(stats);
    let below = |pid: &i32| children.get(pid).cloned().unwrap_or_default();
    let inner: HashSet<u32> = found.iter().flat_map(|pid| descend(&children, below(pid))).collect();
    // One in the session of another is a member of that one's tree.
    let is_member = |pid: &i32| stats.iter().any(|stat| stat.pid == *pid && is_led_by_another(stat, found));
    let mut roots: Vec<u32> =
        found.iter().filter(|pid| !is_member(pid)).map(|pid| *pid as u32).filter(|pid| !inner.contains(pid)).collect();
    roots.sort_unstable();
    roots
}

/// Ids of the root processes of the other containers in this pod, whose containers share a PID namespace
/// (`shareProcessNamespace`). The pause process, which holds the namespace, is not among them.
pub fn beside() -> Vec<u32> {
    other_processes(&stats(), std::process::id())
}

fn other_processes(stats: &[Stat], own: u32) -> Vec<u32> {
    let holds = |stat: &Stat| stat.pid == 1 && PAUSES.contains(&stat.comm.as_str());
    let is_held = stats.iter().any(holds);
    // A program that puts itself into the background becomes a child of process 1.
    let roots = stats.iter().filter(|stat| !holds(stat) && (stat.ppid == 0 || (is_held && stat.ppid == 1)));
    let children = children(stats);
    let is_other = |root: &&Stat| !descend(&children, vec![root.pid]).contains(&own);
    let found: Vec<&Stat> = roots.filter(is_other).collect();
    // One in the session of another root is a member of that root's tree.
    let leaders: HashSet<i32> = found.iter().map(|stat| stat.pid).collect();
    found.into_iter().filter(|stat| !is_led_by_another(stat, &leaders)).map(|stat| stat.pid as u32).collect()
}

/// Is it in the session of another of these processes, whose members count with that one ([`members`])?
fn is_led_by_another(stat: &Stat, leaders: &HashSet<i32>) -> bool {
    stat.session != stat.pid && leaders.contains(&stat.session)
}

/// Programs that hold the namespaces of a pod: that of Kubernetes (kubernetes/kubernetes, build/pause), and that of
/// podman.
const PAUSES: [&str; 2] = ["pause", "catatonit"];

/// A name as the kernel stores it: its first 15 bytes (proc_pid_comm(5)).
fn truncated(name: &str) -> &str {
    let end = (0..=name.len().min(15)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    &name[..end]
}

/// The program name in a process's command line, without its folder.
fn first_word(pid: i32) -> Option<String> {
    let words = Process::new(pid).ok()?.cmdline().ok()?;
    Some(words.first()?.rsplit('/').next()?.to_owned())
}

fn children(stats: &[Stat]) -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for stat in stats {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    children
}

/// These processes and all their descendants, sorted.
fn descend(children: &HashMap<i32, Vec<i32>>, mut open: Vec<i32>) -> Vec<u32> {
    let mut found: HashSet<i32> = HashSet::new();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    let mut members: Vec<u32> = found.into_iter().map(|pid| pid as u32).collect();
    members.sort_unstable();
    members
}

/// Does `root` or a process of its tree listen on this TCP port, in the network namespace of the calling thread? `None` if that
/// cannot be determined.
pub fn listens(root: u32, port: u16) -> Option<bool> {
    let listening = sockets::listening(port);
    if listening.is_empty() {
        return None;
    }
    let mut is_readable = true;
    for pid in members(root) {
        match holds_socket(pid, &listening) {
            Ok(true) => return Some(true),
            Ok(false) => {}
            Err(ProcError::PermissionDenied(_)) => is_readable = false,
            // The process has ended meanwhile.
            Err(_) => {}
        }
    }
    // Only if all processes could be read, it is certain that none listens.
    is_readable.then_some(false)
}

fn holds_socket(pid: u32, inodes: &HashSet<u64>) -> ProcResult<bool> {
    let descriptors = Process::new(pid as i32)?.fd()?;
    Ok(descriptors.flatten().any(|info| matches!(info.target, FDTarget::Socket(inode) if inodes.contains(&inode))))
}

/// `/proc/PID/stat` of every process; a process that ends meanwhile is left out.
fn stats() -> Vec<Stat> {
    all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use procfs::FromRead as _;

    fn stat(pid: i32, comm: &str, ppid: i32) -> Stat {
        let rest = "0 ".repeat(48);
        Stat::from_read(format!("{pid} ({comm}) S {ppid} {rest}").as_bytes()).unwrap()
    }

    #[test]
    fn an_observer_finds_the_other_containers_of_its_pod() {
        let pod = [(1, "pause", 0), (7, "mosquitto", 0), (8, "helper", 7), (20, "pubmark", 0), (21, "worker", 20)];
        let stats = pod.map(|(pid, comm, ppid)| stat(pid, comm, ppid));
        assert_eq!(other_processes(&stats, 21), [7]);
        assert_eq!(other_processes(&stats, 8), [20]);
        let mut with_a_daemon = stats.to_vec();
        with_a_daemon.push(stat(30, "epmd", 1));
        assert_eq!(other_processes(&with_a_daemon, 21), [7, 30]);
        // A child process that lost its parent and is still in its session is in the tree of that session already.
        let mut with_a_child = stats.to_vec();
        with_a_child.push(stat(31, "worker", 1));
        with_a_child[1].session = 7;
        with_a_child[5].session = 7;
        assert_eq!(other_processes(&with_a_child, 21), [7]);
        // If the program of the first container has process id 1 and no pause process exists, that program is the
        // system.
        assert_eq!(other_processes(&[stat(1, "mosquitto", 0), stat(9, "pubmark", 0)], 9), [1]);
    }

    #[test]
    fn a_listener_is_looked_for_in_the_network_of_the_calling_thread() {
        let in_a_network_of_its_own = || {
            // SAFETY: a plain system call; it changes the network namespace of this thread alone, which ends after the test.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return pubmark_testing::skip(
                    "a thread may not have a network namespace of its own (needs CAP_SYS_ADMIN)",
                );
            }
            // The loopback interface of a new namespace is down, so the listener is at all addresses.
            let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            assert_eq!(listens(std::process::id(), listener.local_addr().unwrap().port()), Some(true));
        };
        std::thread::spawn(in_a_network_of_its_own).join().unwrap();
    }

    #[test]
    fn what_is_below_another_of_its_name_is_no_root() {
        let stats = [(5, "broker", 1), (6, "sh", 5), (7, "broker", 6), (9, "broker", 1)];
        let stats = stats.map(|(pid, comm, ppid)| stat(pid, comm, ppid));
        assert_eq!(roots_of(&stats, &[5, 7, 9].into()), [5, 9]);
        assert_eq!(roots_of(&stats, &[7].into()), [7]);
        let mut orphaned = stats.to_vec();
        orphaned[3].session = 5;
        assert_eq!(roots_of(&orphaned, &[5, 9].into()), [5]);
    }
}
