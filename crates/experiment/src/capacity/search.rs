//! The search itself: chooses the next load to try, and decides when the capacity is known. It has no side effects:
//! outcomes are its only input.
//!
//! Loads are factors of the workload as written. First the factor is doubled (or halved) until one load holds and one
//! does not; then the gap is halved on a logarithmic scale until it is narrower than the requested precision. A miss
//! may be caused by noise of the machine. Therefore a load counts as failed only if it missed more often than it held
//! over up to three tries, or if it missed by a large margin; and the load that is reported as the result has held
//! twice. A generator that kept up at a higher load is not the limit at this one: its misses here are caused by the
//! machine, and the load is tried a few times more.

use pubmark_record::capacity::{CapacityLimit, TrialOutcome};

/// Largest number of tries of one load: two equal outcomes decide.
const MOST_TRIES: u32 = 3;
/// Number of tries in which the generator is late, at a load below one at which it kept up, after which it counts as
/// the limit nevertheless.
const LATE_TOO_OFTEN: u32 = 5;

/// Bounds of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// First factor tried.
    pub first: f64,
    /// Smallest factor worth trying.
    pub least: f64,
    /// Largest factor allowed.
    pub most: f64,
    /// The search ends when the failed load is at most this many times the held one, above 1.
    pub precision: f64,
    /// Factors are whole numbers (devices cannot be split).
    pub whole: bool,
}

/// How certain an outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// The load missed by so large a margin that another try would not change the outcome.
    pub is_clear: bool,
}

/// Tries of one load.
#[derive(Clone, Copy, Debug)]
struct Load {
    factor: f64,
    held: u32,
    /// Outcomes other than held that the system caused.
    missed: u32,
    /// Outcomes that show nothing of the system: the generator caused them, or an objective was not measured.
    limited: u32,
    /// The generator kept up in one of its tries.
    was_driven: bool,
    is_clear: bool,
}

impl Load {
    fn new(factor: f64) -> Load {
        Load { factor, held: 0, missed: 0, limited: 0, was_driven: false, is_clear: false }
    }

    /// Whether the system alone failed it. One of two misses may be the generator's: then nobody knows.
    fn is_systems(&self) -> bool {
        self.is_clear || self.missed >= 2
    }

    fn tries(&self) -> u32 {
        self.held + self.missed + self.limited
    }
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    bounds: Bounds,
    loads: Vec<Load>,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchResult {
    /// Highest factor that held below every one that failed.
    pub holds: Option<f64>,
    /// Lowest factor that failed.
    pub fails: Option<f64>,
    /// What set the limit.
    pub limit: CapacityLimit,
}

impl Search {
    /// A search without any trial.
    pub fn new(bounds: Bounds) -> Search {
        Search { bounds, loads: Vec::new() }
    }

    /// The next load to try, with the number of the try at this load from 1; `None` when the capacity is known.
    pub fn next(&self) -> Option<(f64, u32)> {
        let factor = self.next_factor()?;
        let tries = self.find(factor).map_or(0, Load::tries);
        Some((factor, tries + 1))
    }

    fn next_factor(&self) -> Option<f64> {
        let bounds = &self.bounds;
        // A load that has neither held nor failed yet is tried again.
        if let Some(open) = self.loads.iter().find(|load| !self.has_held(load) && !self.has_failed(load)) {
            return Some(open.factor);
        }
        let (holds, fails) = (self.holds(), self.fails());
        let (holds, fails) = match (holds, fails) {
            (None, None) => return Some(self.rounded(bounds.first)),
            (Some(holds), None) => {
                let next = self.rounded((holds * 2.0).min(bounds.most));
                return if next > holds { Some(next) } else { self.unconfirmed(holds) };
            }
            (None, Some(fails)) => {
                let next = self.rounded((fails / 2.0).max(bounds.least));
                return (next < fails).then_some(next);
            }
            (Some(holds), Some(fails)) => (holds, fails),
        };
        let middle = self.rounded((holds * fails).sqrt());
        if fails / holds > bounds.precision && middle > holds && middle < fails {
            return Some(middle);
        }
        self.unconfirmed(holds)
    }

    fn unconfirmed(&self, factor: f64) -> Option<f64> {
        let load = self.find(factor)?;
        let counted = load.held + self.misses(load);
        (!self.is_confirmed(load) && counted < MOST_TRIES).then_some(factor)
    }

    /// Enters the outcome for the load that [`Search::next`] returned.
    pub fn add_verdict(&mut self, factor: f64, verdict: Verdict) {
        let index = match self.loads.iter().position(|load| load.factor == factor) {
            Some(index) => index,
            None => {
                self.loads.push(Load::new(factor));
                self.loads.len() - 1
            }
        };
        let load = &mut self.loads[index];
        // If the system failed, the trial gives no information about the generator.
        load.was_driven |= matches!(verdict.outcome, TrialOutcome::Held | TrialOutcome::Missed);
        match verdict.outcome {
            TrialOutcome::Held => {
                load.held += 1;
                return;
            }
            TrialOutcome::GeneratorLimited => load.limited += 1,
            TrialOutcome::Missed | TrialOutcome::Failed => load.missed += 1,
        }
        load.is_clear |= verdict.is_clear && load.held == 0;
    }

    /// The current result; `is_out_of_time` if the search was stopped early.
    pub fn found(&self, is_out_of_time: bool) -> SearchResult {
        let (holds, fails) = (self.holds(), self.fails());
        let limit = match (self.lowest_failed(), holds) {
            _ if is_out_of_time => CapacityLimit::Time,
            (Some(load), _) if !load.is_systems() => CapacityLimit::Generator,
            (Some(_), Some(_)) => CapacityLimit::System,
            (None, Some(_)) => CapacityLimit::Range,
            (_, None) => CapacityLimit::NothingHeld,
        };
        SearchResult { holds, fails, limit }
    }

    /// Whether the generator was late at a load although it kept up at a higher one.
    fn is_excused(&self, load: &Load) -> bool {
        let was_driven_above = || self.loads.iter().any(|other| other.factor > load.factor && other.was_driven);
        load.limited < LATE_TOO_OFTEN && was_driven_above()
    }

    /// Tries that count against a load.
    fn misses(&self, load: &Load) -> u32 {
        if self.is_excused(load) { load.missed } else { load.missed + load.limited }
    }

    fn has_failed(&self, load: &Load) -> bool {
        load.is_clear || self.misses(load) >= 2
    }

    /// Sufficient to continue from; the result itself must hold twice.
    fn has_held(&self, load: &Load) -> bool {
        !self.has_failed(load) && load.held > self.misses(load)
    }

    fn is_confirmed(&self, load: &Load) -> bool {
        !self.has_failed(load) && load.held >= 2
    }

    fn find(&self, factor: f64) -> Option<&Load> {
        self.loads.iter().find(|load| load.factor == factor)
    }

    fn lowest_failed(&self) -> Option<&Load> {
        self.loads.iter().filter(|load| self.has_failed(load)).min_by(|a, b| a.factor.total_cmp(&b.factor))
    }

    fn fails(&self) -> Option<f64> {
        self.lowest_failed().map(|load| load.factor)
    }

    /// The highest load that held below the lowest that failed: a higher one that held by chance does not count.
    fn holds(&self) -> Option<f64> {
        let fails = self.fails().unwrap_or(f64::INFINITY);
        let held = self.loads.iter().filter(|load| self.has_held(load) && load.factor < fails);
        held.map(|load| load.factor).max_by(f64::total_cmp)
    }

    fn rounded(&self, factor: f64) -> f64 {
        let factor = factor.clamp(self.bounds.least, self.bounds.most);
        if self.bounds.whole { factor.round().max(1.0) } else { factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { first: 1.0, least: 0.01, most: 1_000.0, precision: 1.03, whole: false };

    const fn plain(outcome: TrialOutcome) -> Verdict {
        Verdict { outcome, is_clear: false }
    }

    /// Searches for a system that holds up to `capacity`; `noise` returns, for the number of a try, whether it misses
    /// nevertheless.
    fn search(bounds: Bounds, capacity: f64, noise: impl Fn(u32) -> bool) -> (SearchResult, u32) {
        let mut search = Search::new(bounds);
        let mut tries = 0;
        while let Some((factor, _)) = search.next() {
            tries += 1;
            assert!(tries < 60, "the search does not end: {search:?}");
            let holds = factor <= capacity && !noise(tries);
            let outcome = if holds { TrialOutcome::Held } else { TrialOutcome::Missed };
            search.add_verdict(factor, Verdict { outcome, is_clear: factor > capacity * 1.2 });
        }
        (search.found(false), tries)
    }

    #[test]
    fn a_capacity_is_found_within_the_precision_in_few_tries() {
        for capacity in [0.02, 0.7, 1.0, 4.99, 137.0, 999.0] {
            let (found, tries) = search(BOUNDS, capacity, |_| false);
            let (holds, fails) = (found.holds.unwrap_or(0.0), found.fails.unwrap_or(0.0));
            assert!(holds <= capacity && fails > capacity && fails / holds <= 1.03, "{capacity}: {found:?}");
            assert!(tries <= 26 && found.limit == CapacityLimit::System, "{capacity}: {tries} tries, {found:?}");
        }
    }

    #[test]
    fn a_miss_by_chance_does_not_move_the_answer() {
        for unlucky in 1..20 {
            let (found, _) = search(BOUNDS, 5.0, |number| number == unlucky);
            let holds = found.holds.unwrap_or(0.0);
            assert!((4.8..=5.0).contains(&holds), "miss in try {unlucky}: {found:?}");
        }
    }

    #[test]
    fn the_end_of_the_range_is_called_so() {
        let (found, _) = search(Bounds { most: 8.0, ..BOUNDS }, 100.0, |_| false);
        assert_eq!(found, SearchResult { holds: Some(8.0), fails: None, limit: CapacityLimit::Range });
        let (found, _) = search(BOUNDS, 0.001, |_| false);
        assert_eq!((found.holds, found.limit), (None, CapacityLimit::NothingHeld));
    }

    #[test]
    fn a_generator_that_cannot_keep_up_is_the_limit() {
        let mut search = Search::new(BOUNDS);
        while let Some((factor, _)) = search.next() {
            let outcome = if factor > 3.0 { TrialOutcome::GeneratorLimited } else { TrialOutcome::Held };
            search.add_verdict(factor, plain(outcome));
        }
        let found = search.found(false);
        assert!(found.limit == CapacityLimit::Generator && found.holds.is_some_and(|holds| holds > 2.9), "{found:?}");
    }

    #[test]
    fn a_load_that_the_system_missed_once_and_the_generator_once_is_no_limit_of_the_system() {
        use TrialOutcome::{GeneratorLimited, Held, Missed};
        for (second, limit) in [
            ([Missed, GeneratorLimited], CapacityLimit::Generator),
            ([GeneratorLimited, Missed], CapacityLimit::Generator),
            ([Missed, Missed], CapacityLimit::System),
        ] {
            let mut search = Search::new(BOUNDS);
            [Held, Held].into_iter().for_each(|outcome| search.add_verdict(1.0, plain(outcome)));
            second.into_iter().for_each(|outcome| search.add_verdict(1.02, plain(outcome)));
            assert_eq!(search.next(), None);
            assert_eq!(search.found(false), SearchResult { holds: Some(1.0), fails: Some(1.02), limit }, "{second:?}");
        }
    }

    /// Searches for a system that holds up to 5; the generator is late in these tries.
    fn disturbed(late: impl Fn(f64, u32) -> bool) -> SearchResult {
        let mut search = Search::new(BOUNDS);
        let mut tries = 0;
        while let Some((factor, _)) = search.next() {
            tries += 1;
            assert!(tries < 60, "the search does not end: {search:?}");
            let outcome = match (late(factor, tries), factor <= 5.0) {
                (true, _) => TrialOutcome::GeneratorLimited,
                (false, true) => TrialOutcome::Held,
                (false, false) => TrialOutcome::Missed,
            };
            search.add_verdict(factor, Verdict { outcome, is_clear: outcome == TrialOutcome::Missed && factor > 6.0 });
        }
        search.found(false)
    }

    #[test]
    fn a_generator_that_kept_up_at_a_higher_load_is_not_the_limit() {
        // Two, three, four tries in a row, wherever they fall.
        for length in 2..=4 {
            for first in 5..20 {
                let found = disturbed(|factor, number| factor < 8.0 && (first..first + length).contains(&number));
                let holds = found.holds.unwrap_or(0.0);
                let is_right = (4.8..=5.0).contains(&holds) && found.limit == CapacityLimit::System;
                assert!(is_right, "{length} tries from {first}: {found:?}");
            }
        }
        // If the generator is late in every try, it counts as the limit nevertheless.
        let found = disturbed(|factor, _| (3.0..8.0).contains(&factor));
        assert_eq!(found.limit, CapacityLimit::Generator, "{found:?}");
    }

    #[test]
    fn whole_factors_end_between_two_neighbours() {
        let (found, _) = search(Bounds { whole: true, least: 1.0, ..BOUNDS }, 6.4, |_| false);
        assert_eq!((found.holds, found.fails), (Some(6.0), Some(7.0)));
    }

    #[test]
    fn a_stopped_search_reports_its_bounds_so_far() {
        let mut search = Search::new(BOUNDS);
        search.add_verdict(1.0, plain(TrialOutcome::Held));
        search.add_verdict(2.0, plain(TrialOutcome::Held));
        let found = search.found(true);
        assert_eq!(found, SearchResult { holds: Some(2.0), fails: None, limit: CapacityLimit::Time });
    }
}
