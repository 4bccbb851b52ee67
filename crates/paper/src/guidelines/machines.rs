//! The machines of a collection's records.

use pubmark_record::evaluation::{MACHINE_CHANGED, NODES_CHANGED};
use pubmark_record::nodes::JoinedMachines;
use pubmark_record::record::Environment;
use pubmark_report::numbers::count;

/// A machine with those that joined it, as far as records tell it from others: an update of its kernel makes another one of it, too.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Its type, in which software updates change nothing: cores, processor, memory in whole GiB, virtualisation; and the machines
    /// that joined it.
    pub kind: String,
    environment: Environment,
    nodes: Option<JoinedMachines>,
}

impl Machine {
    /// The machine of a record without nodes.
    pub fn of(environment: &Environment) -> Machine {
        Machine::with_nodes(environment, None)
    }

    /// The machine of a record, with those that joined it.
    pub fn with_nodes(environment: &Environment, nodes: Option<&JoinedMachines>) -> Machine {
        let gibibytes = (environment.memory_bytes as f64 / (1u64 << 30) as f64).round();
        let virtualization = environment.virtualization.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
        let joined = nodes.map_or_else(String::new, |nodes| format!(", with {}", nodes.in_words()));
        Machine {
            kind: format!("{} × {}, {gibibytes} GiB{virtualization}{joined}", environment.cores, environment.cpu),
            environment: environment.clone(),
            nodes: nodes.cloned(),
        }
    }

    /// Whether other machines joined it.
    pub fn has_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// Whether both are one machine.
    pub fn is(&self, other: &Machine) -> bool {
        self.environment.is_same_machine(&other.environment) && self.is_of_type(other)
    }

    /// Whether both are of one type. The memory that a kernel reports may vary around half a GiB.
    pub fn is_of_type(&self, other: &Machine) -> bool {
        let [(one, first), (another, second)] = [self, other].map(|it| (&it.environment, &it.kind));
        let processors = |it: &Environment| (it.cores, it.cpu.clone(), it.virtualization.clone());
        let is_alike = || processors(one) == processors(another) && one.is_same_memory(another);
        self.nodes == other.nodes && (first == second || is_alike())
    }

    /// What tells it from others of its type: `kernel 6.1.0, 25,325,268,992 B of memory`.
    pub fn details(&self) -> String {
        format!("kernel {}, {} B of memory", self.environment.kernel, count(self.environment.memory_bytes))
    }
}

/// Whether all runs of an experiment are of one machine, by its cautions.
pub(crate) fn is_of_one(cautions: &[String]) -> bool {
    !cautions.iter().any(|caution| caution.starts_with(MACHINE_CHANGED) || caution.starts_with(NODES_CHANGED))
}

#[cfg(test)]
mod tests {
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn machines_of_one_type_are_told_apart_by_kernel_and_memory() {
        let one = sample_experiment::experiment().environment;
        let updated = Environment { kernel: format!("{}-2", one.kernel), ..one.clone() };
        let smaller = Environment { memory_bytes: one.memory_bytes / 100 * 98, ..one.clone() };
        let [first, second, third] = [&one, &updated, &smaller].map(Machine::of);
        assert!(!first.is(&second) && !first.is(&third) && !second.is(&third));
        assert!(first.is_of_type(&second));
        assert_ne!(first.details(), third.details());
        assert!(first.is(&Machine::of(&Environment { load_before: Some(9.0), ..one })));
    }

    #[test]
    fn a_machine_with_nodes_is_another_one_and_names_them() {
        let environment = sample_experiment::experiment().environment;
        let joined =
            JoinedMachines { machines: Some("2 × (4 cores, kernel 6.1)".to_owned()), nodes: 2, system_node: None };
        let [alone, with, other] = [None, Some(&joined), Some(&JoinedMachines { nodes: 3, ..joined.clone() })]
            .map(|nodes| Machine::with_nodes(&environment, nodes));
        assert!(with.kind.ends_with(", with 2 nodes on 2 × (4 cores, kernel 6.1)"), "{}", with.kind);
        assert!(with.is(&with) && with.has_nodes() && !alone.has_nodes());
        for another in [&alone, &other] {
            assert!(!with.is(another) && !with.is_of_type(another));
        }
    }

    #[test]
    fn a_machine_whose_memory_varies_around_half_a_gibibyte_is_the_same() {
        let of = |memory_bytes: u64| {
            Machine::of(&Environment { memory_bytes, ..sample_experiment::experiment().environment })
        };
        let (one, other) = (of((24 << 30) + (513 << 20)), of((24 << 30) + (511 << 20)));
        assert!(one.kind != other.kind && one.is(&other) && one.is_of_type(&other));
        assert!(!one.is_of_type(&of(8 << 30)));
    }

    #[test]
    fn an_experiment_that_changed_its_machine_is_known_by_its_caution() {
        let caution = |text: &str| [text.to_owned()];
        assert!(is_of_one(&caution("2 of 9 runs suspect, counted all the same: V01")));
        assert!(!is_of_one(&caution("the machine changed between runs: 2 × a, kernel 1; 2 × a, kernel 2")));
        assert!(!is_of_one(&caution("the machines of the nodes changed between runs: only some had b")));
    }
}
