//! A validated experiment.

use std::time::Duration;

use super::axes::Axes;
use super::endpoint::EndpointChoice;
use super::papers::PaperFigures;
use super::systems::SystemChoice;
use crate::workload::Variant;

/// An experiment: one workload, some axes, repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name of its folder: letters, digits, `-`, `_`.
    pub name: String,
    /// One line for the head of the report.
    pub title: String,
    /// One sentence for `pubmark list experiments`.
    pub description: String,
    /// A built-in workload or the path of a file; the first of several.
    pub workload: String,
    /// Variant of the workload.
    pub variant: Variant,
    /// `--set KEY=VALUE` for all cells, in order.
    pub set: Vec<(String, String)>,
    /// Seed of the schedules.
    pub seed: u64,
    /// Seed of the order of the runs.
    pub order_seed: u64,
    /// Measured window of each run, above zero.
    pub duration: Duration,
    /// Length of the warm-up of each run.
    pub warmup: Duration,
    /// Warm up for exactly this long, even where the definition of a system asks for more.
    pub exact_warmup: bool,
    /// Maximum wait for late messages.
    pub drain: Duration,
    /// Repetitions of each cell, from 1.
    pub repeat: u32,
    /// Condition for a quiet machine before a run.
    pub quiet_machine: QuietMachine,
    /// Cores that the system and the generator may use.
    pub pin: Pins,
    /// How the load is generated.
    pub generator: Generator,
    /// Do not raise limits of the systems, even if messages are too large for them.
    pub strict_defaults: bool,
    /// What `--quick` changes.
    pub quick: Quick,
    /// Settings that vary.
    pub axes: Axes,
    /// Figures of publications that are shown beside the results.
    pub papers: Vec<PaperFigures>,
}

/// Condition for the start of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuietMachine {
    /// Maximum share of the machine's CPU time that other programs may use, 0 to 1.
    pub below: f64,
    /// Maximum wait; after it the run is executed anyway, and marked.
    pub within: Duration,
}

impl Default for QuietMachine {
    /// 10 % of the machine, 30 s.
    fn default() -> QuietMachine {
        QuietMachine { below: 0.1, within: Duration::from_secs(30) }
    }
}

/// Cores in the kernel's format (`0-1,3`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Cores of the system.
    pub system: Option<String>,
    /// Cores of pubmark's threads.
    pub generator: Option<String>,
}

impl Pins {
    /// `system=0 generator=1`, as on the command line; empty if nothing is pinned.
    pub fn words(&self) -> Vec<String> {
        let word = |name: &str, cores: &Option<String>| cores.as_ref().map(|cores| format!("{name}={cores}"));
        [word("system", &self.system), word("generator", &self.generator)].into_iter().flatten().collect()
    }
}

/// How the load is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Threads for publishers, and as many for subscribers, 1 to 256.
    pub shards: u16,
    /// Whether SCHED_FIFO is requested.
    pub realtime: bool,
    /// Whether CPU idle states are prevented.
    pub awake: bool,
    /// Whether the kernel's netem emulates links instead of pubmark.
    pub kernel_netem: bool,
}

impl Default for Generator {
    /// One thread on each side, with normal scheduling.
    fn default() -> Generator {
        Generator { shards: 1, realtime: false, awake: false, kernel_netem: false }
    }
}

/// Lengths for a quick first result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quick {
    /// Measured window.
    pub duration: Duration,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// Repetitions.
    pub repeat: u32,
}

impl Default for Quick {
    /// 10 s measured after 2 s, three times.
    fn default() -> Quick {
        Quick { duration: Duration::from_secs(10), warmup: Duration::from_secs(2), repeat: 3 }
    }
}

impl Experiment {
    /// The experiment with the lengths of `--quick`.
    pub fn quickly(mut self) -> Experiment {
        (self.duration, self.warmup, self.repeat) = (self.quick.duration, self.quick.warmup, self.quick.repeat);
        self
    }

    /// Adds an endpoint to the axis `system`. If it replaces a value with the same label, it keeps the protocol and QoS,
    /// and also the credentials and certificates if that was an endpoint; if that was a system to be started, the endpoint
    /// is assumed to be that system.
    #[must_use]
    pub fn with_endpoint(mut self, label: &str, url: &str) -> Experiment {
        let Some(known) = self.axes.system.iter_mut().find(|choice| choice.label == label) else {
            self.axes.system.push(SystemChoice::at(label, url));
            return self;
        };
        let was = std::mem::take(known);
        let endpoint = EndpointChoice {
            url: url.to_owned(),
            // Both were addresses of the previous endpoint.
            subscribe_endpoint: None,
            node_exporter: None,
            ..was.endpoint.unwrap_or_default()
        };
        let SystemChoice { label, system, protocol, qos, .. } = was;
        *known = SystemChoice { label, system, protocol, qos, endpoint: Some(endpoint), ..SystemChoice::default() };
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_file_gives_a_system_its_name() {
        assert_eq!(SystemChoice::named("./systems/mine.yaml").label, "mine");
        assert_eq!(SystemChoice::named("mosquitto").label, "mosquitto");
    }

    #[test]
    fn an_endpoint_is_added_or_takes_the_place_of_its_label() {
        let text = "{name: t, workload: hello, axes: {system: [a, {system: emqx, label: EMQX, protocol: mqtt5, profile: tuned}, \
                    {endpoint: 'mqtts://old', label: ours, user: ann, password_env: PW, node_exporter: 'http://old:9100'}]}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let changed = ["EMQX", "ours", "new"]
            .into_iter()
            .fold(experiment, |experiment, label| experiment.with_endpoint(label, "mqtt://host"));
        let systems = &changed.axes.system;
        assert_eq!(
            systems.iter().map(|choice| choice.label.as_str()).collect::<Vec<_>>(),
            ["a", "EMQX", "ours", "new"]
        );
        assert_eq!(systems[0], SystemChoice::named("a"));
        let endpoint = Some(EndpointChoice::at("mqtt://host"));
        let (system, protocol) = (Some("emqx".to_owned()), Some("mqtt5".to_owned()));
        let emqx = SystemChoice { label: "EMQX".to_owned(), system, protocol, endpoint, ..SystemChoice::default() };
        assert_eq!(systems[1], emqx, "what pubmark would have started it with goes");
        let ours = systems[2].endpoint.as_ref().unwrap();
        assert_eq!((ours.url.as_str(), ours.user.as_deref(), &ours.node_exporter), ("mqtt://host", Some("ann"), &None));
        assert_eq!(systems[3], SystemChoice::at("new", "mqtt://host"));
    }
}
