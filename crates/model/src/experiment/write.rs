//! Writes an experiment as the text of a file, so that one built from flags can be run again.

use std::fmt::Write as _;

use super::definition::{Axes, Experiment, Generator, SystemChoice};
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
    text.push_str("  system:\n");
    for choice in &axes.system {
        let _ = writeln!(text, "    - {}", system(choice));
    }
    let mut axis = |name: &str, values: Vec<String>| {
        if !values.is_empty() {
            let _ = writeln!(text, "  {name}: [{}]", values.join(", "));
        }
    };
    let texts = |values: &[String]| values.iter().map(|value| quoted(value)).collect::<Vec<_>>();
    axis("workload", texts(&axes.workload));
    axis("protocol", texts(&axes.protocol));
    axis("profile", texts(&axes.profile));
    axis("qos", axes.qos.iter().map(u8::to_string).collect());
    axis("topology", axes.topology.iter().map(|topology| quoted(&topology.to_string())).collect());
    axis("limit", texts(&axes.limit));
    axis("scale", axes.scale.iter().map(u32::to_string).collect());
    axis("rate", axes.rate.iter().map(f64::to_string).collect());
    axis("nodes", axes.nodes.iter().map(u16::to_string).collect());
    axis("payload", texts(&axes.payload));
    axis("tls", axes.tls.iter().map(bool::to_string).collect());
    axis("client", texts(&axes.client));
    axis("fault", axes.fault.iter().map(|fault| quoted(&fault.to_string())).collect());
    axis("link", axes.link.iter().map(|link| quoted(&link.to_string())).collect());
    if !axes.set.is_empty() {
        text.push_str("  set:\n");
        for (key, values) in &axes.set {
            let _ = writeln!(text, "    {}: [{}]", quoted(key), texts(values).join(", "));
        }
    }
}

fn system(choice: &SystemChoice) -> String {
    if let Some(system) = choice.system.as_ref().filter(|system| *choice == SystemChoice::named(system)) {
        return quoted(system);
    }
    let topology = choice.topology.map(|topology| topology.to_string());
    let tls = choice.tls.map(|tls| tls.to_string());
    let qos = choice.qos.map(|level| level.to_string());
    let mut fields = vec![
        ("system", choice.system.as_ref()),
        ("label", Some(&choice.label)),
        ("protocol", choice.protocol.as_ref()),
        ("profile", choice.profile.as_ref()),
        ("qos", qos.as_ref()),
        ("limit", choice.limit.as_ref()),
        ("topology", topology.as_ref()),
        ("back_end", choice.back_end.as_ref()),
        ("node", choice.node.as_ref()),
        ("image", choice.image.as_ref()),
        ("tls", tls.as_ref()),
    ];
    let insecure = "true".to_owned();
    if let Some(endpoint) = &choice.endpoint {
        fields.extend([
            ("endpoint", Some(&endpoint.url)),
            ("subscribe_endpoint", endpoint.subscribe_endpoint.as_ref()),
            ("node_exporter", endpoint.node_exporter.as_ref()),
            ("user", endpoint.user.as_ref()),
            ("password_env", endpoint.password_env.as_ref()),
            ("password_file", endpoint.password_file.as_ref()),
            ("tls_ca", endpoint.tls_ca.as_ref()),
            ("tls_insecure", endpoint.tls_insecure.then_some(&insecure)),
            ("tls_cert", endpoint.tls_cert.as_ref()),
            ("tls_key", endpoint.tls_key.as_ref()),
        ]);
    }
    let fields: Vec<String> =
        fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", quoted(value?)))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// A text that YAML reads as the same string: plain if it cannot be anything else, otherwise as JSON, which YAML also
/// reads.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::experiment::{EndpointChoice, Pins, Quick, QuietMachine, parse};
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
                duration: Duration::from_nanos(duration_ns), warmup: Duration::ZERO, drain: Duration::from_secs(10),
                repeat, quiet_machine: QuietMachine::default(), quick: Quick::default(),
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
