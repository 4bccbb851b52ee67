//! The end of connections: by the client, by the script, by the end of the run.

use std::time::Duration;

use pubmark_protocol::clock::monotonic_ns;

use super::journal::Event;
use super::script::Ending;
use super::server::Liar;
use super::state::{Copy, Phase, Timed};
use crate::net::Key;

/// How long the client of a cut connection may take to close its side.
const LINGER: Duration = Duration::from_secs(2);

impl Liar {
    /// A connection has ended on both sides, or its client violated the protocol.
    pub(super) fn remove(&mut self, key: Key, why: &str) {
        self.detach(key, why);
        if let Some(peer) = self.peers.remove(key) {
            peer.connection.close();
        }
    }

    /// The broker ends a connection. Earlier output is written as far as the socket accepts it.
    pub(super) fn cut(&mut self, key: Key, ending: Ending, why: &str) {
        self.flush(key);
        self.detach(key, why);
        let Some(peer) = self.peers.get_mut(key) else { return };
        let result = match ending {
            Ending::Reset => peer.connection.cut(),
            Ending::Close => peer.connection.end_writing(),
        };
        if ending == Ending::Reset || result.is_err() {
            self.peers.remove(key);
            return;
        }
        peer.phase = Phase::Cut { until_ns: monotonic_ns() + LINGER.as_nanos() as u64 };
    }

    /// Records in the journal that a client's connection has ended, with every packet that did not reach its socket.
    fn detach(&mut self, key: Key, why: &str) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.phase != Phase::Open {
            return;
        }
        peer.phase = Phase::Cut { until_ns: 0 };
        peer.accepted = None;
        let unwritten: Vec<u64> = peer.marks.drain(..).map(|(_, line)| line).collect();
        for line in unwritten {
            self.journal.line(Event::Unwritten).text(&peer.client).number(line).end();
        }
        let filters = peer.session.and_then(|key| self.sessions.get(key)).map_or(0, |session| session.filters.len());
        self.journal.line(Event::Closed).text(&peer.client).word(why).number(filters as u64).end();
        let Some(session_key) = peer.session.take() else { return };
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        session.peer = None;
        if !session.is_persistent {
            self.forget(session_key);
        }
    }

    /// Ends a session; the messages that it still had to get are dropped.
    pub(super) fn forget(&mut self, session_key: Key) {
        let Some(session) = self.sessions.remove(session_key) else { return };
        self.by_client.remove(&session.client);
        for filter in &session.filters {
            self.tree.remove(filter, session_key);
        }
        for copy in session.outgoing.queued() {
            self.drop_copy(copy, "gone");
        }
    }

    /// Closes connections whose clients do not close their side in time.
    pub(super) fn end_overdue(&mut self) {
        let now_ns = monotonic_ns();
        let is_overdue = |phase: Phase| matches!(phase, Phase::Cut { until_ns } if until_ns <= now_ns);
        let overdue: Vec<Key> =
            self.peers.iter().filter(|(_, peer)| is_overdue(peer.phase)).map(|(key, _)| key).collect();
        for key in overdue {
            self.peers.remove(key);
        }
    }

    /// Waits until a slow client has received some of its bytes, or its connection fails.
    pub(super) fn wait_for_room(&mut self, key: Key) {
        let Some(peer) = self.peers.get(key) else { return };
        let mut wanted = libc::pollfd { fd: peer.connection.descriptor(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid entry, as its count says. A failure or a time-out only means that the next copy waits again.
        unsafe { libc::poll(&mut wanted, 1, 1_000) };
        self.flush(key);
    }

    /// The run is over: records every message that was still to be sent.
    pub(super) fn end_all(&mut self) {
        let mut owed: Vec<Copy> = Vec::new();
        owed.extend(self.timers.drain().filter_map(|timer| match timer.what {
            Timed::Copy(copy) => Some(copy),
            Timed::Release(..) => None,
        }));
        owed.extend(self.held.drain().flat_map(|(_, copies)| copies));
        owed.iter().for_each(|copy| self.drop_copy(copy, "stop"));
        let keys: Vec<Key> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.flush(key);
            self.remove(key, "stop");
        }
        let sessions: Vec<Key> = self.sessions.iter().map(|(key, _)| key).collect();
        sessions.into_iter().for_each(|session| self.forget(session));
    }
}
