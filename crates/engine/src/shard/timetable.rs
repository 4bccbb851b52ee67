//! The schedule of a shard: the rules of its groups, the measured window, the scheduled tasks.

use std::sync::Arc;

use pubmark_model::schedule::Rules;
use pubmark_model::workload::Workload;

use super::timers::{Task, Timers};
use super::window::Window;
use crate::progress::Progress;

/// The timetable of a shard.
pub struct Timetable {
    /// The devices and subscribers.
    pub workload: Arc<Workload>,
    /// The measured window.
    pub window: Window,
    /// Scheduled tasks.
    pub timers: Timers,
    /// Publishing has ended: only messages that were due before are still sent.
    pub closed: bool,
    rules: Arc<[Rules]>,
    warmup_ns: u64,
    duration_ns: u64,
    /// Provides the epoch that all shards share.
    progress: Arc<Progress>,
}

impl Timetable {
    /// A timetable whose window is not known yet.
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

    /// Sets the measured window.
    pub fn fix_window(&mut self, start_ns: u64) {
        self.window = Window::new(start_ns, self.warmup_ns, self.duration_ns);
    }

    /// Schedules the tasks at the start and end of the window.
    pub fn plan_window(&mut self) {
        self.timers.add(self.window.absolute(0), Task::WindowStart);
        self.timers.add(self.window.closed_ns(), Task::WindowEnd);
    }

    /// Ends the schedules at an instant. Messages that were due before are still sent.
    pub fn close(&mut self, at_ns: u64) {
        self.closed = true;
        self.window.close(at_ns);
    }

    /// Publishing has ended, and a task that was due before has not been executed yet.
    pub fn is_behind(&self) -> bool {
        self.closed && self.timers.next_ns().is_some_and(|at_ns| at_ns < self.window.closed_ns())
    }

    /// Rules of a group.
    pub fn rules(&self, group: u16) -> &Rules {
        &self.rules[usize::from(group)]
    }

    /// QoS level of a device group.
    pub fn level(&self, group: u16) -> usize {
        usize::from(self.workload.devices[usize::from(group)].qos.level())
    }

    /// Is a time, relative to the window's start, within the window?
    pub fn is_within(&self, relative_ns: i64) -> bool {
        relative_ns < self.duration_ns as i64
    }

    /// Adds a task at a time relative to the window's start.
    pub fn plan(&mut self, relative_ns: i64, task: Task) {
        self.timers.add(self.window.absolute(relative_ns), task);
    }

    /// Epoch of a message that is passed to the adapter now.
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
