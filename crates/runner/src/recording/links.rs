//! What links carried, in a record. The CPU time of their emulator is none of the generator's, whatever process it runs in.

use std::collections::BTreeMap;

use pubmark_engine::shares::WorkerLocation;
use pubmark_record::cost::Usage;
use pubmark_record::efficiency::PacketCounts;
use pubmark_record::record::Record;

use crate::linked::{self, LinkReport};

/// Adds what links on nodes carried, for each process with its location. `groups` are the names of the connection groups: a
/// group with processes of its own on nodes has an emulator in each of them.
pub fn add_links_of_nodes(record: &mut Record, reports: &[(WorkerLocation, LinkReport)], groups: &[String]) {
    for (location, report) in reports {
        let row = record.tables.nodes.get_mut(usize::from(location.node));
        let of_node = row.and_then(|row| row.generator.as_mut());
        let name = location.group.and_then(|group| groups.get(usize::from(group)));
        let row = record.cost.groups.iter_mut().find(|row| Some(&row.group) == name);
        let of_group = row.and_then(|row| row.usage.as_mut());
        of_node.into_iter().chain(of_group).for_each(|usage| take_off(usage, report.cpu_ns.unwrap_or(0)));
    }
    add_links(record, &reports.iter().map(|(_, report)| report.clone()).collect::<Vec<_>>());
}

/// Subtracts the emulator's CPU time from the generator's.
fn take_off(usage: &mut Usage, emulator_ns: u64) {
    if usage.cpu_seconds > 0.0 {
        let own = (usage.cpu_seconds - emulator_ns as f64 / 1e9).max(0.0);
        usage.cores *= own / usage.cpu_seconds;
        usage.cpu_seconds = own;
    }
}

/// Adds what links carried. The emulator's CPU time is reported separately from the generator's.
pub fn add_links(record: &mut Record, reports: &[LinkReport]) {
    let mut links = linked::figures(reports);
    if let Some(own) = &record.settings.congestion_control {
        links.congestion_control = format!("{own} at clients and {} at the system", links.congestion_control);
    }
    if let Some(efficiency) = &mut record.cost.efficiency {
        // Sums for each group over all nodes that have its clients.
        let mut packets: BTreeMap<&str, [PacketCounts; 2]> = BTreeMap::new();
        for (group, window, set_up) in reports.iter().flat_map(|report| &report.packets) {
            let known = packets.entry(group).or_default();
            known[0].add(window);
            known[1].add(set_up);
        }
        packets.into_iter().for_each(|(group, [window, set_up])| efficiency.count(group, window, set_up));
    }
    if let Some(usage) = &mut record.cost.generator {
        let of_all = reports.iter().filter_map(|report| report.cpu_ns);
        let with_emulator = usage.cpu_seconds;
        take_off(usage, of_all.fold(0, u64::saturating_add));
        if let Some(per_million) = &mut record.cost.generator_cpu_s_per_million
            && with_emulator > 0.0
        {
            *per_million *= usage.cpu_seconds / with_emulator;
        }
    }
    // The relay is a process of its own, and pubmark's.
    let relay_cores = links.relay.as_ref().map_or(0.0, |relay| relay.cpu_s / record.window_s());
    if let Some(others) = record.cost.contention.as_mut().and_then(|found| found.other_cores.as_mut()) {
        *others = (*others - relay_cores).max(0.0);
    }
    let at_end = &mut record.delivery.at_end;
    [at_end.relay_bytes, at_end.link_bytes] = linked::left_bytes(reports);
    record.conditions.links = Some(links);
}

#[cfg(test)]
mod tests {
    use pubmark_record::cost::{Contention, GroupUsage};
    use pubmark_record::nodes::NodeRow;
    use pubmark_record::sample;

    use super::*;
    use crate::relayed::RelayReport;

    #[test]
    fn a_group_does_not_pay_for_the_emulator_in_its_processes_on_nodes() {
        let used = |cpu_seconds| Some(Usage { cpu_seconds, ..Usage::default() });
        let mut record = sample::record();
        record.cost.groups =
            ["quiet", "busy"].map(|name| GroupUsage { group: name.to_owned(), usage: used(4.0) }).into();
        record.tables.nodes = [9.0, 6.0].map(|cpu_s| NodeRow { generator: used(cpu_s), ..NodeRow::default() }).into();
        let names = ["other", "quiet", "busy"].map(str::to_owned);
        let emulated = |node: u16, group: Option<u16>| {
            let report = LinkReport { cpu_ns: Some(1_000_000_000), ..LinkReport::default() };
            (WorkerLocation { node, network: None, group }, report)
        };
        add_links_of_nodes(&mut record, &[emulated(0, Some(2)), emulated(1, Some(2)), emulated(0, None)], &names);
        let of_groups = record.cost.groups.iter().map(|row| row.usage.map(|usage| usage.cpu_seconds));
        assert_eq!(of_groups.collect::<Vec<_>>(), [Some(4.0), Some(2.0)]);
        let of_nodes = record.tables.nodes.iter().map(|row| row.generator.map(|usage| usage.cpu_seconds));
        assert_eq!(of_nodes.collect::<Vec<_>>(), [Some(7.0), Some(5.0)]);
    }
    #[test]
    fn the_relay_is_no_other_program() {
        let mut record = sample::record();
        record.cost.contention = Some(Contention { other_cores: Some(0.75), ..Contention::default() });
        let half_a_core = (0.5 * record.window_s() * 1e9) as u64;
        let relay = RelayReport { cpu_ns: half_a_core, ..RelayReport::default() };
        add_links(&mut record, &[LinkReport { relay: Some(Ok(relay)), ..LinkReport::default() }]);
        let others = record.cost.contention.and_then(|found| found.other_cores).expect("a figure");
        assert!((others - 0.25).abs() < 1e-6, "{others}");
    }
}
