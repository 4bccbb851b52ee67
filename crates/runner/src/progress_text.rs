//! The progress of a run as text: lines that are redrawn in place on a terminal, or a line for a log.

use std::time::Duration;

use pubmark_engine::progress::Totals;
use pubmark_report::numbers;

use crate::observer::{LiveInterval, LiveLatency, Phase, RunProgress};
use crate::stream::PhaseWord;

/// Shortest time over which rates are computed.
const RATE_OVER: Duration = Duration::from_secs(1);
/// Width of the progress bar in characters.
const BAR: usize = 20;

/// State of the run so far that the next line needs. Times are nanoseconds of one clock.
#[derive(Default)]
pub struct ProgressText {
    /// Phases that have ended, with their lengths.
    finished: String,
    phase: Option<(Phase, u64)>,
    /// Totals at an earlier time, and the rates that were computed since.
    earlier: Option<(u64, Totals)>,
    rates: Option<Rates>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    sent_per_s: f64,
    delivered_per_s: f64,
}

impl ProgressText {
    /// A phase begins; the one before has ended.
    pub fn begin(&mut self, phase: Phase, now_ns: u64) {
        if let Some((ended, began_ns)) = self.phase.replace((phase, now_ns)) {
            let took = Duration::from_millis((now_ns - began_ns) / 1_000_000);
            self.finished.push_str(&format!("{} ✓ {:.1} s  ", name(ended), took.as_secs_f64()));
        }
        self.earlier = None;
        self.rates = None;
    }

    /// Reads the progress, for the rates.
    pub fn take(&mut self, progress: &RunProgress, now_ns: u64) {
        let totals = &progress.totals;
        let Some((then_ns, then)) = self.earlier else {
            self.earlier = Some((now_ns, *totals));
            return;
        };
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(then_ns));
        if elapsed >= RATE_OVER {
            let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed.as_secs_f64();
            self.rates = Some(Rates {
                sent_per_s: per_s(totals.sent, then.sent),
                delivered_per_s: per_s(totals.delivered, then.delivered),
            });
            self.earlier = Some((now_ns, *totals));
        }
    }

    /// The lines for a terminal: all phases with a bar for the current one, its figures, and latencies if there are
    /// some.
    pub fn redrawn(&self, progress: &RunProgress) -> String {
        let RunProgress { phase, elapsed, ref latency, .. } = *progress;
        format!(
            "  phases    {}{} {}\n            {}{}",
            self.finished,
            name(phase),
            bar_text(elapsed, whole_tenths(progress.length)),
            figures(progress, self.rates),
            latencies(latency.as_ref()).map(|words| format!("\n            {words}")).unwrap_or_default(),
        )
    }

    /// A line for a log.
    pub fn line(&self, progress: &RunProgress) -> String {
        let RunProgress { phase, elapsed, ref latency, .. } = *progress;
        format!(
            "{} {}{}: {}{}",
            name(phase),
            seconds(Duration::from_secs(elapsed.as_secs())),
            whole_tenths(progress.length).map(|length| format!(" of {}", seconds(length))).unwrap_or_default(),
            figures(progress, self.rates),
            latencies(latency.as_ref()).map(|words| format!("   {words}")).unwrap_or_default(),
        )
    }
}

fn name(phase: Phase) -> &'static str {
    PhaseWord::from(phase).as_str()
}

/// Rounds a length to tenths of a second: a phase begins a few milliseconds after its planned start.
fn whole_tenths(length: Option<Duration>) -> Option<Duration> {
    length.map(|length| Duration::from_millis((length.as_millis() as u64 + 50) / 100 * 100))
}

fn figures(progress: &RunProgress, rates: Option<Rates>) -> String {
    let totals = &progress.totals;
    // Known losses so far; nothing is shown while the number is unknown.
    let known_lost = |before: &str, behind: &str| match progress.lost {
        None | Some(0) => String::new(),
        Some(lost) => format!("{before}{lost}{behind}"),
    };
    match progress.phase {
        Phase::Subscribe => format!("{} subscribed, {} failing", totals.subscribed, totals.failing),
        Phase::Connect => format!("{} connected, {} failing", totals.online, totals.failing),
        Phase::Measure if !progress.are_counts_current => "nodes send no counts while they measure".to_owned(),
        Phase::Drain if !progress.are_counts_current => "waiting for the counts of all nodes".to_owned(),
        Phase::WarmUp | Phase::Measure => match rates {
            Some(rates) => format!(
                "sent {:.0}/s   delivered {:.0}/s   waiting {}{}",
                rates.sent_per_s,
                rates.delivered_per_s,
                totals.backlog,
                known_lost("   lost ", "")
            ),
            None => {
                let lost = known_lost("   lost ", "");
                format!("sent {}   delivered {}   waiting {}{lost}", totals.sent, totals.delivered, totals.backlog)
            }
        },
        Phase::Drain => {
            let missing = totals.expected.saturating_sub(totals.delivered);
            let lost = known_lost(" (", " lost)");
            format!("{missing} not yet delivered{lost}, {} not yet sent", totals.backlog)
        }
        Phase::Collect => "closing the message accounting".to_owned(),
    }
}

/// Percentiles of the last seconds; a percentile without enough samples is left out, and `None` if both are.
fn latencies(latency: Option<&LiveLatency>) -> Option<String> {
    let one = |(name, interval): (&str, Option<LiveInterval>)| {
        let LiveInterval { lower_ns, upper_ns, over_s } = interval?;
        let over = if over_s > 1 { format!(" (last {over_s} s)") } else { String::new() };
        Some(format!("{name} {} ms{over}", numbers::bounds([lower_ns, upper_ns].map(|ns| Some(ns as f64 / 1e6)))))
    };
    let latency = latency?;
    let both = [("p50", latency.p50), ("p99", latency.p99)];
    let words: Vec<String> = both.into_iter().filter_map(one).collect();
    (!words.is_empty()).then(|| words.join("   "))
}

fn bar_text(elapsed: Duration, length: Option<Duration>) -> String {
    let Some(length) = length.filter(|length| !length.is_zero()) else {
        return format!("{:.1} s", elapsed.as_secs_f64());
    };
    let share = (elapsed.as_secs_f64() / length.as_secs_f64()).clamp(0.0, 1.0);
    let full = (share * BAR as f64).round() as usize;
    format!("{}{} {:.0}/{}", "━".repeat(full), "─".repeat(BAR - full), elapsed.as_secs_f64(), seconds(length))
}

/// A time in seconds for a sentence: `10 s`, `2.5 s`.
pub fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::LiveUsage;

    fn progress(phase: Phase, totals: Totals) -> RunProgress {
        RunProgress {
            phase,
            elapsed: Duration::from_millis(5_900),
            length: Some(Duration::from_millis(9_996)),
            totals,
            are_counts_current: true,
            lost: Some(0),
            latency: None,
            window_latency: None,
            usage: LiveUsage::default(),
        }
    }

    #[test]
    fn the_bar_fills_with_the_time() {
        let length = Some(Duration::from_secs(10));
        assert_eq!(bar_text(Duration::ZERO, length), format!("{} 0/10 s", "─".repeat(BAR)));
        assert_eq!(bar_text(Duration::from_secs(5), length), format!("{}{} 5/10 s", "━".repeat(10), "─".repeat(10)));
        assert_eq!(bar_text(Duration::from_secs(20), length), format!("{} 20/10 s", "━".repeat(BAR)));
    }

    #[test]
    fn rates_are_shown_once_they_are_known() {
        let totals = Totals { sent: 10, delivered: 9, backlog: 1, expected: 12, ..Totals::default() };
        let mut text = ProgressText::default();
        text.begin(Phase::Measure, 0);
        text.take(&progress(Phase::Measure, totals), 0);
        let line = text.line(&progress(Phase::Measure, totals));
        assert_eq!(line, "measure 5 s of 10 s: sent 10   delivered 9   waiting 1");
        let later = progress(Phase::Measure, Totals { sent: 210, delivered: 109, ..totals });
        text.take(&later, 500_000_000);
        assert!(text.line(&later).contains("sent 210 "), "half a second is too short for a rate");
        text.take(&later, 2_000_000_000);
        assert_eq!(text.line(&later), "measure 5 s of 10 s: sent 100/s   delivered 50/s   waiting 1");
        let lossy = RunProgress { lost: Some(2), ..later.clone() };
        assert!(text.line(&lossy).ends_with("waiting 1   lost 2"), "{}", text.line(&lossy));
        let elsewhere = RunProgress { are_counts_current: false, lost: None, ..later };
        assert_eq!(text.line(&elsewhere), "measure 5 s of 10 s: nodes send no counts while they measure");
        text.begin(Phase::Drain, 3_000_000_000);
        let lossy = text.line(&RunProgress { lost: Some(2), ..progress(Phase::Drain, totals) });
        assert!(lossy.ends_with("3 not yet delivered (2 lost), 1 not yet sent"), "{lossy}");
        let old = RunProgress { are_counts_current: false, lost: None, ..progress(Phase::Drain, totals) };
        assert!(text.line(&old).ends_with(": waiting for the counts of all nodes"), "{}", text.line(&old));
        let drain = text.redrawn(&progress(Phase::Drain, totals));
        assert!(drain.starts_with("  phases    measure ✓ 3.0 s  drain ━"), "{drain}");
        assert!(drain.ends_with("\n            3 not yet delivered, 1 not yet sent"), "{drain}");
    }

    #[test]
    fn percentiles_of_the_last_seconds_are_shown_as_far_as_they_are_known() {
        let p50 = Some(LiveInterval { lower_ns: 110_000, upper_ns: 168_000, over_s: 1 });
        let p99 = Some(LiveInterval { lower_ns: 200_000, upper_ns: 340_000, over_s: 7 });
        let latency = LiveLatency { samples: 50, p50, p99 };
        let words = |latency| latencies(Some(&latency));
        assert_eq!(words(latency).as_deref(), Some("p50 0.110–0.168 ms   p99 0.200–0.340 ms (last 7 s)"));
        let without = LiveLatency { p50: None, ..latency };
        assert_eq!(words(without).as_deref(), Some("p99 0.200–0.340 ms (last 7 s)"));
        assert_eq!(words(LiveLatency::default()), None);
    }

    #[test]
    fn seconds_have_no_digits_that_say_nothing() {
        assert_eq!(seconds(Duration::from_millis(2_500)), "2.5 s");
        assert_eq!(seconds(Duration::from_secs(10)), "10 s");
    }
}
