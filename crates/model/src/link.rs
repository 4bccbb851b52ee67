//! Emulated links: what the network between a group and the system does to packets. Plain data; `pubmark-links` emulates
//! them.

use serde::{Deserialize, Serialize};

pub mod choice;
pub mod presets;
mod words;

/// Name that stands for no link: the group uses the machine's network directly.
pub const NO_LINK: &str = "none";

/// Default size of the queue of a rate limit, bytes.
pub const DEFAULT_QUEUE_BYTES: u64 = 64_000;

/// Longest delay by the jitter, in standard deviations: one normal value in 500 million is larger.
const WIDEST_JITTER: u64 = 6;

/// How a packet's delay differs from its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// Uniform within mean ± jitter.
    #[default]
    Uniform,
    /// Normal with the jitter as standard deviation, never below zero.
    Normal,
}

/// Delay of a packet, without the time in the queue of the rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Mean, ns.
    pub mean_ns: u64,
    /// Half width or standard deviation, by [`Distribution`], ns; 0 for none.
    pub jitter_ns: u64,
    /// Shape of the jitter.
    pub distribution: Distribution,
    /// Whether jitter may reorder packets. If not, the delays of packets that are closer together than the jitter drift to
    /// its upper end.
    pub jitter_reorders: bool,
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Independent loss of each packet with this chance, 0 to 1.
    Random(f64),
    /// Two states, changed before each packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Chance of a change from good to bad, 0 to 1.
        to_bad: f64,
        /// Chance of a change from bad to good, 0 to 1.
        to_good: f64,
        /// Chance that a packet is lost in the good state.
        loss_good: f64,
        /// Chance that a packet is lost in the bad state.
        loss_bad: f64,
    },
}

/// A bottleneck: a queue and the rate at which it empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Rate in bits of IP packets per second, at least 1.
    pub bits_per_second: u64,
    /// Size of the queue in bytes; a packet that does not fit is dropped.
    pub queue_bytes: u64,
}

/// Effects on packets in one direction at one time, in this order: down or lost, duplicated, queued for the rate, delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Delay of packets.
    pub delay: Delay,
    /// Loss of packets.
    pub loss: Loss,
    /// Bottleneck, if there is one.
    pub rate: Option<Rate>,
    /// Chance that a packet is sent twice, 0 to 1.
    pub duplicate: f64,
    /// Chance that a packet is sent ahead, without its delay, 0 to 1.
    pub reorder: f64,
    /// Whether the link is down: no packet passes.
    pub down: bool,
}

/// Conditions from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Time since the start of the measured window, ns; the first step, at 0, also applies before it.
    pub at_ns: u64,
    /// Conditions from then on, until the next step.
    pub conditions: Conditions,
}

/// A link of a group: all members have the same conditions, and share one bottleneck for each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Name in the workload.
    pub name: String,
    /// From the group to the system; the first step is at 0, and times increase.
    pub up: Vec<Step>,
    /// From the system to the group, in the same form.
    pub down: Vec<Step>,
    /// Source of the figures (paper, section), if there is one.
    pub source: Option<String>,
}

impl Link {
    /// A link with the same conditions in both directions for the whole run.
    pub fn symmetric(name: &str, conditions: Conditions) -> Link {
        let steps = vec![Step { at_ns: 0, conditions }];
        Link { name: name.to_owned(), up: steps.clone(), down: steps, source: None }
    }

    /// The longest time that a packet spends on the link in one direction without waiting for its rate, ns.
    pub fn longest_delay_ns(&self) -> u64 {
        let delays = self.up.iter().chain(&self.down).map(|step| step.conditions.delay);
        let longest = |delay: Delay| delay.mean_ns.saturating_add(delay.jitter_ns.saturating_mul(WIDEST_JITTER));
        delays.map(longest).max().unwrap_or(0)
    }
}
