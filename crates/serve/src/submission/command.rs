//! The command line that executes the same run as a specification.

use std::time::Duration;

use pubmark_model::secret::without_password;
use pubmark_runner::spec::text::Text as _;
use pubmark_runner::spec::{Load, Window};
use pubmark_runner::{RunSpec, WorkloadSource};

/// Arguments of the command. They are the options of most runs; if more is set, or the workload is a text, the command
/// reads the specification from the file `run.yaml`.
pub fn words(spec: &RunSpec) -> Vec<String> {
    let command =
        |words: &[String]| ["pubmark", "run"].into_iter().map(str::to_owned).chain(words.iter().cloned()).collect();
    match &spec.workload {
        WorkloadSource::Named(name) if *spec == with_options_alone(spec, name) => {
            let mut words = vec![name.clone()];
            words.extend(options(spec));
            command(&words)
        }
        _ => command(&["run.yaml".to_owned()]),
    }
}

/// The part of a specification that [`options`] can express.
fn with_options_alone(spec: &RunSpec, workload: &str) -> RunSpec {
    let mut other = RunSpec::new(workload);
    let Load { scale, rate, qos, links, faults, seed, .. } = spec.load.clone();
    other.load = Load { scale, rate, qos, links, faults, seed, ..Load::default() };
    other.target.system = spec.target.system.clone();
    other.target.profile.clone_from(&spec.target.profile);
    other.target.limit.clone_from(&spec.target.limit);
    other.target.endpoint = spec.target.endpoint.clone().filter(|url| without_password(url) == *url);
    other.protocols.protocol = spec.protocols.protocol.clone();
    other.connection.tls = spec.connection.tls;
    other.window = spec.window.clone();
    other.objectives = spec.objectives.clone();
    other.repetitions = spec.repetitions;
    other
}

fn options(spec: &RunSpec) -> Vec<String> {
    let usual = RunSpec::new("");
    let (load, window) = (&spec.load, &spec.window);
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([format!("--{name}"), value]);
        }
    };
    let time = |get: fn(&Window) -> Duration| (get(window) != get(&usual.window)).then(|| get(window).write());
    add("system", spec.target.system.clone());
    add("endpoint", spec.target.endpoint.clone());
    add("protocol", spec.protocols.protocol.clone());
    add("profile", (spec.target.profile != usual.target.profile).then(|| spec.target.profile.clone()));
    add("limit", spec.target.limit.as_ref().map(|limit| limit.write()));
    add("scale", (load.scale != usual.load.scale).then(|| load.scale.to_string()));
    add("rate", (load.rate != usual.load.rate).then(|| load.rate.to_string()));
    add("qos", load.qos.map(|qos| qos.to_string()));
    load.links.iter().for_each(|link| add("link", Some(link.write())));
    load.faults.iter().for_each(|fault| add("fault", Some(fault.write())));
    add("warmup", time(|window| window.warmup));
    add("duration", time(|window| window.duration));
    add("drain", time(|window| window.drain));
    add("seed", (load.seed != usual.load.seed).then(|| load.seed.to_string()));
    add("slo", spec.objectives.clone());
    add("repeat", (spec.repetitions != 1).then(|| spec.repetitions.to_string()));
    words.extend(spec.connection.tls.then(|| "--tls".to_owned()));
    words
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::spec::file::document;

    use super::*;
    use crate::submission::RunSubmission;

    fn line(text: &str) -> String {
        words(&document::<RunSubmission>(text).unwrap().spec().unwrap()).join(" ")
    }

    #[test]
    fn unusual_settings_are_shown() {
        assert_eq!(line("workload: hello\n"), "pubmark run hello");
        let text = "workload: smart-home\nsystem: mosquitto\nqos: 1\nduration: 10s\nslo: p99<50ms\n\
                    rate: 2.5\nrepetitions: 3\ntls: true\n";
        let expected = "pubmark run smart-home --system mosquitto --rate 2.5 --qos 1 --duration 10s --slo p99<50ms --repeat 3 --tls";
        assert_eq!(line(text), expected);
        let text = "workload: smart-home\nload: {links: [lte], faults: ['kill:at=3s,for=1s']}\n";
        assert_eq!(line(text), "pubmark run smart-home --link lte --fault kill:at=3s,for=1s");
    }

    #[test]
    fn what_options_cannot_say_is_in_the_file() {
        for text in [
            "workload: {file_name: mine.yaml, text: 'name: mine'}\n",
            "workload: hello\ngenerator: {shards: 2}\n",
            "workload: hello\nendpoint: mqtt://ann:word@127.0.0.1\n",
        ] {
            assert_eq!(line(text), "pubmark run run.yaml", "{text}");
        }
    }
}
