//! Which times hold: those of the standard, or shorter ones in tests.

use pubmark_wire::coap::Times;

/// Times of a kind of clients.
pub trait Timing {
    /// The message layer's.
    const TIMES: Times;
    /// Resolution of the timers, ns.
    const TICK_NS: u64;
}

/// The times of RFC 7252.
#[derive(Debug)]
pub enum Standard {}

impl Timing for Standard {
    const TIMES: Times = Times::STANDARD;
    const TICK_NS: u64 = 250_000_000;
}
