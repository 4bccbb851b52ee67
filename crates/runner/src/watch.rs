//! Watches the engine during a run: reports to the observer, and samples at the edges of the window.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use pubmark_engine::live::LiveLatency;
use pubmark_engine::losses::LossWatch;
use pubmark_engine::progress::Totals;
use pubmark_engine::run::{Observer, Phase};
use pubmark_engine::window_latency::WindowLatency;
use pubmark_systems::environment::{self, CpuTimes};
use pubmark_systems::sampler::LiveUsage;
use pubmark_systems::sockets::{self, InTransit};

use crate::cluster::{Hosted, JoinedNodes};
use crate::faults::FaultProgress;
use crate::life::Life;
use crate::linked::{Carried, Linked};
use crate::observer::{RunObserver, RunProgress};
use crate::sampling::Sampling;

/// The watch of one repetition.
pub struct Watch<'a> {
    pub observer: &'a mut dyn RunObserver,
    pub sampling: &'a Sampling,
    pub cpu_before: Option<CpuTimes>,
    /// CPU pressure of the machine at both edges of the window, µs, with the time in ns.
    pub pressure: [Option<(u64, u64)>; 2],
    pub steal: Option<f64>,
    pub busy_cores: Option<f64>,
    pub life: Life,
    pub linked: Option<&'a Linked>,
    /// The system, if a node started it.
    pub hosted: Option<&'a Hosted>,
    /// What links had carried at the edges of the window, and at the end of the drain.
    pub carried: Carried,
    /// Ports of a system that was started here, and what was in transit from and to it at the end of the drain.
    pub ports: BTreeSet<u16>,
    pub in_transit: Option<InTransit>,
    /// Sends the start of the window to the fault injector.
    pub fault_start: Sender<u64>,
    pub joined: Option<&'a JoinedNodes>,
    pub faults: FaultProgress,
    pub latency: Option<LiveLatency>,
    pub window_latency: Option<Arc<WindowLatency>>,
    pub losses: LossWatch,
    /// Resource usage when this second of a phase began.
    pub usage: (u64, LiveUsage),
}

impl Watch<'_> {
    /// Share of the window in which some thread of the machine was ready and had no CPU.
    pub fn cpu_pressure(&self) -> Option<f64> {
        let [Some((before_us, start_ns)), Some((after_us, end_ns))] = self.pressure else { return None };
        let passed_us = end_ns.checked_sub(start_ns).filter(|passed| *passed > 0)? as f64 / 1e3;
        Some((after_us.saturating_sub(before_us) as f64 / passed_us).min(1.0))
    }

    /// The observations: what links had carried, bytes in transit, and the state of the system. To be called when the
    /// engine's threads have ended.
    pub fn end(mut self) -> (Carried, Option<InTransit>, Life) {
        // Subscribers receive until they end, so what the relay held since the end of the drain counts, too.
        self.carried.last_held_ns = self.linked.map_or(0, |linked| linked.carried().held_ns());
        (self.carried, self.in_transit, self.life)
    }

    /// The current resource usage. Where nodes generate the load, this process is no generator.
    fn usage_now(&self) -> LiveUsage {
        let usage = self.sampling.usage_now();
        LiveUsage { generator: usage.generator.filter(|_| self.joined.is_none()), ..usage }
    }

    /// `None` if this run did not start the system on this machine. The calling thread is in the system's network, also behind
    /// links.
    fn in_transit_now(&self) -> Option<InTransit> {
        (!self.ports.is_empty()).then(|| sockets::in_transit(&self.ports)).flatten()
    }
}

fn pressure_now() -> Option<(u64, u64)> {
    Some((environment::cpu_pressure_us()?, pubmark_systems::clock::monotonic_ns()))
}

impl Observer for Watch<'_> {
    fn phase(&mut self, phase: Phase) {
        self.observer.phase(phase);
        self.joined.inspect(|joined| joined.phase(phase));
        self.latency = None;
        self.usage.0 = u64::MAX;
    }

    fn latency(&mut self, latency: &LiveLatency) {
        self.latency = Some(*latency);
    }

    fn window_latency(&mut self, latency: &Arc<WindowLatency>) {
        self.window_latency = Some(Arc::clone(latency));
    }

    fn progress(
        &mut self,
        phase: Phase,
        elapsed: Duration,
        length: Option<Duration>,
        totals: &Totals,
        are_current: bool,
    ) {
        self.life.check(phase, totals);
        // Once a second: samples are taken only a few times in that time.
        if self.usage.0 != elapsed.as_secs() {
            self.usage = (elapsed.as_secs(), self.usage_now());
        }
        let (latency, usage, window_latency) = (self.latency, self.usage.1, self.window_latency.clone());
        let known = self.losses.sample(totals, pubmark_systems::clock::monotonic_ns());
        // A process that measures reports latencies, too: without them, other machines measure.
        let measure_others = matches!(phase, Phase::WarmUp | Phase::Measure) && self.latency.is_none();
        self.observer.progress(&RunProgress {
            phase,
            elapsed,
            length,
            totals: *totals,
            are_counts_current: are_current,
            lost: (are_current && !measure_others).then_some(known),
            latency,
            window_latency,
            usage,
        });
        while phase == Phase::Measure
            && let Some(event) = self.faults.next(elapsed)
        {
            self.observer.event(&event);
        }
    }

    fn schedule_begins(&mut self, start_ns: u64) {
        self.life.schedule_begins();
        self.linked.inspect(|linked| linked.begin(start_ns));
        self.hosted.inspect(|hosted| hosted.begin(start_ns));
        // In a run without faults there is no receiver.
        let _ = self.fault_start.send(start_ns);
    }

    fn window_began(&mut self) {
        // First, because the holds of a relay are counted from here.
        self.carried.edges[0] = self.linked.map(Linked::carried);
        self.sampling.edge();
        self.joined.inspect(|joined| joined.edge(0));
        self.cpu_before = CpuTimes::read();
        self.pressure[0] = pressure_now();
    }

    fn window_ended(&mut self) {
        self.sampling.edge();
        self.joined.inspect(|joined| joined.edge(1));
        self.carried.edges[1] = self.linked.map(Linked::carried);
        let now = CpuTimes::read();
        self.pressure[1] = pressure_now();
        let times = self.cpu_before.zip(now);
        self.steal = times.and_then(|(before, now)| now.steal_since(&before));
        self.busy_cores = times.and_then(|(before, now)| now.busy_cores_since(&before));
    }

    fn system_has_ended(&mut self) -> bool {
        self.life.has_ended() || self.hosted.is_some_and(Hosted::has_ended)
    }

    fn has_lost_links(&mut self) -> bool {
        self.linked.is_some_and(Linked::are_lost)
    }

    fn system_is_behind(&mut self) -> bool {
        self.in_transit_now().is_some_and(|bytes| bytes.to_system > 0) || self.sampling.system_waits()
    }

    fn drained(&mut self) {
        self.sampling.drained();
        self.carried.drained = self.linked.map(Linked::drained);
        self.in_transit = self.in_transit_now();
    }
}
