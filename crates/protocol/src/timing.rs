//! When a message was due and submitted, and which part of the time until its write is not the system's.

/// The times of a message before its write, ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Its due time. Of a reply: the arrival of its request.
    pub due_ns: u64,
    /// When it was submitted to the adapter.
    pub submitted_ns: u64,
    /// Lag: the part of the time from due to submitted that the generator caused, or may have caused, ns. The rest is
    /// the system's back-pressure.
    pub lag_ns: u64,
}

impl Timing {
    /// For a message that only the generator can have delayed.
    pub const fn on_time(due_ns: u64) -> Timing {
        Timing { due_ns, submitted_ns: due_ns, lag_ns: 0 }
    }

    /// The same if back-pressure was known until `until_ns`: the socket buffer or the in-flight window was full.
    pub fn waited_until(self, until_ns: u64) -> Timing {
        Timing { submitted_ns: self.submitted_ns.max(until_ns), ..self }
    }

    /// How much of the time from due to a write that begins at `write_start_ns` the generator may have caused, ns.
    pub fn lag_at(&self, write_start_ns: u64) -> u64 {
        self.lag_ns.saturating_add(self.since_submitted_ns(write_start_ns))
    }

    /// How much of the time from the submission to a write that begins at `write_start_ns` the generator may have caused, ns.
    pub fn since_submitted_ns(&self, write_start_ns: u64) -> u64 {
        write_start_ns.saturating_sub(self.submitted_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_is_the_system_s_and_what_follows_it_is_not() {
        let timing = Timing { due_ns: 1_000, submitted_ns: 5_000, lag_ns: 700 };
        assert_eq!(timing.lag_at(6_000), 1_700, "from the submission to the write");
        assert_eq!(timing.waited_until(8_500).lag_at(9_000), 1_200, "what it took to notice that there was room");
        assert_eq!(timing.waited_until(8_500).since_submitted_ns(9_000), 500, "the same without the lag before");
        assert_eq!(timing.waited_until(2_000).lag_at(9_000), 4_700, "full before it was submitted");
        assert_eq!(Timing::on_time(1_000).lag_at(6_000), 5_000);
    }
}
