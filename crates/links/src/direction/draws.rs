//! Chance: each draw is a function of (seed, link, direction, packet's number), so a change of the conditions doesn't shift
//! the draws of what follows, and a run can be repeated.

use pubmark_model::link::{Delay, Distribution, Loss};
use pubmark_model::random::{Stream, fold};

use crate::Direction;

/// Draws of one direction.
#[derive(Clone, Debug)]
pub struct Draws {
    loss: Stream,
    state: Stream,
    duplicate: Stream,
    jitter: Stream,
    reorder: Stream,
    /// Is the Gilbert–Elliott chain in its bad state? Unknown until the first packet that needs it.
    bad: Option<bool>,
}

/// Index of the draw for the chain's first state: no packet has this number.
const FIRST_STATE: u64 = u64::MAX;

impl Draws {
    /// Draws of one direction of the link `name` in a run of `seed`.
    pub fn new(seed: u64, name: &str, direction: Direction) -> Draws {
        let key = fold(seed, name.as_bytes());
        let base = match direction {
            Direction::Up => 0x6c69_6e6b_0000,
            Direction::Down => 0x6c69_6e6b_0100,
        };
        let stream = |purpose: u64| Stream::new(key, base + purpose);
        Draws {
            loss: stream(1),
            state: stream(2),
            duplicate: stream(3),
            jitter: stream(4),
            reorder: stream(5),
            bad: None,
        }
    }

    /// Is packet `number` lost? Called once for each, in order.
    pub fn is_lost(&mut self, number: u64, loss: Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Random(chance) => self.loss.unit(number) < chance,
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let state = self.state;
                // The chain starts as it stands in the long run, so that a short run is not better than a long one.
                let bad = self.bad.get_or_insert_with(|| {
                    let changes = to_bad + to_good;
                    changes > 0.0 && state.unit(FIRST_STATE) < to_bad / changes
                });
                let change = if *bad { to_good } else { to_bad };
                *bad ^= state.unit(number) < change;
                self.loss.unit(number) < if *bad { loss_bad } else { loss_good }
            }
        }
    }

    /// Is packet `number` sent twice?
    pub fn is_duplicated(&self, number: u64, chance: f64) -> bool {
        chance > 0.0 && self.duplicate.unit(number) < chance
    }

    /// Is copy `copy` sent ahead?
    pub fn is_sent_ahead(&self, copy: u64, chance: f64) -> bool {
        chance > 0.0 && self.reorder.unit(copy) < chance
    }

    /// How long copy `copy` is in flight, ns.
    pub fn delay_ns(&self, copy: u64, delay: &Delay) -> u64 {
        if delay.jitter_ns == 0 {
            return delay.mean_ns;
        }
        let spread = match delay.distribution {
            Distribution::Uniform => 2.0 * self.jitter.unit(copy) - 1.0,
            Distribution::Normal => self.jitter.normal(copy),
        };
        // A float's conversion saturates: below zero is zero.
        (delay.mean_ns as f64 + spread * delay.jitter_ns as f64).round() as u64
    }
}
