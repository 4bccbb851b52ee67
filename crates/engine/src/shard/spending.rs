//! CPU time and wake-ups of a shard's thread in the measured window.

use crate::spent::Spent;

/// The two readings at the start and end of the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spending {
    began: Option<Spent>,
    ended: Option<Spent>,
}

impl Spending {
    /// The window begins. No effect if it was closed before, for example by an interruption during the warm-up.
    pub fn begin(&mut self, spent: Spent) {
        if self.ended.is_none() {
            self.began.get_or_insert(spent);
        }
    }

    /// The window is over. Only the first call has an effect.
    pub fn end(&mut self, spent: Spent) {
        self.ended.get_or_insert(spent);
    }

    /// The difference of the two readings; `None` for a window that did not begin or is not over.
    pub fn in_window(&self) -> Option<Spent> {
        let (began, ended) = (self.began?, self.ended?);
        Some(Spent {
            cpu_ns: ended.cpu_ns - began.cpu_ns,
            wakeups: ended.wakeups - began.wakeups,
            quantum_ns: ended.quantum_ns,
            ordinary_ns: ended.ordinary_ns.zip(began.ordinary_ns).map(|(ended_ns, began_ns)| ended_ns - began_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(cpu_ns: u64, wakeups: u64) -> Spent {
        Spent { cpu_ns, wakeups, quantum_ns: 0, ordinary_ns: None }
    }

    #[test]
    fn what_lies_between_the_first_readings_counts() {
        let mut spending = Spending::default();
        spending.begin(spent(1_000, 10));
        assert_eq!(spending.in_window(), None, "it is not over");
        spending.end(spent(4_000, 12));
        spending.end(spent(9_000, 20));
        assert_eq!(spending.in_window(), Some(spent(3_000, 2)));
    }

    #[test]
    fn a_window_closed_before_its_start_has_nothing() {
        let mut spending = Spending::default();
        spending.end(spent(1_000, 10));
        spending.begin(spent(1_001, 11));
        assert_eq!(spending.in_window(), None);
    }
}
