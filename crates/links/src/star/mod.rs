//! The emulator: one TUN interface in the core, one in each group, and one thread between them that carries every
//! packet over the links that lie on its way.
//!
//! group → core is the group's up-link, core → group its down-link, group → group the first one's up-link and then the
//! second one's down-link. What is sent to a multicast group goes to the core and to every other group. With a
//! [trunk](crate::trunk), groups of other stars are reached as well.

mod agenda;
mod emulator;
pub(crate) mod packet;
mod read_wait;
mod thread;

use pubmark_model::link::Conditions;

pub use crate::lateness::Lateness;
pub use emulator::{Observer, Passage, Unobserved};
pub(crate) use thread::{Star, ThreadSettings};

use crate::Direction;
use crate::direction::Counters;
use crate::trunk::TrunkSnapshot;

/// A change of links while they run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// Steps count from this time, ns.
    Start(u64),
    /// Other conditions until the next step.
    Set(usize, Direction, Conditions),
    /// Nothing gets through while true.
    Cut(usize, bool),
}

/// Counters of a group's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// From the group.
    pub up: Counters,
    /// To the group.
    pub down: Counters,
}

impl LinkCounters {
    /// One direction.
    pub fn of(&self, direction: Direction) -> &Counters {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

/// Packets that no link carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Packets of kernels that discover neighbours and routers (IPv6 neighbour and multicast listener discovery, IGMP).
    pub noise: u64,
    /// To an address that is not in the plan, or to the sender itself.
    pub unroutable: u64,
    /// Neither IPv4 nor IPv6, or too short to be.
    pub malformed: u64,
    /// The receiver's kernel did not accept them. No condition requires that: a run in which it happens is invalid.
    pub undeliverable: u64,
}

/// Everything the emulator counts, at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// By group. Each direction is consistent in itself; two are read one after the other.
    pub links: Vec<LinkCounters>,
    /// What no link carried.
    pub strays: Strays,
    /// How late packets were written that had to wait, after the time that their link gave them.
    pub lateness: Lateness,
    /// How long packets waited in the queue of their interface, or of the trunk's socket, until the thread read them, at most: from
    /// when the queue was last known to be empty. If the thread slept, it counts from its wake-up: how long it took to wake up is not
    /// known. Empty with the kernel's netem.
    pub read_wait: Lateness,
    /// The trunk to the groups of other stars; `None` without one.
    pub trunk: Option<TrunkSnapshot>,
    /// CPU time of the emulator's thread, ns. It includes what the receivers' kernels do with a packet on arrival (IP
    /// and TCP input), so it belongs neither to the system nor to the clients.
    pub cpu_ns: u64,
    /// Does the thread run under SCHED_FIFO? Without it other work on the machine can hold packets up.
    pub realtime: bool,
}
