//! A cell as the specification of its runs.

use std::path::Path;

use pubmark_model::experiment::{Experiment, Settings};
use pubmark_model::topology::Topology;
use pubmark_model::workload::Variant;
use pubmark_runner::spec::{BackEnd, Netem, Reading};
use pubmark_runner::{ErrorKind, RunError, RunSpec};
use pubmark_systems::limits;

/// The specification of a cell's runs. Paths count from `folder`.
///
/// # Errors
/// Limits that cannot be read, or a back end that is none.
pub fn of(experiment: &Experiment, settings: &Settings, protocol: &str, folder: &Path) -> Result<RunSpec, RunError> {
    let mut spec = RunSpec::new(&in_folder(&settings.workload, folder));
    spec.repetitions = experiment.repeat;
    let target = &mut spec.target;
    target.system = Some(in_folder(&settings.system, folder));
    if let Some(profile) = &settings.profile {
        target.profile.clone_from(profile);
    }
    target.back_end = settings.back_end.as_deref().map(back_end).transpose()?;
    target.image.clone_from(&settings.image);
    let limit = settings.limit.as_deref().map(limits::parse).transpose();
    target.limit = limit.map_err(|error| RunError::from_error(ErrorKind::TooLarge, &error))?;
    target.topology = (settings.topology != Topology::ONE).then_some(settings.topology);
    target.strict_defaults = experiment.strict_defaults;
    spec.protocols.protocol = Some(protocol.to_owned());
    spec.protocols.client.clone_from(&settings.client);
    spec.connection.tls = settings.tls;
    let load = &mut spec.load;
    load.variant = match experiment.variant {
        Variant::Published => Reading::Published,
        Variant::Corrected => Reading::Corrected,
    };
    load.qos = settings.qos;
    load.scale = settings.scale;
    load.rate = settings.rate;
    load.payload = settings.payload_bytes;
    load.links = settings.link.iter().cloned().collect();
    load.faults = settings.fault.iter().cloned().collect();
    load.set.clone_from(&settings.set);
    load.seed = experiment.seed;
    let own = &experiment.generator;
    load.netem = if own.kernel_netem { Netem::Kernel } else { Netem::User };
    let generator = &mut spec.generator;
    (generator.shards, generator.realtime, generator.awake) = (own.shards, own.realtime, own.awake);
    generator.pin = experiment.pin.words();
    spec.nodes.local_nodes = (settings.nodes != 1).then_some(settings.nodes);
    let window = &mut spec.window;
    (window.warmup, window.duration, window.drain) = (experiment.warmup, experiment.duration, experiment.drain);
    Ok(spec)
}

fn back_end(word: &str) -> Result<BackEnd, RunError> {
    match word {
        "process" => Ok(BackEnd::Process),
        "container" => Ok(BackEnd::Container),
        _ => Err(RunError::input(format!("there is no back end `{word}`: there are `process` and `container`"))),
    }
}

/// A name as it stands; a path from the experiment's folder.
pub fn in_folder(name: &str, folder: &Path) -> String {
    let is_path = name.contains('/') || name.ends_with(".yaml");
    if is_path { folder.join(name).display().to_string() } else { name.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::experiment::{cells, parse};
    use pubmark_runner::WorkloadSource;

    use super::*;

    #[test]
    fn a_cell_is_the_run_that_it_says() {
        let text = "{name: t, workload: ./w.yaml, seed: 7, duration: 2s, warmup: 0s, generator: {shards: 2, realtime: true, netem: kernel}, set: {every: 1s}, \
                    axes: {system: {system: mosquitto, profile: tuned}, qos: 2, scale: 3, rate: 0.5, nodes: 5, payload: 1KB, link: all=lte, fault: 'kill:at=1s,for=100ms', tls: true}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let spec = of(&experiment, &cells(&experiment)[0].settings, "mqtt311", Path::new("/folder")).unwrap();
        assert_eq!(spec.workload, WorkloadSource::Named("/folder/./w.yaml".to_owned()));
        let load = &spec.load;
        assert_eq!((load.seed, load.scale, load.qos, load.rate, load.payload), (7, 3, Some(2), 0.5, Some(1_000)));
        assert_eq!(
            (load.faults[0].to_string(), load.links[0].to_string()),
            ("kill:at=1s,for=100ms".into(), "all=lte".into())
        );
        assert_eq!((load.netem, &load.set[..]), (Netem::Kernel, &[("every".to_owned(), "1s".to_owned())][..]));
        assert_eq!((spec.target.system.as_deref(), spec.target.profile.as_str()), (Some("mosquitto"), "tuned"));
        assert_eq!(spec.protocols.protocol.as_deref(), Some("mqtt311"));
        assert!(spec.connection.tls && !spec.target.strict_defaults && spec.generator.realtime);
        assert_eq!((spec.nodes.local_nodes, spec.generator.shards), (Some(5), 2));
        assert_eq!((spec.window.duration.as_secs(), spec.window.warmup.as_secs()), (2, 0));
        assert_eq!(RunSpec::parse(&spec.to_yaml(&[]).unwrap()).unwrap(), spec);
    }
}
