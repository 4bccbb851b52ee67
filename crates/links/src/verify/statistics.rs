//! Is a sample what it should be? Bounds at 99 %.

use pubmark_model::link::{Delay, Distribution, Loss};

/// A normal variable lies within this many standard deviations of its mean with 99 %.
pub const NORMAL_99: f64 = 2.575_829;

/// Chance left out on each side of an interval.
const TAIL: f64 = 0.005;

/// Share of packets that a loss takes in the long run.
pub fn loss_share(loss: Loss) -> f64 {
    match loss {
        Loss::None => 0.0,
        Loss::Random(chance) => chance,
        Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            let bad = bad_share(to_bad, to_good);
            loss_good * (1.0 - bad) + loss_bad * bad
        }
    }
}

/// Stationary share of the bad state (Gilbert 1960).
fn bad_share(to_bad: f64, to_good: f64) -> f64 {
    if to_bad + to_good > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 }
}

/// Fewest and most of `count` packets that may be lost for the loss to be the requested one: 99 % of samples are within.
pub fn loss_interval(loss: Loss, count: u64) -> (u64, u64) {
    match loss {
        Loss::None => (0, 0),
        Loss::Random(chance) => binomial_interval(count, chance),
        Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            // The variance of a sum over a two-state chain whose memory fades by 1 − p − r a packet, for long samples.
            let (share, bad) = (loss_share(loss), bad_share(to_bad, to_good));
            let memory = 1.0 - to_bad - to_good;
            let correlated = if memory < 1.0 { memory / (1.0 - memory) } else { 0.0 };
            let between = (loss_bad - loss_good) * (loss_bad - loss_good) * bad * (1.0 - bad);
            let variance = (share * (1.0 - share) + 2.0 * between * correlated).max(0.0) * count as f64;
            let (middle, half) = (share * count as f64, NORMAL_99 * libm::sqrt(variance));
            ((middle - half).floor().max(0.0) as u64, (middle + half).ceil().min(count as f64) as u64)
        }
    }
}

/// Are `count` packets enough to decide whether the loss is the requested one? A few must be lost and a few get through, and
/// bursts must be many.
pub fn is_conclusive(loss: Loss, count: u64) -> bool {
    const FEW: f64 = 4.0;
    let (share, count) = (loss_share(loss), count as f64);
    match loss {
        Loss::None => true,
        Loss::Random(_) => share >= 1.0 || (share * count >= FEW && (1.0 - share) * count >= FEW),
        Loss::GilbertElliott { to_bad, to_good, .. } => {
            let changes = bad_share(to_bad, to_good) * to_good * count;
            share * count >= FEW && (1.0 - share) * count >= FEW && changes >= 10.0
        }
    }
}

/// Bounds of a binomial variable: below the first and above the second lie at most 0.5 % of samples each.
pub fn binomial_interval(count: u64, chance: f64) -> (u64, u64) {
    if chance <= 0.0 {
        return (0, 0);
    }
    if chance >= 1.0 {
        return (count, count);
    }
    let (mut sum, mut low) = (0.0, 0);
    let mut high = count;
    let mut found_low = false;
    for hits in 0..=count {
        sum += binomial(count, chance, hits);
        if !found_low && sum > TAIL {
            (low, found_low) = (hits, true);
        }
        if sum >= 1.0 - TAIL {
            high = hits;
            break;
        }
    }
    (low, high)
}

/// Chance of exactly `hits`, by logarithms of the gamma function: the numbers themselves are too large.
fn binomial(count: u64, chance: f64, hits: u64) -> f64 {
    let (n, k) = (count as f64, hits as f64);
    let choices = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    libm::exp(choices + k * libm::log(chance) + (n - k) * libm::log1p(-chance))
}

/// Mean and standard deviation of a delay, ns; none is below zero, which shifts the mean of wide jitter.
pub fn delay_moments(delay: &Delay) -> (f64, f64) {
    let (mean, jitter) = (delay.mean_ns as f64, delay.jitter_ns as f64);
    if jitter == 0.0 {
        return (mean, 0.0);
    }
    match delay.distribution {
        Distribution::Uniform if jitter > mean => ((mean + jitter) * (mean + jitter) / (4.0 * jitter), jitter),
        Distribution::Uniform => (mean, jitter / libm::sqrt(3.0)),
        Distribution::Normal => {
            // Mean of the positive part of a normal variable.
            let z = mean / jitter;
            let density = libm::exp(-z * z / 2.0) / libm::sqrt(std::f64::consts::TAU);
            let below = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            (mean * below + jitter * density, jitter)
        }
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::random::Stream;

    use super::*;

    #[test]
    fn binomial_bounds_are_those_of_tables() {
        // Quantiles 0.005 and 0.995 of sums in exact fractions.
        for (count, chance, expected) in [
            (100, 0.5, (37, 63)),
            (1_000, 0.01, (3, 19)),
            (3_000, 0.3, (836, 965)),
            (10, 0.001, (0, 1)),
            (50, 0.0, (0, 0)),
        ] {
            assert_eq!(binomial_interval(count, chance), expected, "{count} {chance}");
        }
        assert_eq!(binomial_interval(7, 1.0), (7, 7));
    }

    #[test]
    fn ninety_nine_of_a_hundred_samples_lie_within() {
        let loss = Loss::GilbertElliott { to_bad: 0.02, to_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };
        let (low, high) = loss_interval(loss, 3_000);
        let mut outside = 0;
        for seed in 0..1_000 {
            let mut draws = crate::direction::Draws::new(seed, "sample", crate::Direction::Up);
            let lost = (0..3_000).filter(|number| draws.is_lost(*number, loss)).count() as u64;
            outside += u32::from(lost < low || lost > high);
        }
        assert!((1..=25).contains(&outside), "{outside} of 1,000 outside of {low} to {high}");
    }

    #[test]
    fn too_few_packets_give_no_result() {
        assert!(is_conclusive(Loss::Random(0.01), 3_000));
        assert!(!is_conclusive(Loss::Random(0.0004), 3_000));
        assert!(!is_conclusive(Loss::Random(0.01), 3));
        assert!(is_conclusive(Loss::Random(1.0), 3));
        let bursts = |to_bad, to_good| Loss::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
        assert!(is_conclusive(bursts(0.01, 0.25), 3_000));
        assert!(!is_conclusive(bursts(0.001, 0.01), 3_000), "three bursts or so");
    }

    #[test]
    fn the_mean_of_a_wide_jitter_is_that_of_its_samples() {
        let stream = Stream::new(1, 2);
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            for (mean_ns, jitter_ns) in [(1_000_000, 100_000), (1_000_000, 1_500_000), (0, 1_000_000)] {
                let delay = Delay { mean_ns, jitter_ns, distribution, jitter_reorders: true };
                let samples = (0..100_000).map(|index| {
                    let spread = match distribution {
                        Distribution::Uniform => 2.0 * stream.unit(index) - 1.0,
                        Distribution::Normal => stream.normal(index),
                    };
                    (mean_ns as f64 + spread * jitter_ns as f64).max(0.0)
                });
                let mean = samples.sum::<f64>() / 100_000.0;
                let (expected, deviation) = delay_moments(&delay);
                assert!((mean - expected).abs() < NORMAL_99 * deviation / 300.0, "{mean} for {expected}: {delay:?}");
            }
        }
    }
}
