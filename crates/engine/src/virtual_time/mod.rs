//! Runs on virtual time: the shards of a plan over a scripted broker in memory, with one clock that jumps from event to
//! event. Effects that a run in real time would show only occasionally are reproducible here, and a million messages
//! take about a second.

mod auditing;
mod broker;
mod clients;
mod draining;
mod faults;
mod flooding;
mod full_responders;
mod identifiers;
mod late_replies;
mod leaving;
mod message_log;
mod model;
mod pacing;
mod probing;
mod ramping_up;
mod refusing;
mod slowing;
mod stopping;
mod subscribers;
mod waiting_requests;
mod working;
mod writing;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadOptions};
use pubmark_model::schedule::Timeline;
use pubmark_protocol::clients::ConnectionSettings;
use pubmark_protocol::endpoint::Endpoint;

use crate::books::Books;
use crate::command::Command;
use crate::due_times::sample::DueSample;
use crate::endpoints::Endpoints;
use crate::losses;
use crate::merging::merge_outcomes;
use crate::outcome::Outcome;
use crate::pacing::Pacing;
use crate::plan::{Networks, RunPlan};
use crate::progress::{Progress, Totals};
use crate::setup;
use crate::shard::event_loop::{Clock, EventLoop};
use crate::shard::setup::Setup;
use crate::shard_outcome::ShardOutcome;
use crate::shares::{self, Side};
use broker::Broker;
use clients::ScriptedClients;

const SECOND_NS: u64 = 1_000_000_000;
/// Start of a simulation, ns: far enough from 0 for earlier times.
const BEGIN_NS: u64 = 1_000 * SECOND_NS;
/// Time between the first connect and the start of the measured window.
const WINDOW_AFTER_NS: u64 = SECOND_NS;

/// The clock of all shards of a simulation.
struct VirtualClock(Rc<RefCell<Broker>>);

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }

    fn cpu_ns(&self) -> u64 {
        self.now_ns()
    }

    fn pause(&self, _: Duration) {}
}

/// A run that has not ended yet.
struct Simulation {
    plan: RunPlan,
    broker: Rc<RefCell<Broker>>,
    /// Shards of publishers first.
    loops: Vec<EventLoop<ScriptedClients, VirtualClock>>,
    publisher_shards: usize,
    progress: Arc<Progress>,
    /// Deliveries of sequence numbers that were never sent, because a test lets its publishers begin after them.
    unused: u64,
    /// A shard may end with due messages that it never reached, because a test lets it stand still until then.
    ends_behind: bool,
}

/// When the schedule is begun, ns relative to the start of the measured window: usually before it.
const IN_TIME_NS: i64 = -500_000_000;

/// The result of a run.
struct Ended {
    outcome: Outcome,
    broker: Rc<RefCell<Broker>>,
    /// When its sessions were ended.
    at_ns: u64,
    /// Pairs that had exchanged a probe.
    reached: u64,
    /// How long there had been no event before the shards received the start of the window, ns.
    quiet_ns: u64,
}

/// Start of the measured window of every simulation.
const fn window_ns() -> u64 {
    BEGIN_NS + WINDOW_AFTER_NS
}

impl Simulation {
    /// A run of a workload, measured for `duration`.
    fn new(workload: &str, duration: Duration) -> Simulation {
        Simulation::prepared(workload, duration, |_| {})
    }

    /// The same, with setups that are changed before the shards are opened.
    fn prepared(workload: &str, duration: Duration, change: impl Fn(&mut Setup)) -> Simulation {
        Simulation::of_plan(plan(workload, duration), change)
    }

    /// A run of a plan.
    fn of_plan(plan: RunPlan, change: impl Fn(&mut Setup)) -> Simulation {
        let broker = Rc::new(RefCell::new(Broker::new(BEGIN_NS, plan.run_id)));
        let progress = Arc::new(Progress::new(shares::shares(&plan).len()).expect("memory for counters"));
        let publisher_shards = shares::count(&shares::shares(&plan), Side::Publish);
        let mut setups = setup::shards(&plan, &progress, |_| true);
        setups.iter_mut().for_each(|setup| setup.due_times = DueSample::new(1));
        setups.iter_mut().for_each(change);
        let publishers = setups.iter().flat_map(|setup| &setup.publishers);
        let unused = publishers.map(|one| u64::from(one.next_sequence - 1) * u64::from(one.fan_out)).sum();
        let open = |setup| {
            clients::open_with(&broker, || EventLoop::open(setup, VirtualClock(Rc::clone(&broker))))
                .expect("scripted clients open")
        };
        let loops = setups.into_iter().map(open).collect();
        Simulation { plan, broker, loops, publisher_shards, progress, unused, ends_behind: false }
    }

    /// Schedules an action of the broker, ns relative to the start of the measured window.
    fn at(&self, relative_ns: i64, act: impl FnOnce(&mut Broker) + 'static) {
        self.broker.borrow_mut().at(window_ns().saturating_add_signed(relative_ns), act);
    }

    /// Executes the run.
    fn run(self) -> Ended {
        self.run_begun_at(IN_TIME_NS)
    }

    /// The same, with a schedule that is begun at another time, ns relative to the start of the measured window.
    fn run_begun_at(self, begin_ns: i64) -> Ended {
        let duration_ns = self.plan.timeline.duration_ns;
        self.run_between(begin_ns, duration_ns)
    }

    /// Executes a run that is stopped after a part of its measured window, ns. Unlike a real one it waits for messages in
    /// transit.
    fn run_stopped_at(self, length_ns: u64) -> Ended {
        self.run_between(IN_TIME_NS, length_ns)
    }

    fn run_between(mut self, begin_ns: i64, length_ns: u64) -> Ended {
        self.send_command(Command::Connect, Some(Side::Subscribe));
        self.advance(BEGIN_NS + 100_000_000);
        self.send_command(Command::Connect, Some(Side::Publish));
        self.advance(BEGIN_NS + 200_000_000);
        for round in 1..=self.rounds() {
            self.send_command(Command::Probe, None);
            self.advance(BEGIN_NS + 200_000_000 + round * 10_000_000);
        }
        if self.plan.probes {
            self.advance(BEGIN_NS + 400_000_000);
        }
        let quiet_ns = self.broker.borrow().now_ns - self.progress.totals().last_event_ns;
        let start_ns = window_ns();
        self.send_command(Command::Prepare { start_ns }, None);
        self.advance(start_ns.saturating_add_signed(begin_ns));
        self.send_command(Command::Begin, None);
        let end_ns = start_ns + length_ns;
        self.advance(end_ns);
        self.send_command(Command::Close { at_ns: end_ns }, None);
        let drained_ns = end_ns + self.plan.drain_limit.as_nanos() as u64;
        let plan = self.plan.clone();
        self.advance_until(drained_ns, |totals| plan.have_all_arrived(totals));
        let executed: Vec<u64> = self.progress.shards().iter().map(|shard| shard.executed.load(Acquire)).collect();
        let commands = 4 + self.rounds();
        let are_executed = executed.iter().all(|count| *count == commands);
        assert!(are_executed || self.ends_behind, "of {commands} commands shards executed {executed:?}");
        let totals = self.progress.totals();
        let (reached, known_lost) =
            (totals.reached, losses::at_least(totals.gaps_opened.saturating_sub(self.unused), &totals));
        let at_ns = self.broker.borrow().now_ns;
        let outcomes = self.loops.into_iter().map(EventLoop::finish).enumerate().collect();
        let outcome = merge_outcomes(&self.plan, outcomes, (start_ns, end_ns));
        // Whatever the broker did: during the run no message was counted as lost that was not.
        let lost = outcome.books.delivery.lost;
        assert!(known_lost <= lost, "{known_lost} were called lost, and {lost} are: {totals:?}");
        // Nor did one carry another due time than the schedule's, unless the broker changed it.
        let (due_times, is_moved) = (outcome.books.due_times, self.broker.borrow().moves_due_ns > 0);
        assert!(is_moved || due_times.wrong == 0, "{due_times:?}");
        Ended { outcome, broker: self.broker, at_ns, reached, quiet_ns }
    }

    /// Number of rounds of probes.
    fn rounds(&self) -> u64 {
        if self.plan.probes { 3 } else { 0 }
    }

    fn send_command(&mut self, command: Command, side: Option<Side>) {
        for (index, shard) in self.loops.iter_mut().enumerate() {
            let is_publisher = index < self.publisher_shards;
            if side.is_none_or(|side| (side == Side::Publish) == is_publisher) {
                shard.command(command);
            }
        }
    }

    /// Advances the time up to this one.
    fn advance(&mut self, until_ns: u64) {
        self.advance_until(until_ns, |_| false);
    }

    /// The same, or until the totals satisfy a condition.
    fn advance_until(&mut self, until_ns: u64, is_enough: impl Fn(&Totals) -> bool) {
        loop {
            self.broker.borrow_mut().act();
            let mut next_ns = until_ns;
            for shard in &mut self.loops {
                shard.turn().expect("scripted clients can wait");
                next_ns = next_ns.min(shard.until_ns().unwrap_or(u64::MAX));
            }
            let mut broker = self.broker.borrow_mut();
            let now_ns = broker.now_ns;
            if now_ns >= until_ns || is_enough(&self.progress.totals()) {
                return;
            }
            let is_polling = |shard: usize| self.loops[shard].rest_until_ns().is_none_or(|until_ns| until_ns <= now_ns);
            let next_ns = broker.next_ns(is_polling).map_or(next_ns, |event_ns| next_ns.min(event_ns));
            broker.now_ns = broker.now_ns.max(next_ns);
        }
    }
}

/// A device that sends 100 messages a second at QoS 1, and a subscriber that receives them.
pub(crate) const ONE_TO_ONE: &str = "
name: virtual
devices:
  - {name: device, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/{device}', qos: 1}
subscribers:
  - {name: subscriber, filters: ['v/#'], qos: 1}
";

/// The message accounting of a run whose broker delivers no copy of the message with this number.
pub(crate) fn lost_by_all(workload: &str, duration: Duration, lost: u32) -> Books {
    let simulation = Simulation::new(workload, duration);
    simulation.broker.borrow_mut().copy_delays =
        Box::new(move |_, sequence, _| if sequence == lost { vec![] } else { vec![100_000] });
    simulation.run().outcome.books
}

/// The outcome of the first shard of a plan that is ended before it connects.
pub(crate) fn ended_at_once(plan: RunPlan) -> ShardOutcome {
    let loops = Simulation::of_plan(plan, |_| {}).loops;
    loops.into_iter().map(EventLoop::finish).next().expect("a plan has shards")
}

/// A plan for one process with one shard for each side.
pub(crate) fn plan(workload: &str, duration: Duration) -> RunPlan {
    let workload = load::parse("virtual.yaml", workload, &LoadOptions::default()).expect("a workload");
    let fleet = Fleet::new(&workload, 1);
    let at = Endpoints::one(Endpoint {
        shown: "in memory".to_owned(),
        address: ([127, 0, 0, 1], 1883).into(),
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    });
    RunPlan {
        workload: Arc::new(workload),
        fleet: Arc::new(fleet),
        seed: 1,
        run_id: 7,
        timeline: Timeline { warmup_ns: 0, duration_ns: duration.as_nanos() as u64 },
        drain_limit: Duration::from_secs(10),
        redelivers_after: None,
        publish_at: at.clone(),
        subscribe_at: at,
        networks: Networks::none(),
        nodes: 1,
        node_labels: vec![],
        on_nodes: false,
        probes: false,
        by_network: false,
        library_sockets: false,
        follows: None,
        message_log: None,
        sources: [].into(),
        publisher_shards: 1,
        subscriber_shards: 1,
        connects_per_s: 100_000.0,
        connect_limit: Duration::from_secs(10),
        hopeless_after: Duration::from_secs(1),
        realtime: false,
        shares_cores: false,
        pacing: Pacing::default(),
        handicap: None,
        faults: [].into(),
        connections: ConnectionSettings::default(),
    }
}
