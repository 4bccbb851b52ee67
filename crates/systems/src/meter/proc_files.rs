//! Figures of a single process, from its folder in `/proc`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Proportional set of a process, bytes. The kernel walks all pages of the process to compute it. `Ok(None)` if the
/// process has ended.
pub(super) fn proportional_bytes(pid: u32) -> io::Result<Option<u64>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => text,
        Err(error) if ended(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    // A zombie has no memory, and its file has no such line.
    Ok(Some(kib.unwrap_or(0u64) * 1_024))
}

/// Open descriptors of a process; `Ok(None)` if the process has ended.
///
/// Since Linux 6.2 the size of `/proc/PID/fd` is their number. In older versions the size is 0, and the entries are
/// counted.
pub(super) fn descriptors(pid: u32) -> io::Result<Option<u64>> {
    let folder = format!("/proc/{pid}/fd");
    let counted = || match fs::metadata(&folder)?.size() {
        0 => Ok(fs::read_dir(&folder)?.count() as u64),
        known => Ok(known),
    };
    match counted() {
        Ok(count) => Ok(Some(count)),
        Err(error) if ended(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sum of a figure over processes; `None` if we have no permission to read one of them, or all have ended.
pub(super) fn sum(pids: &[u32], of: impl Fn(u32) -> io::Result<Option<u64>>) -> Option<u64> {
    let mut sum = None;
    for pid in pids {
        // A sum that lacks a part would be too small, and nothing would show it.
        if let Some(value) = of(*pid).ok()? {
            sum = Some(sum.unwrap_or(0) + value);
        }
    }
    sum
}

fn ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_exactly() {
        let pid = std::process::id();
        // Other tests of this process open and close descriptors too: a count is exact if the readings around it are equal.
        let agreed = (0..1_000).find_map(|_| {
            let before = descriptors(pid).unwrap().unwrap();
            // The count itself has the folder open.
            let listed = fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
            (before == descriptors(pid).unwrap().unwrap()).then_some((before, listed))
        });
        let (reported, listed) = agreed.unwrap();
        assert!(reported.abs_diff(listed) <= 1 && reported >= 3, "{reported} {listed}");
    }

    #[test]
    fn a_process_that_ended_adds_nothing_and_all_that_ended_are_unknown() {
        let (own, nobody) = (std::process::id(), u32::MAX >> 1);
        assert_eq!(proportional_bytes(nobody).unwrap(), None);
        assert_eq!(sum(&[nobody], descriptors), None);
        assert!(sum(&[own, nobody], proportional_bytes).unwrap() > 100_000);
        assert_eq!(sum(&[own], |_| Err(io::ErrorKind::PermissionDenied.into())), None);
    }
}
