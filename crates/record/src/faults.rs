//! Faults in a record: what was asked, what was done, what followed from it.

use pubmark_model::fault::FaultKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The faults of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultFigures {
    /// How clients that lose their connection come back.
    pub reconnect: Reconnect,
    /// In order of time.
    pub faults: Vec<FaultRow>,
    /// Messages from the start of the measured window to the first fault, by delivery level.
    pub before: Vec<LevelBooks>,
    /// What was promised, and what was seen, by delivery level.
    pub promises: Vec<Promise>,
    /// More became of connections than is kept: their figures are too low.
    #[serde(default)]
    pub incomplete: bool,
}

/// How clients that lose their connection come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconnect {
    /// Pause before the first try, ms. Each failure doubles it.
    pub first_pause_ms: f64,
    /// The longest pause, ms. Each pause is drawn evenly between half of this and all of it.
    pub longest_pause_ms: f64,
    /// Seconds of silence after which a client asks for a sign of life; 0 for never.
    pub keep_alive_s: u32,
}

/// A fault and what followed. Times are in seconds; those of what followed count from when it was done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRow {
    /// What was done.
    pub kind: FaultKind,
    /// What it was done to, in words.
    pub target: String,
    /// When it was asked for, since the start of the measured window.
    pub asked_at_s: f64,
    /// How long; `null` where it has no end of its own.
    pub asked_for_s: Option<f64>,
    /// When it was done, since the start of the measured window; `null` if it was not.
    pub done_at_s: Option<f64>,
    /// When it was over: the system told to go on or started, links up, connections let through; `null` if it has no end, or
    /// did not come to it.
    pub ended_at_s: Option<f64>,
    /// Why it was not done as asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Until when what follows is counted, since the start of the measured window: the next fault, or the window's end.
    pub until_s: f64,
    /// What became of connections.
    pub connections: FaultConnections,
    /// What became of the latency; `null` where too few messages were due to tell.
    pub latency: Option<FaultLatency>,
    /// Messages handed over from this fault to the next, by delivery level.
    pub levels: Vec<LevelBooks>,
}

/// What became of connections. Times are seconds since the fault was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultConnections {
    /// Up when it was done.
    pub connected: u64,
    /// Of these, the connections that the fault was to break; `null` where it was not aimed at connections.
    pub chosen: Option<u64>,
    /// Lost until the next fault.
    pub lost: u64,
    /// Of these, up again by then, and subscribed.
    pub back: u64,
    /// Of these, of devices that were planned to leave meanwhile.
    pub left: u64,
    /// Until the first client noticed.
    pub first_noticed_s: Option<f64>,
    /// Until the last of those that lost their connection noticed.
    pub last_noticed_s: Option<f64>,
    /// Until the first client was back.
    pub first_back_s: Option<f64>,
    /// Until all clients were back; `null` if some were not.
    pub all_back_s: Option<f64>,
    /// Most that came back within any one second; `null` if none did.
    #[serde(default)]
    pub peak_back_per_s: Option<u64>,
    /// Tries that failed.
    pub failed_tries: u64,
    /// Reconnects of kept sessions that the system still had.
    pub sessions_found: u64,
    /// Reconnects of sessions that were to be kept, and that the system had forgotten.
    pub sessions_forgotten: u64,
}

/// What became of the latency: a percentile of the messages due in each of a row of short bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultLatency {
    /// The percentile: `p99`, or `p50` where a bin has too few messages for that.
    pub quantile: String,
    /// Width of a bin, s.
    pub bin_s: f64,
    /// Median of the bins before the first fault, µs.
    pub before_us: f64,
    /// A bin up to here is as before, µs: 10 % above the median, or the highest of the bins before the first fault if that is
    /// more.
    pub limit_us: f64,
    /// Highest bin until the next fault, µs; `null` if nothing due then arrived.
    pub worst_us: Option<f64>,
    /// Was any bin not as before?
    pub disturbed: bool,
    /// Seconds since the fault was done until three bins in a row were as before; `null` if that did not come.
    pub back_s: Option<f64>,
}

/// Messages by delivery level: the lower one of publisher's and subscriber's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelBooks {
    /// Level: 0, 1, 2.
    pub qos: u32,
    /// Expected, once for each subscription that holds a session.
    pub expected: u64,
    /// Delivered.
    pub delivered: u64,
    /// Not delivered.
    pub lost: u64,
    /// Not delivered, and its connection ended before the acknowledgement.
    pub unknown: u64,
    /// Sent while a subscription held no session: not expected.
    pub absent: u64,
    /// Due while a device had lost its connection: not sent. Counted at the publisher's level, once a message.
    pub skipped_disconnected: u64,
    /// First copies that arrived more than 2 s after they were due; by the time of their arrival. The books' `late` is counted from
    /// the end of publishing.
    pub overdue: u64,
    /// Further copies; by the time of their arrival.
    pub duplicated: u64,
    /// First copies that arrived after a newer message; by the time of their arrival.
    pub out_of_order: u64,
}

impl LevelBooks {
    /// Adds another part.
    pub fn add(&mut self, other: &LevelBooks) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.unknown += other.unknown;
        self.absent += other.absent;
        self.skipped_disconnected += other.skipped_disconnected;
        self.overdue += other.overdue;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
    }
}

/// What a delivery level promises, and what was seen of it over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// Level: 0, 1, 2.
    pub qos: u32,
    /// The promise.
    pub promise: String,
    /// What was seen.
    pub observed: String,
    /// Was it kept?
    pub verdict: PromiseVerdict,
}

/// Was a promise kept?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromiseVerdict {
    /// Yes.
    Kept,
    /// No.
    Broken,
    /// Nobody can tell: a connection ended before the acknowledgement of messages that did not arrive.
    Open,
    /// Messages are missing, and nothing was promised of them: their sessions ended with their connections.
    NotPromised,
}

/// The sum of the parts, by level; levels without any message are left out.
pub fn summed<'a>(parts: impl IntoIterator<Item = &'a [LevelBooks]>) -> Vec<LevelBooks> {
    let mut sums: Vec<LevelBooks> = (0..=2).map(|qos| LevelBooks { qos, ..LevelBooks::default() }).collect();
    for part in parts.into_iter().flatten() {
        if let Some(sum) = sums.get_mut(part.qos as usize) {
            sum.add(part);
        }
    }
    sums.retain(|sum| *sum != LevelBooks { qos: sum.qos, ..LevelBooks::default() });
    sums
}

/// Judges the levels of a run. `kept` tells whether all sessions, of publishers and of subscribers, outlive their connections.
pub fn promises(levels: &[LevelBooks], kept: bool) -> Vec<Promise> {
    levels.iter().map(|level| promise(level, kept)).collect()
}

fn promise(level: &LevelBooks, kept: bool) -> Promise {
    let words = match level.qos {
        0 => "at most once: messages may be lost, none comes twice",
        1 => "at least once: none is lost, some may come twice",
        _ => "exactly once: none is lost, none comes twice",
    };
    let copies_break = level.qos != 1 && level.duplicated > 0;
    let verdict = match level.qos {
        _ if copies_break => PromiseVerdict::Broken,
        0 => PromiseVerdict::Kept,
        _ if level.lost > 0 && kept => PromiseVerdict::Broken,
        _ if level.lost + level.absent > 0 => PromiseVerdict::NotPromised,
        _ if level.unknown > 0 => PromiseVerdict::Open,
        _ => PromiseVerdict::Kept,
    };
    let mut parts = vec![format!("{} of {} lost", level.lost, level.expected), format!("{} twice", level.duplicated)];
    if level.unknown > 0 {
        parts.push(format!("{} unknown", level.unknown));
    }
    if level.absent > 0 {
        parts.push(format!("{} sent to a session that was gone", level.absent));
    }
    Promise { qos: level.qos, promise: words.to_owned(), observed: parts.join(", "), verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(qos: u32, kept: bool, change: impl FnOnce(&mut LevelBooks)) -> PromiseVerdict {
        let mut level = LevelBooks { qos, expected: 100, delivered: 100, ..LevelBooks::default() };
        change(&mut level);
        promises(&[level], kept)[0].verdict
    }

    #[test]
    fn a_level_is_held_to_what_it_promises() {
        use PromiseVerdict::{Broken, Kept, NotPromised, Open};
        for qos in 0..=2 {
            assert_eq!(verdict(qos, true, |_| {}), Kept, "{qos}");
        }
        let lost = |level: &mut LevelBooks| level.lost = 3;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, true, lost)), [Kept, Broken, Broken]);
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, false, lost)), [Kept, NotPromised, NotPromised]);
        let twice = |level: &mut LevelBooks| level.duplicated = 1;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, true, twice)), [Broken, Kept, Broken]);
        let unknown = |level: &mut LevelBooks| level.unknown = 1;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, true, unknown)), [Kept, Open, Open]);
    }

    #[test]
    fn levels_are_summed_and_empty_ones_left_out() {
        let one = [LevelBooks { qos: 1, lost: 2, ..LevelBooks::default() }, LevelBooks::default()];
        let other = [LevelBooks { qos: 1, lost: 3, expected: 9, ..LevelBooks::default() }];
        let sums = summed([&one[..], &other[..]]);
        assert_eq!(sums, [LevelBooks { qos: 1, lost: 5, expected: 9, ..LevelBooks::default() }]);
    }
}
