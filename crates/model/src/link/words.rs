//! Descriptions of links for people: `20 ms ± 5 ms, 1 % lost, 1 Mbit/s (125 kB/s) with a queue of 64 kB`.

use super::{Conditions, Delay, Distribution, Link, Loss, Rate, Step};

/// Maximum number of steps of a series that are listed individually.
const SHOWN_STEPS: usize = 8;

impl Link {
    /// A line for each direction and step, or for both directions if they are equal.
    pub fn lines(&self) -> Vec<String> {
        let both = self.up == self.down;
        let directions: &[(&str, &[Step])] =
            if both { &[("both ways", &self.up)] } else { &[("up", &self.up), ("down", &self.down)] };
        directions.iter().flat_map(|(direction, steps)| describe(direction, steps)).collect()
    }
}

fn describe(direction: &str, steps: &[Step]) -> Vec<String> {
    let line = |step: &Step| match step.at_ns {
        0 => format!("{direction}: {}", step.conditions.words()),
        at => format!("{direction} from {}: {}", time(at), step.conditions.words()),
    };
    let mut lines: Vec<String> = steps.iter().take(SHOWN_STEPS).map(line).collect();
    if steps.len() > SHOWN_STEPS {
        lines.push(format!("{direction}: and {} further steps", steps.len() - SHOWN_STEPS));
    }
    lines
}

impl Conditions {
    /// What happens to packets, in a few words.
    pub fn words(&self) -> String {
        if self.down {
            return "nothing gets through".to_owned();
        }
        let parts = [
            delay(&self.delay),
            loss(&self.loss),
            self.rate.as_ref().map(rate),
            (self.duplicate > 0.0).then(|| format!("{} twice", percent(self.duplicate))),
            (self.reorder > 0.0).then(|| format!("{} sent ahead", percent(self.reorder))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing happens to packets".to_owned() } else { parts.join(", ") }
    }
}

fn delay(delay: &Delay) -> Option<String> {
    if delay.mean_ns == 0 && delay.jitter_ns == 0 {
        return None;
    }
    let mut text = time(delay.mean_ns);
    if delay.jitter_ns > 0 {
        text.push_str(&format!(" ± {}", time(delay.jitter_ns)));
        if delay.distribution == Distribution::Normal {
            text.push_str(" (normal)");
        }
        if delay.jitter_reorders {
            text.push_str(", overtaking");
        }
    }
    Some(text)
}

fn loss(loss: &Loss) -> Option<String> {
    match *loss {
        Loss::None => None,
        Loss::Random(chance) => Some(format!("{} lost", percent(chance))),
        // The state never becomes bad.
        Loss::GilbertElliott { to_bad: 0.0, loss_good, .. } => Some(format!("{} lost", percent(loss_good))),
        Loss::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
            let otherwise =
                if loss_good > 0.0 { format!(", {} between them", percent(loss_good)) } else { String::new() };
            Some(format!(
                "{} lost in bursts ({} of {} packets, on average {} apart{otherwise})",
                percent(loss.mean()),
                percent(loss_bad),
                number(1.0 / to_good),
                number(1.0 / to_bad),
            ))
        }
    }
}

impl Loss {
    /// Long-run share of packets lost, 0 to 1; for bursts, from the stationary distribution of the states.
    pub fn mean(&self) -> f64 {
        match *self {
            Loss::None => 0.0,
            Loss::Random(chance) => chance,
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                // If no change is possible, the state remains good, as at the start.
                let bad = if to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
                bad * loss_bad + (1.0 - bad) * loss_good
            }
        }
    }
}

/// In bits and in bytes, so that the units are not confused.
fn rate(rate: &Rate) -> String {
    let (bits, bytes) = (rate.bits_per_second as f64, rate.bits_per_second as f64 / 8.0);
    let queue = scaled(rate.queue_bytes as f64, ["B", "kB", "MB", "GB"]);
    format!(
        "{} ({}) with a queue of {queue}",
        scaled(bits, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]),
        scaled(bytes, ["B/s", "kB/s", "MB/s", "GB/s"]),
    )
}

fn scaled(value: f64, units: [&str; 4]) -> String {
    let step = [1e9, 1e6, 1e3].iter().position(|worth| value >= *worth);
    match step {
        Some(step) => format!("{} {}", number(value / [1e9, 1e6, 1e3][step]), units[3 - step]),
        None => format!("{} {}", number(value), units[0]),
    }
}

fn percent(chance: f64) -> String {
    format!("{} %", number(chance * 100.0))
}

/// A time in the largest unit in which it is at least one.
fn time(ns: u64) -> String {
    let worths = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match worths.into_iter().find(|(worth, _)| ns >= *worth) {
        Some((worth, unit)) => format!("{} {unit}", number(ns as f64 / worth as f64)),
        None => format!("{ns} ns"),
    }
}

/// Up to four digits, without trailing zeros.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (3.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        for (value, text) in [
            (0.0, "0"),
            (2.08, "2.08"),
            (0.02, "0.02"),
            (3.125, "3.125"),
            (0.000_1, "0.0001"),
            (99.96, "99.96"),
            (100.0, "100"),
            (1e3 / 3.0, "333.3"),
            (12_345.6, "12346"),
        ] {
            assert_eq!(number(value), text);
        }
        for (ns, text) in
            [(0, "0 ns"), (999, "999 ns"), (1_500, "1.5 µs"), (2_080_000, "2.08 ms"), (60_000_000_000, "60 s")]
        {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn conditions_are_described_in_bits_bytes_and_percent() {
        let conditions = Conditions {
            delay: Delay {
                mean_ns: 20_000_000,
                jitter_ns: 5_000_000,
                distribution: Distribution::Normal,
                jitter_reorders: true,
            },
            loss: Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 },
            rate: Some(Rate { bits_per_second: 800_000, queue_bytes: 64_000 }),
            duplicate: 0.001,
            reorder: 0.05,
            down: false,
        };
        assert_eq!(
            conditions.words(),
            "20 ms ± 5 ms (normal), overtaking, 3.846 % lost in bursts (100 % of 4 packets, on average 100 apart), \
             800 kbit/s (100 kB/s) with a queue of 64 kB, 0.1 % twice, 5 % sent ahead"
        );
        assert_eq!(Conditions { down: true, ..conditions }.words(), "nothing gets through");
        assert_eq!(Conditions::default().words(), "nothing happens to packets");
    }

    #[test]
    fn directions_are_described_separately_only_where_they_differ() {
        let slow = Conditions { rate: Some(Rate { bits_per_second: 8, queue_bytes: 1_500 }), ..Conditions::default() };
        let mut link = Link::symmetric("slow", slow);
        assert_eq!(link.lines(), ["both ways: 8 bit/s (1 B/s) with a queue of 1.5 kB"]);
        link.down.push(Step { at_ns: 1_500_000_000, conditions: Conditions { down: true, ..slow } });
        assert_eq!(link.lines()[2], "down from 1.5 s: nothing gets through");
        link.up = (0..20).map(|number| Step { at_ns: number, conditions: slow }).collect();
        assert_eq!(link.lines()[8], "up: and 12 further steps");
    }
}
