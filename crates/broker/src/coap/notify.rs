//! Notifications to observers: sent, retransmitted, given up.

use std::rc::Rc;

use pubmark_wire::coap::{BLOCK_BYTES, Block, Code, Kind, Step, Writer, number};

use super::broker::CoapBroker;
use super::observer::{Awaited, Fetched, Outstanding, Publication};
use crate::net::Key;

impl CoapBroker {
    /// Sends a publication to all observers of its topic, and stores it; true if the topic is new.
    pub(super) fn publish(&mut self, topic: &str, payload: &[u8]) -> bool {
        self.statistics.published += 1;
        self.published = self.published.wrapping_add(1);
        let publication = Rc::new(Publication { payload: payload.into(), number: self.published });
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        self.tree.matching(topic, |key, ()| targets.push(key));
        for key in &targets {
            self.notify(*key, &publication);
        }
        self.targets = targets;
        let old = self.kept.remove_entry(topic);
        let is_new = old.is_none();
        self.kept_bytes -= old.as_ref().map_or(0, |(_, old)| old.payload.len());
        if self.kept.len() < self.settings.maximum_topics && self.kept_bytes <= self.settings.maximum_kept_bytes {
            self.kept_bytes += publication.payload.len();
            self.kept.insert(old.map_or_else(|| topic.into(), |(topic, _)| topic), publication);
        } else {
            // The topic has none then, rather than an old one.
            self.statistics.not_kept += 1;
        }
        is_new
    }

    /// Sends a notification now, or queues it until those before it are acknowledged.
    fn notify(&mut self, key: Key, publication: &Rc<Publication>) {
        let Some(observer) = self.observers.get_mut(key) else { return };
        let bytes = observer.queued_bytes + publication.payload.len();
        let waits = !observer.queue.is_empty();
        if waits
            && (observer.queue.len() >= self.settings.maximum_queued_messages
                || bytes > self.settings.maximum_queued_bytes)
        {
            self.statistics.dropped_queued += 1;
            return;
        }
        if !waits && observer.is_free() && self.send_notification(key, publication) {
            return;
        }
        let Some(observer) = self.observers.get_mut(key) else { return };
        observer.queued_bytes = bytes;
        observer.queue.push_back(Rc::clone(publication));
    }

    /// Sends what is queued for an observer, as far as possible.
    pub(super) fn advance(&mut self, key: Key) {
        while let Some(observer) = self.observers.get_mut(key).filter(|observer| observer.is_free()) {
            let Some(publication) = observer.queue.pop_front() else { return };
            observer.queued_bytes -= publication.payload.len();
            if !self.send_notification(key, &publication) {
                let Some(observer) = self.observers.get_mut(key) else { return };
                observer.queued_bytes += publication.payload.len();
                observer.queue.push_front(publication);
                return;
            }
        }
    }

    /// Continues with observers for which the socket would block.
    pub(super) fn advance_waiting(&mut self) {
        for key in std::mem::take(&mut self.waiting) {
            self.advance(key);
        }
    }

    /// Sends a notification for the first time; false if the socket would block.
    fn send_notification(&mut self, key: Key, publication: &Rc<Publication>) -> bool {
        let exchange = self.exchange();
        let fetch_within_ns = self.settings.times.transmit_span_ns();
        let Some(observer) = self.observers.get_mut(key) else { return true };
        let Some(peer) = self.peers.get_mut(observer.peer) else { return true };
        let (address, message_id, sequence) = (peer.address, peer.message_id(), observer.next_sequence());
        // If one block is lost the whole payload is lost, so the first one is always sent as confirmable.
        let confirmable = observer.confirmable || publication.has_blocks();
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        let token = observer.token;
        self.out.clear();
        write_content(kind, message_id, token.as_bytes(), Some(sequence), publication, 0, &mut self.out);
        if !self.transmit(address) {
            self.waiting.push(key);
            return false;
        }
        self.statistics.notified += 1;
        let Some(observer) = self.observers.get_mut(key) else { return true };
        observer.last_message_id = Some(message_id);
        if confirmable {
            let (what, publication) = (Awaited::Notification(sequence), Rc::clone(publication));
            observer.outstanding = Some(Outstanding { message_id, exchange, what, publication });
        }
        if publication.has_blocks() {
            let until_ns = self.now_ns + fetch_within_ns;
            observer.fetched = Some(Fetched { publication: Rc::clone(publication), until_ns });
        }
        if confirmable {
            self.set_observer_timer(key);
        }
        true
    }

    /// Responds to the request for the last block of a notification with a confirmable message of its own, so that the broker
    /// knows when the client has all blocks.
    pub(super) fn send_last_block(&mut self, key: Key, token: &[u8]) {
        let exchange = self.exchange();
        let Some(observer) = self.observers.get_mut(key) else { return };
        let Some(fetched) = &mut observer.fetched else { return };
        fetched.until_ns = u64::MAX;
        let publication = Rc::clone(&fetched.publication);
        let Some(peer) = self.peers.get_mut(observer.peer) else { return };
        let what = Awaited::LastBlock(super::observer::Token::new(token));
        observer.outstanding = Some(Outstanding { message_id: peer.message_id(), exchange, what, publication });
        self.send_outstanding(key);
        self.set_observer_timer(key);
    }

    fn send_outstanding(&mut self, key: Key) {
        let Some(observer) = self.observers.get(key) else { return };
        let Some(Outstanding { message_id, what, publication, .. }) = &observer.outstanding else { return };
        let Some(peer) = self.peers.get(observer.peer) else { return };
        let address = peer.address;
        self.out.clear();
        let (message_id, kind) = (*message_id, Kind::Confirmable);
        match what {
            Awaited::Notification(sequence) => {
                let token = observer.token.as_bytes();
                write_content(kind, message_id, token, Some(*sequence), publication, 0, &mut self.out);
            }
            Awaited::LastBlock(token) => {
                let last = (publication.payload.len() - 1) / BLOCK_BYTES * BLOCK_BYTES;
                write_content(kind, message_id, token.as_bytes(), None, publication, last, &mut self.out);
            }
        }
        self.transmit_response(address);
    }

    /// A client acknowledged or rejected a message of the broker.
    pub(super) fn on_settled(&mut self, key: Key, message_id: u16, rejected: bool) {
        let Some(observer) = self.observers.get_mut(key) else { return };
        let outstanding = observer.outstanding.take_if(|outstanding| outstanding.message_id == message_id);
        match outstanding.map(|outstanding| outstanding.what) {
            // Acknowledged, or not awaited any more: the client has all of it, or has dropped it.
            Some(Awaited::LastBlock(_)) => observer.fetched = None,
            _ if rejected => {
                self.statistics.observers_rejecting += 1;
                return self.remove_observer(key);
            }
            Some(Awaited::Notification(_)) | None => {}
        }
        self.advance(key);
    }

    /// Handles the timer of an observer.
    pub(super) fn check_observer(&mut self, key: Key) {
        let (times, now_ns) = (self.settings.times, self.now_ns);
        let Some(observer) = self.observers.get_mut(key) else { return };
        if let Some(outstanding) = &mut observer.outstanding {
            match outstanding.exchange.step(&times, now_ns) {
                Step::Wait => {}
                Step::Repeat => {
                    self.statistics.repeated += 1;
                    self.send_outstanding(key);
                }
                Step::GiveUp => {
                    let peer = observer.peer;
                    self.drop_silent(peer);
                }
            }
            return;
        }
        if observer.fetched.take_if(|fetched| fetched.until_ns <= now_ns).is_some() {
            self.statistics.dropped_unfetched += 1;
            self.advance(key);
        }
    }

    /// Ends a subscription.
    pub(super) fn remove_observer(&mut self, key: Key) {
        let Some(observer) = self.observers.remove(key) else { return };
        self.tree.remove(&observer.filter, key);
        self.statistics.dropped_queued += observer.queue.len() as u64;
        self.statistics.dropped_unfetched += u64::from(observer.fetched.is_some());
        if let Some(peer) = self.peers.get_mut(observer.peer) {
            peer.observers.retain(|other| *other != key);
        }
    }
}

/// Appends a response with the block of a publication that begins at `offset`; all of it if it fits into one.
pub(super) fn write_content(
    kind: Kind,
    message_id: u16,
    token: &[u8],
    sequence: Option<u32>,
    publication: &Publication,
    offset: usize,
    out: &mut Vec<u8>,
) {
    let mut writer = Writer::new(kind, Code::CONTENT, message_id, token, out);
    let end = publication.payload.len().min(offset + BLOCK_BYTES);
    if publication.has_blocks() {
        writer.uint(number::ETAG, publication.number);
    }
    if let Some(sequence) = sequence {
        writer.uint(number::OBSERVE, sequence);
    }
    if publication.has_blocks() {
        writer.uint(number::BLOCK2, Block::largest(offset, end < publication.payload.len()).value());
        writer.uint(number::SIZE2, publication.payload.len() as u32);
    }
    writer.end(&publication.payload[offset..end]);
}
