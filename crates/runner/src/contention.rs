//! Competition for the CPUs of this machine, from the CPU time of everything on it.

use pubmark_record::cost::Contention;
use pubmark_record::record::{BackEndKind, Record};

/// Adds the contention for the CPUs of this machine.
pub fn add(record: &mut Record, cpu_pressure: Option<f64>, on_nodes: bool) {
    let others = || {
        let (system_cores, generator) = (system_cores_here(record)?, record.cost.generator?);
        let programs = record.cost.client_programs.map_or(0.0, |usage| usage.cores);
        Some((record.environment.busy_cores? - system_cores - generator.cores - programs).max(0.0))
    };
    // Programs of nodes may or may not be on this machine.
    let other_cores = if on_nodes { None } else { others() };
    record.cost.contention =
        (cpu_pressure.is_some() || other_cores.is_some()).then_some(Contention { cpu_pressure, other_cores });
}

/// Cores of this machine that the system used; `None` if that is not known.
fn system_cores_here(record: &Record) -> Option<f64> {
    // Only a node measures a system that this process did not start.
    let by_node = record.system.node.is_some() || record.system.back_end == BackEndKind::External;
    let is_here = if by_node { record.cost.host.as_ref()?.is_this_machine? } else { true };
    if is_here { record.cost.system.map(|usage| usage.cores) } else { Some(0.0) }
}

#[cfg(test)]
mod tests {
    use pubmark_record::cost::{HostUsage, Usage};

    use super::*;

    #[test]
    fn a_system_on_another_machine_has_no_share_in_the_busy_cores_of_this_one() {
        let others = |node: Option<&str>, back_end: BackEndKind, is_this_machine: Option<bool>| {
            let mut record = pubmark_record::sample::record();
            let usage = |cores: f64| Some(Usage { cores, ..Usage::default() });
            (record.cost.system, record.cost.generator, record.environment.busy_cores) =
                (usage(1.25), usage(0.25), Some(1.75));
            (record.system.node, record.system.back_end) = (node.map(str::to_owned), back_end);
            record.cost.host = Some(HostUsage { is_this_machine, ..HostUsage::default() });
            add(&mut record, None, false);
            record.cost.contention.and_then(|contention| contention.other_cores)
        };
        assert_eq!(others(None, BackEndKind::Process, None), Some(0.25), "started by this process");
        for (node, back_end) in [(Some("broker-1"), BackEndKind::Process), (None, BackEndKind::External)] {
            let by_machine = [Some(false), Some(true), None].map(|is_this| others(node, back_end, is_this));
            assert_eq!(by_machine, [Some(1.5), Some(0.25), None], "{back_end}");
        }
    }
}
