//! Emulated links: what the network between a group and the system does to packets. Pure data; `pubmark-links` carries it out.

use serde::{Deserialize, Serialize};

pub mod choice;
pub mod presets;
mod words;

/// In place of a link's name: none, the group is on the machine's own network.
pub const NO_LINK: &str = "none";

/// Bytes that may wait for a rate where nothing is said.
pub const DEFAULT_QUEUE_BYTES: u64 = 64_000;

/// How a packet's delay differs from its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// Evenly within mean ± jitter.
    #[default]
    Uniform,
    /// Normal with the jitter as standard deviation, never below zero.
    Normal,
}

/// Time a packet is under way apart from waiting for the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Mean, ns.
    pub mean_ns: u64,
    /// Half width or standard deviation, by [`Distribution`], ns; 0 for none.
    pub jitter_ns: u64,
    /// Shape of the jitter.
    pub distribution: Distribution,
    /// May a packet overtake another by its jitter? Without it the delays of packets denser than the jitter drift to its upper end.
    pub jitter_reorders: bool,
}

/// Which packets are lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each by itself with this chance, 0 to 1.
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

/// A bottleneck: a queue and how fast it empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Bits of IP packets a second, at least 1.
    pub bits_per_second: u64,
    /// Bytes that may wait; a packet that does not fit is dropped.
    pub queue_bytes: u64,
}

/// What happens to packets in one direction at one time, in this order: down or lost, duplicated, queued for the rate, delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Time under way.
    pub delay: Delay,
    /// What is lost.
    pub loss: Loss,
    /// Bottleneck, if there is one.
    pub rate: Option<Rate>,
    /// Chance that a packet is sent twice, 0 to 1.
    pub duplicate: f64,
    /// Chance that a packet is sent ahead, without its delay, 0 to 1.
    pub reorder: f64,
    /// Nothing gets through.
    pub down: bool,
}

/// Conditions from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Since the start of the measured window, ns; the first step, at 0, holds before it too.
    pub at_ns: u64,
    /// What holds from then on, until the next step.
    pub conditions: Conditions,
}

/// A link of a group: each of its members has the same conditions and, together, one bottleneck a direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Name in the workload.
    pub name: String,
    /// From the group to the system; the first step is at 0, times rise.
    pub up: Vec<Step>,
    /// From the system to the group, likewise.
    pub down: Vec<Step>,
    /// Where its figures come from (paper, section), if anywhere.
    pub source: Option<String>,
}

impl Link {
    /// The same in both directions, for the whole run.
    pub fn symmetric(name: &str, conditions: Conditions) -> Link {
        let steps = vec![Step { at_ns: 0, conditions }];
        Link { name: name.to_owned(), up: steps.clone(), down: steps, source: None }
    }
}
