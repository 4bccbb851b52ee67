//! Starts a system: as a program on this machine or in a container, with one broker or several.

mod broker;
mod certificates;
mod command_line;
mod options;
mod plan;
mod rendered;
mod values;
mod waiting;

use std::path::Path;
use std::time::Duration;

use pubmark_record::record::{BackEndKind, Deviation, LimitInfo, SystemInfo, TopologyInfo};

pub(crate) use broker::{Broker, Contained, Shared, write_private};
pub use command_line::{CommandLine, ContainerOrder};
pub use options::{BackEndChoice, Endpoint, StartOptions, TlsFiles};
pub use plan::raised_packet;
pub use rendered::{Rendered, RenderedEndpoint, rendered};

use crate::affinity;
use crate::cgroup::CostSource;
use crate::cgroup::control;
use crate::cgroup::layout::Version;
use crate::condition::Situation;
use crate::definition::{Definition, Profile};
use crate::error::SystemError;
use crate::launch::plan::{BackEnd, Plan};
use crate::private_directory::{self, PrivateDirectory};
pub use crate::programs::{find_program, read_version};
use crate::programs::{version_in, version_words};
use crate::running::RunningSystem;
use crate::supervisor::messages::{Holdings, Work};
use crate::template::Values;

/// Attempts to start, if a port that was free a moment ago is in use.
const ATTEMPTS: u32 = 4;
/// Texts in the logs of programs whose port was in use.
const PORT_TAKEN: [&str; 4] = ["in use", "EADDRINUSE", "eaddrinuse", "already_used"];
/// Longest time until a container's process is visible, after the container is ready.
const PLACE_WITHIN: Duration = Duration::from_secs(10);

/// Starts a system and waits until all its brokers listen and `ready` succeeds for each. `ready` publishes and receives
/// a message; after a failure it is called again until the time in the definition is over. After any failure,
/// everything that was started or created is removed.
///
/// # Errors
/// The system does not offer a requested feature, a program or an engine is missing, a limit cannot be set, or the
/// system did not become ready: see [`SystemError`].
pub fn start(
    definition: &Definition,
    options: &StartOptions,
    ready: &mut dyn FnMut(&Endpoint) -> Result<(), String>,
) -> Result<RunningSystem, SystemError> {
    let plan = Plan::new(definition, options)?;
    private_directory::remove_abandoned(&private_directory::folder()?);
    let mut attempt = 1;
    loop {
        match start_once(&plan, ready) {
            Err(SystemError::Exited { log_tail, .. }) if attempt < ATTEMPTS && is_port_taken(&log_tail) => {
                attempt += 1;
            }
            result => return result,
        }
    }
}

/// Fetches the image that a start needs, if it is not on this machine, which can take minutes. Does nothing for a
/// program. The engine's output goes to the file `log`. A command with many starts calls this to fetch an image once,
/// before it measures.
///
/// # Errors
/// The errors of [`start`] until the image has been fetched.
pub fn fetch(definition: &Definition, options: &StartOptions, log: &Path) -> Result<(), SystemError> {
    match &Plan::new(definition, options)?.back_end {
        BackEnd::Process { .. } => Ok(()),
        BackEnd::Container { image, engine, .. } => {
            engine.prepare(&definition.name, image, log, options.stop.as_deref())
        }
    }
}

fn is_port_taken(log: &str) -> bool {
    PORT_TAKEN.iter().any(|words| log.contains(words))
}

fn start_once(plan: &Plan, ready: waiting::Ready) -> Result<RunningSystem, SystemError> {
    let mut begun = (0..plan.brokers()).map(|_| broker::begin(plan)).collect::<Result<Vec<_>, _>>()?;
    let shared = share(plan, &mut begun)?;
    let ports = values::choose_ports(plan)?;
    let prepare = |(number, begun)| Broker::prepare(plan, number, begun, &shared, &ports);
    let mut brokers = begun.into_iter().enumerate().map(prepare).collect::<Result<Vec<_>, _>>()?;
    let version = version(plan, &mut brokers[0])?;
    for broker in &mut brokers {
        broker.start(plan, shared.directory.path())?;
    }
    waiting::wait(plan, &mut brokers, ready)?;
    let visible = brokers.iter().map(|broker| cost_source(plan, broker)).collect::<Result<Vec<_>, _>>()?;
    let cost_is_visible = visible.iter().all(Option::is_some);
    let places = visible.into_iter().zip(&brokers).map(|(place, broker)| place.unwrap_or_else(|| command_of(broker)));
    let places = places.collect();
    Ok(RunningSystem {
        info: info(plan, &brokers, version),
        deviations: deviations(plan, &brokers[0], cost_is_visible),
        endpoints: brokers.iter().map(|broker| broker.endpoint.clone()).collect(),
        second_endpoints: brokers.iter().filter_map(|broker| broker.second_endpoint.clone()).collect(),
        places,
        cost_is_visible,
        stop_within: match &plan.back_end {
            BackEnd::Process { found, .. } => found.stop_within(),
            BackEnd::Container { found, .. } => found.stop_within(),
        },
        stopped: false,
        brokers,
        _shared: shared.directory,
    })
}

/// Creates what all brokers share: a folder, which the first supervisor removes, and their certificates.
fn share(
    plan: &Plan,
    begun: &mut [(crate::supervisor::supervised::Supervised, PrivateDirectory)],
) -> Result<Shared, SystemError> {
    let path = private_directory::planned(&private_directory::folder()?);
    if let Some((first, _)) = begun.first_mut() {
        first.hold(Holdings { directories: vec![path.clone()], ..Holdings::default() })?;
    }
    let directory = PrivateDirectory::create(&path)?;
    let tls = match &plan.options.tls {
        None if plan.options.encrypt => Some(certificates::make(directory.path(), plan.options.host)?),
        given => given.clone(),
    };
    Ok(Shared { directory, tls })
}

/// The version that the system prints. For a container, the image is fetched first, if necessary.
fn version(plan: &Plan, first: &mut Broker) -> Result<Option<String>, SystemError> {
    match &plan.back_end {
        BackEnd::Process { found, program } => {
            let Some((version, program)) = version_words(found, program)? else { return Ok(None) };
            let arguments = version.arguments.iter().map(|argument| first.values().fill(argument)).collect();
            let work = Work { program, arguments, ..Work::default() };
            // Some programs exit with a failure after they print their help, so the status is ignored.
            let (_, output) = first.run_work(work, crate::programs::VERSION_WITHIN)?;
            Ok(version_in(&output, &version.after))
        }
        BackEnd::Container { found, image, engine } => {
            engine.prepare(&plan.definition.name, image, &first.log, plan.options.stop.as_deref())?;
            let name = format!("{}-version", broker::name_for_container(first));
            let Some(version) = &found.version else { return Ok(None) };
            first.hold_container(&engine.removal_command(&name))?;
            let arguments = engine.version_arguments(version, found, image, &name);
            let work = Work { program: engine.program.clone(), arguments, ..Work::default() };
            // As above, the status is ignored.
            let (_, output) = first.run_work(work, crate::programs::VERSION_WITHIN)?;
            Ok(version_in(&output, &version.after))
        }
    }
}

/// Where the cost of a broker is read; `None` for a container whose processes are not visible here: the command that runs it only
/// waits, and its cost is not that of the system.
fn cost_source(plan: &Plan, broker: &Broker) -> Result<Option<CostSource>, SystemError> {
    match (&plan.back_end, &broker.container) {
        (BackEnd::Container { engine, .. }, Some(container)) => engine.cost_source(&container.name, PLACE_WITHIN),
        _ => Ok(Some(command_of(broker))),
    }
}

/// The command that was started for a broker.
fn command_of(broker: &Broker) -> CostSource {
    CostSource { pid: broker.held.pid(), cgroup: broker.cgroup.as_ref().map(|cgroup| cgroup.place.clone()) }
}

fn deviations(plan: &Plan, first: &Broker, cost_is_visible: bool) -> Vec<Deviation> {
    let hidden = (!cost_is_visible).then(|| Deviation {
        name: "cost-not-visible".to_owned(),
        detail: "its CPU time and memory are not measured: the container engine does not show the container's processes on this machine"
            .to_owned(),
    });
    let made = (plan.options.encrypt && plan.options.tls.is_none()).then(|| Deviation {
        name: "certificates-made".to_owned(),
        detail: format!("its certificate was made for this run: {}", certificates::KIND),
    });
    let situation = plan.situation(0);
    let changed = changed_settings(plan.definition, plan.profile, &situation, first.values());
    changed.chain(made).chain(hidden).collect()
}

/// Settings of a definition and its profile that differ from the system's defaults.
fn changed_settings<'a>(
    definition: &'a Definition,
    profile: &'a Profile,
    situation: &'a Situation,
    values: &'a Values,
) -> impl Iterator<Item = Deviation> + 'a {
    let changes = definition.deviations.iter().chain(&profile.deviations);
    changes.filter(|change| change.when.applies(situation)).map(move |change| Deviation {
        name: change.name.clone(),
        detail: format!("{}: {}", values.fill(&change.setting), change.reason),
    })
}

fn info(plan: &Plan, brokers: &[Broker], version: Option<String>) -> SystemInfo {
    let pinned = &plan.options.pinned_cores;
    SystemInfo {
        name: plan.definition.name.clone(),
        version,
        back_end: match &plan.back_end {
            BackEnd::Container { .. } => BackEndKind::Container,
            BackEnd::Process { .. } if broker::is_builtin(plan) => BackEndKind::Builtin,
            BackEnd::Process { .. } => BackEndKind::Process,
        },
        profile: Some(plan.options.profile.clone()),
        endpoint: brokers[0].endpoint.to_string(),
        ranked: plan.definition.ranked,
        configuration: brokers[0].configuration.clone(),
        node: None,
        image: match &plan.back_end {
            BackEnd::Container { image, .. } => Some(image.clone()),
            BackEnd::Process { .. } => None,
        },
        topology: (brokers.len() > 1).then(|| TopologyInfo {
            brokers: plan.options.topology.brokers,
            mode: plan.options.topology.mode,
            endpoints: brokers.iter().map(|broker| broker.endpoint.to_string()).collect(),
        }),
        limits: limit_info(plan, &brokers[0]),
        pinned_cores: (!pinned.is_empty()).then(|| affinity::shown(pinned)),
        papers: plan.definition.papers.clone(),
        ended: None,
    }
}

fn limit_info(plan: &Plan, first: &Broker) -> Option<LimitInfo> {
    let limits = plan.limits?;
    let held_by = match (&first.container, first.cgroup.as_ref().map(|cgroup| cgroup.version)) {
        (Some(_), _) => "container",
        (None, Some(Version::Two)) => "cgroup v2",
        // On a machine with both versions, the controllers belong to version 1.
        (None, Some(Version::One | Version::Both)) => "cgroup v1",
        (None, Some(Version::None) | None) => "affinity",
    };
    Some(LimitInfo {
        requested: limits.requested.clone(),
        cpu: limits.cpu,
        cpu_period_ms: limits.cpu.map(|cpu| control::ration(cpu).1 as f64 / 1e3),
        memory_bytes: limits.memory_bytes,
        cores: limits.cores,
        held_by: held_by.to_owned(),
    })
}
