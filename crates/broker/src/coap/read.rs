//! GET: subscribing, unsubscribing, reading a topic, fetching the blocks of a notification.

use std::rc::Rc;

use pubmark_wire::coap::{BLOCK_BYTES, Block, Code, Kind, Writer, decode_topic, number, uint};

use super::broker::CoapBroker;
use super::notify::write_content;
use super::observer::{Awaited, Observer, Outstanding, Publication, Token};
use super::requests::Request;
use crate::net::Key;
use crate::topic_tree::is_too_deep;

/// Values of Observe that register and deregister (RFC 7641 §2).
const REGISTER: u32 = 0;
const DEREGISTER: u32 = 1;
/// Response to GET `/.well-known/core`: where topics are (RFC 6690).
const DIRECTORY: &[u8] = b"</ps>;rt=\"core.ps\"";
/// `application/link-format` among content formats.
const LINK_FORMAT: u32 = 40;

impl CoapBroker {
    pub(super) fn get(&mut self, request: Request<'_>) {
        let message = request.message;
        let path = || message.options.all(number::URI_PATH);
        if path().eq([&b".well-known"[..], b"core"]) {
            return self.send_directory(request);
        }
        let mut topic = String::new();
        if !decode_topic(message, &mut topic) {
            return self.answer(request, Code::NOT_FOUND);
        }
        let block = message.options.get(number::BLOCK2).map(Block::read);
        match (message.options.get(number::OBSERVE).and_then(uint), block) {
            (_, Some(None)) => self.answer(request, Code::BAD_REQUEST),
            (_, Some(Some(block))) if block.number > 0 => self.send_block(request, &topic, block),
            (Some(REGISTER), _) => self.register(request, &topic),
            (Some(DEREGISTER), _) => {
                if let Some(key) = self.observer_of(request.peer, &topic) {
                    self.remove_observer(key);
                }
                self.send_state(request, &topic, None);
            }
            _ => self.send_state(request, &topic, None),
        }
    }

    fn send_directory(&mut self, request: Request<'_>) {
        let Some((kind, message_id)) = self.answer_head(request) else { return };
        self.out.clear();
        let mut writer = Writer::new(kind, Code::CONTENT, message_id, request.message.token, &mut self.out);
        writer.uint(number::CONTENT_FORMAT, LINK_FORMAT);
        writer.end(DIRECTORY);
        self.transmit_response(request.from);
    }

    fn observer_of(&self, peer: Key, filter: &str) -> Option<Key> {
        let is_it = |key: &&Key| self.observers.get(**key).is_some_and(|observer| *observer.filter == *filter);
        self.peers.get(peer)?.observers.iter().find(is_it).copied()
    }

    /// The client's observer of another filter with this token.
    fn observer_with(&self, peer: Key, token: Token, filter: &str) -> Option<Key> {
        let is_it = |key: &&Key| {
            self.observers.get(**key).is_some_and(|observer| observer.token == token && *observer.filter != *filter)
        };
        self.peers.get(peer)?.observers.iter().find(is_it).copied()
    }

    fn register(&mut self, request: Request<'_>, filter: &str) {
        let wild = filter.split('/').rev().skip(1).any(|level| level == "#");
        if wild || is_too_deep(filter) {
            return self.answer(request, Code::BAD_REQUEST);
        }
        let token = Token::new(request.message.token);
        let confirmable = request.message.kind == Kind::Confirmable;
        // A client that uses a token again replaces what it observed with it (RFC 7641 §4.1).
        if let Some(replaced) = self.observer_with(request.peer, token, filter) {
            self.remove_observer(replaced);
        }
        let key = match self.observer_of(request.peer, filter) {
            Some(key) => key,
            None => {
                let most = self.settings.maximum_observers;
                let Some(peer) = self.peers.get_mut(request.peer).filter(|peer| peer.observers.len() < most) else {
                    return self.answer(request, Code::SERVICE_UNAVAILABLE);
                };
                let key = self.observers.insert(Observer::new(request.peer, filter, token, confirmable));
                peer.observers.push(key);
                self.tree.insert(filter, key, ());
                self.statistics.subscribed += 1;
                key
            }
        };
        let Some(observer) = self.observers.get_mut(key) else { return };
        (observer.token, observer.confirmable) = (token, confirmable);
        let sequence = observer.sequence();
        self.send_state(request, filter, Some(sequence));
    }

    /// Responds with a topic's last publication; if there is none, a subscription gets an empty response.
    fn send_state(&mut self, request: Request<'_>, topic: &str, sequence: Option<u32>) {
        let nothing = || sequence.map(|_| Rc::new(Publication { payload: [].into(), number: 0 }));
        match self.kept.get(topic).cloned().or_else(nothing) {
            Some(publication) => self.send_content(request, &publication, sequence, 0),
            None => self.answer(request, Code::NOT_FOUND),
        }
    }

    fn send_content(&mut self, request: Request<'_>, publication: &Publication, sequence: Option<u32>, offset: usize) {
        let Some((kind, message_id)) = self.answer_head(request) else { return };
        self.out.clear();
        write_content(kind, message_id, request.message.token, sequence, publication, offset, &mut self.out);
        self.transmit_response(request.from);
    }

    /// The blocks of a notification in flight are those of its publication, whatever was published since.
    fn send_block(&mut self, request: Request<'_>, topic: &str, block: Block) {
        let offset = block.offset();
        let observer = self.observer_of(request.peer, topic);
        let fetched = observer.and_then(|key| self.observers.get(key)?.fetched.as_ref());
        let Some(fetched) = fetched else {
            return match self.kept.get(topic).cloned() {
                Some(kept) if block.bytes() == BLOCK_BYTES && offset < kept.payload.len() => {
                    self.send_content(request, &kept, None, offset);
                }
                Some(_) => self.answer(request, Code::BAD_REQUEST),
                None => self.answer(request, Code::NOT_FOUND),
            };
        };
        let publication = Rc::clone(&fetched.publication);
        if block.bytes() != BLOCK_BYTES || offset >= publication.payload.len() {
            return self.answer(request, Code::BAD_REQUEST);
        }
        let Some(key) = observer else { return };
        self.note_fetching(key);
        if offset + BLOCK_BYTES < publication.payload.len() {
            return self.send_content(request, &publication, None, offset);
        }
        if request.message.kind == Kind::Confirmable {
            self.send_empty(request.from, Kind::Acknowledgement, request.message.message_id);
        }
        let awaited = self.observers.get(key).and_then(|observer| observer.outstanding.as_ref());
        if !awaited.is_some_and(|Outstanding { what, .. }| matches!(what, Awaited::LastBlock(_))) {
            self.send_last_block(key, request.message.token);
        }
    }

    /// A client that fetches blocks has the notification, even if its acknowledgement was lost; its time limit starts again.
    fn note_fetching(&mut self, key: Key) {
        let until_ns = self.now_ns + self.settings.times.transmit_span_ns();
        let Some(observer) = self.observers.get_mut(key) else { return };
        observer.outstanding.take_if(|outstanding| matches!(outstanding.what, Awaited::Notification(_)));
        if let Some(fetched) = &mut observer.fetched {
            fetched.until_ns = until_ns;
        }
        self.set_observer_timer(key);
    }
}
