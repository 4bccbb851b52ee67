//! Child processes.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes the kernel kill a child when the thread that starts it ends, whatever state the child is in: a stopped process does not notice
/// that its socket was closed. Call this last, because entering a namespace may clear the setting.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: plain system calls with numbers.
        let asked = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } == 0;
        if !asked {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        match u32::try_from(unsafe { libc::getppid() }) == Ok(parent) {
            true => Ok(()),
            // The parent ended between the fork and the system call.
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: between fork and exec only system calls are made that are async-signal-safe; nothing is allocated.
    unsafe { command.pre_exec(ask) };
}
