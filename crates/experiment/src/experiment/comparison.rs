//! The experiment of `pubmark compare`: a workload on several systems, with further axes.

use std::path::Path;
use std::time::Duration;

use pubmark_model::experiment::{Axes, Experiment, Generator, Pins, Quick, QuietMachine, SystemChoice, Word};
use pubmark_model::secret::without_password;
use pubmark_model::workload::Variant;
use pubmark_runner::{ErrorKind, RunError};
use pubmark_systems::affinity;

use super::definition;

/// Longest part of a name that comes from the workload, characters.
const LONGEST: usize = 40;

/// A comparison of systems to start (names, or paths of definitions) and of endpoints (`LABEL=URL`) under a workload, with the defaults of
/// `pubmark compare`. Systems of `axes` are replaced.
///
/// # Errors
/// A name of a workload, a system, an endpoint or limits cannot be used.
pub fn comparison(
    workload: &str,
    systems: &[String],
    endpoints: &[String],
    axes: Axes,
) -> Result<Experiment, RunError> {
    judged(Word::Workload, workload)?;
    systems.iter().try_for_each(|system| judged(Word::System, system))?;
    let mut system = choices(systems);
    for text in endpoints {
        let (label, url) = labelled_endpoint(text)?;
        system.push(SystemChoice::at(label, url));
    }
    axes.limit.iter().filter(|limit| *limit != "none").try_for_each(|limit| judged(Word::Limit, limit))?;
    let label = SystemChoice::named(workload).label;
    Ok(Experiment {
        name: format!("compare-{}", file_name_part(&label)),
        title: format!("{} on {label}", listed(&system)),
        description: String::new(),
        workload: workload.to_owned(),
        variant: Variant::Corrected,
        set: vec![],
        seed: 1,
        order_seed: 1,
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(5),
        exact_warmup: false,
        drain: Duration::from_secs(10),
        repeat: 5,
        quiet_machine: QuietMachine::default(),
        pin: Pins::default(),
        generator: Generator::default(),
        strict_defaults: false,
        quick: Quick::default(),
        axes: Axes { system, ..axes },
        papers: vec![],
    })
}

/// Reads `LABEL=URL`. Errors do not show a password in it.
///
/// # Errors
/// It has no label, it has a password, or its scheme is unknown.
pub fn labelled_endpoint(text: &str) -> Result<(&str, &str), RunError> {
    let shown = without_password(text);
    let (label, url) = match text.split_once('=') {
        Some((label, url)) if !label.contains("://") => (label.trim(), url.trim()),
        _ => {
            return Err(RunError::input(format!("`--endpoint {shown}` has no label, by which the report names it"))
                .hint(format!("`--endpoint 'ours={shown}'`")));
        }
    };
    if label.is_empty() || url.is_empty() {
        return Err(RunError::input(format!("`--endpoint {shown}` has an empty part"))
            .hint("`--endpoint 'ours=mqtt://broker.example:1883'`"));
    }
    if without_password(url) != url {
        return Err(RunError::input(format!(
            "`--endpoint {shown}` has a password, and an experiment's folder would store it for others to read"
        ))
        .hint(format!(
            "in an experiment's file: `{{label: {label}, endpoint: 'mqtt://…', user: NAME, password_env: VARIABLE}}`"
        )));
    }
    judged(Word::Endpoint, url).map_err(|error| error.during(format!("failed to read `--endpoint {shown}`")))?;
    Ok((label, url))
}

/// Reads the cores of the sides of all runs: `system=0`, `generator=1-3`.
///
/// # Errors
/// They cannot be read, or this machine does not have them.
pub fn pins(words: &[String]) -> Result<Pins, RunError> {
    let read = affinity::parse_pins(words).map_err(|error| RunError::from_error(ErrorKind::Input, &error))?;
    let shown = |cores: &[u32]| (!cores.is_empty()).then(|| affinity::shown(cores));
    Ok(Pins { system: shown(&read.system), generator: shown(&read.generator) })
}

fn judged(word: Word<'_>, text: &str) -> Result<(), RunError> {
    definition::judge(Path::new(""), word, text).map_err(|objection| {
        let error = RunError::input(objection.message);
        match objection.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}

/// The systems; repeated names get a number. Comparing a system with itself shows the noise.
fn choices(systems: &[String]) -> Vec<SystemChoice> {
    let mut found: Vec<SystemChoice> = vec![];
    for system in systems {
        let mut choice = SystemChoice::named(system);
        let name = choice.label.clone();
        let mut number = 2;
        while found.iter().any(|known| known.label == choice.label) {
            choice.label = format!("{name}-{number}");
            number += 1;
        }
        found.push(choice);
    }
    found
}

/// `a`, `a and b`, `a, b and c`.
fn listed(systems: &[SystemChoice]) -> String {
    let labels: Vec<&str> = systems.iter().map(|choice| choice.label.as_str()).collect();
    match labels.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn file_name_part(label: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    label.chars().take(LONGEST).map(safe).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(systems: &[&str]) -> Vec<String> {
        systems.iter().map(|system| (*system).to_owned()).collect()
    }

    #[test]
    fn a_system_can_be_compared_with_itself() {
        let labels: Vec<String> =
            choices(&words(&["a", "b", "a", "a"])).into_iter().map(|choice| choice.label).collect();
        assert_eq!(labels, ["a", "b", "a-2", "a-3"]);
        assert_eq!(listed(&choices(&words(&["a", "a", "x/b.yaml"]))), "a, a-2 and b");
    }

    #[test]
    fn a_comparison_is_named_after_its_workload_and_its_systems() {
        let systems = words(&["mosquitto", "nats"]);
        let endpoints = words(&["ours=mqtt://host:1883"]);
        let experiment = comparison("smart-home", &systems, &endpoints, Axes::default()).unwrap();
        assert_eq!(experiment.name, "compare-smart-home");
        assert_eq!(experiment.title, "mosquitto, nats and ours on smart-home");
        assert_eq!(experiment.axes.system.len(), 3);
        assert!(comparison("smart-hom", &systems, &[], Axes::default()).is_err());
        assert!(comparison("smart-home", &words(&["mosqitto"]), &[], Axes::default()).is_err());
        let wrong = Axes { limit: words(&["none", "much"]), ..Axes::default() };
        assert!(comparison("smart-home", &systems, &[], wrong).is_err());
    }

    #[test]
    fn an_endpoint_has_a_label_and_no_password() {
        let read = |text| labelled_endpoint(text).map_err(|error| error.to_string());
        assert_eq!(read("ours = mqtt://host:1883"), Ok(("ours", "mqtt://host:1883")));
        assert_eq!(read("ours=mqtt://ann@host"), Ok(("ours", "mqtt://ann@host")));
        for (wrong, reason) in [
            ("mqtt://host", "has no label"),
            ("mqtt://host?a=b", "has no label"),
            ("=mqtt://host", "has an empty part"),
            ("ours=", "has an empty part"),
            ("ours=mqtt://ann:word@host", "has a password"),
            ("mqtt://ann:word@host", "has no label"),
            ("ours=host:1883", "has no scheme"),
            ("ours=gopher://host", "none that pubmark speaks"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(reason) && !error.contains("word@"), "{wrong}: {error}");
        }
    }
}
