//! The limit of open files, which is the limit of connections.

use std::{fs, io};

/// Limits of open files of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// What holds.
    pub soft: u64,
    /// What it can be raised to without rights.
    pub hard: u64,
}

/// The limits that hold now.
pub fn limit() -> io::Result<DescriptorLimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(DescriptorLimit { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// Raises the soft limit to the hard one and says what holds then.
pub fn raise() -> io::Result<DescriptorLimit> {
    let found = limit()?;
    if found.soft < found.hard {
        set(found.hard)?;
    }
    limit()
}

/// The same; where N are needed and the hard limit is below, that too, if we have the right to.
pub fn raise_for(needed: u64) -> io::Result<DescriptorLimit> {
    let found = raise()?;
    // Who may not (root may, unless it has no CAP_SYS_RESOURCE) keeps what there is.
    if found.hard < needed && set(needed).is_ok() { limit() } else { Ok(found) }
}

/// What the limit can be raised to, without doing it: the hard one, or what the kernel grants at most to who may raise that.
pub fn reachable() -> io::Result<u64> {
    let hard = limit()?.hard;
    let status = fs::read_to_string("/proc/self/status")?;
    match may_raise(&status) {
        true => Ok(hard.max(fs::read_to_string("/proc/sys/fs/nr_open")?.trim().parse().unwrap_or(hard))),
        false => Ok(hard),
    }
}

/// Has a process with this status (`proc_pid_status(5)`) the right to raise hard limits?
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
        // More than there can be (`fs.nr_open`) is no error, and takes nothing away.
        assert_eq!(raise_for(u64::MAX - 1).unwrap(), raised);
        assert_eq!(raise_for(1).unwrap(), raised);
        assert!(reachable().unwrap() >= raised.hard);
    }

    #[test]
    fn who_may_raise_a_limit_is_known_by_a_bit() {
        for (rights, may) in [("000001ffffffffff", true), ("000001fffeffffff", false), ("0000000000000000", false)] {
            assert_eq!(may_raise(&format!("Name:\tx\nCapEff:\t{rights}\n")), may, "{rights}");
        }
    }
}
