//! What the relay counts of the connections and datagrams that pass it.

use super::turn::RelayCounters;
use super::unserved::Unserved;

/// Connections, bytes and failures.
#[derive(Debug)]
pub struct Account {
    /// From clients, and to them.
    pub counters: [RelayCounters; 2],
    /// Connections accepted, and peers that sent datagrams.
    pub accepted: u64,
    /// Clients that were not led on.
    pub unserved: Unserved,
}

/// The account of the system under test, which is reported, and that of pubmark's own requests to other servers, which is not: they
/// are counted in the same way, so that what carries bytes need not tell the two apart.
#[derive(Debug)]
pub struct Accounts {
    /// Clients of the system under test.
    pub system: Account,
    own: Account,
}

impl Accounts {
    /// Of nothing.
    pub fn new() -> Accounts {
        let account = |is_system| Account {
            counters: [RelayCounters::new(is_system), RelayCounters::new(is_system)],
            accepted: 0,
            unserved: Unserved::default(),
        };
        Accounts { system: account(true), own: account(false) }
    }

    /// The account of what leads to the system, or of what does not.
    pub fn of(&mut self, is_system: bool) -> &mut Account {
        if is_system { &mut self.system } else { &mut self.own }
    }
}
