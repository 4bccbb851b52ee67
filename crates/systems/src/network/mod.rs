//! Bytes that TCP connections carried, by the kernel's own count of each socket.
//!
//! [`diagnostics`] asks the kernel for all TCP sockets with their counters, [`SocketMeter`] tells whose they are and adds
//! up what they gained. Nothing is captured and no packet is touched.

pub mod diagnostics;
mod meter;

pub use meter::{SocketMeter, Traffic};
