//! Where things run and what they may use, as written on the command line.

use std::sync::OnceLock;

use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_model::units;
use pubmark_systems::affinity::{self, Pins};
use pubmark_systems::limits::{self, ResourceLimits};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Largest payload: MQTT's largest packet (MQTT 5.0 §1.5.5) with room for its head.
const LARGEST_PAYLOAD_BYTES: u32 = 268_000_000;

/// Reads limits.
pub fn limits(text: &str) -> Result<ResourceLimits, String> {
    limits::parse(text).map_err(|error| error.to_string())
}

/// Cores that this process had before it was pinned, if it was.
fn cores_at_start() -> &'static [u32] {
    static CORES: OnceLock<Vec<u32>> = OnceLock::new();
    CORES.get_or_init(affinity::own_cores)
}

/// Keeps pubmark's own threads to the generator's cores. The system's are set where it is started.
pub fn pin_generator(pins: &Pins) -> Result<(), Failure> {
    affinity::pin_this_process(&pins.generator).map_err(|error| Failure::from_error(ExitCode::Usage, &error))
}

/// Reads pins of both sides. Where only the generator is pinned, the system gets all cores by name: it is started by a
/// pinned process and would otherwise share its cores.
pub fn pins(values: &[String]) -> Result<Pins, Failure> {
    let mut pins = affinity::parse_pins_for(values, cores_at_start())
        .map_err(|error| Failure::from_error(ExitCode::Usage, &error).during("failed to read `--pin`"))?;
    if pins.system.is_empty() && !pins.generator.is_empty() {
        pins.system = cores_at_start().to_vec();
    }
    Ok(pins)
}

/// Reads a factor of rates.
pub fn rate_factor(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(factor) if (1.0 / LARGEST_RATE_FACTOR..=LARGEST_RATE_FACTOR).contains(&factor) => Ok(factor),
        _ => Err(format!(
            "a factor between 1/{LARGEST_RATE_FACTOR} and {LARGEST_RATE_FACTOR} is expected, `2` for twice as often"
        )),
    }
}

/// Reads a size of payloads.
pub fn payload_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::size(text).map_err(|error| match error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.message,
    })?;
    if !(1.0..=f64::from(LARGEST_PAYLOAD_BYTES)).contains(&bytes) {
        return Err(format!("a payload has 1 to {LARGEST_PAYLOAD_BYTES} bytes, not `{text}`"));
    }
    Ok(bytes.round() as u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_sizes_have_bounds() {
        assert_eq!((rate_factor("2").unwrap(), rate_factor("0.5x").unwrap()), (2.0, 0.5));
        assert_eq!((payload_bytes("1KB").unwrap(), payload_bytes("16").unwrap()), (1_000, 16));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "fast"] {
            assert!(rate_factor(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-5", "1GB", "big", "nan"] {
            assert!(payload_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
