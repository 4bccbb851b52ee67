//! Links of clients on a node. The worker process on the node creates them for its clients, connects them to the system
//! through a separate relay, or to the links of other processes through the trunk, disconnects them during faults, and
//! reports what they carried. The coordinator sends nothing to it in the measured window.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubmark_engine::plan::RunPlan;
use pubmark_engine::remote::{AccessNetwork, LARGEST_REPORT};
use pubmark_links::trunk::TrunkEnd;
use pubmark_model::fault::{Occurrence, Scope};
use pubmark_model::random::mix;
use pubmark_model::workload::Workload;
use pubmark_protocol::clock;

use super::{NodeOrder, NodeReport};
use crate::error::RunError;
use crate::faults::{self, FaultInjector, FaultTimes};
use crate::linked::{self, Carried, CarriedNow, Drained, Extent, Linked};
use crate::relay::RelayProcess;
use crate::relayed::Relayed;

/// The links of a worker process on a node.
pub struct NodeLinks {
    order: NodeOrder,
    outside: Outside,
    made: Option<ActiveLinks>,
    watch: Option<Watch>,
    /// What the links carried and held at the end of the drain.
    drained: Option<Drained>,
}

/// What leads out of the links. It is opened in the machine's network, which the process then leaves.
enum Outside {
    /// To a system with a broker.
    Relay(Arc<RelayProcess>),
    /// To the clients of other processes.
    Trunk(Arc<TrunkEnd>),
}

/// Active links.
struct ActiveLinks {
    linked: Arc<Linked>,
    workload: Arc<Workload>,
    faults: Arc<[Occurrence]>,
    duration_ns: u64,
}

/// The thread that follows the measured window.
struct Watch {
    /// Dropped at the end of the run.
    running: Sender<()>,
    thread: JoinHandle<Watched>,
}

#[derive(Default)]
struct Watched {
    carried: [Option<CarriedNow>; 2],
    done: Vec<FaultTimes>,
}

fn words(error: &RunError) -> String {
    let mut text = error.chain.join(": ");
    if let Some(hint) = &error.hint {
        text.push_str(&format!(" ({hint})"));
    }
    text
}

/// Waits for a time of the run's clock, ns; `false` if the run is over before.
fn wait(over: &Receiver<()>, until_ns: u64) -> bool {
    loop {
        let left = clock::wait_until(until_ns);
        match over.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return true,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

impl NodeLinks {
    /// Prepares this process to create links: without root privileges it becomes root of a user namespace, so it must
    /// still have a single thread. The relay stays in the machine's network.
    ///
    /// # Errors
    /// The order cannot be read, or this machine lacks a requirement.
    pub fn new(order: &[u8]) -> Result<NodeLinks, String> {
        let order: NodeOrder = serde_json::from_slice(order).map_err(|error| format!("no order for links: {error}"))?;
        let outside = match &order.trunk {
            Some(trunk) => trunk.clone().open().map(Outside::Trunk),
            None => RelayProcess::start(None).map(|relay| Outside::Relay(Arc::new(relay))),
        };
        let outside = outside.map_err(|error| words(&error))?;
        linked::claim().map_err(|error| words(&error))?;
        Ok(NodeLinks { order, outside, made: None, watch: None, drained: None })
    }

    fn make(&mut self, plan: RunPlan) -> Result<RunPlan, RunError> {
        let workload = Arc::clone(&plan.workload);
        // Each process of the run makes separate random draws, which are the same in each run with one seed.
        let seed = mix(plan.seed ^ mix(self.order.stream));
        let trunk = match &self.outside {
            Outside::Trunk(trunk) => Some(Arc::clone(trunk)),
            Outside::Relay(_) => None,
        };
        let linked = Linked::start(&workload, seed, self.order.netem.into(), self.order.extent, trunk)?;
        let Some(mut linked) = linked else { return Ok(plan) };
        let endpoints = [&plan.publish_at, &plan.subscribe_at];
        let [publish_at, subscribe_at] = match &self.outside {
            Outside::Trunk(_) => endpoints.map(Clone::clone),
            Outside::Relay(relay) => {
                let relayed = Relayed::of(endpoints, self.order.connects, None, linked.core(), Arc::clone(relay))?;
                let endpoints = relayed.endpoints();
                linked.lead_to(relayed);
                endpoints
            }
        };
        let inside = match self.order.extent {
            // Sockets are created in the network of their group. Other sockets reach the relay from the core network.
            Extent::All { .. } => linked.core().clone(),
            // A client library opens sockets in the network of its threads.
            Extent::One(_) | Extent::Unlinked => linked.namespaces().swap_remove(0),
        };
        inside.stay().map_err(|error| linked::failed(&error))?;
        let networks = match self.order.extent {
            Extent::All { .. } => linked.networks(),
            Extent::One(_) | Extent::Unlinked => plan.networks.clone(),
        };
        let faults = faults::occurrences(&workload, plan.seed, Duration::from_nanos(plan.timeline.duration_ns))?;
        let duration_ns = plan.timeline.duration_ns;
        self.made = Some(ActiveLinks { linked: Arc::new(linked), workload, faults, duration_ns });
        Ok(RunPlan { networks, publish_at, subscribe_at, ..plan })
    }

    fn report(&mut self) -> Option<NodeReport> {
        let made = self.made.take()?;
        let watched = match self.watch.take() {
            Some(Watch { running, thread }) => {
                drop(running);
                thread.join().ok()?
            }
            None => Watched::default(),
        };
        let last_held_ns = made.linked.carried().held_ns();
        let carried = Carried { edges: watched.carried, drained: self.drained.take(), last_held_ns };
        // Without a relay nothing is held, in a run that ended early as well.
        let is_known = carried.edges[1].is_some() || matches!(self.outside, Outside::Trunk(_));
        let held_ns = if is_known { carried.held_ns() } else { u64::MAX };
        // The thread that shared it has ended.
        let linked = Arc::into_inner(made.linked)?;
        let (mut links, _) = linked.finish(carried, held_ns).ok()?;
        // The coordinator knows the settings that it sent, and a series may have ten thousand steps.
        let sides = links.groups.iter_mut().flat_map(|group| [&mut group.up, &mut group.down]);
        sides.for_each(|side| side.requested.clear());
        Some(NodeReport { links, done: watched.done })
    }
}

impl AccessNetwork for NodeLinks {
    fn connect(&mut self, plan: RunPlan) -> Result<RunPlan, String> {
        self.make(plan).map_err(|error| words(&error))
    }

    fn begin(&mut self, start_ns: u64) {
        let Some(made) = &self.made else { return };
        // This process follows the run's clock, and so do its links: the start needs no conversion.
        made.linked.begin(start_ns);
        let (running, over) = mpsc::channel();
        let (linked, workload, faults) =
            (Arc::clone(&made.linked), Arc::clone(&made.workload), Arc::clone(&made.faults));
        let end_ns = start_ns.saturating_add(made.duration_ns);
        let follow = move || {
            let wait = |until_ns: u64| wait(&over, until_ns);
            let of_links = |fault: &Occurrence| fault.kind.scope() == Scope::Links;
            thread::scope(|scope| {
                let conductor = FaultInjector::start(scope, &workload, &faults, of_links, None, Some(&linked));
                // In a run without link faults there is no receiver.
                let _ = conductor.begin().send(start_ns);
                let mut carried = [None, None];
                if wait(start_ns) {
                    carried[0] = Some(linked.carried());
                    // A run that is stopped has no second edge.
                    carried[1] = wait(end_ns).then(|| linked.carried());
                    // Waits for the end of the run: a fault may end together with the window.
                    let _ = over.recv();
                }
                Watched { carried, done: conductor.finish() }
            })
        };
        let thread = thread::Builder::new().name("links-watch".to_owned()).spawn(follow);
        // Without the thread, the report states that nothing is known.
        self.watch = thread.ok().map(|thread| Watch { running, thread });
    }

    fn drained(&mut self) {
        self.drained = self.made.as_ref().map(|made| made.linked.drained());
    }

    fn finish(&mut self) -> Vec<u8> {
        let report = serde_json::to_vec(&self.report()).unwrap_or_default();
        // A report that is too large to be read is left out.
        if report.len() <= LARGEST_REPORT { report } else { vec![] }
    }
}
