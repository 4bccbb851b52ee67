//! Keeps the machine's cores from sleeping: a core that sleeps takes time to wake up, in a virtual machine hundreds of µs, and whatever is
//! due meanwhile is late. cyclictest of rt-tests does the same.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

/// Where the longest time that a wake-up may take is asked for: Documentation/power/pm_qos_interface.rst of Linux.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// The machine's cores poll instead of sleeping until this is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub struct IdleStatesDisabled {
    _held: File,
}

impl IdleStatesDisabled {
    /// Asks for wake-ups without delay.
    ///
    /// # Errors
    /// The device is not there or may not be written: it is root's.
    pub fn hold() -> io::Result<IdleStatesDisabled> {
        let mut held = OpenOptions::new().write(true).open(DEVICE)?;
        held.write_all(&0i32.to_ne_bytes())?;
        Ok(IdleStatesDisabled { _held: held })
    }

    /// May it be asked for?
    ///
    /// # Errors
    /// Why not.
    pub fn is_allowed() -> io::Result<()> {
        // Opening alone asks for nothing yet: the kernel's default value changes nothing.
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
