//! Due times of a device that changes between states.

use std::sync::Arc;

use crate::random::{RandomTime, Stream};
use crate::schedule::arrivals::{Position, scale};
use crate::schedule::{NEVER, nanoseconds, purpose};
use crate::states::{MOST_STATES, State, States};

/// The states of a group's devices. [`Position::turn`] is the number of the visit to a state, times [`MOST_STATES`], plus
/// the state.
#[derive(Clone, Debug)]
pub(super) struct StateRule {
    states: Arc<[Step]>,
    shares: Arc<[f64]>,
}

#[derive(Clone, Debug)]
struct Step {
    interval_ns: Option<i64>,
    length: RandomTime,
    next: Vec<f64>,
}

impl StateRule {
    pub fn new(states: &States) -> StateRule {
        let step = |state: &State| Step {
            interval_ns: state.interval.map(|interval| nanoseconds(interval).max(1)),
            length: state.length,
            next: state.next.clone(),
        };
        StateRule { states: states.all().iter().map(step).collect(), shares: states.shares().into() }
    }

    /// The first message. A device starts in its stationary distribution: in a state chosen by the state's share of the
    /// time, part of which has passed.
    pub fn first(&self, position: &mut Position, key: u64, end_ns: i64) {
        let start = Stream::new(key, purpose::STATE_AT_START);
        let state = pick(&self.shares, start.unit(0));
        let rest_ns = match self.states[state].length {
            // Exponential times are memoryless: the remaining time has the same distribution as the whole time.
            RandomTime::Exponential(_) => self.length_ns(state, key, 0),
            RandomTime::Fixed(length) => scale(start.bits(1), nanoseconds(length)),
        };
        position.turn = state as i64;
        self.continue_state(position, key, position.due_ns, rest_ns, end_ns);
    }

    pub fn advance(&self, position: &mut Position, key: u64, end_ns: i64) {
        let Some(interval_ns) = self.states[state_of(position)].interval_ns else { return };
        position.due_ns = position.due_ns.saturating_add(interval_ns);
        if position.due_ns >= position.base_ns {
            let (from_ns, length_ns) = (position.base_ns, self.change(position, key));
            self.continue_state(position, key, from_ns, length_ns, end_ns);
        }
    }

    /// Changes to the next state and returns its length.
    fn change(&self, position: &mut Position, key: u64) -> i64 {
        let (number, state) = (number_of(position), state_of(position));
        let next = pick(&self.states[state].next, Stream::new(key, purpose::NEXT_STATE).unit(number));
        position.turn = (number as i64 + 1) * MOST_STATES as i64 + next as i64;
        self.length_ns(next, key, number + 1)
    }

    /// Finds the first message from `from_ns` on, in the state that then lasts for `length_ns`, or in the first state after
    /// it that has a message. The first message of a state is at a random point of its interval, so that the mean rate is
    /// correct even for short states.
    fn continue_state(&self, position: &mut Position, key: u64, mut from_ns: i64, mut length_ns: i64, end_ns: i64) {
        position.due_ns = NEVER;
        while from_ns < end_ns {
            position.base_ns = from_ns.saturating_add(length_ns);
            let (number, state) = (number_of(position), state_of(position));
            if let Some(interval_ns) = self.states[state].interval_ns {
                let wait_ns = scale(Stream::new(key, purpose::STATE_PHASE).bits(number), interval_ns);
                let due_ns = from_ns.saturating_add(wait_ns);
                if due_ns < position.base_ns {
                    position.due_ns = due_ns;
                    return;
                }
            }
            length_ns = self.change(position, key);
            // At least 1 ns, so that the loop ends when lengths round to zero.
            from_ns = position.base_ns.max(from_ns.saturating_add(1));
        }
    }

    fn length_ns(&self, state: usize, key: u64, number: u64) -> i64 {
        let drawn_ns = self.states[state].length.draw_ns(Stream::new(key, purpose::STATE_LENGTH), number);
        i64::try_from(drawn_ns).unwrap_or(NEVER)
    }
}

fn state_of(position: &Position) -> usize {
    position.turn as usize % MOST_STATES
}

fn number_of(position: &Position) -> u64 {
    position.turn as u64 / MOST_STATES as u64
}

/// Index of the interval that contains a number in [0, 1), where the lengths of the intervals are chances that add up to 1.
fn pick(chances: &[f64], unit: f64) -> usize {
    let (mut rest, mut last) = (unit, 0);
    for (place, chance) in chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
        if rest < *chance {
            return place;
        }
        (rest, last) = (rest - chance, place);
    }
    last
}
