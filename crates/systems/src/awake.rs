//! Disables CPU idle states: a sleeping core takes time to wake up, in a virtual machine hundreds of µs, and messages
//! that are due meanwhile are late. cyclictest of rt-tests does the same.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};

use thiserror::Error;

/// Device for requesting the longest wake-up latency: Documentation/power/pm_qos_interface.rst of Linux.
const DEVICE: &str = "/dev/cpu_dma_latency";
/// Names the driver that chooses an idle state: Documentation/admin-guide/pm/cpuidle.rst of Linux.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// The reason why idle states stay enabled.
#[derive(Debug, Error)]
pub enum AwakeError {
    /// The device does not exist or cannot be written: it belongs to root.
    #[error("{DEVICE}: {0}")]
    Device(io::Error),
    /// The kernel takes the request and has nothing that could follow it.
    #[error("this kernel has no driver for CPU idle states, as in virtual machines whose host decides about them")]
    NoDriver,
}

impl AwakeError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            AwakeError::Device(_) => "run as root, or give your user write access to /dev/cpu_dma_latency",
            AwakeError::NoDriver => "run pubmark on the host itself, or boot this kernel with `idle=poll`",
        }
    }
}

/// The machine's cores poll instead of sleeping until this is dropped, or the process ends for any reason.
#[derive(Debug)]
pub struct IdleStatesDisabled {
    _held: File,
}

impl IdleStatesDisabled {
    /// Requests a wake-up latency of 0.
    ///
    /// # Errors
    /// The request cannot be made, or would have no effect.
    pub fn hold() -> Result<IdleStatesDisabled, AwakeError> {
        let mut held = open()?;
        held.write_all(&0i32.to_ne_bytes()).map_err(AwakeError::Device)?;
        Ok(IdleStatesDisabled { _held: held })
    }

    /// Can the request be made, and would it have an effect?
    ///
    /// # Errors
    /// The reason why not.
    pub fn is_allowed() -> Result<(), AwakeError> {
        // Opening the device requests nothing: the kernel's default value has no effect.
        open().map(drop)
    }
}

fn open() -> Result<File, AwakeError> {
    if has_no_driver(fs::read_to_string(DRIVER).ok().as_deref()) {
        return Err(AwakeError::NoDriver);
    }
    OpenOptions::new().write(true).open(DEVICE).map_err(AwakeError::Device)
}

/// Does this content of [`DRIVER`] say that there is no driver? Where the file cannot be read, nothing is known.
fn has_no_driver(content: Option<&str>) -> bool {
    content.is_some_and(|content| content.trim() == "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_held_where_it_is_allowed() {
        assert_eq!(IdleStatesDisabled::hold().is_ok(), IdleStatesDisabled::is_allowed().is_ok());
    }

    #[test]
    fn a_kernel_without_a_driver_of_idle_states_is_recognized() {
        assert!(has_no_driver(Some("none\n")));
        assert!(![Some("haltpoll\n"), Some("intel_idle\n"), Some(""), None].map(has_no_driver).contains(&true));
    }
}
