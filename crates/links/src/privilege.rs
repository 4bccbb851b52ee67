//! Whether links can be made here, and what is missing if not.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use pubmark_model::link::Conditions;

use crate::error::LinkError;
use crate::namespace::{Namespace, spawn};
use crate::netem;
use crate::netlink::Netlink;
use crate::{tun, wires};

/// Bit of CAP_SYS_ADMIN (linux/capability.h), which namespaces need.
const SYS_ADMIN: u32 = 21;

/// A thread that was joined is still the kernel's for a moment; a user namespace is tried for again so long.
const THREAD_ENDS: Duration = Duration::from_millis(100);

/// How this process may make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It has CAP_SYS_ADMIN: it is root, or [`claim`] made it so within a user namespace.
    Administrator,
    /// It may become root of a user namespace of its own: [`claim`], before any thread is started.
    UserNamespace,
    /// Not at all.
    None,
}

/// What links need and this machine has.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// How namespaces can be made.
    pub privilege: Privilege,
    /// Why an interface cannot be made, if it cannot.
    pub tun: Result<(), String>,
    /// May a thread run under SCHED_FIFO? Without it, links are less punctual when the machine is busy.
    pub realtime: bool,
    /// Why the kernel's netem cannot be used, if it cannot; it needs no [`tun`](Self::tun).
    pub kernel_netem: Result<(), String>,
}

impl Capabilities {
    /// What is missing for links, as one sentence; `None` if they can be made.
    pub fn missing(&self) -> Option<String> {
        if self.privilege == Privilege::None {
            let text =
                "namespaces need root (CAP_SYS_ADMIN) or the permission to make user namespaces, and there is neither";
            return Some(text.to_owned());
        }
        let error = self.tun.as_ref().err()?;
        Some(format!("interfaces need `{}`, and it cannot be used: {error}", tun::DEVICE))
    }
}

/// Checks what is available by trying it in temporary namespaces. Nothing outside of them is changed.
pub fn probe() -> Capabilities {
    let privilege = privilege();
    let none = || Err("no namespace to make one in".to_owned());
    let [tun, kernel_netem] = match privilege {
        Privilege::Administrator => inside().unwrap_or_else(|error| [Err(chain(&error)), Err(chain(&error))]),
        Privilege::UserNamespace => {
            let untried = "it is tried by root only".to_owned();
            [attempt(true).map_err(|error| error.to_string()), Err(untried)]
        }
        Privilege::None => [none(), none()],
    };
    Capabilities { privilege, tun, realtime: may_be_realtime(), kernel_netem }
}

/// Becomes root of a user namespace with an empty network of its own, if the process is not root already. To be called
/// first in `main`: the kernel refuses once there is a second thread. From then on the process does not reach the
/// machine's own network, so only a run with links should do it.
pub fn claim() -> Result<Privilege, LinkError> {
    if has_sys_admin() {
        return Ok(Privilege::Administrator);
    }
    // SAFETY: numbers only.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    leave_user_namespace()?;
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, text).map_err(|error| LinkError::refused(format!("write `{file}`"), error))?;
    }
    Netlink::open()?.up(Netlink::index("lo")?)?;
    Ok(Privilege::Administrator)
}

/// Into a user namespace with a network of its own.
fn leave_user_namespace() -> Result<(), LinkError> {
    let deadline = Instant::now() + THREAD_ENDS;
    loop {
        // SAFETY: no pointers are passed; the result is checked.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        let threads = error.raw_os_error() == Some(libc::EINVAL);
        if threads && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let missing = if threads {
            "a user namespace can only be made before other threads are started".to_owned()
        } else {
            format!("the process is not root and may not make a user namespace: {error}")
        };
        return Err(LinkError::Impossible { missing });
    }
}

/// May this process make namespaces as it is, without [`claim`]?
pub fn is_administrator() -> bool {
    has_sys_admin()
}

fn privilege() -> Privilege {
    if has_sys_admin() {
        Privilege::Administrator
    } else if attempt(false).is_ok() {
        Privilege::UserNamespace
    } else {
        Privilege::None
    }
}

fn has_sys_admin() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> SYS_ADMIN & 1 == 1)
}

/// Makes a user namespace, with an interface in it if requested, in a child process that ends before it runs a program.
fn attempt(with_interface: bool) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    let steps = move || {
        // SAFETY: no pointers are passed; the result is checked.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        if with_interface {
            tun::try_open()?;
        }
        Err(io::Error::from_raw_os_error(libc::ECANCELED))
    };
    // SAFETY: between fork and exec only system calls are made and nothing is allocated: opening with a constant path
    // of fewer than 384 bytes keeps it on the stack. The child never gets to exec: every way ends in an error.
    unsafe { command.pre_exec(steps) };
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => {
            // Impossible: the closure never returns success. If it did, the child must not be left running.
            child.kill()?;
            child.wait().map(drop)
        }
    }
}

/// Tries an interface and `netem` in a namespace of their own.
fn inside() -> Result<[Result<(), String>; 2], LinkError> {
    let probe = Namespace::create("probe")?;
    probe.enter(|| {
        let tun = tun::open("probe0").map(drop).map_err(|error| chain(&error));
        let kernel_netem = has_netem(&probe).map_err(|error| match wires::unknown(error) {
            LinkError::Impossible { missing } => missing,
            error => chain(&error),
        });
        [tun, kernel_netem]
    })
}

/// Does the kernel take a `netem` queue on an interface of a pair in the calling thread's namespace? Only in one that is thrown
/// away.
fn has_netem(probe: &Namespace) -> Result<(), LinkError> {
    let mut netlink = Netlink::open()?;
    netlink.add_pair("probe1", "probe2", probe.descriptor())?;
    let index = Netlink::index("probe1")?;
    netlink.request(|| "add a netem queue".to_owned(), netem::request(index, &Conditions::default()))
}

fn may_be_realtime() -> bool {
    let attempt = || {
        // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = 1;
        // SAFETY: a live sched_param; 0 names the calling thread, which ends right after.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
    };
    spawn("probe", attempt).is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// An error with its causes, for one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_one_sentence() {
        let all =
            Capabilities { privilege: Privilege::Administrator, tun: Ok(()), realtime: false, kernel_netem: Ok(()) };
        assert_eq!(all.missing(), None);
        let none = Capabilities { privilege: Privilege::None, ..all.clone() };
        assert!(none.missing().unwrap().contains("neither"));
        let closed = Capabilities { tun: Err("Permission denied (os error 13)".to_owned()), ..all };
        assert!(closed.missing().unwrap().ends_with("cannot be used: Permission denied (os error 13)"));
    }

    #[test]
    fn a_probe_agrees_with_what_can_be_done() {
        let found = probe();
        let made = Namespace::create("test").and_then(|namespace| namespace.enter(|| tun::open("test0"))?);
        match found.privilege {
            Privilege::Administrator => assert_eq!(made.is_ok(), found.missing().is_none(), "{found:?}, {made:?}"),
            _ => assert!(made.is_err(), "{found:?}"),
        }
    }

    #[test]
    fn many_threads_keep_a_process_from_a_user_namespace() {
        // The test runner has several threads: the claim must not half succeed.
        match claim() {
            Ok(privilege) => assert_eq!(privilege, Privilege::Administrator),
            Err(error) => assert!(matches!(error, LinkError::Impossible { .. }), "{error}"),
        }
    }
}
