//! A device: a connection to each subscriber, and the messages in flight to some of them.

use std::collections::VecDeque;

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Event, Sink, Token};
use pubmark_protocol::timing::Timing;

/// State of a device's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has none.
    Closed,
    /// Not all of them are up.
    Connecting,
    /// All of them are.
    Up,
}

/// A message, and the copies of it that were not written wholly.
struct Copies {
    token: Token,
    left: u32,
    /// It had no subscriber.
    withheld: bool,
    /// Of the first copy.
    write_start_ns: u64,
    /// Of the last.
    written_ns: u64,
    /// Of the last, too.
    own_ns: u64,
}

/// A device.
pub(super) struct Publisher {
    /// Its sessions below, one for each endpoint.
    pub(super) links: Vec<SessionId>,
    pub(super) state: State,
    /// Links that are open.
    pub(super) up: usize,
    /// Its last send would have blocked.
    pub(super) blocked: bool,
    /// Messages in the order in which they were accepted, without those at the front that are settled.
    waiting: VecDeque<Copies>,
    /// Number of the first of them.
    base: u64,
    /// By link: numbers of the messages in flight on it.
    on_link: Vec<VecDeque<u64>>,
}

impl Publisher {
    pub(super) fn new(links: Vec<SessionId>) -> Publisher {
        let on_link = links.iter().map(|_| VecDeque::new()).collect();
        let (state, waiting) = (State::Closed, VecDeque::new());
        Publisher { links, state, up: 0, blocked: false, waiting, base: 0, on_link }
    }

    /// Index of a session below among the links.
    pub(super) fn place(&self, link: SessionId) -> Option<usize> {
        // They were made one after the other.
        let first = self.links.first()?;
        let place = link.0.checked_sub(first.0)? as usize;
        (place < self.links.len()).then_some(place)
    }

    /// A message was passed to these links; to none, if it has no subscriber.
    pub(super) fn take(&mut self, token: Token, timing: &Timing, places: &[usize]) {
        let number = self.base + self.waiting.len() as u64;
        for place in places {
            self.on_link[*place].push_back(number);
        }
        let now_ns = clock::monotonic_ns();
        let (left, withheld) = (places.len() as u32, places.is_empty());
        let (write_start_ns, written_ns) = (now_ns, now_ns);
        let own_ns = timing.since_submitted_ns(now_ns);
        self.waiting.push_back(Copies { token, left, withheld, write_start_ns, written_ns, own_ns });
    }

    /// Is a message in flight on a link?
    pub(super) fn is_busy(&self, place: usize) -> bool {
        !self.on_link[place].is_empty()
    }

    /// A copy was written wholly.
    pub(super) fn copied(&mut self, place: usize, write_start_ns: u64, written_ns: u64, own_ns: u64) {
        let Some(number) = self.on_link[place].pop_front() else { return };
        let Some(copies) = self.waiting.get_mut((number - self.base) as usize) else { return };
        copies.left = copies.left.saturating_sub(1);
        if write_start_ns < copies.write_start_ns || copies.written_ns <= copies.write_start_ns {
            copies.write_start_ns = write_start_ns;
        }
        if written_ns >= copies.written_ns {
            (copies.written_ns, copies.own_ns) = (written_ns, own_ns);
        }
    }

    /// Reports the messages at the front that are settled.
    pub(super) fn settle(&mut self, id: SessionId, sink: &mut impl Sink) {
        while self.waiting.front().is_some_and(|copies| copies.left == 0) {
            let Some(copies) = self.waiting.pop_front() else { return };
            self.base += 1;
            report(id, &copies, sink);
        }
    }

    /// Its connections are gone: reports everything.
    pub(super) fn abandon(&mut self, id: SessionId, sink: &mut impl Sink) {
        self.base += self.waiting.len() as u64;
        for copies in std::mem::take(&mut self.waiting) {
            if copies.left == 0 {
                report(id, &copies, sink);
            } else {
                sink.event(id, Event::Abandoned(copies.token));
            }
        }
        self.on_link.iter_mut().for_each(VecDeque::clear);
        (self.up, self.blocked) = (0, false);
    }
}

fn report(id: SessionId, copies: &Copies, sink: &mut impl Sink) {
    let &Copies { token, withheld, write_start_ns, written_ns, own_ns, .. } = copies;
    if withheld {
        sink.event(id, Event::Withheld(token));
    }
    sink.event(id, Event::Written { token, write_start_ns, written_ns, own_ns });
}
