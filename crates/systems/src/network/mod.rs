//! Bytes that TCP connections carried, from the kernel's counters of each socket.
//!
//! [`diagnostics`] reads all TCP sockets with their counters from the kernel; [`SocketMeter`] determines whose they are
//! and adds up the increases. No packet is captured or changed.

pub mod diagnostics;
mod meter;

pub use meter::{SocketMeter, Traffic};
