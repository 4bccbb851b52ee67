//! What a shard has to do when: the rules of its groups, the measured window, the tasks to come.

use std::sync::Arc;

use pubmark_model::schedule::Rules;
use pubmark_model::workload::Workload;

use super::timers::{Task, Timers};
use super::window::Window;
use crate::progress::Progress;

/// The timetable of a shard.
pub struct Timetable {
    /// Who sends and receives.
    pub workload: Arc<Workload>,
    /// The measured window.
    pub window: Window,
    /// Tasks to come.
    pub timers: Timers,
    /// Publishing is over: only what was due before is still sent.
    pub closed: bool,
    rules: Arc<[Rules]>,
    warmup_ns: u64,
    duration_ns: u64,
    /// Has the epoch that all shards share.
    progress: Arc<Progress>,
}

impl Timetable {
    /// With a window that is not known yet.
    pub fn new(
        workload: Arc<Workload>,
        rules: Arc<[Rules]>,
        warmup_ns: u64,
        duration_ns: u64,
        progress: Arc<Progress>,
    ) -> Timetable {
        let (window, timers) = (Window::NONE, Timers::default());
        Timetable { workload, window, timers, closed: false, rules, warmup_ns, duration_ns, progress }
    }

    /// Fixes the measured window.
    pub fn fix_window(&mut self, start_ns: u64) {
        self.window = Window::new(start_ns, self.warmup_ns, self.duration_ns);
    }

    /// Plans what happens at the window's edges.
    pub fn plan_window(&mut self) {
        self.timers.add(self.window.absolute(0), Task::WindowStart);
        self.timers.add(self.window.closed_ns(), Task::WindowEnd);
    }

    /// Ends the schedules at an instant; what was due before it is still sent.
    pub fn close(&mut self, at_ns: u64) {
        self.closed = true;
        self.window.close(at_ns);
    }

    /// Publishing is over, and something that was due before has not been done yet.
    pub fn is_behind(&self) -> bool {
        self.closed && self.timers.next_ns().is_some_and(|at_ns| at_ns < self.window.closed_ns())
    }

    /// Rules of a group.
    pub fn rules(&self, group: u16) -> &Rules {
        &self.rules[usize::from(group)]
    }

    /// Delivery level of a group of devices.
    pub fn level(&self, group: u16) -> usize {
        usize::from(self.workload.devices[usize::from(group)].qos.level())
    }

    /// Is a time since the window's start within the window's length?
    pub fn is_within(&self, relative_ns: i64) -> bool {
        relative_ns < self.duration_ns as i64
    }

    /// Adds a task at a time since the window's start.
    pub fn plan(&mut self, relative_ns: i64, task: Task) {
        self.timers.add(self.window.absolute(relative_ns), task);
    }

    /// Epoch of a message that is handed over now.
    pub fn epoch(&self, now_ns: u64) -> u32 {
        self.progress.epoch(|| self.window.since_schedule(now_ns))
    }

    /// First epoch of an absence that begins now.
    pub fn absence_begins(&self, now_ns: u64) -> u32 {
        self.progress.absence_begins(self.window.since_schedule(now_ns))
    }

    /// First epoch after an absence that ends now.
    pub fn absence_ends(&self, now_ns: u64) -> u32 {
        self.progress.absence_ends(self.window.since_schedule(now_ns))
    }
}
