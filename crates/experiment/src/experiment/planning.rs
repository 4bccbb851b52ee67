//! From an experiment to cells that are ready to be run, or refused with their reason. Nothing is started here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pubmark_model::experiment::{self, Experiment, PlannedCell, Turn};
use pubmark_model::workload::Variant;
use pubmark_record::experiment::{Axis, FailureKind};
use pubmark_runner::{ErrorKind, Host, PreparedRun, RunError, unbuilt};
use pubmark_systems::Definition;

use super::cell_spec;
use pubmark_protocols::{self as protocols, PROTOCOLS, known};

/// An experiment, worked out.
pub struct Plan {
    /// What it says.
    pub experiment: Experiment,
    /// Its cells, in order of the axes.
    pub cells: Vec<Cell>,
    /// What is varied, as the record names it.
    pub axes: Vec<Axis>,
    /// All runs, in their order; those of refused cells too.
    pub turns: Vec<Turn>,
    /// What a reader should know of how cells were chosen.
    pub cautions: Vec<String>,
}

/// A combination of settings.
pub struct Cell {
    /// Its id, label and values.
    pub planned: PlannedCell,
    /// Its run, or why there is none.
    pub run: Result<Box<PreparedRun>, Refusal>,
}

/// Why a cell is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `Unsupported`, `NotInstalled` or `NoRoom`.
    pub kind: FailureKind,
    /// One sentence.
    pub text: String,
}

impl Refusal {
    /// Something that it needs is not here.
    pub fn not_installed(text: impl Into<String>) -> Refusal {
        Refusal { kind: FailureKind::NotInstalled, text: text.into() }
    }

    /// What a cell asks for and cannot have leaves the other cells as they are; anything else in the way is in the way of all.
    fn of(error: RunError) -> Result<Refusal, RunError> {
        let kind = match error.kind {
            ErrorKind::Unsupported => FailureKind::Unsupported,
            ErrorKind::NotInstalled => FailureKind::NotInstalled,
            // Of the sizes of an axis the largest may be too large for this machine, and the others are not.
            ErrorKind::TooLarge => FailureKind::NoRoom,
            _ => return Err(error),
        };
        Ok(Refusal { kind, text: error.to_string() })
    }
}

impl Plan {
    /// Works an experiment out for this machine; its paths count from `folder`.
    pub fn new(experiment: Experiment, folder: &Path, host: &Host) -> Result<Plan, RunError> {
        let planned = experiment::cells(&experiment);
        let (protocol, cautions) = common_protocol(&planned, folder)?;
        let cells: Vec<Cell> = planned
            .into_iter()
            .map(|planned| Cell::new(planned, &experiment, protocol, folder, host))
            .collect::<Result<_, _>>()?;
        let turns = experiment::order(
            &cells.iter().map(|cell| cell.planned.clone()).collect::<Vec<_>>(),
            // As many blocks again, for runs in place of those that do not count.
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
        let plan = Plan { experiment, cells, axes, turns, cautions };
        plan.refuse_unequal_schedules()?;
        Ok(plan)
    }

    /// Cells that can be run, with their hashes.
    pub fn schedules(&self) -> BTreeMap<String, String> {
        let hash = |cell: &Cell| Some((cell.planned.id.clone(), cell.run.as_ref().ok()?.schedule.hash.clone()));
        self.cells.iter().filter_map(hash).collect()
    }

    /// Runs that were asked for, of cells that can be run.
    pub fn runs(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.repetition <= self.experiment.repeat && self.cells[turn.cell].run.is_ok())
    }

    /// Has a workload of it two readings?
    pub fn has_readings(&self) -> bool {
        self.cells.iter().filter_map(|cell| cell.run.as_ref().ok()).any(|run| run.workload.has_readings)
    }

    /// The reading of its workloads, where there are two or it is the one that is not the default.
    pub fn reading(&self) -> Option<&'static str> {
        let variant = self.experiment.variant;
        (self.has_readings() || variant == Variant::Published).then(|| variant.as_str())
    }

    /// Cells that differ in nothing that changes the load must be offered the same.
    fn refuse_unequal_schedules(&self) -> Result<(), RunError> {
        let mut first_of: BTreeMap<Vec<(&str, &str)>, (&str, &str)> = BTreeMap::new();
        for cell in &self.cells {
            let Ok(run) = &cell.run else { continue };
            let load: Vec<(&str, &str)> = cell
                .planned
                .values
                .iter()
                .filter(|(axis, _)| !pubmark_record::evaluation::SAME_SCHEDULE_AXES.contains(&axis.as_str()))
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

impl Cell {
    fn new(
        mut planned: PlannedCell,
        experiment: &Experiment,
        common: Option<&'static str>,
        folder: &Path,
        host: &Host,
    ) -> Result<Cell, RunError> {
        let definition = definition(&planned.settings.system, folder)?;
        let own = planned.settings.protocol.as_deref();
        let protocol = own.or(common).or_else(|| first_protocol(&definition));
        let absent = match protocol {
            Some(name) => known::left_out(name),
            None => unbuilt::of(&definition),
        };
        if let Some(known) = absent {
            planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| known.name.to_owned());
            return Ok(Cell { planned, run: Err(Refusal::not_installed(unbuilt::words(known))) });
        }
        let Some(protocol) = protocol.map(str::to_owned) else {
            let spoken = definition.protocols.keys().cloned().collect::<Vec<_>>().join(", ");
            let text = format!("`{}` speaks nothing that pubmark's clients do: it speaks {spoken}", definition.name);
            return Ok(Cell { planned, run: Err(Refusal { kind: FailureKind::Unsupported, text }) });
        };
        planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| protocol.clone());
        let prepared = || -> Result<PreparedRun, RunError> {
            let checked = cell_spec::of(experiment, &planned.settings, &protocol, folder)?.check(host)?;
            checked.check_installed()?;
            checked.prepare()
        };
        let run =
            match prepared() {
                Ok(run) => Ok(Box::new(run)),
                Err(error) => Err(Refusal::of(error)
                    .map_err(|error| error.during(format!("cell `{}` cannot be run", planned.label)))?),
            };
        Ok(Cell { planned, run })
    }
}

fn definition(system: &str, folder: &Path) -> Result<Definition, RunError> {
    // Its name was judged when the experiment was read.
    Definition::load(&cell_spec::in_folder(system, folder))
        .map_err(|error| RunError::from_error(ErrorKind::Input, &error))
}

fn first_protocol(definition: &Definition) -> Option<&'static str> {
    protocols::names().into_iter().find(|name| definition.protocols.contains_key(*name))
}

/// The first protocol that every system offers, of those that have none of their own: what they have in common is compared
/// fairly. Where they have none in common each speaks its first, and the reader is told.
fn common_protocol(cells: &[PlannedCell], folder: &Path) -> Result<(Option<&'static str>, Vec<String>), RunError> {
    let mut systems: Vec<&str> = vec![];
    for cell in cells.iter().filter(|cell| cell.settings.protocol.is_none()) {
        if !systems.contains(&cell.settings.system.as_str()) {
            systems.push(&cell.settings.system);
        }
    }
    let definitions: Vec<Definition> =
        systems.iter().map(|system| definition(system, folder)).collect::<Result<_, _>>()?;
    // A system that none of our clients can talk to is refused by itself.
    let spoken_to: Vec<&Definition> =
        definitions.iter().filter(|definition| first_protocol(definition).is_some()).collect();
    if spoken_to.is_empty() {
        return Ok((None, vec![]));
    }
    let all_offer = |name: &&str| spoken_to.iter().all(|definition| definition.protocols.contains_key(*name));
    let common = PROTOCOLS.iter().map(|protocol| protocol.capabilities.name).find(all_offer);
    let caution = common.is_none().then(|| {
        let each: Vec<String> = spoken_to
            .iter()
            .map(|found| format!("{} over {}", found.name, first_protocol(found).unwrap_or("—")))
            .collect();
        format!("The systems have no protocol in common, so each speaks its own: {}.", each.join(", "))
    });
    Ok((common, caution.into_iter().collect()))
}

/// The folder from which the paths of an experiment count, as an absolute one, so that it stays right.
pub fn absolute(folder: Option<&Path>) -> Result<PathBuf, RunError> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).map_err(|error| {
        RunError::from_error(ErrorKind::Input, &error)
            .during(format!("failed to find the folder `{}`", folder.display()))
    })
}
