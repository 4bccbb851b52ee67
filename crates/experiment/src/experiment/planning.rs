//! Plans an experiment: every cell is ready to be run, or refused with a reason. Nothing is started here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pubmark_model::experiment::{self, Experiment, PlannedCell, Settings, Turn};
use pubmark_model::workload::Variant;
use pubmark_record::experiment::{Axis, FailureKind};
use pubmark_runner::progress_text::seconds;
use pubmark_runner::target::CheckedTarget;
use pubmark_runner::{CheckedRun, ErrorKind, Host, PreparedRun, RunError, unbuilt};
use pubmark_systems::Definition;

use super::{cell_spec, definition, endpoint};
use crate::machines::Machines;
use pubmark_protocols::{self as protocols, known};

/// A planned experiment.
pub struct Plan {
    /// The definition.
    pub experiment: Experiment,
    /// Its cells, in the order of the axes.
    pub cells: Vec<Cell>,
    /// Names of the axes in the record.
    pub axes: Vec<Axis>,
    /// All runs in order, including those of refused cells.
    pub turns: Vec<Turn>,
    /// Notes for the reader about the choice of cells.
    pub cautions: Vec<String>,
}

/// A combination of settings.
pub struct Cell<Run = Box<PreparedRun>> {
    /// Its id, label and values.
    pub planned: PlannedCell,
    /// Its run, or the reason why there is none.
    pub run: Result<Run, Refusal>,
}

/// Checks all cells as [`Plan::new`] does, but without the schedules, whose computation takes long for long runs.
///
/// # Errors
/// Those of [`Plan::new`].
pub fn check(
    experiment: &Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
) -> Result<Vec<Cell<Box<CheckedRun>>>, RunError> {
    let fits = |checked: CheckedRun| checked.check_limits().map(|()| Box::new(checked));
    cells(experiment, folder, host, machines, fits).map(|(cells, _)| cells)
}

/// The experiment with the warm-up that the slowest system needs of which a cell can be run here, if that is longer than its own. All
/// cells get it: they are compared under one schedule. A system that is installed before the experiment is resumed is measured cold, and
/// a caution says so. With a note for the user if it is longer.
///
/// # Errors
/// Those of [`Plan::new`].
pub fn warmed_up(
    experiment: Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
) -> Result<(Experiment, Option<String>), RunError> {
    let own = experiment.warmup;
    if experiment.exact_warmup || definition::warm_ups(&experiment, folder)?.into_iter().all(|needed| needed <= own) {
        return Ok((experiment, None));
    }
    let cells = check(&experiment, folder, host, machines)?;
    let slowest =
        cells.iter().filter_map(|cell| cell.run.as_ref().ok()?.wanted.warm_up()).max_by_key(|(_, needed)| *needed);
    let Some((title, warmup)) = slowest.filter(|(_, needed)| *needed > own) else { return Ok((experiment, None)) };
    let note = format!("warm-up raised from {} to {} for {title}", seconds(own), seconds(warmup));
    Ok((Experiment { warmup, ..experiment }, Some(note)))
}

/// The protocol that cells without their own protocol share, and a note about it for the reader.
type Common = (Option<&'static str>, Vec<String>);

/// The cells, checked as [`check`] does, except for whether their systems are installed and whether this machine is large enough.
///
/// # Errors
/// Those of [`Plan::new`].
pub(super) fn specified(
    experiment: &Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
) -> Result<Vec<Cell<Box<CheckedRun>>>, RunError> {
    all_cells(experiment, folder, host, machines, |checked| Ok(Box::new(checked))).map(|(cells, _)| cells)
}

/// The cells, each prepared as far as required; those whose systems are not installed are refused.
fn cells<Run>(
    experiment: &Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
    then: impl Fn(CheckedRun) -> Result<Run, RunError>,
) -> Result<(Vec<Cell<Run>>, Common), RunError> {
    let installed = Installed::default();
    let then = |checked: CheckedRun| installed.check(&checked).and_then(|()| then(checked));
    all_cells(experiment, folder, host, machines, then)
}

/// The cells, each prepared as far as required.
fn all_cells<Run>(
    experiment: &Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
    then: impl Fn(CheckedRun) -> Result<Run, RunError>,
) -> Result<(Vec<Cell<Run>>, Common), RunError> {
    machines.check(experiment.axes.system.iter().any(|system| system.node.is_some()))?;
    refuse_more_nodes(experiment, machines)?;
    let planned = experiment::cells(experiment);
    let (protocol, cautions) = common_protocol(&planned, folder)?;
    let cell = |planned| Cell::new(planned, experiment, protocol, folder, host, machines, &then);
    let cells = planned.into_iter().map(cell).collect::<Result<_, _>>()?;
    Ok((cells, (protocol, cautions)))
}

/// Whether the systems of an experiment are installed: cells share systems, and each look starts programs.
#[derive(Default)]
struct Installed(RefCell<BTreeMap<String, Option<(ErrorKind, String)>>>);

impl Installed {
    fn check(&self, checked: &CheckedRun) -> Result<(), RunError> {
        let CheckedTarget::Started { definition, options } = &checked.wanted else { return checked.check_installed() };
        // What decides it, and the name in the message. Two definitions may have one name, or one program.
        let of_run = (&definition.name, &options.back_end, &options.image, &checked.spec.target.node);
        let key = format!("{of_run:?} {:?}", definition.back_ends);
        let mut known = self.0.borrow_mut();
        let found = known.entry(key).or_insert_with(|| {
            let error = checked.check_installed().err()?;
            Some((error.kind, error.to_string()))
        });
        found.as_ref().map_or(Ok(()), |(kind, text)| Err(RunError::new(*kind, text.clone())))
    }
}

/// The reason why a cell is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `Unsupported`, `NotInstalled` or `NoRoom`.
    pub kind: FailureKind,
    /// One sentence.
    pub text: String,
}

impl Refusal {
    /// A requirement of the cell is missing on this machine.
    pub fn not_installed(text: impl Into<String>) -> Refusal {
        Refusal { kind: FailureKind::NotInstalled, text: text.into() }
    }

    /// Errors that concern one cell refuse only this cell; all other errors refuse the experiment.
    fn of(error: RunError) -> Result<Refusal, RunError> {
        let kind = match error.kind {
            ErrorKind::Unsupported => FailureKind::Unsupported,
            ErrorKind::NotInstalled => FailureKind::NotInstalled,
            // The largest size of an axis may be too large for this machine while the others are not.
            ErrorKind::TooLarge => FailureKind::NoRoom,
            _ => return Err(error),
        };
        Ok(Refusal { kind, text: error.to_string() })
    }
}

impl Plan {
    /// Plans an experiment for this machine and those that join; its paths are relative to `folder`.
    ///
    /// # Errors
    /// An error that concerns all cells: a file or a setting that cannot be used, or more nodes than machines that
    /// join.
    pub fn new(experiment: Experiment, folder: &Path, host: &Host, machines: &Machines) -> Result<Plan, RunError> {
        let (cells, (protocol, mut cautions)) =
            cells(&experiment, folder, host, machines, |checked| checked.prepare().map(Box::new))?;
        cautions.extend(running_already(&experiment));
        cautions.extend(too_cold(&cells, experiment.warmup));
        let turns = experiment::order(
            &cells.iter().map(|cell| cell.planned.clone()).collect::<Vec<_>>(),
            // As many blocks again, for repetitions of runs that do not count.
            experiment.repeat * 2,
            experiment.order_seed,
        );
        let mut axes: Vec<Axis> = experiment::axes(&experiment)
            .into_iter()
            .map(|axis| Axis { name: axis.name, values: axis.values })
            .collect();
        if let (Some(protocol), false) = (protocol, axes.iter().any(|axis| axis.name == PROTOCOL)) {
            axes.insert(1, Axis { name: PROTOCOL.to_owned(), values: vec![protocol.to_owned()] });
        }
        if let (Some(count), false) = (machines.count(), axes.iter().any(|axis| axis.name == NODES)) {
            axes.push(Axis { name: NODES.to_owned(), values: vec![count.to_string()] });
        }
        let plan = Plan { experiment, cells, axes, turns, cautions };
        plan.refuse_unequal_schedules()?;
        Ok(plan)
    }

    /// Cells that can be run, with the hashes of their schedules.
    pub fn schedules(&self) -> BTreeMap<String, String> {
        let hash = |cell: &Cell| Some((cell.planned.id.clone(), cell.run.as_ref().ok()?.schedule.hash.clone()));
        self.cells.iter().filter_map(hash).collect()
    }

    /// Number of planned runs of cells that can be run.
    pub fn runs(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.repetition <= self.experiment.repeat && self.cells[turn.cell].run.is_ok())
    }

    /// Does one of its workloads have two readings?
    pub fn has_readings(&self) -> bool {
        self.cells.iter().filter_map(|cell| cell.run.as_ref().ok()).any(|run| run.workload.has_readings)
    }

    /// The reading of its workloads, if there are two readings or it is not the default.
    pub fn reading(&self) -> Option<&'static str> {
        let variant = self.experiment.variant;
        (self.has_readings() || variant == Variant::Published).then(|| variant.as_str())
    }

    /// Cells whose differences do not affect the load must have equal schedules.
    fn refuse_unequal_schedules(&self) -> Result<(), RunError> {
        let same = experiment::same_schedule_axes();
        let mut first_of: BTreeMap<Vec<(&str, &str)>, (&str, &str)> = BTreeMap::new();
        for cell in &self.cells {
            let Ok(run) = &cell.run else { continue };
            let load: Vec<(&str, &str)> = cell
                .planned
                .values
                .iter()
                .filter(|(axis, _)| !same.contains(&axis.as_str()))
                .map(|(axis, value)| (axis.as_str(), value.as_str()))
                .collect();
            let (id, hash) = (cell.planned.id.as_str(), run.schedule.hash.as_str());
            let (first, first_hash) = *first_of.entry(load).or_insert((id, hash));
            if hash != first_hash {
                return Err(RunError::input(format!(
                    "`{first}` and `{id}` have different schedules ({first_hash} and {hash}): they cannot be compared"
                )));
            }
        }
        Ok(())
    }
}

const PROTOCOL: &str = "protocol";
const NODES: &str = "nodes";

/// Refuses a cell that needs more nodes than machines that join.
///
/// # Errors
/// There is one; the hint names `--nodes` that are enough.
pub fn refuse_more_nodes(experiment: &Experiment, machines: &Machines) -> Result<(), RunError> {
    let Some(count) = machines.count() else { return Ok(()) };
    let nodes = &experiment.axes.nodes;
    let Some(most) = nodes.iter().max().filter(|most| **most > count) else { return Ok(()) };
    let fit: Vec<String> = nodes.iter().filter(|nodes| **nodes <= count).map(u16::to_string).collect();
    let fewer = if fit.is_empty() { String::new() } else { format!("; or fewer: `--only nodes={}`", fit.join(",")) };
    Err(RunError::input(format!("the axis `nodes` asks for {most} machines, and `--nodes {count}` waits for fewer"))
        .hint(format!("`--nodes {most}`{fewer}")))
}

/// Notes for the reader about systems that are already running.
fn running_already(experiment: &Experiment) -> Option<String> {
    let at =
        |choice: &experiment::SystemChoice| Some(format!("`{}` at {}", choice.label, choice.endpoint.as_ref()?.url));
    let running: Vec<String> = experiment.axes.system.iter().filter_map(at).collect();
    (!running.is_empty())
        .then(|| format!("pubmark does not start afresh for each run what runs already: {}.", running.join(", ")))
}

/// Notes for the reader about systems that are measured before they are warm.
fn too_cold(cells: &[Cell], warmup: Duration) -> Vec<String> {
    let systems = cells.iter().filter_map(|cell| cell.run.as_ref().ok()?.wanted.warm_up());
    let cold: BTreeMap<&str, Duration> = systems.filter(|(_, needed)| warmup < *needed).collect();
    let note = |(title, needed): (&str, Duration)| {
        let times = [needed, warmup].map(seconds);
        format!(
            "{title} needs {} of load until it is warm, and the warm-up has {}: it is measured cold.",
            times[0], times[1]
        )
    };
    cold.into_iter().map(note).collect()
}

impl<Run> Cell<Run> {
    fn new(
        mut planned: PlannedCell,
        experiment: &Experiment,
        common: Option<&'static str>,
        folder: &Path,
        host: &Host,
        machines: &Machines,
        then: impl Fn(CheckedRun) -> Result<Run, RunError>,
    ) -> Result<Cell<Run>, RunError> {
        if let Some(count) = machines.count() {
            planned.values.entry(NODES.to_owned()).or_insert_with(|| count.to_string());
        }
        let offer = Offer::of(&planned.settings, folder)?;
        let own = planned.settings.protocol.as_deref();
        let protocol = own.or(common).or_else(|| offer.protocols.first().copied());
        let absent = match (protocol, &offer.definition) {
            (Some(name), _) => known::left_out(name),
            (None, Some(definition)) => unbuilt::of(definition),
            (None, None) => None,
        };
        if let Some(known) = absent {
            planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| known.name.to_owned());
            return Ok(Cell { planned, run: Err(Refusal::not_installed(unbuilt::words(known))) });
        }
        let Some(protocol) = protocol.map(str::to_owned) else {
            let spoken = offer.definition.iter().flat_map(|definition| definition.protocols.keys().cloned());
            let spoken = spoken.collect::<Vec<_>>().join(", ");
            let text = format!("`{}` speaks nothing that pubmark's clients do: it speaks {spoken}", offer.name);
            return Ok(Cell { planned, run: Err(Refusal { kind: FailureKind::Unsupported, text }) });
        };
        planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| protocol.clone());
        if let Some(text) = endpoint::refusal(&planned, &protocol) {
            return Ok(Cell { planned, run: Err(Refusal { kind: FailureKind::Unsupported, text }) });
        }
        let made = || -> Result<Run, RunError> {
            let spec = cell_spec::of(experiment, &planned.settings, &protocol, folder, machines)?;
            then(spec.check(host)?)
        };
        let run =
            match made() {
                Ok(run) => Ok(run),
                Err(error) => Err(Refusal::of(error)
                    .map_err(|error| error.during(format!("cell `{}` cannot be run", planned.label)))?),
            };
        Ok(Cell { planned, run })
    }
}

/// The protocols of a system of the axis, as far as they are known before anything is started.
struct Offer {
    /// Name in messages.
    name: String,
    /// Protocols that it supports, in the order of the protocol table.
    protocols: Vec<&'static str>,
    /// Its definition; `None` for an endpoint, whose scheme determines the protocols.
    definition: Option<Definition>,
}

impl Offer {
    fn of(settings: &Settings, folder: &Path) -> Result<Offer, RunError> {
        if let Some(endpoint) = &settings.endpoint {
            let (name, protocols) = (endpoint.url.clone(), endpoint::offered(endpoint));
            return Ok(Offer { name, protocols, definition: None });
        }
        // Without an endpoint it has the name of a system, which was validated with the definition.
        let system = settings.system.as_deref().unwrap_or_default();
        let definition = Definition::load(&cell_spec::in_folder(system, folder))
            .map_err(|error| RunError::from_error(ErrorKind::Input, &error))?;
        let offered = |name: &&str| definition.protocols.contains_key(*name);
        let protocols = protocols::names().into_iter().filter(offered).collect();
        Ok(Offer { name: definition.name.clone(), protocols, definition: Some(definition) })
    }
}

/// The first protocol that all systems without their own protocol support, for a fair comparison. Without a common
/// protocol each system uses its first one, with a note for the reader.
fn common_protocol(cells: &[PlannedCell], folder: &Path) -> Result<Common, RunError> {
    let mut systems: Vec<&Settings> = vec![];
    for cell in cells.iter().filter(|cell| cell.settings.protocol.is_none()) {
        let is_same =
            |known: &&Settings| (&known.system, &known.endpoint) == (&cell.settings.system, &cell.settings.endpoint);
        if !systems.iter().any(is_same) {
            systems.push(&cell.settings);
        }
    }
    let mut offers: Vec<Offer> =
        systems.iter().map(|settings| Offer::of(settings, folder)).collect::<Result<_, _>>()?;
    // A system without a supported protocol is refused separately.
    offers.retain(|offer| !offer.protocols.is_empty());
    if offers.is_empty() {
        return Ok((None, vec![]));
    }
    let all_offer = |name: &&str| offers.iter().all(|offer| offer.protocols.contains(name));
    let common = protocols::names().into_iter().find(all_offer);
    let caution = common.is_none().then(|| {
        let each: Vec<String> =
            offers.iter().map(|offer| format!("{} over {}", offer.name, offer.protocols[0])).collect();
        format!("The systems have no protocol in common, so each speaks its own: {}.", each.join(", "))
    });
    Ok((common, caution.into_iter().collect()))
}

/// The folder to which the paths of an experiment are relative, as an absolute path.
pub fn absolute(folder: Option<&Path>) -> Result<PathBuf, RunError> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).map_err(|error| {
        RunError::from_error(ErrorKind::Input, &error)
            .during(format!("failed to find the folder `{}`", folder.display()))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_its_warm_up_is_named_as_cold() {
        let place = tempfile::tempdir().unwrap();
        let text = include_str!("../../../../systems/builtin.yaml");
        let slow = text.replacen("back_ends:\n", "warm_up_s: 20\nback_ends:\n", 1);
        std::fs::write(place.path().join("slow.yaml"), slow).unwrap();
        let text = "{name: t, workload: hello, duration: 1s, warmup: 1s, axes: {system: [builtin, ./slow.yaml]}}";
        let experiment = definition::parse(text, place.path()).unwrap();
        let planned = |experiment: Experiment| {
            Plan::new(experiment, place.path(), &Host::with_program("pubmark"), &Machines::default()).unwrap()
        };
        let cold = planned(experiment.clone()).cautions;
        let words = "needs 20 s of load until it is warm, and the warm-up has 1 s: it is measured cold.";
        assert!(cold.len() == 1 && cold[0].ends_with(words), "{cold:?}");
        let exact = Experiment { exact_warmup: true, ..experiment.clone() };
        assert_eq!(warmed_up_in(place.path(), exact.clone()), (exact, None));
        let (warm, note) = warmed_up_in(place.path(), experiment);
        assert!(note.is_some_and(|note| note.starts_with("warm-up raised from 1 s to 20 s for ")));
        let warm = planned(warm);
        assert_eq!((warm.experiment.warmup.as_secs(), warm.cautions), (20, vec![]));
    }

    fn warmed_up_in(folder: &Path, experiment: Experiment) -> (Experiment, Option<String>) {
        warmed_up(experiment, folder, &Host::with_program("pubmark"), &Machines::default()).unwrap()
    }

    #[test]
    fn a_system_that_is_not_installed_does_not_make_the_others_warm_up_longer() {
        let place = tempfile::tempdir().unwrap();
        let text = include_str!("../../../../systems/builtin.yaml");
        let absent =
            text.replacen("back_ends:\n", "warm_up_s: 20\nback_ends:\n", 1).replacen("{self}", "no-such-program", 1);
        std::fs::write(place.path().join("absent.yaml"), absent).unwrap();
        let text = "{name: t, workload: hello, duration: 1s, warmup: 1s, axes: {system: [builtin, ./absent.yaml]}}";
        let experiment = definition::parse(text, place.path()).unwrap();
        assert_eq!(definition::warm_ups(&experiment, place.path()).unwrap(), [0, 20].map(Duration::from_secs));
        assert_eq!(warmed_up_in(place.path(), experiment.clone()), (experiment, None));
    }

    #[test]
    fn systems_that_lack_one_program_are_each_refused_by_their_own_name() {
        let place = tempfile::tempdir().unwrap();
        let text = include_str!("../../../../systems/builtin.yaml").replacen("{self}", "no-such-program", 1);
        for name in ["one", "two"] {
            let named = text.replacen("name: builtin", &format!("name: {name}"), 1);
            std::fs::write(place.path().join(format!("{name}.yaml")), named).unwrap();
        }
        let text = "{name: t, workload: hello, duration: 1s, warmup: 1s, axes: {system: [./one.yaml, ./two.yaml], qos: [0, 1]}}";
        let experiment = definition::parse(text, place.path()).unwrap();
        let cells = check(&experiment, place.path(), &Host::with_program("pubmark"), &Machines::default()).unwrap();
        let refusals: Vec<String> = cells.into_iter().map(|cell| cell.run.err().unwrap().text).collect();
        let install = |name: &str| refusals.iter().filter(|text| text.contains(&format!("install {name}`"))).count();
        assert_eq!([install("one"), install("two")], [2, 2], "{refusals:?}");
    }
}
