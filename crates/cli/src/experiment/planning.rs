//! From an experiment to cells that are ready to be run, or refused with their reason. Nothing is started here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_model::experiment::{self, Experiment, PlannedCell, Turn};
use pubmark_record::experiment::Axis;
use pubmark_systems::Definition;

use super::arguments;
use super::refusal::{self, Refusal};
use crate::commands::run_arguments::Run;
use crate::failure::Failure;
use crate::measurement::Measurement;
use crate::protocols::{self, PROTOCOLS, known};
use crate::target::Wanted;
use crate::{brokerless, suitability, unbuilt};

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
    /// The words of `pubmark run` that make one of its runs.
    pub words: Vec<String>,
    /// How to run it, or why not.
    pub ready: Result<Ready, Refusal>,
}

/// A cell that can be run.
pub struct Ready {
    /// Does one run.
    pub measurement: Measurement,
    /// Hash of its schedule.
    pub schedule_hash: String,
    /// As it is called by `pubmark run`.
    pub run: Run,
}

impl Plan {
    /// Works an experiment out; its paths count from `folder`. `stop` ends a start that is under way.
    pub fn new(experiment: Experiment, folder: &Path, stop: &Arc<AtomicBool>) -> Result<Plan, Failure> {
        let planned = experiment::cells(&experiment);
        let (protocol, cautions) = common_protocol(&planned, folder)?;
        let cells: Vec<Cell> = planned
            .into_iter()
            .map(|planned| Cell::new(planned, &experiment, protocol, folder, stop))
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
        let hash = |cell: &Cell| Some((cell.planned.id.clone(), cell.ready.as_ref().ok()?.schedule_hash.clone()));
        self.cells.iter().filter_map(hash).collect()
    }

    /// Runs that were asked for, of cells that can be run.
    pub fn runs(&self) -> impl Iterator<Item = &Turn> {
        self.turns
            .iter()
            .filter(|turn| turn.repetition <= self.experiment.repeat && self.cells[turn.cell].ready.is_ok())
    }

    /// Cells that differ in nothing that changes the load must be offered the same.
    fn refuse_unequal_schedules(&self) -> Result<(), Failure> {
        let mut first_of: BTreeMap<Vec<(&str, &str)>, (&str, &str)> = BTreeMap::new();
        for cell in &self.cells {
            let Ok(ready) = &cell.ready else { continue };
            let load: Vec<(&str, &str)> = cell
                .planned
                .values
                .iter()
                .filter(|(axis, _)| !pubmark_record::evaluation::SAME_SCHEDULE_AXES.contains(&axis.as_str()))
                .map(|(axis, value)| (axis.as_str(), value.as_str()))
                .collect();
            let (id, hash) = (cell.planned.id.as_str(), ready.schedule_hash.as_str());
            let (first, first_hash) = *first_of.entry(load).or_insert((id, hash));
            if hash != first_hash {
                return Err(Failure::usage(format!(
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
        stop: &Arc<AtomicBool>,
    ) -> Result<Cell, Failure> {
        let definition = definition(&planned.settings.system, folder)?;
        let own = planned.settings.protocol.as_deref();
        let protocol = own.or(common).or_else(|| first_protocol(&definition));
        let absent = match protocol {
            Some(name) => known::left_out(name),
            None => unbuilt::of(&definition),
        };
        if let Some(known) = absent {
            planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| known.name.to_owned());
            let refusal = Refusal::not_installed(unbuilt::words(known));
            return Ok(Cell { planned, words: vec![], ready: Err(refusal) });
        }
        let Some(protocol) = protocol.map(str::to_owned) else {
            let spoken = definition.protocols.keys().cloned().collect::<Vec<_>>().join(", ");
            let text = format!("`{}` speaks nothing that pubmark's clients do: it speaks {spoken}", definition.name);
            return Ok(Cell { planned, words: vec![], ready: Err(Refusal::unsupported(text)) });
        };
        planned.values.entry(PROTOCOL.to_owned()).or_insert_with(|| protocol.clone());
        let words = arguments::words(experiment, &planned.settings, &protocol, folder);
        let during = |failure: Failure| failure.during(format!("cell `{}` cannot be run", planned.label));
        let run = arguments::read(&words).map_err(during)?;
        let mut ready = Ready::new(run, &definition, stop).map_err(during)?;
        if let Ok(ready) = &mut ready {
            ready.measurement.repetitions = experiment.repeat;
        }
        Ok(Cell { planned, words, ready })
    }
}

impl Ready {
    fn new(run: Run, definition: &Definition, stop: &Arc<AtomicBool>) -> Result<Result<Ready, Refusal>, Failure> {
        let spoken = run.spoken()?;
        let workload = Arc::new(run.load()?);
        if let Err(error) = definition.offer(spoken.publish.capabilities.name) {
            return Ok(Err(Refusal::unsupported(error.to_string())));
        }
        if let Err(error) = definition.profile(run.setup.profile.as_str()) {
            return Ok(Err(Refusal::unsupported(error.to_string())));
        }
        if run.setup.tls && brokerless::has_no_broker(definition) {
            return Ok(Err(Refusal::unsupported(refusal::nothing_encrypts(definition))));
        }
        // What a system cannot be asked for, or a client library not do, leaves the other cells as they are.
        let wanted = match Wanted::asked(&run, spoken, &workload, stop) {
            Ok(wanted) => wanted,
            Err(failure) => return Ok(Err(Refusal::of_failure(failure))),
        };
        if let Err(failure) = run.carried_out(&workload, spoken, &wanted) {
            return Ok(Err(Refusal::of_failure(failure)));
        }
        if let Wanted::Started { definition, options } = &wanted
            && let Some(refusal) = refusal::of(definition, options, &workload)
        {
            return Ok(Err(refusal));
        }
        let counted = match run.counted(&workload) {
            Ok(counted) => counted,
            Err(failure) => return Ok(Err(Refusal::no_room(failure.chain.join(": ")))),
        };
        let fleet = match suitability::fleet(&workload, spoken, counted) {
            Ok(fleet) => fleet,
            Err(lacks) => return Ok(Err(Refusal::unsupported(lacks))),
        };
        // Of the sizes of an axis the largest may be too large for this machine, and the others are not.
        if let Err(failure) = run.room(&fleet, &wanted) {
            return Ok(Err(Refusal::no_room(failure.chain.join(": "))));
        }
        let measurement = run.measurement(workload, fleet, spoken, wanted, stop)?;
        let schedule_hash = measurement.schedule.hash.clone();
        Ok(Ok(Ready { measurement, schedule_hash, run }))
    }
}

fn definition(system: &str, folder: &Path) -> Result<Definition, Failure> {
    // Its name was judged when the experiment was read.
    Definition::load(&arguments::in_folder(system, folder))
        .map_err(|error| Failure::from_error(crate::exit_code::ExitCode::Usage, &error))
}

fn first_protocol(definition: &Definition) -> Option<&'static str> {
    protocols::names().into_iter().find(|name| definition.protocols.contains_key(*name))
}

/// The first protocol that every system offers, of those that have none of their own: what they have in common is compared
/// fairly. Where they have none in common each speaks its first, and the reader is told.
fn common_protocol(cells: &[PlannedCell], folder: &Path) -> Result<(Option<&'static str>, Vec<String>), Failure> {
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
pub fn absolute(folder: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).map_err(|error| {
        Failure::from_error(crate::exit_code::ExitCode::Usage, &error)
            .during(format!("failed to find the folder `{}`", folder.display()))
    })
}
