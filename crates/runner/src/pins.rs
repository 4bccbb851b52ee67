//! The cores on which each side runs.

use pubmark_systems::affinity::{self, Pins};
use pubmark_systems::limits::ResourceLimits;

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

/// Cores of the system; empty if it may use all. A limit above their number would have no effect, and a record with both would
/// mislead.
///
/// # Errors
/// The pins cannot be used; or such a limit, of kind [`ErrorKind::TooLarge`], so that an experiment leaves out this limit of an
/// axis alone.
pub fn of_system(values: &[String], host: &Host, limits: Option<&ResourceLimits>) -> Result<Vec<u32>, RunError> {
    let pinned = pins(values, host)?.system;
    let present = pinned.len();
    let Some(limits) = limits.filter(|_| present > 0) else { return Ok(pinned) };
    let cores = limits.cores.filter(|cores| *cores as usize > present).map(|cores| format!("{cores} cores"));
    let cpu = limits.cpu.filter(|cpu| *cpu > present as f64).map(|cpu| format!("CPU time of {cpu} cores"));
    match cores.or(cpu) {
        Some(wanted) => Err(RunError::new(
            ErrorKind::TooLarge,
            format!(
                "the limit `{}` gives the system {wanted}, and the pins give it {present}: `system={}`",
                limits.requested,
                affinity::shown(&pinned)
            ),
        )
        .hint(format!("`--limit` with at most {present}, or `--pin system=` with more cores"))),
        None => Ok(pinned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_above_the_number_of_pinned_cores_is_refused_with_both() {
        let host = Host { cores: vec![0, 1, 2, 3], ..Host::this() };
        let limits = |cpu: Option<f64>, cores: Option<u32>| {
            let requested = "as typed".to_owned();
            ResourceLimits { requested, cpu, memory_bytes: None, cores }
        };
        let found = |pin: &str, limits: ResourceLimits| {
            of_system(&[pin.to_owned()], &host, Some(&limits)).map_err(|error| error.chain[0].clone())
        };
        let both = "the limit `as typed` gives the system 2 cores, and the pins give it 1: `system=1`";
        assert_eq!(found("system=1", limits(None, Some(2))), Err(both.to_owned()));
        let refused = of_system(&["system=1".to_owned()], &host, Some(&limits(None, Some(2))));
        assert!(refused.is_err_and(|error| error.kind == ErrorKind::TooLarge), "one cell of an experiment");
        assert!(found("system=1", limits(Some(1.5), None)).is_err_and(|text| text.contains("CPU time of 1.5 cores")));
        assert_eq!(found("system=0-1", limits(Some(1.5), Some(2))), Ok(vec![0, 1]));
        assert_eq!(found("generator=0", limits(Some(4.0), None)), Ok(vec![0, 1, 2, 3]), "it may use all");
        assert_eq!(of_system(&[], &host, Some(&limits(Some(4.0), None))).ok(), Some(vec![]));
    }
}
