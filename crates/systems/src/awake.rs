//! Disables CPU idle states: a sleeping core takes time to wake up, in a virtual machine hundreds of µs, and messages
//! that are due meanwhile are late. cyclictest of rt-tests does the same.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

/// Device for requesting the longest wake-up latency: Documentation/power/pm_qos_interface.rst of Linux.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// The machine's cores poll instead of sleeping until this is dropped, or the process ends for any reason.
#[derive(Debug)]
pub struct IdleStatesDisabled {
    _held: File,
}

impl IdleStatesDisabled {
    /// Requests a wake-up latency of 0.
    ///
    /// # Errors
    /// The device does not exist or cannot be written: it belongs to root.
    pub fn hold() -> io::Result<IdleStatesDisabled> {
        let mut held = OpenOptions::new().write(true).open(DEVICE)?;
        held.write_all(&0i32.to_ne_bytes())?;
        Ok(IdleStatesDisabled { _held: held })
    }

    /// Can the request be made?
    ///
    /// # Errors
    /// The reason why not.
    pub fn is_allowed() -> io::Result<()> {
        // Opening the device requests nothing: the kernel's default value has no effect.
        OpenOptions::new().write(true).open(DEVICE).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_held_where_it_is_allowed() {
        assert_eq!(IdleStatesDisabled::hold().is_ok(), IdleStatesDisabled::is_allowed().is_ok());
    }
}
