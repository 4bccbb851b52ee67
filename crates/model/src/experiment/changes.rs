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
    /// Length of the warm-up, which is not measured.
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
        changed.quiet_machine.within = changes.wait.unwrap_or(changed.quiet_machine.within);
        changed.generator.realtime |= changes.realtime;
        changed.generator.awake |= changes.awake;
        changed
    }
}
