//! Conditions of a link, changed by one mapping after another, with their bounds.

use std::time::Duration;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::raw_links::{ChanceText, DistributionWord, Keys, LinkRateText, RawBursts};
use super::shape::{DurationText, Form, SizeText, Spanned, Text};
use super::value::{self, impossible};
use crate::link::{Conditions, DEFAULT_QUEUE_BYTES, Delay, Distribution, Loss, Rate};
use crate::units;

/// Maximum delay and jitter: delayed packets are stored in memory.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// Maximum rate, bits per second; no emulator reaches it.
const FASTEST_BITS_PER_S: f64 = 1e12;
/// Minimum queue: the packet of one full Ethernet frame, otherwise large packets would never pass.
const SMALLEST_QUEUE_BYTES: f64 = 1_500.0;
/// Maximum queue, stored in memory: a second of 2 Gbit/s.
const LARGEST_QUEUE_BYTES: f64 = 256e6;
/// Text for no rate limit.
const NO_RATE: &str = "none";

/// Conditions in one direction, as far as they are given.
#[derive(Clone, Copy)]
pub(crate) struct State {
    conditions: Conditions,
    /// Unchanged while there is no rate.
    queue_bytes: u64,
}

impl Default for State {
    fn default() -> State {
        State { conditions: Conditions::default(), queue_bytes: DEFAULT_QUEUE_BYTES }
    }
}

impl State {
    /// Changes the values that a mapping gives and keeps the others.
    pub(crate) fn change(&mut self, keys: Keys<'_>) -> Result<(), Problem> {
        let Delay { mean_ns, jitter_ns, distribution, jitter_reorders } = self.conditions.delay;
        self.conditions.delay = Delay {
            mean_ns: keys.delay.map_or(Ok(mean_ns), |text| time(text, "a delay"))?,
            jitter_ns: keys.jitter.map_or(Ok(jitter_ns), |text| time(text, "jitter"))?,
            distribution: keys.distribution.map_or(distribution, |word| match word {
                DistributionWord::Uniform => Distribution::Uniform,
                DistributionWord::Normal => Distribution::Normal,
            }),
            jitter_reorders: keys.jitter_reorders.unwrap_or(jitter_reorders),
        };
        if let Some(form) = keys.loss {
            self.conditions.loss = loss(form)?;
        }
        self.queue_bytes = keys.queue.map_or(Ok(self.queue_bytes), queue)?;
        let bits_per_second = self.conditions.rate.map(|rate| rate.bits_per_second);
        let bits_per_second = keys.rate.map_or(Ok(bits_per_second), rate)?;
        self.conditions.rate =
            bits_per_second.map(|bits_per_second| Rate { bits_per_second, queue_bytes: self.queue_bytes });
        self.conditions.duplicate = keys.duplicate.map_or(Ok(self.conditions.duplicate), chance)?;
        self.conditions.reorder = keys.reorder.map_or(Ok(self.conditions.reorder), chance)?;
        self.conditions.down = keys.down.unwrap_or(self.conditions.down);
        Ok(())
    }

    /// Checks values that depend on each other; `named` are the mappings that gave them, `place` is their span.
    pub(crate) fn check(&self, named: &[Keys<'_>], place: Span) -> Result<(), Problem> {
        let Delay { mean_ns, jitter_ns, distribution, .. } = self.conditions.delay;
        if distribution == Distribution::Uniform && jitter_ns > mean_ns {
            let text = named.iter().rev().find_map(|keys| keys.jitter.or(keys.delay));
            let (jitter, mean) = (Duration::from_nanos(jitter_ns), Duration::from_nanos(mean_ns));
            return Err(impossible(format!("a uniform jitter of {jitter:?} is more than the delay of {mean:?}"))
                .at(text.map_or(place, |text| text.span), "some packets would arrive before they were sent")
                .help(format!(
                    "keep the jitter at {mean:?} or below, or add `distribution: normal`, cut off at zero"
                )));
        }
        match named.iter().rev().find_map(|keys| keys.queue) {
            Some(text) if self.conditions.rate.is_none() => {
                Err(Problem::new(ProblemKind::Conflict, "a queue without a rate never fills")
                    .at(text.span, "nothing waits here")
                    .help("add for instance `rate: 1Mbit/s`, or leave `queue` out"))
            }
            _ => Ok(()),
        }
    }

    /// The resulting conditions.
    pub(crate) fn conditions(&self) -> Conditions {
        self.conditions
    }
}

fn time(text: &Text<DurationText>, what: &str) -> Result<u64, Problem> {
    let time = value::duration(text)?;
    if time > LONGEST_DELAY {
        return Err(impossible(format!("{what} cannot be {}", text.text))
            .at(text.span, "out of range")
            .help("it is 10m at most"));
    }
    Ok(time.as_nanos() as u64)
}

fn rate(text: &Text<LinkRateText>) -> Result<Option<u64>, Problem> {
    if text.text == NO_RATE {
        return Ok(None);
    }
    let bits = value::unit(text, units::bit_rate)?.round();
    if !(1.0..=FASTEST_BITS_PER_S).contains(&bits) {
        return Err(impossible(format!("a link cannot have {}", text.text))
            .at(text.span, "out of range")
            .help("a rate lies between 1bit/s and 1000Gbit/s; `down: true` lets nothing through, `rate: none` all"));
    }
    Ok(Some(bits as u64))
}

fn queue(text: &Text<SizeText>) -> Result<u64, Problem> {
    let bytes = value::unit(text, units::size)?.round();
    if !(SMALLEST_QUEUE_BYTES..=LARGEST_QUEUE_BYTES).contains(&bytes) {
        return Err(impossible(format!("a queue cannot have {}", text.text))
            .at(text.span, "out of range")
            .help("it has 1500B, a full packet, to 256MB"));
    }
    Ok(bytes as u64)
}

/// A chance; a bare `1` is refused, because it could mean one percent or always.
fn chance(text: &Text<ChanceText>) -> Result<f64, Problem> {
    let chance = value::unit(text, units::chance)?;
    if chance == 1.0 && !text.text.ends_with('%') {
        return Err(impossible(format!("`{}` can be read as one percent or as every packet", text.text))
            .at(text.span, "which of the two?")
            .help("write `1%`, or `100%`"));
    }
    if !(0.0..=1.0).contains(&chance) {
        let help = match text.text.ends_with('%') {
            true => "a chance lies between 0% and 100%".to_owned(),
            false => format!("a chance lies between 0% and 100%; for percent, write `{}%`", text.text),
        };
        return Err(impossible(format!("a chance of {} cannot be", text.text))
            .at(text.span, "out of range")
            .help(help));
    }
    Ok(chance)
}

fn loss(form: &Form<Text<ChanceText>, Spanned<RawBursts>>) -> Result<Loss, Problem> {
    match form {
        Form::Short(text) => Ok(match chance(text)? {
            0.0 => Loss::None,
            chance => Loss::Random(chance),
        }),
        Form::Full(bursts) => {
            let RawBursts { to_bad, to_good, loss_bad, loss_good } = &bursts.value;
            let loss = Loss::GilbertElliott {
                to_bad: chance(to_bad)?,
                to_good: chance(to_good)?,
                loss_good: loss_good.as_ref().map_or(Ok(0.0), chance)?,
                loss_bad: loss_bad.as_ref().map_or(Ok(1.0), chance)?,
            };
            match loss {
                Loss::GilbertElliott { to_bad, to_good: 0.0, .. } if to_bad > 0.0 => {
                    Err(impossible("a link that turns bad would never turn good again".to_owned())
                        .at(to_good.span, "never")
                        .help("write for instance `to_good: 25%`, for bursts of four packets on average"))
                }
                loss => Ok(loss),
            }
        }
    }
}
