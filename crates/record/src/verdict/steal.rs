//! The rule on CPU time that a hypervisor took from the machines of a run.

use super::{Finding, Measure, VerdictInput};
use crate::nodes::NodeRow;
use crate::quantity::percent;
use crate::record::{BackEndKind, CheckUnit, VerdictStatus};

/// CPU time stolen by the hypervisor: suspect above this share.
const STEAL_SUSPECT: f64 = 0.05;

/// Name of the machine of this process.
const HERE: &str = "this machine";

/// A machine: its name, and the share of its CPU time that was stolen; `None` where that is unknown.
type Machine = (String, Option<f64>);

/// Rule V06; `None` where steal time is known of no machine.
pub(super) fn cpu_not_stolen(input: &VerdictInput) -> Option<Finding> {
    let machines = machines(input);
    let mut known: Vec<(&str, f64)> =
        machines.iter().filter_map(|(name, steal)| Some((name.as_str(), (*steal)?))).collect();
    known.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (worst, most) = *known.first()?;
    let is_here_alone = machines.len() == 1 && worst == HERE;
    let of = if is_here_alone { String::new() } else { format!(" of {worst}") };
    let mut text = format!("hypervisor took {} of the CPU time{of}", percent(most));
    for (name, steal) in known.iter().skip(1).filter(|(_, steal)| *steal > STEAL_SUSPECT) {
        text.push_str(&format!(", {} of {name}", percent(*steal)));
    }
    text.push_str(&format!(": suspect above {}", percent(STEAL_SUSPECT)));
    let unknown: Vec<&str> =
        machines.iter().filter(|(_, steal)| steal.is_none()).map(|(name, _)| name.as_str()).collect();
    if !unknown.is_empty() {
        text.push_str(&format!("; not checked on {}", unknown.join(", ")));
    }
    let status = if most > STEAL_SUSPECT { VerdictStatus::Suspect } else { VerdictStatus::Valid };
    let hint = "run again when the host is less busy, or on a dedicated machine";
    Some(Finding::new(status, text, hint).of(Measure::suspect_above(most, STEAL_SUSPECT, CheckUnit::Share)))
}

/// The machines with clients or the system, each once as far as known: this one, those of the nodes, and those of the
/// system. A machine that only coordinates delays nothing that is measured.
fn machines(input: &VerdictInput) -> Vec<Machine> {
    // A node that was lost has no figures, and V21 names it.
    let is_apart = |node: &&NodeRow| node.lost.is_none() && !is_here(node);
    let of_node = |node: &NodeRow| (format!("`{}`", node.name), node.machine_usage.and_then(|usage| usage.steal));
    let mut machines = vec![];
    if has_clients_here(input) || has_system_here(input) {
        machines.push((HERE.to_owned(), input.environment.steal));
    }
    machines.extend(input.nodes.iter().filter(is_apart).map(of_node));
    machines.extend(systems_elsewhere(input));
    machines
}

/// Is a node on this machine: a worker process of it, or a node with its clock?
fn is_here(node: &NodeRow) -> bool {
    node.machine.is_none() || node.clock.as_ref().is_some_and(|clock| clock.is_the_same)
}

/// Without nodes, this process has the clients.
fn has_clients_here(input: &VerdictInput) -> bool {
    input.nodes.is_empty() || input.nodes.iter().any(is_here)
}

/// May the system run on this machine? It does not if a node started it, or if a node or a node_exporter reports the machine of one
/// that was running before the run, unless that is this machine. The address of an endpoint does not tell.
fn has_system_here(input: &VerdictInput) -> bool {
    if is_observed_here(input) {
        return true;
    }
    match input.system.back_end {
        BackEndKind::Builtin | BackEndKind::Process | BackEndKind::Container => input.system.node.is_none(),
        BackEndKind::External => input.system.node.is_none() && input.host.is_none(),
        BackEndKind::Brokerless => false,
    }
}

/// Is the machine that was observed for the system this one?
fn is_observed_here(input: &VerdictInput) -> bool {
    input.host.is_some_and(|host| host.is_this_machine == Some(true))
}

/// The machines of a system that does not run here, as far as known.
fn systems_elsewhere(input: &VerdictInput) -> Vec<Machine> {
    if is_observed_here(input) {
        return vec![];
    }
    if let Some(host) = input.host {
        return match host.steal_by_machine.is_empty() {
            true => vec![(host.url.clone(), host.steal)],
            false => host.steal_by_machine.clone().into_iter().collect(),
        };
    }
    if let Some(node) = &input.system.node {
        return vec![(format!("`{node}`"), None)];
    }
    let is_unknown = input.system.back_end == BackEndKind::External && input.system_usage.is_none();
    is_unknown.then(|| ("the system's machine if it is another one".to_owned(), None)).into_iter().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::HostUsage;
    use crate::nodes::{MachineUsage, NodeClock, NodeMachine};
    use crate::record::Record;
    use crate::sample;
    use crate::verdict::judge;

    fn found(change: impl FnOnce(&mut Record)) -> Option<(VerdictStatus, String)> {
        let mut record = sample::record();
        change(&mut record);
        let checks = judge(&VerdictInput::of(&record)).checks;
        checks.into_iter().find(|check| check.code == "V06").map(|check| (check.status, check.text))
    }

    fn node(name: &str, steal: Option<f64>) -> NodeRow {
        NodeRow {
            name: name.to_owned(),
            machine: Some(NodeMachine::default()),
            machine_usage: Some(MachineUsage { steal, ..MachineUsage::default() }),
            ..NodeRow::default()
        }
    }

    #[test]
    fn the_machine_with_most_steal_is_judged_and_named() {
        let alone = "hypervisor took 0 % of the CPU time: suspect above 5 %";
        assert_eq!(found(|_| {}), Some((VerdictStatus::Valid, alone.to_owned())));
        let (status, text) =
            found(|record| record.tables.nodes = vec![node("east", Some(0.01)), node("west", Some(0.2))]).unwrap();
        assert_eq!(status, VerdictStatus::Suspect);
        assert_eq!(text, "hypervisor took 20 % of the CPU time of `west`: suspect above 5 %");
        let of_system = |record: &mut Record| {
            record.cost.host =
                Some(HostUsage { url: "192.0.2.7:9100".to_owned(), steal: Some(0.06), ..HostUsage::default() });
        };
        let (status, text) = found(of_system).unwrap();
        assert!(status == VerdictStatus::Suspect && text.contains("of 192.0.2.7:9100"), "{text}");
    }

    #[test]
    fn machines_above_the_limit_are_named_each_with_its_own_steal() {
        let observed = |record: &mut Record| {
            let steal_by_machine = [("`a`", 0.01), ("`b`", 0.2), ("`c`", 0.06)];
            let steal_by_machine = steal_by_machine.map(|(name, steal)| (name.to_owned(), Some(steal))).into();
            let url = "`a` and `b` and `c`".to_owned();
            record.cost.host = Some(HostUsage { url, steal: Some(0.2), steal_by_machine, ..HostUsage::default() });
        };
        let text = "hypervisor took 20 % of the CPU time of `b`, 6 % of `c`: suspect above 5 %";
        assert_eq!(found(observed), Some((VerdictStatus::Suspect, text.to_owned())));
    }

    #[test]
    fn a_machine_that_only_coordinates_is_not_judged() {
        let coordinated = |change: fn(&mut Record)| {
            found(|record| {
                record.environment.steal = Some(0.5);
                record.tables.nodes = vec![node("east", Some(0.01)), node("west", Some(0.02))];
                (record.system.back_end, record.cost.system) = (BackEndKind::External, None);
                let url = "`core`".to_owned();
                record.cost.host = Some(HostUsage { url, steal: Some(0.0), ..HostUsage::default() });
                change(record);
            })
            .unwrap()
        };
        let (status, text) = coordinated(|_| {});
        assert_eq!(status, VerdictStatus::Valid, "{text}");
        assert!(text.starts_with("hypervisor took 2 % of the CPU time of `west`: "), "{text}");
        let without_broker = |record: &mut Record| {
            (record.system.back_end, record.cost.host) = (BackEndKind::Brokerless, None);
            record.tables.nodes.truncate(1);
        };
        assert_eq!(coordinated(without_broker).1, "hypervisor took 1 % of the CPU time of `east`: suspect above 5 %");
        let with_clients: fn(&mut Record) = |record| {
            record.tables.nodes[0].clock = Some(NodeClock { is_the_same: true, ..NodeClock::default() });
        };
        let with_started: fn(&mut Record) = |record| record.system.back_end = BackEndKind::Process;
        let with_observed: fn(&mut Record) = |record| {
            record.cost.host.as_mut().unwrap().is_this_machine = Some(true);
        };
        // Someone started it, perhaps here, with an endpoint at any address.
        let with_unknown: fn(&mut Record) = |record| record.cost.host = None;
        for change in [with_clients, with_started, with_observed, with_unknown] {
            let (status, text) = coordinated(change);
            assert!(
                status == VerdictStatus::Suspect && text.contains("50 % of the CPU time of this machine"),
                "{text}"
            );
        }
        let observed_elsewhere: fn(&mut Record) = |record| {
            record.cost.system = sample::record().cost.system;
            record.cost.host.as_mut().unwrap().is_this_machine = Some(false);
        };
        assert_eq!(coordinated(observed_elsewhere).0, VerdictStatus::Valid);
    }

    #[test]
    fn this_machine_is_named_once_if_clients_and_the_system_share_it() {
        let observed = |record: &mut Record| {
            record.environment.steal = Some(0.2);
            let clock = Some(NodeClock { is_the_same: true, ..NodeClock::default() });
            record.tables.nodes = vec![NodeRow { clock, ..node("east", Some(0.2)) }];
            record.system.node = Some("east".to_owned());
            let (url, is_this_machine) = ("`east`".to_owned(), Some(true));
            record.cost.host = Some(HostUsage { url, is_this_machine, steal: Some(0.2), ..HostUsage::default() });
        };
        let text = "hypervisor took 20 % of the CPU time: suspect above 5 %";
        assert_eq!(found(observed), Some((VerdictStatus::Suspect, text.to_owned())));
    }

    #[test]
    fn a_machine_whose_steal_is_unknown_is_not_passed() {
        let text = found(|record| record.tables.nodes = vec![node("east", None)]).unwrap().1;
        assert!(text.ends_with("suspect above 5 %; not checked on `east`"), "{text}");
        let external = |record: &mut Record| {
            (record.system.back_end, record.cost.system) = (BackEndKind::External, None);
        };
        let text = found(external).unwrap().1;
        assert!(text.ends_with("; not checked on the system's machine if it is another one"), "{text}");
        let text = found(|record| record.system.node = Some("core".to_owned())).unwrap().1;
        assert!(text.ends_with("; not checked on `core`"), "{text}");
        let nowhere = |record: &mut Record| {
            record.environment.steal = None;
            record.tables.nodes = vec![node("east", None)];
        };
        assert_eq!(found(nowhere), None);
    }

    #[test]
    fn processes_of_one_machine_are_no_machines() {
        let here = |record: &mut Record| {
            let clock = Some(NodeClock { is_the_same: true, ..NodeClock::default() });
            record.tables.nodes = vec![NodeRow::default(), NodeRow { clock, ..node("east", None) }];
        };
        assert_eq!(found(here), found(|_| {}));
    }
}
