//! The cores on which each side runs.

use pubmark_systems::affinity::{self, Pins};

use crate::error::{ErrorKind, RunError};
use crate::host::Host;

/// Pins pubmark's threads to the generator's cores. The system is pinned where it is started.
pub fn pin_generator(pins: &Pins) -> Result<(), RunError> {
    affinity::pin_this_process(&pins.generator).map_err(|error| RunError::from_error(ErrorKind::Input, &error))
}

/// Parses the pins of both sides. If only the generator is pinned, the system is explicitly given all cores: it is
/// started by a pinned process and would otherwise inherit the generator's cores.
pub fn pins(values: &[String], host: &Host) -> Result<Pins, RunError> {
    let mut pins = affinity::parse_pins_for(values, &host.cores)
        .map_err(|error| RunError::from_error(ErrorKind::Input, &error).during("failed to read `--pin`"))?;
    if pins.system.is_empty() && !pins.generator.is_empty() {
        pins.system = host.cores.clone();
    }
    Ok(pins)
}
