//! Requests that a responder dropped while the system accepted no replies.
//!
//! The system may have accepted replies again before pubmark noticed it. A responder that had noticed it at once would have had room
//! since then.

/// Requests that are stored at most. Those that count came after the end of the back-pressure, which is noticed in the same turn or the
/// next one.
pub(super) const MOST_DROPPED: usize = 1_024;

/// A request that found no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    /// When it was read, ns of `CLOCK_MONOTONIC`.
    pub(super) read_ns: u64,
    /// How long the work on it would have taken, ns.
    pub(super) took_ns: u64,
    /// It was due in the measured window.
    pub(super) measured: bool,
}

/// The room that a responder has because the system accepted replies again.
#[derive(Debug, Default)]
pub(super) struct FreedRoom {
    /// Places of waiting requests: when each may have been free, ns of `CLOCK_MONOTONIC`.
    waiting: Vec<u64>,
    /// The same of requests that it works on, where none waited.
    working: Vec<u64>,
}

impl FreedRoom {
    /// A reply was accepted, which the system may have accepted since `free_ns`. `has_next`: a waiting request is worked on instead.
    pub(super) fn add(&mut self, free_ns: u64, has_next: bool) {
        let places = if has_next { &mut self.waiting } else { &mut self.working };
        places.push(free_ns);
    }

    /// May a dropped request have found a place? It uses a waiting one up, and works in another.
    pub(super) fn take(&mut self, dropped: &Dropped) -> bool {
        if let Some(place) = self.waiting.iter().position(|free_ns| *free_ns < dropped.read_ns) {
            self.waiting.swap_remove(place);
            return true;
        }
        match self.working.iter_mut().min() {
            Some(free_ns) if *free_ns < dropped.read_ns => {
                *free_ns += dropped.took_ns;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_found_by_requests_that_were_read_after_it_was_free_and_by_no_more_than_it_holds() {
        let mut freed = FreedRoom::default();
        freed.add(1_000, true);
        freed.add(1_000, false);
        let mut found = |read_ns| freed.take(&Dropped { read_ns, took_ns: 300, measured: true });
        assert_eq!([900, 1_000].map(&mut found), [false, false], "dropped while the system accepted no replies");
        assert_eq!([1_100, 1_100, 1_200].map(&mut found), [true, true, false], "one waits, one is worked on");
        assert_eq!([1_400, 1_500].map(&mut found), [true, false], "the next one after 300 ns");
    }
}
