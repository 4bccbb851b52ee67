//! The occurrences of faults in a run, each with its time. The times depend only on the seed and the faults, never on the
//! system.

use std::time::Duration;

use super::{Fault, FaultKind, Timing};
use crate::random::Stream;

/// Purpose of the draws for times of faults.
const PURPOSE: u64 = 0xfa17;
/// Maximum number of fault occurrences in one run: more are a load, not faults.
pub const MOST_OCCURRENCES: usize = 1_000;

/// Number of seeds that are tried to find one that draws a fault.
const SEEDS_TRIED: u64 = 100;

/// A fault at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// Index of the fault in the workload.
    pub fault: usize,
    /// What is broken.
    pub kind: FaultKind,
    /// Time since the start of the measured window, ns.
    pub at_ns: u64,
    /// Length, ns; `None` if the fault has no end.
    pub length_ns: Option<u64>,
}

impl Occurrence {
    /// Time of the end, ns; the start if the fault has no end.
    pub fn end_ns(&self) -> u64 {
        self.at_ns.saturating_add(self.length_ns.unwrap_or(0))
    }
}

/// All faults of a run in order of time.
///
/// # Errors
/// Faults overlap, do not fit into a window of this length, are too many, or none is drawn. The error is a sentence.
pub fn occurrences(faults: &[Fault], seed: u64, window: Duration) -> Result<Vec<Occurrence>, String> {
    let window_ns = nanoseconds(window);
    let mut found = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        match fault.timing {
            Timing::Once { at, length } => {
                let length_ns = length.map(nanoseconds);
                found.push(Occurrence { fault: number, kind: fault.kind, at_ns: nanoseconds(at), length_ns });
            }
            Timing::Random { mttf, mttr } => {
                if faults.len() > 1 {
                    let other =
                        "faults by `mttf` stand alone: beside others, a loss could not be assigned to one of them";
                    return Err(other.to_owned());
                }
                found.extend(drawn(number, fault.kind, seed, (mttf, mttr), window_ns));
                if found.is_empty() {
                    return Err(none_drawn(fault.kind, seed, (mttf, mttr), window_ns));
                }
            }
        }
        if found.len() > MOST_OCCURRENCES {
            return Err(format!("a run has {MOST_OCCURRENCES} faults at most; make `mttf` longer"));
        }
    }
    found.sort_by_key(|occurrence| (occurrence.at_ns, occurrence.fault));
    check(&found, window_ns)?;
    Ok(found)
}

/// Alternating failures and repairs, as long as they end within the window; one more than the maximum if there are too
/// many.
fn drawn(
    fault: usize,
    kind: FaultKind,
    seed: u64,
    (mttf, mttr): (Duration, Duration),
    window_ns: u64,
) -> Vec<Occurrence> {
    let stream = Stream::new(seed, PURPOSE);
    let draw = |index: u64, mean: Duration| (stream.exponential(index) * mean.as_nanos() as f64).max(1.0) as u64;
    let mut now_ns = 0_u64;
    let mut found = Vec::new();
    for index in 0..=MOST_OCCURRENCES as u64 {
        let at_ns = now_ns.saturating_add(draw(2 * index, mttf));
        let length_ns = draw(2 * index + 1, mttr);
        now_ns = at_ns.saturating_add(length_ns);
        if now_ns >= window_ns {
            break;
        }
        found.push(Occurrence { fault, kind, at_ns, length_ns: Some(length_ns) });
    }
    found
}

/// Error for a run in which no fault is drawn: its result would look as if the system had tolerated faults.
fn none_drawn(kind: FaultKind, seed: u64, means: (Duration, Duration), window_ns: u64) -> String {
    let first = drawn(0, kind, seed, means, u64::MAX).first().map_or(window_ns, Occurrence::end_ns);
    let has_some = |other: &u64| !drawn(0, kind, *other, means, window_ns).is_empty();
    let another = (1..=SEEDS_TRIED).map(|step| seed.wrapping_add(step)).find(has_some);
    let another = another.map_or_else(String::new, |other| format!(", or use seed {other}, which has such a fault"));
    format!(
        "`{}` by `mttf` would not happen in this run: with seed {seed} the first such fault ends {} after the start of the measured \
         window, and the window lasts {}; measure longer{another}",
        kind.as_str(),
        seconds(first),
        seconds(window_ns)
    )
}

fn check(found: &[Occurrence], window_ns: u64) -> Result<(), String> {
    for pair in found.windows(2) {
        let [one, other] = pair else { continue };
        if one.end_ns() > other.at_ns || one.at_ns == other.at_ns {
            return Err(format!(
                "`{}` at {} begins before `{}` at {} is over: one fault at a time, or a loss could not be assigned to one of them",
                other.kind.as_str(),
                seconds(other.at_ns),
                one.kind.as_str(),
                seconds(one.at_ns)
            ));
        }
    }
    match found.iter().find(|occurrence| occurrence.end_ns() >= window_ns) {
        Some(late) => Err(format!(
            "`{}` at {} ends {} after the start of the measured window, which is {} long: what follows a fault is what is \
             measured",
            late.kind.as_str(),
            seconds(late.at_ns),
            seconds(late.end_ns()),
            seconds(window_ns)
        )),
        None => Ok(()),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn seconds(ns: u64) -> String {
    let text = format!("{:.3}", ns as f64 / 1e9);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn once(kind: FaultKind, at_s: u64, length_s: Option<u64>) -> Fault {
        let timing = Timing::Once { at: Duration::from_secs(at_s), length: length_s.map(Duration::from_secs) };
        Fault { kind, timing, share: 1.0, group: None, link: None, server: None }
    }

    fn random(mttf_s: u64, mttr_s: u64) -> Fault {
        let timing = Timing::Random { mttf: Duration::from_secs(mttf_s), mttr: Duration::from_secs(mttr_s) };
        Fault { timing, ..once(FaultKind::Reset, 0, None) }
    }

    #[test]
    fn faults_stand_in_the_order_of_their_times() {
        let faults = [once(FaultKind::Pause, 30, Some(2)), once(FaultKind::Kill, 10, None)];
        let found = occurrences(&faults, 1, MINUTE).unwrap();
        let times: Vec<_> = found.iter().map(|one| (one.fault, one.at_ns, one.length_ns)).collect();
        assert_eq!(times, [(1, 10_000_000_000, None), (0, 30_000_000_000, Some(2_000_000_000))]);
    }

    #[test]
    fn faults_that_overlap_or_do_not_fit_are_refused() {
        let two = [once(FaultKind::Pause, 30, Some(5)), once(FaultKind::Kill, 33, None)];
        assert!(occurrences(&two, 1, MINUTE).unwrap_err().contains("`kill` at 33 s begins before `pause` at 30 s"));
        let late = [once(FaultKind::Pause, 58, Some(5))];
        assert!(occurrences(&late, 1, MINUTE).unwrap_err().contains("ends 63 s after"));
        let mixed = [random(30, 5), once(FaultKind::Kill, 33, None)];
        assert!(occurrences(&mixed, 1, MINUTE).unwrap_err().contains("stand alone"));
    }

    #[test]
    fn random_faults_have_the_requested_means_and_depend_only_on_the_seed() {
        let faults = [random(30, 5)];
        let long = Duration::from_secs(30_000);
        let found = occurrences(&faults, 7, long).unwrap();
        assert_eq!(found, occurrences(&faults, 7, long).unwrap());
        assert_ne!(found, occurrences(&faults, 8, long).unwrap());
        // A shorter window has the same faults, except those that end after it.
        let short = occurrences(&faults, 7, Duration::from_secs(300)).unwrap();
        assert_eq!(found[..short.len()], short[..]);
        assert!(found.windows(2).all(|pair| pair[0].end_ns() <= pair[1].at_ns));
        // 30,000 s in cycles of 35 s on average: 857 ± 5 standard deviations of a renewal process (√857 · 30.4 / 35 = 25).
        assert!((730..=985).contains(&found.len()), "{}", found.len());
        let mean_s = found.iter().filter_map(|one| one.length_ns).sum::<u64>() as f64 / found.len() as f64 / 1e9;
        assert!((4.1..=5.9).contains(&mean_s), "{mean_s}");
    }

    /// With this seed the first fault ends after 74.758 s, so a run of one minute would have no fault.
    #[test]
    fn a_window_without_a_drawn_fault_is_refused_with_a_seed_that_has_some() {
        let why = occurrences(&[random(30, 5)], 1, MINUTE).unwrap_err();
        assert!(
            why.contains("with seed 1 the first such fault ends 74.758 s after")
                && why.ends_with("use seed 2, which has such a fault"),
            "{why}"
        );
        assert!(!occurrences(&[random(30, 5)], 2, MINUTE).unwrap().is_empty());
    }

    #[test]
    fn too_many_are_refused() {
        assert!(occurrences(&[random(1, 1)], 1, Duration::from_secs(100_000)).unwrap_err().contains("1000 faults"));
    }
}
