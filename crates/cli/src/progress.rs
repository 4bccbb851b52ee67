//! Live progress of a run: redrawn in place on a terminal, a line every 10 s in a log.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pubmark_protocol::clock;
use pubmark_runner::progress_text::ProgressText;
use pubmark_runner::{Phase, RunEvent, RunObserver, RunProgress};

use crate::printer::Printer;

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(200);
/// Time between two lines if the progress cannot be redrawn in place.
const LINE: Duration = Duration::from_secs(10);

/// Shows the progress of a run.
pub struct Progress<'a> {
    printer: &'a Printer,
    bar: Option<ProgressBar>,
    text: ProgressText,
    shown_ns: u64,
}

impl RunObserver for Progress<'_> {
    /// A phase begins, which ends the previous one.
    fn phase(&mut self, phase: Phase) {
        self.text.begin(phase, clock::monotonic_ns());
    }

    /// Shows progress. The caller calls it often; this limits how often it draws.
    fn progress(&mut self, progress: &RunProgress) {
        let now_ns = clock::monotonic_ns();
        self.text.take(progress, now_ns);
        let every = if self.bar.is_some() { REDRAW } else { LINE };
        if now_ns - self.shown_ns < every.as_nanos() as u64 {
            return;
        }
        self.shown_ns = now_ns;
        match &self.bar {
            Some(bar) => bar.set_message(self.text.redrawn(progress)),
            None => self.printer.note(&self.text.line(progress)),
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
            // The template is a constant, so that an error is impossible.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { printer, bar, text: ProgressText::default(), shown_ns: clock::monotonic_ns() }
    }
}

impl Drop for Progress<'_> {
    /// Removes the progress from the terminal.
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
