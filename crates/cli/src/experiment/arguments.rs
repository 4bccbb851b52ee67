//! A cell as the words of `pubmark run`.

use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use pubmark_model::experiment::{Experiment, Settings, time};
use pubmark_model::topology::Topology;

use crate::commands::run_arguments::Run;
use crate::failure::Failure;

/// The command line that makes one run of a cell: what a person would type. Paths count from `folder`.
pub fn words(experiment: &Experiment, settings: &Settings, protocol: &str, folder: &Path) -> Vec<String> {
    let mut words = vec!["pubmark".to_owned(), "run".to_owned(), in_folder(&settings.workload, folder)];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("system", in_folder(&settings.system, folder));
    option("protocol", protocol.to_owned());
    let texts = [
        ("profile", &settings.profile),
        ("back-end", &settings.back_end),
        ("image", &settings.image),
        ("limit", &settings.limit),
    ];
    for (name, value) in texts {
        value.iter().for_each(|value| option(name, value.clone()));
    }
    if settings.topology != Topology::ONE {
        option("topology", settings.topology.to_string());
    }
    experiment.pin.words().into_iter().for_each(|pin| option("pin", pin));
    option("variant", experiment.variant.as_str().to_owned());
    settings.qos.iter().for_each(|level| option("qos", level.to_string()));
    if settings.scale != 1 {
        option("scale", settings.scale.to_string());
    }
    if settings.rate != 1.0 {
        option("rate", settings.rate.to_string());
    }
    if settings.nodes != 1 {
        option("local-nodes", settings.nodes.to_string());
    }
    settings.payload_bytes.iter().for_each(|bytes| option("payload", bytes.to_string()));
    settings.link.iter().for_each(|link| option("link", link.to_string()));
    settings.fault.iter().for_each(|fault| option("fault", fault.to_string()));
    if settings.tls {
        words.push("--tls".to_owned());
    }
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    settings.set.iter().for_each(|(key, value)| option("set", format!("{key}={value}")));
    option("seed", experiment.seed.to_string());
    option("duration", time(experiment.duration));
    option("warmup", time(experiment.warmup));
    option("drain", time(experiment.drain));
    option("shards", experiment.generator.shards.to_string());
    if experiment.generator.kernel_netem {
        option("netem", "kernel".to_owned());
    }
    let flags = [
        ("--realtime", experiment.generator.realtime),
        ("--awake", experiment.generator.awake),
        ("--strict-defaults", experiment.strict_defaults),
    ];
    words.extend(flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag.to_owned()));
    words
}

/// A name as it stands; a path from the experiment's folder.
pub fn in_folder(name: &str, folder: &Path) -> String {
    let is_path = name.contains('/') || name.ends_with(".yaml");
    if is_path { folder.join(name).display().to_string() } else { name.to_owned() }
}

/// Reads the words as `pubmark run` does.
pub fn read(words: &[String]) -> Result<Run, Failure> {
    let command = Run::augment_args(clap::Command::new("pubmark run").no_binary_name(true));
    let matches =
        command.try_get_matches_from(words.iter().skip(2)).and_then(|matches| Run::from_arg_matches(&matches));
    matches.map_err(|error| {
        // clap's text has its own head and hint; its first line says what is wrong.
        let text = error.to_string();
        let line = text.lines().next().unwrap_or("unusable arguments");
        Failure::usage(line.strip_prefix("error: ").unwrap_or(line).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use pubmark_model::experiment::{cells, parse};

    use crate::commands::setup::Netem;

    use super::*;

    #[test]
    fn a_cell_is_read_as_the_run_that_it_is() {
        let text = "{name: t, workload: ./w.yaml, seed: 7, duration: 2s, warmup: 0s, generator: {shards: 2, realtime: true, netem: kernel}, set: {every: 1s}, \
                    axes: {system: {system: mosquitto, profile: tuned}, qos: 2, scale: 3, rate: 0.5, nodes: 5, payload: 1KB, link: all=lte, fault: 'kill:at=1s,for=100ms', tls: true}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let words = words(&experiment, &cells(&experiment)[0].settings, "mqtt311", Path::new("/folder"));
        let run = read(&words).unwrap();
        assert_eq!(run.workload, "/folder/./w.yaml");
        assert_eq!(
            (run.setup.seed, run.scale, run.setup.qos, run.rate, run.setup.payload),
            (7, 3, Some(2), 0.5, Some(1_000))
        );
        assert_eq!(run.setup.system.as_deref(), Some("mosquitto"));
        assert!(run.setup.tls);
        assert_eq!(run.setup.local_nodes, Some(5));
        assert_eq!(run.fault[0].to_string(), "kill:at=1s,for=100ms");
        assert_eq!(run.setup.link[0].to_string(), "all=lte");
        assert_eq!(run.setup.netem, Netem::Kernel);
        assert_eq!(run.setup.set, [("every".to_owned(), "1s".to_owned())]);
        assert_eq!((run.setup.shards, run.setup.realtime, run.setup.strict_defaults), (2, true, false));
        assert_eq!((run.duration.as_secs(), run.warmup.as_secs()), (2, 0));
    }

    #[test]
    fn what_run_does_not_take_is_said_in_its_words() {
        let words: Vec<String> = ["pubmark", "run", "hello", "--qos", "9"].map(str::to_owned).to_vec();
        let failure = read(&words).unwrap_err();
        assert!(failure.chain[0].contains("--qos"), "{failure:?}");
    }
}
