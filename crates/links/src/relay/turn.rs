//! How long the relay holds what it carries.

use pubmark_protocol::clock;
use pubmark_protocol::receive::WallOffset;

use super::Carried;
use crate::lateness::SharedLateness;

/// Counters of one way.
#[derive(Debug)]
pub struct Way {
    pub bytes: u64,
    pub reads: u64,
    pub dropped: u64,
    added: SharedLateness,
}

impl Way {
    pub fn new() -> Way {
        Way { bytes: 0, reads: 0, dropped: 0, added: SharedLateness::new() }
    }

    pub fn counts(&self) -> Carried {
        Carried { bytes: self.bytes, reads: self.reads, added: self.added.read(), dropped: self.dropped }
    }
}

/// The relay's loop turns: it looks what is there, waits if there is nothing, then carries everything. Bytes that are there at the first
/// look came after the turn before had begun. Where it waited, they came after that, and the first one woke it: the kernel's earliest
/// stamp says when.
#[derive(Debug)]
pub struct Turn {
    wall: WallOffset,
    begun_ns: u64,
    /// What this turn finds did not come before, ns.
    since_ns: u64,
    /// The earliest receipt that the kernel stamped in a turn that was waited for, ns.
    earliest_ns: Option<u64>,
    waited: bool,
    found: bool,
    longest_ns: u64,
}

impl Turn {
    pub fn new() -> Turn {
        let now_ns = clock::monotonic_ns();
        Turn {
            wall: WallOffset::default(),
            begun_ns: now_ns,
            since_ns: now_ns,
            earliest_ns: None,
            waited: false,
            found: false,
            longest_ns: 0,
        }
    }

    /// A turn begins. `waited_since_ns` is since when there was nothing, if there was; `has_more` says that the turn before left bytes
    /// behind.
    pub fn begin(&mut self, waited_since_ns: Option<u64>, has_more: bool) {
        self.since_ns = match waited_since_ns {
            _ if has_more => self.since_ns,
            Some(waited_since_ns) => waited_since_ns,
            None => self.begun_ns,
        };
        self.waited = waited_since_ns.is_some() && !has_more;
        (self.earliest_ns, self.found) = (None, false);
        self.begun_ns = clock::monotonic_ns();
    }

    /// A read found bytes, the last of which the kernel received at `stamp_realtime_ns`, and they were handed on.
    pub fn carried(&mut self, way: &mut Way, stamp_realtime_ns: Option<u64>) {
        self.found = true;
        let Some(stamp) = stamp_realtime_ns else { return };
        let now_ns = clock::monotonic_ns();
        let received_ns = self.wall.to_monotonic_ns(stamp, now_ns);
        way.added.record(now_ns.saturating_sub(received_ns));
        self.earliest_ns = Some(self.earliest_ns.map_or(received_ns, |earliest| earliest.min(received_ns)));
    }

    /// Everything that the turn carries is carried.
    pub fn end(&mut self) {
        if self.found {
            let first_ns = self.earliest_ns.filter(|_| self.waited).unwrap_or(self.since_ns);
            self.longest_ns = self.longest_ns.max(clock::monotonic_ns().saturating_sub(first_ns.max(self.since_ns)));
        }
    }

    /// The longest that bytes were held, ns, since this was asked last.
    pub fn take_longest_ns(&mut self) -> u64 {
        std::mem::take(&mut self.longest_ns)
    }
}
