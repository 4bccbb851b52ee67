//! The generator's part in a wait for the system.

/// A wait of the messages of a publisher, or of the reactions of a session.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Time up to which the wait has been attributed, ns of `CLOCK_MONOTONIC`.
    divided_until_ns: u64,
}

impl Wait {
    /// A wait that begins now.
    pub fn new(now_ns: u64) -> Wait {
        Wait { divided_until_ns: now_ns }
    }

    /// The part of the time since the wait began, or since the last call, that may be the generator's, ns. This is the
    /// time after `free_since_ns`, up to which the system certainly accepted nothing; the whole time if that is
    /// unknown.
    pub fn generator_ns(&mut self, free_since_ns: Option<u64>, now_ns: u64) -> u64 {
        let since_ns = free_since_ns.unwrap_or(0).max(self.divided_until_ns);
        self.divided_until_ns = self.divided_until_ns.max(now_ns);
        now_ns.saturating_sub(since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_divided_once() {
        let mut wait = Wait::new(1_000);
        assert_eq!(wait.generator_ns(Some(5_000), 5_300), 300, "the system took nothing until 5,000");
        assert_eq!(wait.generator_ns(Some(5_000), 5_300), 0, "divided already");
        assert_eq!(wait.generator_ns(Some(5_100), 5_500), 200, "since the last call");
        assert_eq!(wait.generator_ns(None, 6_000), 500, "not known: all of it");
        assert_eq!(wait.generator_ns(Some(9_000), 8_000), 0, "free later than now");
    }
}
