//! The requested value, the measured value, and whether they agree.

use std::fmt;

use crate::Direction;

/// The property that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// Mean time in flight, ns, with what the packet takes at the rate.
    Delay,
    /// Share of packets lost.
    Loss,
    /// Bits of IP packets a second.
    Rate,
    /// Share of packets that came twice.
    Duplicates,
    /// Half width or standard deviation of the delay, ns.
    Jitter,
    /// Share of packets sent ahead.
    Reordering,
    /// Mean packets of the bad state of a bursty loss.
    BurstLength,
    /// Packets that got through a link that is down.
    Down,
    /// Packets lost that neither loss nor queue nor a broken link took: must be none.
    Unexpected,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The measurement lies within the bounds.
    Met,
    /// It doesn't.
    Missed,
    /// There is no sound measurement, for this reason; nothing is claimed.
    Unverified(String),
}

/// One property of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What.
    pub property: Property,
    /// The value of the conditions, in the property's unit.
    pub asked: f64,
    /// What the probes found; `None` if they found nothing sound.
    pub measured: Option<f64>,
    /// Least value that counts as met.
    pub least: f64,
    /// Largest such value.
    pub most: f64,
    /// Packets behind the measurement.
    pub packets: u64,
    /// Do they agree?
    pub outcome: Outcome,
}

impl Check {
    /// A measurement against its bounds.
    pub(super) fn judged(
        property: Property,
        asked: f64,
        measured: f64,
        (least, most): (f64, f64),
        packets: u64,
    ) -> Check {
        let met = measured >= least && measured <= most;
        let outcome = if met { Outcome::Met } else { Outcome::Missed };
        Check { property, asked, measured: Some(measured), least, most, packets, outcome }
    }

    /// The property, the requested and the measured value, each with its unit.
    pub fn words(&self) -> [String; 3] {
        let (name, write) = self.property.words();
        let measured = self.measured.map_or_else(|| "—".to_owned(), |value| Formatted(value, write).to_string());
        [name.to_owned(), Formatted(self.asked, write).to_string(), measured]
    }

    /// No sound measurement.
    pub(super) fn unverified(property: Property, asked: f64, why: impl Into<String>) -> Check {
        let outcome = Outcome::Unverified(why.into());
        Check { property, asked, measured: None, least: asked, most: asked, packets: 0, outcome }
    }
}

/// What the probes found about one direction of a group's link, under its conditions at the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The group, counted from 0.
    pub group: usize,
    /// Its link's name.
    pub link: String,
    /// Which direction.
    pub direction: Direction,
    /// Each property.
    pub checks: Vec<Check>,
    /// Probes that the receiver's socket dropped because it was full; not the link's doing.
    pub receiver_drops: u64,
    /// Steps of the series that were not tried: only the first was.
    pub steps_not_tried: usize,
}

impl Verification {
    /// Does a measurement contradict the requested value?
    pub fn is_missed(&self) -> bool {
        self.checks.iter().any(|check| check.outcome == Outcome::Missed)
    }
}

fn time(formatter: &mut fmt::Formatter<'_>, ns: f64) -> fmt::Result {
    write!(formatter, "{:.3} ms", ns / 1e6)
}

fn share(formatter: &mut fmt::Formatter<'_>, share: f64) -> fmt::Result {
    write!(formatter, "{:.3} %", share * 100.0)
}

fn rate(formatter: &mut fmt::Formatter<'_>, bits: f64) -> fmt::Result {
    match bits {
        bits if bits >= 1e6 => write!(formatter, "{:.3} Mbit/s", bits / 1e6),
        bits => write!(formatter, "{:.3} kbit/s", bits / 1e3),
    }
}

fn packets(formatter: &mut fmt::Formatter<'_>, count: f64) -> fmt::Result {
    write!(formatter, "{count:.0} packets")
}

fn mean_packets(formatter: &mut fmt::Formatter<'_>, mean: f64) -> fmt::Result {
    write!(formatter, "{mean:.1} packets")
}

/// A value in the words of its property.
struct Formatted(f64, fn(&mut fmt::Formatter<'_>, f64) -> fmt::Result);

impl fmt::Display for Formatted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(formatter, self.0)
    }
}

impl Property {
    /// Its name, and how its values are written.
    fn words(self) -> (&'static str, fn(&mut fmt::Formatter<'_>, f64) -> fmt::Result) {
        match self {
            Property::Delay => ("delay", time),
            Property::Loss => ("loss", share),
            Property::Rate => ("rate", rate),
            Property::Duplicates => ("duplicates", share),
            Property::Jitter => ("jitter", time),
            Property::Reordering => ("reordering", share),
            Property::BurstLength => ("length of bursts", mean_packets),
            Property::Down => ("through a link that is down", packets),
            Property::Unexpected => ("lost unexpectedly", packets),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = self.property.words();
        write!(formatter, "{name} ")?;
        value(formatter, self.asked)?;
        match (&self.outcome, self.measured) {
            (Outcome::Unverified(why), _) => write!(formatter, " not verified ({why})"),
            (outcome, measured) => {
                formatter.write_str(", measured ")?;
                value(formatter, measured.unwrap_or(f64::NAN))?;
                if *outcome == Outcome::Met {
                    return formatter.write_str(", ok");
                }
                formatter.write_str(", MISSED: allowed are ")?;
                value(formatter, self.least)?;
                formatter.write_str(" to ")?;
                value(formatter, self.most)
            }
        }
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        write!(formatter, "{} {direction}", self.link)?;
        for (index, check) in self.checks.iter().enumerate() {
            write!(formatter, "{}{check}", if index == 0 { ": " } else { "; " })?;
        }
        if self.receiver_drops > 0 {
            write!(formatter, "; {} probes dropped by the receiver's full socket", self.receiver_drops)?;
        }
        if self.steps_not_tried > 0 {
            write!(formatter, "; {} later steps not tried", self.steps_not_tried)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verification_is_one_line() {
        let checks = vec![
            Check::judged(Property::Delay, 5e6, 5.02e6, (4.85e6, 5.15e6), 100),
            Check::judged(Property::Loss, 0.01, 0.05, (0.004, 0.019), 2_000),
            Check::unverified(Property::Rate, 2_000.0, "a probe would take 20 s"),
        ];
        let found = Verification {
            group: 0,
            link: "lte".to_owned(),
            direction: Direction::Up,
            checks,
            receiver_drops: 0,
            steps_not_tried: 3,
        };
        assert!(found.is_missed());
        assert_eq!(
            found.to_string(),
            "lte up: delay 5.000 ms, measured 5.020 ms, ok; loss 1.000 %, measured 5.000 %, MISSED: allowed are 0.400 % to \
             1.900 %; rate 2.000 kbit/s not verified (a probe would take 20 s); 3 later steps not tried"
        );
    }
}
