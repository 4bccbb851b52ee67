//! Cores: which ones a process may use, and which ones are assigned to the system and to pubmark
//! (`--pin system=0 generator=1`).

use std::io;

/// Cores assigned to each side; a side without any may use all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Cores of the system.
    pub system: Vec<u32>,
    /// Cores of pubmark.
    pub generator: Vec<u32>,
}

impl Pins {
    /// Whether the system has no core but those of pubmark. `present` are the cores that this process had at its start, which a side
    /// without any of its own inherits.
    pub fn share_all(&self, present: &[u32]) -> bool {
        let cores = |side: &[u32]| if side.is_empty() { present.to_vec() } else { side.to_vec() };
        let generator = cores(&self.generator);
        cores(&self.system).iter().all(|core| generator.contains(core))
    }
}

/// Why cores cannot be assigned as requested.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The text does not assign cores to a side.
    #[error("`{written}` gives no cores to a side: write `system=0` or `generator=1-3,5`")]
    Unreadable {
        /// The text.
        written: String,
    },
    /// A side has cores twice.
    #[error("cores are given to `{side}` twice: write `{side}=0-1` once")]
    Repeated {
        /// The side.
        side: String,
    },
    /// A core that this process may not use.
    #[error("core {core} is not there to be given: this process may use {present}")]
    NotThere {
        /// The core.
        core: u32,
        /// The cores that may be used.
        present: String,
    },
    /// The kernel refused.
    #[error("failed to keep this process to cores {cores}")]
    Refused {
        /// The requested cores.
        cores: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// Number of cores in a `cpu_set_t` (sched_setaffinity(2)); core numbers are below it.
const MOST_CORES: u32 = libc::CPU_SETSIZE as u32;

/// Parses values such as `system=0-1,3` and `generator=2`, and compares them with the cores of this process.
pub fn parse_pins<Text: AsRef<str>>(values: &[Text]) -> Result<Pins, PinError> {
    parse_pins_for(values, &own_cores())
}

/// Parses the same values, and compares them with the given cores.
pub fn parse_pins_for<Text: AsRef<str>>(values: &[Text], present: &[u32]) -> Result<Pins, PinError> {
    let mut pins = Pins::default();
    for value in values {
        let written = value.as_ref().trim();
        let unreadable = || PinError::Unreadable { written: written.to_owned() };
        let (side, list) = written.split_once('=').ok_or_else(unreadable)?;
        let place = match side.trim() {
            "system" => &mut pins.system,
            "generator" => &mut pins.generator,
            _ => return Err(unreadable()),
        };
        if !place.is_empty() {
            return Err(PinError::Repeated { side: side.trim().to_owned() });
        }
        *place = parse_list(list).ok_or_else(unreadable)?;
        if let Some(core) = place.iter().find(|core| !present.contains(core)) {
            return Err(PinError::NotThere { core: *core, present: shown(present) });
        }
    }
    Ok(pins)
}

/// Parses a list in the kernel's format: `0-1,3`. The result is sorted, without duplicates; `None` if the text is not a
/// list.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || last >= MOST_CORES {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Formats a sorted list as the kernel does: `0-1,3`.
pub fn shown(cores: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for core in cores {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *core => *last = *core,
            _ => parts.push((*core, *core)),
        }
    }
    let words: Vec<String> = parts
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    words.join(",")
}

/// Cores that this process may use.
pub fn own_cores() -> Vec<u32> {
    // SAFETY: an all-zero set is valid, the call fills it, and its size is given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
            return (0..count).collect();
        }
        set
    };
    // SAFETY: every index is below the set's size.
    (0..MOST_CORES).filter(|core| unsafe { libc::CPU_ISSET(*core as usize, &set) }).collect()
}

/// A set for system calls. Cores beyond its size were refused when they were parsed.
pub(crate) fn set_of(cores: &[u32]) -> libc::cpu_set_t {
    // SAFETY: an all-zero set is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores.iter().filter(|core| **core < MOST_CORES) {
        // SAFETY: the index is below the set's size.
        unsafe { libc::CPU_SET(*core as usize, &mut set) };
    }
    set
}

/// Restricts this process, all its present threads and later ones, to these cores. An empty list changes nothing.
pub fn pin_this_process(cores: &[u32]) -> Result<(), PinError> {
    if cores.is_empty() {
        return Ok(());
    }
    let refused = |source| PinError::Refused { cores: shown(cores), source };
    let set = set_of(cores);
    for entry in std::fs::read_dir("/proc/self/task").map_err(refused)?.flatten() {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<libc::pid_t>().ok()) else {
            continue;
        };
        // SAFETY: the set is valid and its size is given; a thread that has ended makes the call fail.
        if unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) } != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::ESRCH) {
                return Err(refused(error));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_side_gets_the_cores_written() {
        let pins = parse_pins_for(&["system=0-1,3", "generator=2"], &[0, 1, 2, 3]).unwrap();
        assert_eq!(pins, Pins { system: vec![0, 1, 3], generator: vec![2] });
        assert_eq!(shown(&pins.system), "0-1,3");
    }

    #[test]
    fn cores_that_cannot_be_given_are_named() {
        for (written, expected) in [
            (vec!["system"], "`system` gives no cores to a side: write `system=0` or `generator=1-3,5`"),
            (vec!["broker=0"], "`broker=0` gives no cores"),
            (vec!["system="], "`system=` gives no cores"),
            (vec!["system=1-0"], "`system=1-0` gives no cores"),
            (vec!["system=99999"], "`system=99999` gives no cores"),
            (vec!["system=0", "system=1"], "cores are given to `system` twice"),
            (vec!["generator=2"], "core 2 is not there to be given: this process may use 0-1"),
        ] {
            let error = parse_pins_for(&written, &[0, 1]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{written:?}: {error}");
        }
    }

    #[test]
    fn a_system_shares_its_cores_unless_one_is_its_own() {
        let share = |system: &[u32], generator: &[u32]| {
            Pins { system: system.to_vec(), generator: generator.to_vec() }.share_all(&[0, 1])
        };
        assert!(share(&[], &[]), "both inherit the cores of the process");
        assert!(share(&[0], &[]) && share(&[0], &[0]) && share(&[], &[0, 1]));
        assert!(!share(&[0, 1], &[1]) && !share(&[0], &[1]));
    }

    #[test]
    fn a_process_is_pinned_to_its_cores() {
        // In a separate thread, and restored at the end: other tests of this process run at the same time.
        let all = own_cores();
        pin_this_process(&all[..1]).unwrap();
        assert_eq!(own_cores(), all[..1]);
        pin_this_process(&all).unwrap();
        assert_eq!(own_cores(), all);
    }

    proptest::proptest! {
        #[test]
        fn a_list_that_was_shown_is_read_back(cores in proptest::collection::btree_set(0u32..1_024, 1..40)) {
            let cores: Vec<u32> = cores.into_iter().collect();
            proptest::prop_assert_eq!(parse_list(&shown(&cores)), Some(cores));
        }
    }
}
