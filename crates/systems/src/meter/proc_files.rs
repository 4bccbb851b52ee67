//! Facts of a single process, from its folder in `/proc`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Proportional set of a process, bytes; the kernel walks all its pages for it. `Ok(None)` if it ended.
pub(super) fn proportional_bytes(pid: u32) -> io::Result<Option<u64>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => text,
        Err(error) if ended(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    // A zombie has no memory and no line.
    Ok(Some(kib.unwrap_or(0u64) * 1_024))
}

/// Open descriptors of a process; `Ok(None)` if it ended.
///
/// Since Linux 6.2 the size of `/proc/PID/fd` is their number; before, it is 0 and they are counted one by one.
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

/// Sum over processes of something each may be asked; `None` if one is not ours to ask, or all ended.
pub(super) fn sum(pids: &[u32], of: impl Fn(u32) -> io::Result<Option<u64>>) -> Option<u64> {
    let mut sum = None;
    for pid in pids {
        // A sum without one of its parts would be too small and not say so.
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
        // Other tests of this process open and close some, too: two looks that agree with a count between them are exact.
        let agreed = (0..1_000).find_map(|_| {
            let before = descriptors(pid).unwrap().unwrap();
            // The count itself has the folder open.
            let listed = fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
            (before == descriptors(pid).unwrap().unwrap()).then_some((before, listed))
        });
        let (told, listed) = agreed.unwrap();
        assert!(told.abs_diff(listed) <= 1 && told >= 3, "{told} {listed}");
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
