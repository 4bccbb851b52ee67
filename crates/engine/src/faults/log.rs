//! Records of a shard in a run with faults.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use pubmark_metrics::fine::FineSeries;
use pubmark_record::faults::LevelBooks;
use serde::{Deserialize, Serialize};

use super::planned::PlannedFault;

/// Number of QoS levels.
pub const LEVELS: usize = 3;
/// Largest number of events that a shard stores: 32 MB.
const EVENT_LIMIT: usize = 1 << 20;
/// Largest number of [`EndedSessions::streams`] that a shard stores: 16 MB.
const STREAM_LIMIT: usize = 1 << 20;

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionChange {
    /// It is connected for the first time, and subscribed if it receives.
    Connected,
    /// Its connection was lost.
    Lost,
    /// A reconnect failed.
    Failed,
    /// It reconnected, and the system still had its session state.
    SessionResumed,
    /// It reconnected, and the system had discarded the state of the persistent session.
    SessionLost,
    /// It is connected again, and subscribed if it receives.
    Reconnected,
    /// It disconnected as planned, after its connection was lost.
    Left,
    /// It disconnected as planned.
    Disconnected,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What happened.
    pub change: SessionChange,
    /// When the session had lost its connection, ns of `CLOCK_MONOTONIC`: an event belongs to the fault of that loss. `None`
    /// if it had not lost one, or has reconnected since.
    pub lost_at_ns: Option<u64>,
}

/// The records of all shards, merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FaultNotes {
    /// In no order.
    pub events: Vec<Event>,
    /// Some events, or ends of sessions, were not stored.
    pub is_cut: bool,
    /// By fault: when the first and the last shard with connections to break did so, ns of `CLOCK_MONOTONIC`.
    pub broken_at_ns: Vec<Option<(u64, u64)>>,
    /// By fault: when the last shard with connections to break began to, ns of `CLOCK_MONOTONIC`; 0 if none did.
    pub last_begun_at_ns: Vec<u64>,
    /// By fault: number of open connections to be broken.
    pub chosen: Vec<u64>,
    /// By fault: number of connections that were not broken because their shard had finished, since it was late.
    pub missed: Vec<u64>,
    /// The sessions that ended with a connection. No level of QoS promises what is lost with a session.
    pub ended: EndedSessions,
    /// By segment and QoS level: counters that are incremented during the run.
    pub tallies: Vec<[LevelBooks; LEVELS]>,
    /// Latency over time.
    pub fine: FineSeries,
    /// Clients' addresses of the connections that faults silenced: nothing on its way to them can arrive.
    pub silenced: Vec<SocketAddr>,
}

/// See [`FaultNotes::ended`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSessions {
    /// Publishers, by number in the fleet.
    pub publishers: BTreeSet<u32>,
    /// Audiences, by number in the message accounting, of which it is not known what was in transit.
    pub audiences: BTreeSet<u32>,
    /// The streams of the other audiences, once for each end of a session.
    pub streams: Vec<EndedStream>,
}

/// A stream when the session of its subscriber ended. What was in transit then has a number that is not below `next`, and was
/// sent before `epoch`: what has a lower number was overtaken, and did not end with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStream {
    /// Audience, by number in the message accounting.
    pub audience: u32,
    /// Publisher, by number in the fleet.
    pub publisher: u32,
    /// The number after the highest that had arrived.
    pub next: u32,
    /// First epoch after the session.
    pub epoch: u32,
}

impl Default for FaultNotes {
    fn default() -> FaultNotes {
        FaultNotes::new(0, 0)
    }
}

impl FaultNotes {
    fn new(faults: usize, start_ns: i64) -> FaultNotes {
        FaultNotes {
            events: Vec::new(),
            is_cut: false,
            broken_at_ns: vec![None; faults],
            last_begun_at_ns: vec![0; faults],
            chosen: vec![0; faults],
            missed: vec![0; faults],
            ended: EndedSessions::default(),
            tallies: vec![[LevelBooks::default(); LEVELS]; faults + 1],
            fine: FineSeries::new(start_ns),
            silenced: Vec::new(),
        }
    }

    /// A session of an audience ended. `streams` are its streams as (publisher, number after the highest that had arrived);
    /// `None` for a shared group, whose members receive side by side: the highest number may be another member's.
    pub fn session_ended(
        &mut self,
        audience: u32,
        epoch: u32,
        streams: Option<impl ExactSizeIterator<Item = (u32, u32)>>,
    ) {
        let ended = &mut self.ended;
        if ended.audiences.contains(&audience) {
            return;
        }
        let is_shared = streams.is_none();
        match streams.filter(|streams| ended.streams.len() + streams.len() <= STREAM_LIMIT) {
            Some(streams) => {
                ended.streams.extend(streams.map(|(publisher, next)| EndedStream { audience, publisher, next, epoch }));
            }
            None => {
                ended.audiences.insert(audience);
                self.is_cut |= !is_shared;
            }
        }
    }

    /// Adds the records of another shard.
    pub fn merge(&mut self, other: FaultNotes) {
        self.events.extend(other.events);
        self.is_cut |= other.is_cut;
        for (mine, theirs) in self.broken_at_ns.iter_mut().zip(other.broken_at_ns) {
            *mine = match (*mine, theirs) {
                (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
                (one, other) => one.or(other),
            };
        }
        self.last_begun_at_ns
            .iter_mut()
            .zip(other.last_begun_at_ns)
            .for_each(|(mine, theirs)| *mine = theirs.max(*mine));
        self.chosen.iter_mut().zip(other.chosen).for_each(|(mine, theirs)| *mine += theirs);
        self.ended.publishers.extend(other.ended.publishers);
        self.ended.audiences.extend(other.ended.audiences);
        self.ended.streams.extend(other.ended.streams);
        self.missed.iter_mut().zip(other.missed).for_each(|(mine, theirs)| *mine += theirs);
        for (mine, theirs) in self.tallies.iter_mut().zip(&other.tallies) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.add(theirs));
        }
        self.fine.merge(&other.fine);
        self.silenced.extend(other.silenced);
    }
}

/// A session that was connected and has not left as planned since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// It is connected, and subscribed if it receives.
    Present,
    /// It lost its connection at this time, ns of `CLOCK_MONOTONIC`, and has not reconnected.
    Lost(u64),
}

/// A shard's side of the faults of a run.
#[derive(Debug)]
pub struct FaultLog {
    /// The faults.
    pub planned: Arc<[PlannedFault]>,
    /// By fault: sessions of this shard whose connections it breaks.
    pub chosen: Vec<Vec<u32>>,
    /// The records.
    pub notes: FaultNotes,
    /// Number of the latest fault; 0 before the first.
    segment: u16,
    /// By session. An event that does not change it does not change how many are connected.
    connections: HashMap<u32, Connection>,
    /// Sessions that were not persistent when a connection of theirs ended.
    pub ended: HashSet<u32>,
    /// Time until which sessions may not connect, ns of `CLOCK_MONOTONIC`.
    held_until_ns: HashMap<u32, u64>,
}

impl FaultLog {
    /// For a shard whose time series begin at `start_ns`.
    pub fn new(planned: Arc<[PlannedFault]>, chosen: Vec<Vec<u32>>, start_ns: i64) -> FaultLog {
        let notes = FaultNotes::new(planned.len(), start_ns);
        let (connections, ended, held_until_ns) = (HashMap::new(), HashSet::new(), HashMap::new());
        FaultLog { planned, chosen, notes, segment: 0, connections, ended, held_until_ns }
    }

    /// The present segment.
    pub fn segment(&self) -> u16 {
        self.segment
    }

    /// A fault begins.
    pub fn begin(&mut self, fault: u16) {
        self.segment = fault + 1;
    }

    /// Records an event of a session.
    pub fn note(&mut self, session: u32, change: SessionChange, at_ns: u64) {
        use SessionChange::{Connected, Disconnected, Failed, Left, Lost, Reconnected};
        let known = self.connections.get(&session).copied();
        let (change, lost_at_ns) = match (change, known) {
            (Connected, None) => (Connected, None),
            (Lost, Some(Connection::Present)) => (Lost, Some(at_ns)),
            (Left, Some(Connection::Present)) => (Disconnected, None),
            (Connected, Some(Connection::Lost(lost_at_ns))) => (Reconnected, Some(lost_at_ns)),
            // A connection that ended before its subscriptions were granted was no reconnect.
            (Lost, Some(Connection::Lost(lost_at_ns))) => (Failed, Some(lost_at_ns)),
            (change, Some(Connection::Lost(lost_at_ns))) => (change, Some(lost_at_ns)),
            // Of a session that was not connected yet, or has left: its failed attempts are not reconnects, and a connection
            // without subscriptions is not lost. Or a further statement that it is connected.
            (Connected | Lost | Left | Failed, _) => return,
            (change, _) => (change, None),
        };
        match change {
            Connected | Reconnected => {
                self.connections.insert(session, Connection::Present);
            }
            Lost => {
                self.connections.insert(session, Connection::Lost(at_ns));
            }
            Left | Disconnected => {
                self.connections.remove(&session);
            }
            _ => {}
        }
        if self.notes.events.len() >= EVENT_LIMIT {
            self.notes.is_cut = true;
            return;
        }
        self.notes.events.push(Event { at_ns, change, lost_at_ns });
    }

    /// Prevents a session from connecting until `until_ns`.
    pub fn hold(&mut self, session: u32, until_ns: u64) {
        self.held_until_ns.insert(session, until_ns);
    }

    /// Is a session prevented from connecting at this time?
    pub fn holds(&mut self, session: u32, now_ns: u64) -> bool {
        match self.held_until_ns.get(&session) {
            Some(until_ns) if *until_ns > now_ns => true,
            Some(_) => {
                self.held_until_ns.remove(&session);
                false
            }
            None => false,
        }
    }

    /// The counters of a QoS level in the present segment.
    pub fn tally(&mut self, level: usize) -> &mut LevelBooks {
        &mut self.notes.tallies[usize::from(self.segment)][level.min(LEVELS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_back_only_if_it_was_lost_and_held_only_for_its_time() {
        let mut log = FaultLog::new([].into(), vec![], 0);
        for (session, change, at_ns) in [
            (1, SessionChange::Failed, 1),
            (1, SessionChange::Connected, 2),
            (2, SessionChange::Connected, 2),
            (1, SessionChange::Lost, 3),
            (1, SessionChange::Failed, 4),
            (1, SessionChange::Lost, 5),
            (1, SessionChange::Connected, 6),
            (2, SessionChange::Left, 7),
            (1, SessionChange::Lost, 8),
            (1, SessionChange::Left, 9),
        ] {
            log.note(session, change, at_ns);
        }
        let events = log.notes.events.iter();
        let seen: Vec<_> = events.map(|event| (event.at_ns, event.change, event.lost_at_ns)).collect();
        use SessionChange::{Connected, Disconnected, Failed, Left, Lost, Reconnected};
        assert_eq!(
            seen,
            [
                (2, Connected, None),
                (2, Connected, None),
                (3, Lost, Some(3)),
                (4, Failed, Some(3)),
                // It was connected, and not subscribed yet.
                (5, Failed, Some(3)),
                (6, Reconnected, Some(3)),
                (7, Disconnected, None),
                (8, Lost, Some(8)),
                (9, Left, Some(8))
            ]
        );
        log.hold(7, 100);
        assert_eq!([log.holds(7, 99), log.holds(8, 99), log.holds(7, 100)], [true, false, false]);
    }

    #[test]
    fn what_happens_to_a_session_without_a_connection_does_not_change_how_many_are_connected() {
        use SessionChange::{Connected, Disconnected, Failed, Left, Lost, Reconnected};
        let noted = |changes: &[SessionChange]| {
            let mut log = FaultLog::new([].into(), vec![], 0);
            (1..).zip(changes).for_each(|(at_ns, change)| log.note(7, *change, at_ns));
            log.notes.events.iter().map(|event| event.change).collect::<Vec<_>>()
        };
        // It returned as planned, was not accepted, and was due to leave again.
        assert_eq!(noted(&[Connected, Left, Failed, Left, Connected]), [Connected, Disconnected, Connected]);
        // Its connection broke while it waited for acknowledgements before it left.
        assert_eq!(noted(&[Connected, Left, Lost, Connected]), [Connected, Disconnected, Connected]);
        // Its first connection ended before its subscriptions were granted.
        assert_eq!(noted(&[Lost, Failed, Connected, Lost, Connected]), [Connected, Lost, Reconnected]);
        // It was accepted after it had left while it connected, and then disconnected.
        assert_eq!(noted(&[Connected, Lost, Left, Connected, Left]), [Connected, Lost, Left, Connected, Disconnected]);
        assert_eq!(noted(&[Connected, Connected]), [Connected]);
    }

    #[test]
    fn an_audience_is_named_alone_if_it_is_not_known_what_was_in_transit() {
        let mut notes = FaultNotes::default();
        notes.session_ended(3, 7, Some([(0, 12), (1, 1)].into_iter()));
        notes.session_ended(4, 8, None::<std::iter::Empty<(u32, u32)>>);
        let row = |publisher, next| EndedStream { audience: 3, publisher, next, epoch: 7 };
        assert_eq!((&notes.ended.streams[..], notes.ended.audiences.len()), (&[row(0, 12), row(1, 1)][..], 1));
        assert!(!notes.is_cut, "a shared group's rows are not stored in any case");
        notes.session_ended(5, 9, Some(std::iter::repeat_n((0, 1), STREAM_LIMIT - 1)));
        assert_eq!((notes.ended.streams.len(), notes.ended.audiences.contains(&5)), (2, true), "there are too many");
        assert!(notes.is_cut, "all its losses are excused, and the record says so");
        notes.session_ended(5, 10, Some([(0, 13)].into_iter()));
        assert_eq!(notes.ended.streams.len(), 2, "its losses are excused already");
    }

    #[test]
    fn the_last_shard_to_begin_and_all_that_were_too_late_are_in_the_merged_notes() {
        let mut notes = FaultNotes { last_begun_at_ns: vec![5, 0], missed: vec![1, 0], ..FaultNotes::new(2, 0) };
        notes.merge(FaultNotes { last_begun_at_ns: vec![3, 9], missed: vec![2, 0], ..FaultNotes::new(2, 0) });
        assert_eq!((notes.last_begun_at_ns, notes.missed), (vec![5, 9], vec![3, 0]));
    }

    #[test]
    fn the_merged_notes_have_the_silenced_connections_of_all_shards() {
        let of_shard =
            |port| FaultNotes { silenced: vec![SocketAddr::from(([127, 0, 0, 1], port))], ..FaultNotes::new(1, 0) };
        let mut notes = of_shard(7);
        notes.merge(of_shard(8));
        assert_eq!(notes.silenced.iter().map(SocketAddr::port).collect::<Vec<_>>(), [7, 8]);
    }
}
