//! Emulation of network links that `pubmark_model::link` describes, on one machine.
//!
//! Start with [`network::Network`]: the system's namespace (*core*), a namespace for each group, and one thread that forwards
//! packets between them. [`direction::OneWayLink`] decides what happens to each packet, on virtual time;
//! [`namespace::Namespace`] is where sockets, threads and processes are made. The other back end, the kernel's own emulation,
//! is in `wires` and [`netem`]. Design: `docs/explanation/links.md`.

pub mod addresses;
pub mod direction;
pub mod error;
pub mod lateness;
pub mod namespace;
pub mod netem;
mod netlink;
pub mod network;
pub mod privilege;
pub mod relay;
mod seam;
pub mod sockets;
pub mod star;
pub mod trunk;
mod tun;
pub mod verify;
pub mod watch;
mod wires;

pub use netlink::{InterfaceCounters, Message};

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the group to the system.
    Up,
    /// From the system to the group.
    Down,
}

impl Direction {
    /// The other direction.
    pub fn opposite(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}
