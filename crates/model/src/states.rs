//! State machines: devices that change between states, each with a rate and a length.
//!
//! Start with [`States::new`].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::RandomTime;

/// Maximum number of states of a device.
pub const MOST_STATES: usize = 16;

/// A state of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Name of the state, unique in the group.
    pub name: String,
    /// Time between two messages in this state; `None` if the device sends none.
    pub interval: Option<Duration>,
    /// Length of a visit to this state, at least a millisecond on average.
    pub length: RandomTime,
    /// Chance of each state to be the next one, by index; the chances add up to 1.
    pub next: Vec<f64>,
}

impl State {
    /// Messages per second in this state.
    pub fn rate_per_s(&self) -> f64 {
        self.interval.map_or(0.0, |interval| 1.0 / interval.as_secs_f64())
    }
}

/// The states of a device, and the long-run share of time in each (a semi-Markov process: Ross, Stochastic Processes, 1996,
/// section 4.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct States {
    states: Arc<[State]>,
    shares: Arc<[f64]>,
}

/// A state that cannot be reached from another, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The state that cannot be reached.
    pub state: usize,
    /// The state from which it cannot be reached.
    pub from: usize,
}

impl States {
    /// Creates states, at least two and at most [`MOST_STATES`]; each must be reachable from each other.
    pub fn new(states: Vec<State>) -> Result<States, Unreachable> {
        for from in 0..states.len() {
            let reached = reached(&states, from);
            if let Some(state) = reached.iter().position(|reached| !reached) {
                return Err(Unreachable { state, from });
            }
        }
        let visits = visits(&states);
        let times: Vec<f64> =
            states.iter().zip(visits).map(|(state, visits)| visits * state.length.mean().as_secs_f64()).collect();
        let all: f64 = times.iter().sum();
        Ok(States { states: states.into(), shares: times.iter().map(|time| time / all).collect() })
    }

    /// The states, in the order of the file.
    pub fn all(&self) -> &[State] {
        &self.states
    }

    /// Long-run share of time in each state.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Mean messages per second.
    pub fn mean_rate_per_s(&self) -> f64 {
        self.states.iter().zip(self.shares.iter()).map(|(state, share)| state.rate_per_s() * share).sum()
    }

    /// Messages per second in the busiest state.
    pub fn highest_rate_per_s(&self) -> f64 {
        self.states.iter().map(State::rate_per_s).fold(0.0, f64::max)
    }

    /// The same states with other intervals.
    pub fn with_intervals(&self, change: impl Fn(Duration) -> Duration) -> States {
        let changed = |state: &State| State { interval: state.interval.map(&change), ..state.clone() };
        States { states: self.states.iter().map(changed).collect(), shares: self.shares.clone() }
    }
}

/// The states that can be reached from one, including itself.
fn reached(states: &[State], from: usize) -> Vec<bool> {
    let mut reached = vec![false; states.len()];
    let mut open = vec![from];
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut reached[place], true) {
            open.extend((0..states.len()).filter(|next| states[place].next[*next] > 0.0));
        }
    }
    reached
}

/// Relative frequency of visits to each state: π = πP with Σπ = 1, by Gaussian elimination with partial pivoting.
fn visits(states: &[State]) -> Vec<f64> {
    let size = states.len();
    // Each row is an equation: Σᵢ πᵢ·(Pᵢⱼ − δᵢⱼ) = 0 for all j but the last, which is replaced by Σπ = 1.
    let mut rows: Vec<Vec<f64>> = (0..size)
        .map(|to| {
            let coefficient = |from: usize| match to + 1 == size {
                true => 1.0,
                false => states[from].next[to] - f64::from(u8::from(from == to)),
            };
            (0..size).map(coefficient).chain([f64::from(u8::from(to + 1 == size))]).collect()
        })
        .collect();
    for column in 0..size {
        let largest = (column..size).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        rows.swap(column, largest.unwrap_or(column));
        let pivot = rows[column].clone();
        for row in (0..size).filter(|row| *row != column) {
            let factor = rows[row][column] / pivot[column];
            rows[row].iter_mut().zip(&pivot).for_each(|(entry, pivot)| *entry -= factor * pivot);
        }
    }
    (0..size).map(|place| (rows[place][size] / rows[place][place]).max(0.0)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn state(rate: u64, length_s: u64, next: &[f64]) -> State {
        State {
            name: String::new(),
            interval: (rate > 0).then(|| Duration::from_nanos(1_000_000_000 / rate)),
            length: RandomTime::Exponential(Duration::from_secs(length_s)),
            next: next.to_vec(),
        }
    }

    #[test]
    fn a_circle_spends_its_time_by_lengths() {
        let states = States::new(vec![
            state(0, 6, &[0.0, 1.0, 0.0]),
            state(10, 3, &[0.0, 0.0, 1.0]),
            state(4, 1, &[1.0, 0.0, 0.0]),
        ])
        .unwrap();
        for (found, expected) in states.shares().iter().zip([0.6, 0.3, 0.1]) {
            assert!((found - expected).abs() < 1e-12, "{:?}", states.shares());
        }
        assert!((states.mean_rate_per_s() - 3.4).abs() < 1e-9);
        assert_eq!(states.highest_rate_per_s(), 10.0);
    }

    #[test]
    fn chances_weigh_how_often_a_state_is_entered() {
        // Weather of two states: π = (2/3, 1/3), each for a second.
        let states = States::new(vec![state(1, 1, &[0.75, 0.25]), state(1, 1, &[0.5, 0.5])]).unwrap();
        assert!((states.shares()[0] - 2.0 / 3.0).abs() < 1e-12, "{:?}", states.shares());
    }

    #[test]
    fn a_state_that_is_never_left_is_known() {
        let found = States::new(vec![state(1, 1, &[0.0, 1.0]), state(1, 1, &[0.0, 1.0])]);
        assert_eq!(found, Err(Unreachable { state: 0, from: 1 }));
    }
}
