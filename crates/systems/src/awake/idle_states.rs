//! Disables CPU idle states, as cyclictest of rt-tests does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};

/// Device for requesting the longest wake-up latency: Documentation/power/pm_qos_interface.rst of Linux.
pub(super) const DEVICE: &str = "/dev/cpu_dma_latency";
/// Names the driver that chooses an idle state: Documentation/admin-guide/pm/cpuidle.rst of Linux.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// Cores poll instead of sleeping until this is dropped.
#[derive(Debug)]
pub(super) struct Disabled {
    _held: File,
}

impl Disabled {
    /// Requests a wake-up latency of 0.
    pub(super) fn hold() -> io::Result<Disabled> {
        let mut held = open()?;
        held.write_all(&0i32.to_ne_bytes())?;
        Ok(Disabled { _held: held })
    }
}

/// Can the request be made?
pub(super) fn is_allowed() -> io::Result<()> {
    // Opening the device requests nothing: the kernel's default value has no effect.
    open().map(drop)
}

fn open() -> io::Result<File> {
    OpenOptions::new().write(true).open(DEVICE)
}

/// Has this kernel a driver that could follow the request? Without one, the request succeeds and has no effect.
pub(super) fn have_driver() -> bool {
    !has_no_driver(fs::read_to_string(DRIVER).ok().as_deref())
}

/// Does this content of [`DRIVER`] say that there is no driver? Where the file cannot be read, nothing is known.
fn has_no_driver(content: Option<&str>) -> bool {
    content.is_some_and(|content| content.trim() == "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_driver_of_idle_states_is_recognized() {
        assert!(has_no_driver(Some("none\n")));
        assert!(![Some("haltpoll\n"), Some("intel_idle\n"), Some(""), None].map(has_no_driver).contains(&true));
    }
}
