//! Changes to an experiment's definition from the command line.

use std::time::Duration;

use super::definition::Experiment;

/// Values that replace those of the definition; values that are not given stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Short runs and few repetitions, as `quick` of the definition has them.
    pub quick: bool,
    /// Repetitions of each cell.
    pub repeat: Option<u32>,
    /// Length of each measured window.
    pub duration: Option<Duration>,
    /// Length of the warm-up, which is not measured; systems that need more get no more.
    pub warmup: Option<Duration>,
    /// Maximum wait for a quiet machine before each run.
    pub wait: Option<Duration>,
    /// Real-time priority of the generator's threads, whatever the definition says.
    pub realtime: bool,
    /// Prevent CPU idle states on the machine, whatever the definition says.
    pub awake: bool,
}

impl Experiment {
    /// The experiment with these changes.
    #[must_use]
    pub fn changed(self, changes: &Changes) -> Experiment {
        let mut changed = if changes.quick { self.quickly() } else { self };
        changed.repeat = changes.repeat.unwrap_or(changed.repeat);
        changed.duration = changes.duration.unwrap_or(changed.duration);
        changed.warmup = changes.warmup.unwrap_or(changed.warmup);
        changed.exact_warmup |= changes.warmup.is_some();
        changed.quiet_machine.within = changes.wait.unwrap_or(changed.quiet_machine.within);
        changed.generator.realtime |= changes.realtime;
        changed.generator.awake |= changes.awake;
        changed
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_warm_up_of_the_command_line_is_that_of_the_repetition_from_the_written_file() {
        let read = |text: &str| parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let experiment = read("{name: t, workload: hello, axes: {system: [a]}}");
        let quick = experiment.clone().changed(&Changes { quick: true, ..Changes::default() });
        assert!(
            !quick.exact_warmup && !quick.to_yaml().contains("exact_warmup"),
            "of older files the warm-up is raised"
        );
        let changed = experiment.changed(&Changes { warmup: Some(Duration::from_secs(2)), ..Changes::default() });
        let again = read(&changed.to_yaml());
        assert_eq!((again.warmup, again.exact_warmup), (Duration::from_secs(2), true));
    }
}
