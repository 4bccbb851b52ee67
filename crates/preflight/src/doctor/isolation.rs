//! Checks of what isolates a system from pubmark and from the rest of the machine: cores, control groups, namespaces, netem.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use pubmark_links::privilege::{self, Privilege};
use pubmark_systems::affinity;
use pubmark_systems::cgroup::control::{CgroupLimits, Plan};
use pubmark_systems::cgroup::layout::{Layout, Version};
use pubmark_systems::cgroup::quota;

use super::{Finding, read};

/// With a single core, the system and pubmark compete for CPU time.
pub fn cores() -> Finding {
    let own = affinity::own_cores();
    // Such as `0-3`. The CPU affinity of this process may allow fewer cores than are online.
    let present = read("/sys/devices/system/cpu/online").map_or_else(|| "—".to_owned(), |text| text.trim().to_owned());
    let quota = quota::own_cores().filter(|quota| *quota < own.len() as f64);
    let limit = quota
        .map_or_else(String::new, |quota| format!("; pubmark's control group allows CPU time of {quota:.1} cores"));
    let text = format!("{} may be used: {}, of those online: {present}{limit}", own.len(), affinity::shown(&own));
    match (own.len(), quota) {
        (0 | 1, _) => Finding::limited(
            format!("{text}: the system and pubmark share it"),
            "a machine, or `taskset`, with at least two cores; `--pin` gives each side its own",
        ),
        (_, Some(quota)) if quota < 2.0 => Finding::limited(
            format!("{text}: the system and pubmark share it"),
            "a control group (`cpu.max`, `cpus` of a container) with CPU time of at least two cores",
        ),
        _ => Finding::good(format!("{text}; `--pin` gives each side its own")),
    }
}

/// Can resource limits be enforced? Tested with a control group that is removed at once.
pub fn control_groups() -> Finding {
    let fix = "run as root, or where systemd delegates: `systemd-run --user --scope -p Delegate=yes pubmark …`";
    let layout = match Layout::read() {
        Ok(layout) => layout,
        Err(error) => return Finding::limited(format!("none can be read ({error}): `--limit` is refused"), fix),
    };
    let version = match layout.version() {
        Version::None => return Finding::limited("none are mounted: `--limit` is refused", fix),
        version => version.shown(),
    };
    let required = CgroupLimits { cpu: Some(0.5), memory_bytes: Some(64 << 20), cores: vec![] };
    let name = format!("pubmark-{}-doctor", std::process::id());
    match Plan::new(&layout, &name, &required).and_then(Plan::make) {
        Ok(made) => {
            // The group has no processes. If it cannot be removed, the next run treats it as abandoned.
            made.folders().iter().for_each(|folder| drop(fs::remove_dir(folder)));
            Finding::good(format!("{version}: `--limit` can hold CPU time and memory"))
        }
        Err(error) => Finding::limited(format!("{version}, but `--limit` is refused: {error}"), fix),
    }
}

/// Can a network namespace be created? Tested in a child process that ends at once.
pub fn namespaces() -> Finding {
    // SAFETY: a plain system call that returns a number.
    let flags = match unsafe { libc::geteuid() } {
        0 => libc::CLONE_NEWNET,
        _ => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
    };
    let mut child = Command::new("true");
    child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only one system call is made, which is allowed there.
    unsafe {
        child.pre_exec(move || match libc::unshare(flags) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    match child.status() {
        Ok(status) if status.success() => Finding::good(match flags & libc::CLONE_NEWUSER {
            0 => "networks of their own can be made, as root",
            _ => "networks of their own can be made, in a user namespace",
        }),
        Ok(status) => Finding::limited(format!("a child in one ended with {status}"), "run as root"),
        Err(error) => Finding::limited(
            format!("no network of its own can be made: {error}"),
            "run as root, or allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1`",
        ),
    }
}

/// Can links be emulated here? Tested in temporary namespaces.
pub fn links() -> Finding {
    let found = privilege::probe();
    if let Some(missing) = found.missing() {
        let fix = match found.privilege {
            Privilege::None => "run as root, or allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1`",
            _ => "`modprobe tun` as root; in a container `--device /dev/net/tun --cap-add NET_ADMIN`",
        };
        return Finding::limited(format!("`--link` is refused: {missing}"), fix);
    }
    let claimed = match found.privilege {
        Privilege::UserNamespace => Some(claim_user_namespace()),
        Privilege::Administrator | Privilege::None => None,
    };
    usable_links(claimed, found.realtime)
}

/// `claimed`: whether a process of this user becomes root of a user namespace; `None` if it is root already.
fn usable_links(claimed: Option<io::Result<()>>, realtime: bool) -> Finding {
    let place = match claimed {
        None => "",
        Some(Ok(())) => ", in a user namespace: pubmark then leaves this machine's network",
        Some(Err(error)) => {
            return Finding::limited(
                format!("`--link` is refused: a user namespace can be made, and this user is not root in it: {error}"),
                "run as root, or as root permit it: on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
            );
        }
    };
    let punctual = if realtime { "" } else { "; without SCHED_FIFO they are late while the machine is busy" };
    Finding::good(format!("`--link` can be used{place}{punctual}"))
}

/// Does in a child process what a run with links does first ([`privilege::claim`]). The child ends before it runs a program.
fn claim_user_namespace() -> io::Result<()> {
    // SAFETY: plain system calls that return numbers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    let steps = move || {
        // SAFETY: no pointers are passed; the result is checked.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let write =
            |(file, text): &(&str, String)| fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
        files.iter().try_for_each(write)?;
        Err(io::Error::from_raw_os_error(libc::ECANCELED))
    };
    let mut child = Command::new("/proc/self/exe");
    child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only system calls are made and nothing is allocated: opening with a path of fewer than 384
    // bytes keeps it on the stack. The child never gets to exec: every way ends in an error.
    unsafe { child.pre_exec(steps) };
    match child.status() {
        Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
        ended => ended.map(drop),
    }
}

/// Is the kernel's link emulation (netem) available? Tested in a separate network namespace.
pub fn netem() -> Finding {
    Finding::good(match privilege::probe().kernel_netem {
        Ok(()) => "links can be emulated by the kernel: `--netem kernel`".to_owned(),
        Err(why) => format!("no `--netem kernel`: {why}; links are emulated in user space, and nothing needs it"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Fitness;
    use super::*;

    #[test]
    fn a_user_who_becomes_root_of_a_user_namespace_can_use_links() {
        let can = usable_links(Some(Ok(())), true);
        assert!(can.fitness == Fitness::Good && can.text.contains("in a user namespace"), "{can:?}");
        assert_eq!(usable_links(None, true).text, "`--link` can be used");
        let refused = usable_links(Some(Err(io::Error::from_raw_os_error(libc::EPERM))), true);
        assert!(refused.fitness == Fitness::Limited && refused.text.starts_with("`--link` is refused"), "{refused:?}");
        let fix = refused.fix.unwrap();
        assert!(!fix.contains("unshare"), "it is refused for the same reason: {fix}");
    }

    #[test]
    fn a_namespace_is_claimed_in_a_child_process() {
        let namespace = || fs::read_link("/proc/self/ns/net").unwrap();
        let before = namespace();
        // Whether it is permitted depends on the machine.
        drop(claim_user_namespace());
        assert_eq!(namespace(), before);
    }
}
