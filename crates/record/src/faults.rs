//! Faults in a record: what was requested, what was done, and its effects.

use pubmark_model::fault::FaultKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The faults of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultFigures {
    /// How clients reconnect after losing their connection.
    pub reconnect: Reconnect,
    /// Faults in order of time.
    pub faults: Vec<FaultRow>,
    /// Messages from the start of the measured window to the first fault, by QoS level.
    pub before: Vec<LevelBooks>,
    /// Guarantees of each QoS level, and what was observed.
    pub promises: Vec<Promise>,
    /// More connection events, or ends of sessions, occurred than are stored. Then the figures of connections may be too low, and
    /// `lost_with_session` too high.
    #[serde(default)]
    pub incomplete: bool,
}

/// How clients reconnect after losing their connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconnect {
    /// Pause before the first attempt, ms. It doubles after each failure.
    pub first_pause_ms: f64,
    /// Longest pause, ms. Each pause is drawn uniformly between half of its length and all of it.
    pub longest_pause_ms: f64,
    /// Keep-alive interval: seconds without traffic after which a client pings the system; 0 for never.
    pub keep_alive_s: u32,
}

/// Largest delay with which a fault may be injected or ended (V20), s: its effects are counted from the time at which it was
/// done.
pub const LATEST_S: f64 = 0.5;

/// A fault and its effects. Times are in seconds; those of effects are relative to the time at which the fault was
/// done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRow {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Target of the fault, in words.
    pub target: String,
    /// Requested time, since the start of the measured window.
    #[serde(alias = "asked_at_s")]
    pub requested_at_s: f64,
    /// Requested duration; `null` for a fault without an end.
    #[serde(alias = "asked_for_s")]
    pub requested_for_s: Option<f64>,
    /// Time at which it was done, since the start of the measured window; `null` if it was not.
    pub done_at_s: Option<f64>,
    /// Time by which it was certainly done, since the start of the measured window: when the command returned that killed the system;
    /// `null` for other faults, whose time is known, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_by_s: Option<f64>,
    /// Time at which it ended, since the start of the measured window: the system resumed or was started, links up,
    /// connections permitted; `null` if it has no end, or the end was not reached.
    pub ended_at_s: Option<f64>,
    /// Why it was not done as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// End of the period in which effects are counted, since the start of the measured window: the next fault, or the
    /// end of the window.
    pub until_s: f64,
    /// Effects on connections.
    pub connections: FaultConnections,
    /// Effects on latency; `null` where too few messages were due, before the first fault or in a bin of that time, or where fewer
    /// than three bins begin after the fault.
    pub latency: Option<FaultLatency>,
    /// Messages sent from this fault to the next, by QoS level.
    pub levels: Vec<LevelBooks>,
}

/// Effects on connections. Times are seconds since the fault was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultConnections {
    /// Connections open when the fault was done.
    pub connected: u64,
    /// Connections that the fault was to break, those without granted subscriptions included; `null` if it was not aimed at
    /// connections.
    pub chosen: Option<u64>,
    /// Connections lost until the next fault. All figures below are of these clients.
    pub lost: u64,
    /// Connections that were reconnected and subscribed by then.
    #[serde(alias = "back")]
    pub reconnected: u64,
    /// Connections of devices with a planned disconnect in this period.
    #[serde(alias = "left")]
    pub planned: u64,
    /// Time until the first client detected the loss of its connection.
    #[serde(alias = "first_noticed_s")]
    pub first_detected_s: Option<f64>,
    /// Time until the last of the clients that lost their connection detected it.
    #[serde(alias = "last_noticed_s")]
    pub last_detected_s: Option<f64>,
    /// Time until the first of them was reconnected.
    #[serde(alias = "first_back_s")]
    pub first_reconnected_s: Option<f64>,
    /// Time until all of them were reconnected; `null` if some were not.
    #[serde(alias = "all_back_s")]
    pub all_reconnected_s: Option<f64>,
    /// Most reconnects within any one second; `null` without reconnects.
    #[serde(default, alias = "peak_back_per_s")]
    pub peak_reconnects_per_s: Option<u64>,
    /// Attempts that failed.
    pub failed_tries: u64,
    /// Reconnects with a persistent session that the system still had.
    #[serde(alias = "sessions_found")]
    pub sessions_resumed: u64,
    /// Reconnects with a persistent session that the system no longer had.
    #[serde(alias = "sessions_forgotten")]
    pub sessions_lost: u64,
}

/// Effects on latency: a percentile of the messages due in each of several consecutive short bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultLatency {
    /// The percentile: `p99`, or `p50` where a bin has too few messages for p99.
    pub quantile: String,
    /// Width of a bin, s.
    pub bin_s: f64,
    /// Median of the bins before the first fault, µs.
    pub before_us: f64,
    /// Limit up to which a bin counts as undisturbed, µs: 10 % above the median, or the highest of the bins before the
    /// first fault if that is more.
    pub limit_us: f64,
    /// Highest bin until the latency was back, or until the next fault if it was not disturbed or did not return, µs; `null` if no
    /// message due in that period arrived.
    pub worst_us: Option<f64>,
    /// Whether the fault disturbed the latency. A disturbance is three consecutive bins that begin while the fault lasts (until its end
    /// and the last reconnect of its clients) and are above the limit or have less than half the messages, or five that begin later;
    /// or a single bin while the fault lasts that is three times as far above the median as the limit, or has less than a quarter of
    /// the messages.
    pub disturbed: bool,
    /// Seconds since the fault was done until three consecutive bins were within the limit, after the last disturbance and not before
    /// the fault was over; 0 without a disturbance, and `null` if the latency did not return.
    #[serde(alias = "back_s")]
    pub recovered_after_s: Option<f64>,
}

/// Messages by QoS level: the lower of the publisher's and the subscriber's level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelBooks {
    /// QoS level: 0, 1, 2.
    pub qos: u32,
    /// Messages expected, counted once for each subscription that holds a session.
    pub expected: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages not delivered.
    pub lost: u64,
    /// Of `lost`, messages that may have been lost with a session that was not persistent: they were in transit when a connection
    /// of the subscription ended, or it is a shared one, or more sessions ended than are stored (`incomplete`); at QoS 2 also those
    /// of a device whose connection ended.
    #[serde(default)]
    pub lost_with_session: u64,
    /// Messages not delivered whose connection ended before the acknowledgement.
    pub unknown: u64,
    /// Messages sent while a subscription held no session, which are not expected.
    pub absent: u64,
    /// Messages not sent because they were due while the device had lost its connection. Counted at the publisher's
    /// level, once per message.
    pub skipped_disconnected: u64,
    /// First copies that arrived more than 2 s after they were due, by time of arrival. In contrast, `late` of the
    /// message accounting is counted from the end of publishing.
    pub overdue: u64,
    /// Duplicates, by time of arrival.
    pub duplicated: u64,
    /// First copies that arrived after a newer message, by time of arrival.
    pub out_of_order: u64,
}

impl LevelBooks {
    /// Adds the counts of another part.
    pub fn add(&mut self, other: &LevelBooks) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.lost_with_session += other.lost_with_session;
        self.unknown += other.unknown;
        self.absent += other.absent;
        self.skipped_disconnected += other.skipped_disconnected;
        self.overdue += other.overdue;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
    }
}

/// The guarantee of a QoS level, and what was observed over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// QoS level: 0, 1, 2.
    pub qos: u32,
    /// The guarantee.
    pub promise: String,
    /// What was observed.
    pub observed: String,
    /// Whether the guarantee was kept.
    pub verdict: PromiseVerdict,
}

/// Whether a guarantee was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromiseVerdict {
    /// The guarantee was kept.
    Kept,
    /// The guarantee was broken.
    Broken,
    /// It cannot be determined: a connection ended before the acknowledgement of messages that did not arrive.
    Open,
    /// All missing messages are ones for which there was no guarantee: they may have been lost with a session that ended with its
    /// connection, or were sent while there was none.
    NotPromised,
}

/// Sum of the parts, by level; levels without messages are left out.
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

/// Judges the levels of a run.
pub fn promises(levels: &[LevelBooks]) -> Vec<Promise> {
    levels.iter().map(promise).collect()
}

fn promise(level: &LevelBooks) -> Promise {
    let words = match level.qos {
        0 => "at most once: messages may be lost, none comes twice",
        1 => "at least once: none is lost, some may come twice",
        _ => "exactly once: none is lost, none comes twice",
    };
    let copies_break = level.qos != 1 && level.duplicated > 0;
    let verdict = match level.qos {
        _ if copies_break => PromiseVerdict::Broken,
        0 => PromiseVerdict::Kept,
        _ if level.lost > level.lost_with_session => PromiseVerdict::Broken,
        _ if level.lost + level.absent > 0 => PromiseVerdict::NotPromised,
        _ if level.unknown > 0 => PromiseVerdict::Open,
        _ => PromiseVerdict::Kept,
    };
    let mut parts = vec![format!("{} of {} lost", level.lost, level.expected), format!("{} twice", level.duplicated)];
    if level.qos > 0 && level.lost_with_session > 0 {
        parts.insert(1, format!("{} of them with a session that ended", level.lost_with_session));
    }
    if level.unknown > 0 {
        parts.push(format!("{} unknown", level.unknown));
    }
    if level.absent > 0 {
        parts.push(format!("{} sent to a session that had ended", level.absent));
    }
    Promise { qos: level.qos, promise: words.to_owned(), observed: parts.join(", "), verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(qos: u32, change: impl FnOnce(&mut LevelBooks)) -> PromiseVerdict {
        let mut level = LevelBooks { qos, expected: 100, delivered: 100, ..LevelBooks::default() };
        change(&mut level);
        promises(&[level])[0].verdict
    }

    #[test]
    fn a_level_is_held_to_what_it_promises() {
        use PromiseVerdict::{Broken, Kept, NotPromised, Open};
        for qos in 0..=2 {
            assert_eq!(verdict(qos, |_| {}), Kept, "{qos}");
        }
        let lost = |level: &mut LevelBooks| level.lost = 3;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, lost)), [Kept, Broken, Broken], "whatever sessions are like");
        let with_sessions = |level: &mut LevelBooks| (level.lost, level.lost_with_session) = (3, 3);
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, with_sessions)), [Kept, NotPromised, NotPromised]);
        let in_part = |level: &mut LevelBooks| (level.lost, level.lost_with_session) = (3, 2);
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, in_part)), [Kept, Broken, Broken]);
        let absent = |level: &mut LevelBooks| level.absent = 3;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, absent)), [Kept, NotPromised, NotPromised]);
        let twice = |level: &mut LevelBooks| level.duplicated = 1;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, twice)), [Broken, Kept, Broken]);
        let unknown = |level: &mut LevelBooks| level.unknown = 1;
        assert_eq!([0, 1, 2].map(|qos| verdict(qos, unknown)), [Kept, Open, Open]);
    }

    #[test]
    fn what_was_lost_with_a_session_is_named() {
        let level =
            LevelBooks { qos: 1, expected: 100, delivered: 95, lost: 5, lost_with_session: 2, ..LevelBooks::default() };
        assert_eq!(promises(&[level])[0].observed, "5 of 100 lost, 2 of them with a session that ended, 0 twice");
    }

    #[test]
    fn levels_are_summed_and_empty_ones_left_out() {
        let one = [LevelBooks { qos: 1, lost: 2, ..LevelBooks::default() }, LevelBooks::default()];
        let other = [LevelBooks { qos: 1, lost: 3, expected: 9, ..LevelBooks::default() }];
        let sums = summed([&one[..], &other[..]]);
        assert_eq!(sums, [LevelBooks { qos: 1, lost: 5, expected: 9, ..LevelBooks::default() }]);
    }
}
