//! The limit of open files, which limits the number of connections.

use std::{fs, io};

/// Limits of open files of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit that is in force.
    pub soft: u64,
    /// The value to which the soft limit can be raised without privileges.
    pub hard: u64,
}

/// The current limits.
pub fn limit() -> io::Result<DescriptorLimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(DescriptorLimit { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// Raises the soft limit to the hard limit and returns the limits in force.
pub fn raise() -> io::Result<DescriptorLimit> {
    let found = limit()?;
    if found.soft < found.hard {
        set(found.hard)?;
    }
    limit()
}

/// Raises the soft limit to the hard limit. If `needed` is above it, also raises the hard limit, if we have the right
/// to.
pub fn raise_for(needed: u64) -> io::Result<DescriptorLimit> {
    let found = raise()?;
    // Without the right (root has it, unless CAP_SYS_RESOURCE is missing), the limit stays as it is.
    if found.hard < needed && set(needed).is_ok() { limit() } else { Ok(found) }
}

/// The value to which the limit could be raised, without raising it: the hard limit, or the kernel's maximum if we have
/// the right to raise the hard limit.
pub fn reachable() -> io::Result<u64> {
    let hard = limit()?.hard;
    let status = fs::read_to_string("/proc/self/status")?;
    match may_raise(&status) {
        true => Ok(hard.max(fs::read_to_string("/proc/sys/fs/nr_open")?.trim().parse().unwrap_or(hard))),
        false => Ok(hard),
    }
}

/// Does a process with this status (`proc_pid_status(5)`) have the right to raise hard limits?
fn may_raise(status: &str) -> bool {
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    rights
        .and_then(|rights| u64::from_str_radix(rights.trim(), 16).ok())
        .is_some_and(|rights| rights >> SYS_RESOURCE & 1 == 1)
}

/// Number of CAP_SYS_RESOURCE (`capabilities(7)`).
const SYS_RESOURCE: u32 = 24;

/// Sets both limits.
fn set(limit: u64) -> io::Result<()> {
    let wanted = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: `wanted` is a valid rlimit.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used)]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let raised = raise().unwrap();
        assert_eq!(raised.soft, raised.hard);
        assert_eq!(limit().unwrap(), raised);
        // More than the kernel's maximum (`fs.nr_open`) is not an error, and lowers nothing.
        assert_eq!(raise_for(u64::MAX - 1).unwrap(), raised);
        assert_eq!(raise_for(1).unwrap(), raised);
        assert!(reachable().unwrap() >= raised.hard);
    }

    #[test]
    fn the_right_to_raise_a_limit_is_a_capability_bit() {
        for (rights, may) in [("000001ffffffffff", true), ("000001fffeffffff", false), ("0000000000000000", false)] {
            assert_eq!(may_raise(&format!("Name:\tx\nCapEff:\t{rights}\n")), may, "{rights}");
        }
    }
}
