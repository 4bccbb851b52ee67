//! Takes a single sample.

use crate::cgroup::CostSource;
use crate::clock;
use crate::meter::{LongWaits, OwnMeter, Ration, Reading, SystemMeter, Workers};
use crate::network::SocketMeter;

use super::{Occasion, Sample};

/// Has a meter for each side, and decides which figures are read.
#[derive(Debug)]
pub(super) struct SideMeters {
    system: Option<SystemMeter>,
    /// Long waits of the system's threads; `None` without a system.
    long_waits: Option<LongWaits>,
    own: OwnMeter,
    /// `None` if the kernel does not list the sockets.
    sockets: Option<SocketMeter>,
    /// All clients' sockets are in the network namespace that `sockets` reads.
    sees_clients: bool,
    sockets_ration: Ration,
    /// For descriptors, context switches and run-queue waits.
    threads_ration: Ration,
    /// For the proportional set. The kernel locks the process's memory map during the reading, so the reading also
    /// disturbs the process.
    pages_ration: Ration,
}

impl SideMeters {
    pub(super) fn new(places: &[CostSource], client_ports: &[u16], workers: Workers, sees_clients: bool) -> SideMeters {
        let mut system = (!places.is_empty()).then(|| SystemMeter::new(places));
        let pids = system.as_mut().map(|system| {
            // This reading only finds the ids of the processes.
            system.read();
            system.pids()
        });
        // If the sockets cannot be read, traffic is unknown in the record.
        let sockets = SocketMeter::new(&pids.unwrap_or_default(), client_ports).ok();
        let (sockets_ration, threads_ration, pages_ration) = Default::default();
        let own = OwnMeter::new(workers);
        // If the thread cannot be started, long waits are unknown.
        let long_waits = system.as_ref().and_then(|_| LongWaits::start().ok());
        SideMeters { system, long_waits, own, sockets, sees_clients, sockets_ration, threads_ration, pages_ration }
    }

    /// Ids of the system's processes.
    pub(super) fn system_pids(&self) -> Vec<u32> {
        self.system.as_ref().map(SystemMeter::pids).unwrap_or_default()
    }

    /// Number of the system's brokers; 0 if it is not on this machine.
    pub(super) fn brokers(&self) -> usize {
        self.system.as_ref().map_or(0, SystemMeter::brokers)
    }

    /// Groups of clients that have processes of their own.
    pub(super) fn groups(&self) -> Vec<String> {
        self.own.workers().groups()
    }

    pub(super) fn take(&mut self, occasion: Occasion) -> Sample {
        let edge = occasion == Occasion::Edge;
        let before_ns = clock::monotonic_ns();
        let (mut system, limits) = self.system.as_mut().map(SystemMeter::read).unwrap_or_default();
        let mut generator = self.own.read();
        let mut programs = self.own.programs(edge);
        // The time of the figures read so far. The figures below take longer to read and change more slowly.
        let at_ns = before_ns + (clock::monotonic_ns() - before_ns) / 2;
        if edge || self.sockets_ration.is_due(at_ns) {
            self.read_sockets(system.as_mut(), generator.as_mut());
        }
        if edge || self.threads_ration.is_due(at_ns) {
            self.read_threads(system.as_mut(), generator.as_mut());
        }
        if self.pages_ration.is_due(at_ns) || edge && self.pages_ration.is_cheap() {
            self.read_pages([system.as_mut(), generator.as_mut(), programs.as_mut()]);
        }
        Sample { at_ns, system, generator, programs, groups: self.own.groups(), limits }
    }

    fn read_sockets(&mut self, system: Option<&mut Reading>, generator: Option<&mut Reading>) {
        let Some(sockets) = &mut self.sockets else { return };
        let started = Effort::start();
        let pids = self.system.as_ref().map(SystemMeter::pids).unwrap_or_default();
        // A failed reading leaves a gap, which is interpolated from the readings around it.
        if let Ok((of_system, own)) = sockets.read(&pids, &self.own.pids()) {
            if let Some(system) = system {
                system.traffic = of_system;
            }
            if let Some(generator) = generator {
                generator.traffic = self.sees_clients.then_some(own);
            }
        }
        started.charge(&mut self.sockets_ration);
    }

    fn read_threads(&mut self, system: Option<&mut Reading>, generator: Option<&mut Reading>) {
        let started = Effort::start();
        if let (Some(reading), Some(meter)) = (system, &mut self.system) {
            reading.descriptors = meter.descriptors();
            reading.switches = meter.switches();
            reading.run_queue = meter.run_queue_wait();
            reading.long_wait_ns = self.long_waits.as_ref().and_then(|waits| waits.read(&meter.pids()));
        }
        if let Some(reading) = generator {
            reading.descriptors = self.own.descriptors();
            reading.switches = self.own.switches();
            reading.run_queue = self.own.run_queue_wait();
        }
        started.charge(&mut self.threads_ration);
    }

    fn read_pages(&mut self, [system, generator, programs]: [Option<&mut Reading>; 3]) {
        let started = Effort::start();
        if let (Some(reading), Some(meter)) = (system, &self.system) {
            reading.pss_bytes = meter.proportional_bytes();
        }
        if let Some(reading) = generator {
            reading.pss_bytes = self.own.proportional_bytes();
        }
        if let Some(reading) = programs {
            reading.pss_bytes = self.own.proportional_bytes_of_programs();
        }
        started.charge(&mut self.pages_ration);
    }
}

/// CPU time that a reading costs this thread.
struct Effort {
    cpu_ns: u64,
}

impl Effort {
    fn start() -> Effort {
        Effort { cpu_ns: Effort::cpu_ns() }
    }

    fn charge(self, ration: &mut Ration) {
        ration.spend(clock::monotonic_ns(), Effort::cpu_ns().saturating_sub(self.cpu_ns));
    }

    fn cpu_ns() -> u64 {
        clock::read_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
    }
}
