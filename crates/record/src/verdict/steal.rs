//! The rule on CPU time that a hypervisor took from the machines of a run.

use super::{Finding, Measure, VerdictInput};
use crate::nodes::NodeRow;
use crate::quantity::percent;
use crate::record::{BackEndKind, CheckUnit, VerdictStatus};

/// CPU time stolen by the hypervisor: suspect above this share.
const STEAL_SUSPECT: f64 = 0.05;

/// A machine: its name, and the share of its CPU time that was stolen; `None` where that is unknown.
type Machine = (String, Option<f64>);

/// Rule V06; `None` where steal time is known of no machine.
pub(super) fn cpu_not_stolen(input: &VerdictInput) -> Option<Finding> {
    let machines = machines(input);
    let known = machines.iter().filter_map(|(name, steal)| Some((name, (*steal)?)));
    let (name, steal) = known.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let of = if machines.len() > 1 { format!(" of {name}") } else { String::new() };
    let mut text =
        format!("hypervisor took {} of the CPU time{of}: suspect above {}", percent(steal), percent(STEAL_SUSPECT));
    let unknown: Vec<&str> =
        machines.iter().filter(|(_, steal)| steal.is_none()).map(|(name, _)| name.as_str()).collect();
    if !unknown.is_empty() {
        text.push_str(&format!("; not checked on {}", unknown.join(", ")));
    }
    let status = if steal > STEAL_SUSPECT { VerdictStatus::Suspect } else { VerdictStatus::Valid };
    let hint = "run again when the host is less busy, or on a dedicated machine";
    Some(Finding::new(status, text, hint).of(Measure::suspect_above(steal, STEAL_SUSPECT, CheckUnit::Share)))
}

/// The machines of a run, each once as far as known: this one, those of the nodes, and that of the system.
fn machines(input: &VerdictInput) -> Vec<Machine> {
    // A node that was lost has no figures, and V21 names it.
    let is_apart = |node: &&NodeRow| {
        let is_here = node.clock.as_ref().is_some_and(|clock| clock.is_the_same);
        node.machine.is_some() && node.lost.is_none() && !is_here
    };
    let of_node = |node: &NodeRow| (format!("`{}`", node.name), node.machine_usage.and_then(|usage| usage.steal));
    let mut machines = vec![("this machine".to_owned(), input.environment.steal)];
    machines.extend(input.nodes.iter().filter(is_apart).map(of_node));
    machines.extend(system_elsewhere(input));
    machines
}

/// The machine of a system that does not run here, as far as known.
fn system_elsewhere(input: &VerdictInput) -> Option<Machine> {
    if let Some(host) = input.host {
        return Some((host.url.clone(), host.steal));
    }
    if let Some(node) = &input.system.node {
        return Some((format!("`{node}`"), None));
    }
    let is_unknown = input.system.back_end == BackEndKind::External && input.system_usage.is_none();
    is_unknown.then(|| ("the system's machine if it is another one".to_owned(), None))
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
