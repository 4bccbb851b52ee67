//! Planned disconnects and reconnects.
//!
//! Each check of a kind *strikes* with its chance, whatever the device's state. A disconnect check that strikes makes the
//! device offline, a reconnect check that strikes makes it online. So the state at any moment is that of the last strike,
//! and only the strikes need to be drawn: the number of checks between two strikes of a kind is geometric. The stationary
//! state, given the phases of the checks, is found in the same way, backwards from the start: how many checks ago did each
//! kind last strike, and which of the two strikes is later? (Coupling from the past: Propp and Wilson 1996.)

use crate::churn::{CheckPhase, Churn};
use crate::fleet::Device;
use crate::random::Stream;
use crate::schedule::arrivals::scale;
use crate::schedule::{NEVER, Rules, nanoseconds, purpose};

/// The checks of a group.
#[derive(Clone, Debug)]
pub(super) struct ChurnRule {
    leave: Check,
    back: Check,
    phase: CheckPhase,
}

/// One kind of check.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// Time between two checks, ns; 0 if checks are off or never strike.
    period_ns: i64,
    /// ln(1 − chance), the constant of the geometric distribution.
    log_miss: f64,
}

impl Check {
    fn new(period: std::time::Duration, chance: f64) -> Check {
        let period_ns = if chance > 0.0 { nanoseconds(period) } else { 0 };
        Check { period_ns, log_miss: libm::log1p(-chance.min(1.0)) }
    }

    fn is_off(self) -> bool {
        self.period_ns == 0
    }

    /// Time from a check to the next strike, where the first check after it has number 0: checks missed × period.
    fn wait_ns(self, stream: Stream, index: u64) -> i64 {
        // Inverse transform; a chance of 1 divides by −∞ and gives 0.
        let missed = libm::floor(libm::log(1.0 - stream.unit(index)) / self.log_miss);
        (missed as i64).saturating_mul(self.period_ns)
    }
}

impl ChurnRule {
    pub fn new(churn: &Churn) -> ChurnRule {
        ChurnRule {
            leave: Check::new(churn.disconnect_check, churn.disconnect_chance),
            back: Check::new(churn.reconnect_check, churn.reconnect_chance),
            phase: churn.phase,
        }
    }
}

/// Position of a device in its sequence of strikes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChurnState {
    leave_ns: i64,
    return_ns: i64,
    draws: u32,
    online: bool,
}

impl ChurnState {
    /// The state at the start, before any check.
    pub fn new(rules: &Rules, key: u64) -> ChurnState {
        let mut state = ChurnState { leave_ns: NEVER, return_ns: NEVER, draws: 0, online: true };
        let Some(rule) = &rules.churn else { return state };
        if rule.leave.is_off() {
            return state;
        }
        let phases = Stream::new(key, purpose::CHECK_PHASE);
        // Time from the start to the first check of each kind.
        let first_check_ns = |check: Check, index: u64| match rule.phase {
            CheckPhase::Together => check.period_ns,
            CheckPhase::Random => scale(phases.bits(index), check.period_ns),
        };
        let (leave_check_ns, return_check_ns) = (first_check_ns(rule.leave, 0), first_check_ns(rule.back, 1));
        if rule.phase == CheckPhase::Random {
            let past = Stream::new(key, purpose::CHECKS_BEFORE_START);
            let ago = |check: Check, first_ns: i64, index: u64| {
                (check.period_ns - first_ns).saturating_add(check.wait_ns(past, index))
            };
            // At the same instant the reconnect check comes last, so it decides a tie.
            state.online =
                !rule.back.is_off() && ago(rule.back, return_check_ns, 1) <= ago(rule.leave, leave_check_ns, 0);
        }
        state.leave_ns = rules.start_ns.saturating_add(leave_check_ns);
        state.leave_ns = state.leave_ns.saturating_add(state.draw(rule.leave, key));
        if !rule.back.is_off() {
            state.return_ns = rules.start_ns.saturating_add(return_check_ns);
            state.return_ns = state.return_ns.saturating_add(state.draw(rule.back, key));
        }
        state
    }

    fn draw(&mut self, check: Check, key: u64) -> i64 {
        let wait_ns = check.wait_ns(Stream::new(key, purpose::CHECKS), u64::from(self.draws));
        self.draws = self.draws.wrapping_add(1);
        wait_ns
    }

    /// Returns the next strike before `until_ns`, if there is one: its time, and whether it makes the device online.
    fn strike(&mut self, until_ns: i64, rules: &Rules, key: u64) -> Option<Transition> {
        let rule = rules.churn.as_ref()?;
        let leaves = self.leave_ns <= self.return_ns;
        let at_ns = self.leave_ns.min(self.return_ns);
        if at_ns >= until_ns {
            return None;
        }
        if leaves {
            self.leave_ns = at_ns.saturating_add(rule.leave.period_ns);
            self.leave_ns = self.leave_ns.saturating_add(self.draw(rule.leave, key));
        } else {
            self.return_ns = at_ns.saturating_add(rule.back.period_ns);
            self.return_ns = self.return_ns.saturating_add(self.draw(rule.back, key));
        }
        Some(Transition { at_ns, online: !leaves })
    }

    /// Whether the device is online at `now_ns`, before any check at that instant. `now_ns` never decreases.
    pub fn online_before(&mut self, now_ns: i64, rules: &Rules, key: u64) -> bool {
        while let Some(strike) = self.strike(now_ns, rules, key) {
            self.online = strike.online;
        }
        self.online
    }

    /// The next strike that changes the state, before `end_ns`.
    fn next_change(&mut self, end_ns: i64, rules: &Rules, key: u64) -> Option<Transition> {
        while let Some(strike) = self.strike(end_ns, rules, key) {
            if strike.online != self.online {
                self.online = strike.online;
                return Some(strike);
            }
        }
        None
    }
}

/// A planned change of a device's connectivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When, ns since the start of the measured window.
    pub at_ns: i64,
    /// True: it comes back. False: it leaves.
    pub online: bool,
}

/// A device's planned leaving and coming back, one after the other. A device can leave and come back on one instant: both
/// are reported, in that order.
#[derive(Clone, Debug)]
pub struct ChurnCursor {
    key: u64,
    state: ChurnState,
    online_at_start: bool,
    next: Option<Transition>,
}

impl ChurnCursor {
    /// At the device's first change.
    pub fn new(rules: &Rules, device: &Device) -> ChurnCursor {
        let key = rules.device_key(device);
        let mut state = ChurnState::new(rules, key);
        let online_at_start = state.online;
        let next = state.next_change(rules.end_ns, rules, key);
        ChurnCursor { key, state, online_at_start, next }
    }

    /// Is the device online when the timeline begins?
    pub fn online_at_start(&self) -> bool {
        self.online_at_start
    }

    /// When the next change is; `None` at the end of the timeline.
    pub fn peek_ns(&self) -> Option<i64> {
        self.next.map(|transition| transition.at_ns)
    }

    /// The next change. `rules` are those it was made with.
    pub fn take(&mut self, rules: &Rules) -> Option<Transition> {
        let taken = self.next?;
        self.next = self.state.next_change(rules.end_ns, rules, self.key);
        Some(taken)
    }
}
