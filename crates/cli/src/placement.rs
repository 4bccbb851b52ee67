//! Where things run and what they may use, as written on the command line.

use std::sync::OnceLock;

use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_model::units;
use pubmark_systems::affinity::{self, Pins};
use pubmark_systems::limits::{self, ResourceLimits};
use pubmark_systems::{TopologyChoice, TopologyMode};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Most brokers of one system: each is a process with ports of its own on this machine.
const MOST_BROKERS: u32 = 64;
/// Largest payload: MQTT's largest packet (MQTT 5.0 §1.5.5) with room for its head.
const LARGEST_PAYLOAD_BYTES: u32 = 268_000_000;

/// Reads `3:bridge`; `1` is a single broker.
pub fn topology(text: &str) -> Result<TopologyChoice, String> {
    let wanted = "a topology is written N:MODE with the mode bridge, cluster or shard, for instance `3:bridge`";
    let (brokers, mode) = match text.split_once([':', ' ']) {
        Some((brokers, mode)) => (brokers, mode.trim()),
        None => (text, ""),
    };
    let brokers: u32 = brokers.trim().parse().map_err(|_| wanted.to_owned())?;
    if !(1..=MOST_BROKERS).contains(&brokers) {
        return Err(format!("{brokers} brokers: from 1 to {MOST_BROKERS} can be started"));
    }
    let mode = match mode {
        "bridge" => TopologyMode::Bridge,
        "cluster" => TopologyMode::Cluster,
        "shard" => TopologyMode::Shard,
        "" if brokers == 1 => TopologyMode::Shard,
        "" => return Err(format!("{brokers} brokers, but not how they act together: {wanted}")),
        other => return Err(format!("there is no mode `{other}`: {wanted}")),
    };
    Ok(TopologyChoice { brokers, mode })
}

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
    fn a_topology_names_brokers_and_mode() {
        assert_eq!(topology("3:bridge").unwrap(), TopologyChoice { brokers: 3, mode: TopologyMode::Bridge });
        assert_eq!(topology("5 shard").unwrap(), TopologyChoice { brokers: 5, mode: TopologyMode::Shard });
        assert_eq!(topology("1").unwrap().brokers, 1);
        for wrong in ["", "0:shard", "65:shard", "3", "3:star", "x:bridge", "-1:bridge"] {
            assert!(topology(wrong).is_err(), "{wrong}");
        }
    }

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
