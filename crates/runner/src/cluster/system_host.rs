//! The process with which a node starts a system for a run, measures its resources, and injects faults. The coordinator communicates with
//! it before the schedule and after the drain, never in between.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use pubmark_engine::progress::Progress;
use pubmark_engine::remote;
use pubmark_model::fault::{Occurrence, Scope};
use pubmark_model::secret::Secret;
use pubmark_model::workload::Credentials;
use pubmark_protocol::clock;
use pubmark_record::cost::Cost;
use pubmark_record::record::{Deviation, SystemInfo};
use pubmark_systems::environment;
use pubmark_systems::meter::Workers;
use pubmark_systems::node_exporter::HostWatch;
use serde::{Deserialize, Serialize};

use super::FinishedSystem;
use super::channel::Channel;
use super::system_order;
use crate::error::{ErrorKind, RunError};
use crate::faults::FaultInjector;
use crate::host::Host;
use crate::life::Life;
use crate::prepare::CheckedRun;
use crate::sampling::{self, Sampled, Sampling};
use crate::spec::RunSpec;
use crate::target::Target;
use crate::workers;

/// Time between two checks of whether the system has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A request of the coordinator.
#[derive(Serialize, Deserialize)]
pub enum Request {
    /// Start the system.
    Start(Box<SystemOrder>),
    /// Devices follow their schedule from now on; the measured window starts at this time of the run's clock, ns.
    Begin { start_ns: u64 },
    /// Return the resources that it used in this window, and in the drain of this length after it.
    Finish { window_ns: (u64, u64), drain_ns: u64 },
}

/// The system of a run.
#[derive(Serialize, Deserialize)]
pub struct SystemOrder {
    /// The specification of the run, as YAML.
    pub spec: String,
    /// Protocols of devices and of subscribers.
    pub protocol_pair: [String; 2],
    /// The log-in of clients, which the specification does not hold.
    pub login: Option<(String, String)>,
    /// Address of this machine at which clients reach it.
    pub address: Ipv4Addr,
}

/// Messages of the process.
#[derive(Serialize, Deserialize)]
pub enum HostMessage {
    /// The system is ready.
    Started(Box<StartedSystem>),
    /// It could not be started.
    Failed(Refusal),
    /// It ended by itself. [`HostMessage::Finished`] says how.
    Ended,
    /// Its measurements.
    Finished(Box<FinishedSystem>),
}

/// An error of another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: ErrorKind,
    pub chain: Vec<String>,
    pub hint: Option<String>,
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        Refusal { kind: error.kind, chain: error.chain, hint: error.hint }
    }
}

impl From<Refusal> for RunError {
    fn from(refusal: Refusal) -> RunError {
        RunError { kind: refusal.kind, chain: refusal.chain, hint: refusal.hint, diagnostic: None }
    }
}

/// A system that is ready.
#[derive(Serialize, Deserialize)]
pub struct StartedSystem {
    /// Endpoints for devices and for subscribers ([`pubmark_engine::endpoints::Endpoints::to_bytes`]).
    pub endpoints: [Vec<u8>; 2],
    /// The authority (PEM) that signed its certificate, if its connections are encrypted.
    pub authority: Option<String>,
    pub info: SystemInfo,
    pub deviations: Vec<Deviation>,
}

/// Serves one run until the other end of standard input closes; then it stops the system.
///
/// # Errors
/// The other end sends an unexpected message.
pub fn host_system() -> io::Result<()> {
    let (control, memory) = workers::ends()?;
    let progress = Arc::new(Progress::of_run(memory)?);
    remote::beat(&progress, 0)?;
    remote::follow_clock(&progress, workers::end)?;
    let mut channel = Channel::new(control);
    let order = match channel.receive()? {
        Some(Request::Start(order)) => order,
        Some(Request::Begin { .. } | Request::Finish { .. }) => return Err(io::Error::other("no system was started")),
        None => return Ok(()),
    };
    let (run, mut target) = match start(*order) {
        Ok(started) => started,
        Err(error) => return channel.send(&HostMessage::Failed(error.into())),
    };
    match started(&target) {
        Ok(started) => channel.send(&HostMessage::Started(Box::new(started)))?,
        Err(error) => return channel.send(&HostMessage::Failed(error.into())),
    }
    serve(&run, &mut target, &mut channel)
}

fn start(order: SystemOrder) -> Result<(CheckedRun, Target), RunError> {
    let SystemOrder { spec, protocol_pair, login, address } = order;
    let login = login.map(|(user, password)| Credentials { user, password: Secret::new(password) });
    // A coordinator may start a built-in system here, and nothing else: other parts of its order are ignored.
    let spec = system_order::of_system(&RunSpec::parse(&spec)?, protocol_pair, login, address);
    system_order::check_order(&spec)?;
    let run = spec.check(&Host::this())?;
    run.check_installed()?;
    let target = run.wanted.reach(run.protocol_pair, None)?;
    Ok((run, target))
}

fn started(target: &Target) -> Result<StartedSystem, RunError> {
    let bytes = |endpoints: &pubmark_engine::endpoints::Endpoints| {
        endpoints.to_bytes().map_err(|error| RunError::new(ErrorKind::Internal, error))
    };
    Ok(StartedSystem {
        endpoints: [bytes(&target.publish_at)?, bytes(&target.subscribe_at)?],
        authority: authority(target)?,
        info: target.info.clone(),
        deviations: target.deviations.clone(),
    })
}

/// Content of the file of the system's authority, if it has one.
fn authority(target: &Target) -> Result<Option<String>, RunError> {
    let tls = target.publish_at.endpoints().iter().find_map(|endpoint| endpoint.tls.as_ref());
    let Some(path) = tls.and_then(|tls| tls.authorities.as_ref()) else { return Ok(None) };
    fs::read_to_string(path).map(Some).map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during(format!("failed to read `{}`", path.display()))
    })
}

fn serve(run: &CheckedRun, target: &mut Target, channel: &mut Channel) -> io::Result<()> {
    let sampling = Sampling::start(target, None, None, Workers::default(), true).map_err(io::Error::other)?;
    let machine = HostWatch::own(&environment::host_name()).ok();
    let life = Mutex::new(Life::new(target, &run.workload, &run.faults));
    // ns of the run's clock; 0 before the schedule begins.
    let (window_ns, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let duration_ns = run.spec.window.duration.as_nanos() as u64;
    let mut ended = None;
    let sender = channel.for_sending()?;
    thread::scope(|scope| {
        let of_system = |fault: &Occurrence| fault.kind.scope() == Scope::System;
        let running = target.running.as_mut();
        let conductor = FaultInjector::start(scope, &run.workload, &run.faults, of_system, running, None);
        let follow = || {
            let (mut edges, mut has_ended) = (0, false);
            while !over.load(Relaxed) {
                if !has_ended && life.lock().unwrap_or_else(PoisonError::into_inner).has_ended() {
                    has_ended = true;
                    // If the coordinator has left, the loop below ends.
                    let _ = sender.send(&HostMessage::Ended);
                }
                let start_ns = window_ns.load(Relaxed);
                let edge_ns = start_ns + edges * duration_ns;
                if start_ns > 0 && edges < 2 && clock::monotonic_ns() >= edge_ns {
                    sampling.edge();
                    machine.iter().for_each(HostWatch::read_soon);
                    edges += 1;
                }
                thread::sleep(LOOK);
            }
        };
        let follower = scope.spawn(follow);
        let heard = loop {
            match channel.receive() {
                Ok(Some(Request::Begin { start_ns })) => {
                    life.lock().unwrap_or_else(PoisonError::into_inner).schedule_begins();
                    window_ns.store(start_ns, Relaxed);
                    // A run without such faults has no receiver.
                    let _ = conductor.begin().send(start_ns);
                }
                Ok(Some(Request::Finish { window_ns, drain_ns })) => break Ok(Some((window_ns, drain_ns))),
                Ok(Some(Request::Start(_)) | None) => break Ok(None),
                Err(error) => break Err(error),
            }
        };
        over.store(true, Relaxed);
        let done = conductor.finish();
        // It does not panic, for the same reason as the loop above.
        let _ = follower.join();
        ended = heard?.map(|heard| (heard, done));
        Ok::<(), io::Error>(())
    })?;
    let Some(((window_ns, drain_ns), done)) = ended else { return Ok(()) };
    let mut life = life.into_inner().unwrap_or_else(PoisonError::into_inner);
    let known = target.running.as_mut().and_then(|running| life.reported_end(running, true));
    let end = life.end(known, (window_ns.0 > 0).then_some(window_ns.0));
    let log = target.running.as_ref().map(|running| running.log_tail()).unwrap_or_default();
    // Samples have this machine's clock. The drift between the two clocks within a window is far below the interval between samples.
    let ahead_ns = pubmark_systems::clock::monotonic_ns().wrapping_sub(clock::monotonic_ns());
    let [start_ns, end_ns] = [window_ns.0, window_ns.1].map(|run_ns| run_ns.wrapping_add(ahead_ns));
    sampling.drained();
    let Sampled { resources, rows, drain_wait_ns } = sampling.finish(window_ns, drain_ns);
    let host = machine.and_then(HostWatch::finish).map(|readings| readings.usage(start_ns, end_ns));
    // The resources of this process itself are not attributed to anything.
    let cost = Cost { generator: None, host, ..resources };
    let end = end.map(|end| (end, log));
    // In this order, before the message is sent: the next repetition begins when the coordinator receives it.
    target.running = None;
    let machine = environment::boot_id();
    let finished = FinishedSystem { cost, machine, rows: sampling::of_system(rows), drain_wait_ns, done, end };
    channel.send(&HostMessage::Finished(Box::new(finished)))
}
