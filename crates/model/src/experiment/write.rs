//! Writes an experiment as the text of a file, so that one built from flags can be run again.

use std::fmt::Write as _;

use super::axes::{AXES, Axes};
use super::axis_value::quoted;
use super::definition::{Experiment, Generator};
use super::papers;
use crate::units::written;

impl Experiment {
    /// The YAML text that [`super::parse`] reads as this experiment.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key}: {value}");
        };
        line("name", quoted(&self.name));
        line("title", quoted(&self.title));
        if !self.description.is_empty() {
            line("description", quoted(&self.description));
        }
        if self.axes.workload.is_empty() {
            line("workload", quoted(&self.workload));
        }
        line("variant", self.variant.as_str().to_owned());
        if !self.set.is_empty() {
            let pairs: Vec<String> =
                self.set.iter().map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
            line("set", format!("{{{}}}", pairs.join(", ")));
        }
        line("seed", self.seed.to_string());
        line("order_seed", self.order_seed.to_string());
        line("duration", written(self.duration));
        line("warmup", written(self.warmup));
        if self.exact_warmup {
            line("exact_warmup", "true".to_owned());
        }
        line("drain", written(self.drain));
        line("repeat", self.repeat.to_string());
        let quiet = &self.quiet_machine;
        line("quiet_machine", format!("{{below: {}, within: {}}}", quiet.below, written(quiet.within)));
        let pins = [("system", &self.pin.system), ("generator", &self.pin.generator)];
        let pins: Vec<String> =
            pins.iter().filter_map(|(name, cores)| Some(format!("{name}: {}", quoted(cores.as_ref()?)))).collect();
        if !pins.is_empty() {
            line("pin", format!("{{{}}}", pins.join(", ")));
        }
        let Generator { shards, realtime, awake, kernel_netem } = self.generator;
        let netem = if kernel_netem { "kernel" } else { "user" };
        line("generator", format!("{{shards: {shards}, realtime: {realtime}, awake: {awake}, netem: {netem}}}"));
        line("strict_defaults", self.strict_defaults.to_string());
        let quick = &self.quick;
        let lengths = (written(quick.duration), written(quick.warmup), quick.repeat);
        line("quick", format!("{{duration: {}, warmup: {}, repeat: {}}}", lengths.0, lengths.1, lengths.2));
        text.push_str("axes:\n");
        write_axes(&mut text, &self.axes);
        papers::write(&mut text, &self.papers);
        text
    }
}

fn write_axes(text: &mut String, axes: &Axes) {
    for row in AXES {
        let values: Vec<String> = (row.values)(axes).into_iter().map(|value| value.written).collect();
        let _ = match (row.name, values.as_slice()) {
            (_, []) => continue,
            // Mappings are long: each has a line of its own.
            ("system", _) => writeln!(text, "  system:\n    - {}", values.join("\n    - ")),
            (name, _) => writeln!(text, "  {name}: [{}]", values.join(", ")),
        };
    }
    if !axes.set.is_empty() {
        text.push_str("  set:\n");
        for (key, values) in &axes.set {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            let _ = writeln!(text, "    {}: [{}]", quoted(key), values.join(", "));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::experiment::{EndpointChoice, Pins, Quick, QuietMachine, SystemChoice, parse};
    use crate::fault::choice::FaultChoice;
    use crate::topology::{Topology, TopologyMode};
    use crate::workload::Variant;

    fn text() -> impl Strategy<Value = String> {
        // Whatever a person may write in quotes; a file has no control characters.
        prop_oneof!["[a-z][a-z0-9]{0,8}", "[ -~äé€]{1,12}", Just("yes".to_owned()), Just("1e3".to_owned())]
            .prop_filter("a label has letters", |text| !text.trim().is_empty() && text.trim() == text)
    }

    prop_compose! {
        fn experiment()(
            title in text(), workload in text(), set in prop::collection::vec((text(), text()), 0..3),
            seed in 0..=crate::experiment::LARGEST_SEED, duration_ns in 1..10_000_000_000_u64, repeat in 1..100_u32,
            systems in prop::collection::btree_set(text(), 1..4), tuned in any::<bool>(),
            qos in prop::sample::subsequence(vec![0_u8, 1, 2], 0..3),
            rate in prop::collection::vec(0.001..1e6_f64, 0..2),
            limit in prop::collection::btree_set(text(), 0..3), cores in prop::option::of(text()),
        ) -> Experiment {
            let mut keys = std::collections::BTreeSet::new();
            let mut labels = std::collections::BTreeSet::new();
            let started = |system: &String| SystemChoice {
                profile: tuned.then(|| "tuned".to_owned()),
                qos: (tuned && qos.is_empty()).then_some(1),
                topology: tuned.then_some(Topology { brokers: 3, mode: TopologyMode::Bridge }),
                ..SystemChoice::named(system)
            };
            let running = |system: &String| SystemChoice {
                qos: (tuned && qos.is_empty()).then_some(1),
                endpoint: Some(EndpointChoice {
                    url: "mqtt://host:1883".to_owned(),
                    user: Some(system.clone()),
                    password_env: tuned.then(|| "PW".to_owned()),
                    tls_ca: cores.clone(),
                    tls_insecure: tuned,
                    ..EndpointChoice::default()
                }),
                ..SystemChoice::named(system)
            };
            let choice = |system: &String| if seed % 2 == 0 { started(system) } else { running(system) };
            Experiment {
                name: "test".to_owned(), title, description: String::new(), workload, variant: Variant::Published,
                set: set.into_iter().filter(|(key, _)| keys.insert(key.clone())).collect(),
                seed, order_seed: seed / 2,
                duration: Duration::from_nanos(duration_ns), warmup: Duration::ZERO, exact_warmup: tuned,
                drain: Duration::from_secs(10), repeat, quiet_machine: QuietMachine::default(), quick: Quick::default(),
                pin: Pins { system: cores.clone(), generator: None }, strict_defaults: tuned,
                generator: Generator { shards: repeat as u16, realtime: tuned, awake: !tuned, kernel_netem: tuned },
                axes: Axes {
                    system: systems.iter().map(choice)
                        .filter(|choice| !choice.label.trim().is_empty() && choice.label.trim() == choice.label)
                        .filter(|choice| labels.insert(choice.label.clone()))
                        .chain([SystemChoice::named("always")]).collect(),
                    tls: if tuned { vec![true, false] } else { vec![] },
                    client: if tuned { vec!["pubmark".into(), "paho=python3 'a b.py' --c".into()] } else { vec![] },
                    fault: if tuned { vec![FaultChoice::parse("kill:at=3s,for=1s").unwrap()] } else { vec![] },
                    qos, rate, limit: limit.into_iter().collect(),
                    ..Axes::default()
                },
                papers: vec![],
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(experiment in experiment()) {
            prop_assume!(experiment.axes.system.iter().filter(|choice| choice.label == "always").count() == 1);
            let text = experiment.to_yaml();
            let read = parse("test.yaml", &text, &|_, _| Ok(()));
            prop_assert!(read.is_ok(), "{text}\n{}", read.unwrap_err());
            prop_assert_eq!(read.unwrap(), experiment, "{}", text);
        }
    }

    #[test]
    fn times_keep_their_length() {
        assert_eq!(written(Duration::from_millis(1_500)), "1500ms");
        assert_eq!(written(Duration::from_secs(60)), "60s");
        assert_eq!(written(Duration::from_nanos(1)), "1ns");
        assert_eq!(written(Duration::ZERO), "0s");
    }
}
