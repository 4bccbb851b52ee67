//! Live progress of a run: redrawn in place on a terminal, a line every 10 s in a log.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pubmark_engine::progress::Totals;
use pubmark_experiment::experiment::pace::seconds;
use pubmark_protocol::clock;
use pubmark_report::numbers;
use pubmark_runner::stream::PhaseWord;
use pubmark_runner::{LiveInterval, LiveLatency, Phase, RunEvent, RunObserver, RunProgress};

use crate::printer::Printer;

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(200);
/// Time between two lines where nothing can be redrawn.
const LINE: Duration = Duration::from_secs(10);
/// Rates are taken over at least this time.
const RATE_OVER: Duration = Duration::from_secs(1);
/// Characters of the bar.
const BAR: usize = 20;

fn name(phase: Phase) -> &'static str {
    PhaseWord::from(phase).as_str()
}

/// Shows how a run goes on.
pub struct Progress<'a> {
    printer: &'a Printer,
    bar: Option<ProgressBar>,
    finished: String,
    phase: Option<(Phase, u64)>,
    shown_ns: u64,
    /// Totals at an earlier time, and the rates found since.
    earlier: Option<(u64, Totals)>,
    rates: Option<Rates>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    sent_per_s: f64,
    delivered_per_s: f64,
}

impl RunObserver for Progress<'_> {
    /// A phase begins; the one before has ended.
    fn phase(&mut self, phase: Phase) {
        let now_ns = clock::monotonic_ns();
        if let Some((ended, began_ns)) = self.phase.replace((phase, now_ns)) {
            let took = Duration::from_millis((now_ns - began_ns) / 1_000_000);
            self.finished.push_str(&format!("{} ✓ {:.1} s  ", name(ended), took.as_secs_f64()));
        }
        self.earlier = None;
        self.rates = None;
    }

    /// How it goes. Called often; draws as often as it can be read.
    fn progress(&mut self, progress: &RunProgress) {
        let RunProgress { phase, elapsed, length, totals, lost, latency, .. } = *progress;
        // A phase begins a few milliseconds after it was planned to.
        let length = length.map(|length| Duration::from_millis((length.as_millis() as u64 + 50) / 100 * 100));
        let now_ns = clock::monotonic_ns();
        self.take_rates(now_ns, &totals);
        let every = if self.bar.is_some() { REDRAW } else { LINE };
        if now_ns - self.shown_ns < every.as_nanos() as u64 {
            return;
        }
        self.shown_ns = now_ns;
        let figures = figures(phase, &totals, lost.unwrap_or(0), self.rates);
        let latencies = latency.as_ref().map(latencies).filter(|words| !words.is_empty());
        match &self.bar {
            Some(bar) => bar.set_message(format!(
                "  phases    {}{} {}\n            {figures}{}",
                self.finished,
                name(phase),
                bar_text(elapsed, length),
                latencies.map(|words| format!("\n            {words}")).unwrap_or_default(),
            )),
            None => {
                let of = length.map(|length| format!(" of {}", seconds(length))).unwrap_or_default();
                let elapsed = Duration::from_secs(elapsed.as_secs());
                self.printer.note(&format!(
                    "{} {}{of}: {figures}{}",
                    name(phase),
                    seconds(elapsed),
                    latencies.map(|words| format!("   {words}")).unwrap_or_default(),
                ));
            }
        }
    }

    fn event(&mut self, event: &RunEvent) {
        self.printer.note(&event.to_string());
    }
}

impl<'a> Progress<'a> {
    /// Shows nothing before the first phase.
    pub fn new(printer: &'a Printer) -> Progress<'a> {
        let bar = printer.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // A template without keys that could be wrong: the text is ours.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        let shown_ns = clock::monotonic_ns();
        Progress { printer, bar, finished: String::new(), phase: None, shown_ns, earlier: None, rates: None }
    }

    /// Takes the drawing away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn take_rates(&mut self, now_ns: u64, totals: &Totals) {
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
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn figures(phase: Phase, totals: &Totals, lost: u64, rates: Option<Rates>) -> String {
    // As far as it is known by now: nothing is said of it before something is.
    let known_lost = |before: &str, behind: &str| match lost {
        0 => String::new(),
        lost => format!("{before}{lost}{behind}"),
    };
    match phase {
        Phase::Subscribe => format!("{} subscribed, {} failing", totals.subscribed, totals.failing),
        Phase::Connect => format!("{} connected, {} failing", totals.online, totals.failing),
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

/// Percentiles of the last seconds; one without enough samples is left out.
fn latencies(latency: &LiveLatency) -> String {
    let one = |(name, interval): (&str, Option<LiveInterval>)| {
        let LiveInterval { lower_ns, upper_ns, over_s } = interval?;
        let over = if over_s > 1 { format!(" (last {over_s} s)") } else { String::new() };
        Some(format!("{name} {} ms{over}", numbers::bounds([lower_ns, upper_ns].map(|ns| Some(ns as f64 / 1e6)))))
    };
    let both = [("p50", latency.p50), ("p99", latency.p99)];
    both.into_iter().filter_map(one).collect::<Vec<_>>().join("   ")
}

fn bar_text(elapsed: Duration, length: Option<Duration>) -> String {
    let Some(length) = length.filter(|length| !length.is_zero()) else {
        return format!("{:.1} s", elapsed.as_secs_f64());
    };
    let share = (elapsed.as_secs_f64() / length.as_secs_f64()).clamp(0.0, 1.0);
    let full = (share * BAR as f64).round() as usize;
    format!("{}{} {:.0}/{}", "━".repeat(full), "─".repeat(BAR - full), elapsed.as_secs_f64(), seconds(length))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(figures(Phase::Measure, &totals, 0, None), "sent 10   delivered 9   waiting 1");
        let rates = Some(Rates { sent_per_s: 99.6, delivered_per_s: 50.0 });
        assert_eq!(figures(Phase::Measure, &totals, 0, rates), "sent 100/s   delivered 50/s   waiting 1");
        assert_eq!(figures(Phase::Drain, &totals, 0, None), "3 not yet delivered, 1 not yet sent");
        assert_eq!(figures(Phase::Measure, &totals, 2, rates), "sent 100/s   delivered 50/s   waiting 1   lost 2");
        assert_eq!(figures(Phase::Drain, &totals, 2, None), "3 not yet delivered (2 lost), 1 not yet sent");
    }

    #[test]
    fn percentiles_of_the_last_seconds_are_shown_as_far_as_they_are_known() {
        let p50 = Some(LiveInterval { lower_ns: 110_000, upper_ns: 168_000, over_s: 1 });
        let p99 = Some(LiveInterval { lower_ns: 200_000, upper_ns: 340_000, over_s: 7 });
        let latency = LiveLatency { samples: 50, p50, p99 };
        assert_eq!(latencies(&latency), "p50 0.110–0.168 ms   p99 0.200–0.340 ms (last 7 s)");
        assert_eq!(latencies(&LiveLatency { p50: None, ..latency }), "p99 0.200–0.340 ms (last 7 s)");
        assert_eq!(latencies(&LiveLatency::default()), "");
    }
}
