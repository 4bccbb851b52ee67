//! Estimates the straight lines that fit the readings of two clocks.
//!
//! A node sends a request at `asked` of its clock; it arrives at `came` of the run's clock. The response leaves at
//! `said` of the run's clock and arrives at `heard` of the node's clock. A message cannot arrive before it is sent. So
//! the run's time minus the node's time, θ, is at most `came − asked` at the request and at least `said − heard` at the
//! response. These limits hold however long either message waited in queues. Half a round trip, which is often used to
//! set clocks (RFC 5905 §8), limits the error of one round trip only. Here each reading narrows the limits of the
//! others, and a reading under load does no harm. Apart from wander, θ is a straight line over time, so the limits are
//! those of lines: a linear programme with two unknowns, solved by section search (Moon, Skelly and Towsley,
//! "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999, fits the line below one-way
//! delays in this way).

/// Steepest line between two clocks: each crystal has an error of at most 100 ppm.
const STEEPEST: f64 = 200e-6;
/// How far θ may leave a straight line for each second of distance, ns: a crystal that warms up changes by about 0.05
/// ppm.
const WANDER_NS_PER_S: f64 = 100.0;
/// Steps of a search in an interval: 0.618^60 of 400 ppm is about 1e-16, negligible over any window.
const STEPS: u32 = 60;
/// Values are nanoseconds relative to a near origin; this is the largest rounding error of their sums.
const ROUNDING_NS: f64 = 1.0;

/// A request for the time and its response. The names of the times are those of RFC 5905 §8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When the request was sent, ns of the node's clock.
    pub origin_ns: u64,
    /// When the request arrived, ns of the run's clock.
    pub receive_ns: u64,
    /// When the response was sent, ns of the run's clock.
    pub transmit_ns: u64,
    /// When the response arrived, ns of the node's clock.
    pub destination_ns: u64,
}

impl Reading {
    /// Are the times in order?
    pub fn is_possible(&self) -> bool {
        self.destination_ns >= self.origin_ns && self.transmit_ns >= self.receive_ns
    }

    /// Round-trip time without the coordinator's processing, ns.
    pub fn round_trip_ns(&self) -> u64 {
        (self.destination_ns - self.origin_ns).saturating_sub(self.transmit_ns - self.receive_ns)
    }

    /// Upper and lower limit of θ, ns.
    fn limits(&self) -> (i64, i64) {
        (self.receive_ns.wrapping_sub(self.origin_ns) as i64, self.transmit_ns.wrapping_sub(self.destination_ns) as i64)
    }
}

/// Possible values of θ at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// Middle of the possible values of θ, ns.
    pub offset_ns: i64,
    /// Largest distance of θ from the middle, ns.
    pub half_width_ns: f64,
    /// The slope with the largest distance between the limits. It is nearer to the true slope than the middle of all
    /// slopes that fit (measured on simulated clocks).
    pub slope: f64,
}

/// A limit of θ: its distance in time from the instant in question, and its value, ns.
#[derive(Clone, Copy)]
struct Limit {
    distance: f64,
    value: f64,
}

/// Possible values of θ at an instant of the node's clock; `None` if there is no reading, or no line fits all readings.
pub(super) fn fit(readings: &[Reading], at_ns: u64) -> Option<Fit> {
    let base_ns = readings.first()?.limits().0;
    let limit = |of_ns: u64, value: i64| Limit {
        distance: of_ns.wrapping_sub(at_ns) as i64 as f64,
        value: value.wrapping_sub(base_ns) as f64,
    };
    let slack = |limit: &Limit| limit.distance.abs() * WANDER_NS_PER_S / 1e9;
    let above = readings.iter().map(|reading| limit(reading.origin_ns, reading.limits().0));
    let above = hull(above.map(|limit| Limit { value: limit.value + slack(&limit), ..limit }).collect(), 1.0);
    let below = readings.iter().map(|reading| limit(reading.destination_ns, reading.limits().1));
    let below = hull(below.map(|limit| Limit { value: limit.value - slack(&limit), ..limit }).collect(), -1.0);
    let highest =
        |slope: f64| above.iter().map(|limit| limit.value - slope * limit.distance).fold(f64::INFINITY, f64::min);
    let lowest =
        |slope: f64| below.iter().map(|limit| limit.value - slope * limit.distance).fold(f64::NEG_INFINITY, f64::max);
    let room = |slope: f64| highest(slope) - lowest(slope) + ROUNDING_NS;
    let widest = peak(room, -STEEPEST, STEEPEST);
    if room(widest) < 0.0 {
        return None;
    }
    let (left, right) = (edge(room, widest, -STEEPEST), edge(room, widest, STEEPEST));
    let high = highest(peak(highest, left, right)) + ROUNDING_NS;
    let low = lowest(peak(|slope| -lowest(slope), left, right)) - ROUNDING_NS;
    let middle = (high + low) / 2.0;
    Some(Fit {
        offset_ns: base_ns.wrapping_add(middle.round() as i64),
        half_width_ns: (high - low) / 2.0 + ROUNDING_NS,
        slope: widest,
    })
}

/// The limits that a line can touch: the lower side of the convex hull, or its upper side for a `side` of −1.
fn hull(mut limits: Vec<Limit>, side: f64) -> Vec<Limit> {
    limits.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    let mut kept: Vec<Limit> = vec![];
    for next in limits {
        while let [.., before, last] = &kept[..] {
            let rise = (last.value - before.value) * (next.distance - before.distance);
            let whole = (next.value - before.value) * (last.distance - before.distance);
            if side * (rise - whole) < 0.0 {
                break;
            }
            kept.pop();
        }
        kept.push(next);
    }
    kept
}

/// Position of the maximum of a concave function, by golden-section search.
fn peak(of: impl Fn(f64) -> f64, mut left: f64, mut right: f64) -> f64 {
    let section = (5.0f64.sqrt() - 1.0) / 2.0;
    let inner = |left: f64, right: f64| [right - section * (right - left), left + section * (right - left)];
    let [mut nearer, mut farther] = inner(left, right);
    let [mut at_nearer, mut at_farther] = [of(nearer), of(farther)];
    for _ in 0..STEPS {
        if at_nearer < at_farther {
            left = nearer;
            (nearer, at_nearer) = (farther, at_farther);
            farther = inner(left, right)[1];
            at_farther = of(farther);
        } else {
            right = farther;
            (farther, at_farther) = (nearer, at_nearer);
            nearer = inner(left, right)[0];
            at_nearer = of(nearer);
        }
    }
    (left + right) / 2.0
}

/// The farthest slope towards `end` that fits all limits; the slope `inside` fits.
fn edge(room: impl Fn(f64) -> f64, mut inside: f64, end: f64) -> f64 {
    if room(end) >= 0.0 {
        return end;
    }
    let mut outside = end;
    for _ in 0..STEPS {
        let middle = (inside + outside) / 2.0;
        if room(middle) >= 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A reading at this second of the node's clock, with these one-way delays, for clocks that differ by `theta_ns`.
    fn reading(at_s: f64, there_ns: u64, back_ns: u64, theta_ns: impl Fn(f64) -> i64) -> Reading {
        let origin_ns = (at_s * 1e9) as u64;
        let destination_ns = origin_ns + there_ns + back_ns;
        let receive_ns = (origin_ns + there_ns).wrapping_add_signed(theta_ns(at_s));
        Reading { origin_ns, receive_ns, transmit_ns: receive_ns, destination_ns }
    }

    #[test]
    fn one_reading_gives_half_a_round_trip() {
        let fit = fit(&[reading(10.0, 30_000, 50_000, |_| 7_000_000_000)], 10_000_040_000).unwrap();
        assert!((fit.half_width_ns - 40_000.0).abs() < 50.0, "{fit:?}");
        assert!((fit.offset_ns - 6_999_990_000).abs() < 50, "{fit:?}");
    }

    #[test]
    fn limits_of_different_readings_meet() {
        // The first reading had a fast request, the second a fast response.
        let readings = [reading(1.0, 5_000, 900_000, |_| 0), reading(1.002, 900_000, 7_000, |_| 0)];
        let fit = fit(&readings, 1_002_000_000).unwrap();
        assert!(fit.half_width_ns < 6_500.0, "{fit:?}");
        assert!(fit.offset_ns.abs() as f64 <= fit.half_width_ns, "{fit:?}");
    }

    #[test]
    fn a_line_is_followed_where_nothing_was_read() {
        let theta = |at_s: f64| -3_600_000_000_000 + (at_s * 40_000.0) as i64;
        let readings: Vec<Reading> = (0..120).map(|number| reading(f64::from(number), 20_000, 20_000, theta)).collect();
        let fit = fit(&readings, 121_000_000_000).unwrap();
        assert!((fit.slope - 40e-6).abs() < 1e-6, "{fit:?}");
        assert!((fit.offset_ns - theta(121.0)).abs() as f64 <= fit.half_width_ns, "{fit:?}");
        assert!(fit.half_width_ns < 30_000.0, "{fit:?}");
    }

    #[test]
    fn a_loaded_moment_adds_nothing() {
        let quiet: Vec<Reading> = (0..20).map(|number| reading(f64::from(number), 20_000, 20_000, |_| 0)).collect();
        let mut loaded = quiet.clone();
        loaded.extend((0..20).map(|number| reading(f64::from(number) + 0.5, 20_000, 40_000_000, |_| 0)));
        let [quiet, loaded] = [quiet, loaded].map(|readings| fit(&readings, 19_000_000_000).unwrap());
        assert!((quiet.offset_ns - loaded.offset_ns).abs() < 5 && loaded.half_width_ns <= quiet.half_width_ns + 1.0);
    }

    #[test]
    fn no_line_fits_a_clock_that_jumped() {
        let readings: Vec<Reading> = (0..20)
            .map(|number| reading(f64::from(number), 20_000, 20_000, |at_s| if at_s < 10.0 { 0 } else { 50_000_000 }))
            .collect();
        assert_eq!(fit(&readings, 19_000_000_000), None);
        assert_eq!(fit(&[], 5), None);
    }
}
