//! Requests: the dispatch by method, and publishing.

use std::net::SocketAddr;

use pubmark_wire::coap::{Block, Code, Kind, Message, Writer, decode_topic, number, uint};

use super::broker::CoapBroker;
use super::peer::MOST_UPLOADS;
use super::upload::{BlockOutcome, Upload};
use crate::net::Key;

/// A request, and its client.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) from: SocketAddr,
    pub(super) peer: Key,
    pub(super) message: &'a Message<'a>,
}

/// Critical options that a request may have; any other one is refused (RFC 7252 §5.4.1). Every value of Accept is satisfied, as
/// a payload has no format here.
const UNDERSTOOD: [u16; 6] =
    [number::URI_HOST, number::URI_PORT, number::URI_PATH, number::ACCEPT, number::BLOCK1, number::BLOCK2];

impl CoapBroker {
    pub(super) fn on_request(&mut self, from: SocketAddr, message: &Message<'_>) {
        let Some(peer) = self.peer_at(from) else {
            self.statistics.refused += 1;
            return self.refuse_stranger(from, message);
        };
        let request = Request { from, peer, message };
        if let Some(code) = unacceptable(message) {
            return self.answer(request, code);
        }
        match message.code {
            Code::PUT => self.put(request),
            Code::GET => self.get(request),
            _ => self.answer(request, Code::METHOD_NOT_ALLOWED),
        }
    }

    fn refuse_stranger(&mut self, from: SocketAddr, message: &Message<'_>) {
        self.out.clear();
        if message.kind == Kind::Confirmable {
            let code = Code::SERVICE_UNAVAILABLE;
            Writer::new(Kind::Acknowledgement, code, message.message_id, message.token, &mut self.out).end(&[]);
            self.transmit_response(from);
        }
    }

    /// Publishes, unless the message is a repetition.
    fn put(&mut self, request: Request<'_>) {
        let message = request.message;
        let now_ns = self.now_ns;
        let Some(peer) = self.peers.get_mut(request.peer) else { return };
        if let Some(code) = peer.answered.find(message.message_id, now_ns) {
            self.statistics.repeated_requests += 1;
            return self.answer(request, code);
        }
        let code = self.take(request);
        let times = self.settings.times;
        let lifetime_ns =
            if message.kind == Kind::Confirmable { times.exchange_lifetime_ns() } else { times.once_lifetime_ns() };
        if let Some(peer) = self.peers.get_mut(request.peer) {
            peer.answered.note(message.message_id, code, now_ns + lifetime_ns);
        }
        self.answer(request, code);
    }

    /// Handles a publication or a block of one; returns the response code.
    fn take(&mut self, request: Request<'_>) -> Code {
        let message = request.message;
        let mut topic = String::new();
        if !decode_topic(message, &mut topic) {
            return Code::NOT_FOUND;
        }
        if topic.split('/').any(|level| matches!(level, "+" | "#")) {
            return Code::BAD_REQUEST;
        }
        let Some(value) = message.options.get(number::BLOCK1) else {
            if message.payload.len() > self.settings.maximum_payload_bytes {
                return Code::REQUEST_ENTITY_TOO_LARGE;
            }
            return published(self.publish(&topic, message.payload));
        };
        let Some(block) = Block::read(value) else { return Code::BAD_REQUEST };
        let announced = message.options.get(number::SIZE1).and_then(uint).unwrap_or(0);
        if announced as usize > self.settings.maximum_payload_bytes {
            return Code::REQUEST_ENTITY_TOO_LARGE;
        }
        self.take_block(request.peer, &topic, block, message.payload)
    }

    fn take_block(&mut self, key: Key, topic: &str, block: Block, payload: &[u8]) -> Code {
        let most_bytes = self.settings.maximum_payload_bytes;
        let until_ns = self.now_ns + self.settings.times.exchange_lifetime_ns();
        if self.upload_bytes + payload.len() > self.settings.maximum_upload_bytes {
            return Code::SERVICE_UNAVAILABLE;
        }
        let Some(peer) = self.peers.get_mut(key) else { return Code::SERVICE_UNAVAILABLE };
        let found = peer.uploads.iter().position(|upload| *upload.topic == *topic);
        let place = match found {
            Some(place) => place,
            None if block.number > 0 => return Code::REQUEST_ENTITY_INCOMPLETE,
            None if peer.uploads.len() >= MOST_UPLOADS => return Code::SERVICE_UNAVAILABLE,
            None => {
                peer.uploads.push(Upload { topic: topic.into(), bytes: Vec::new(), until_ns });
                peer.uploads.len() - 1
            }
        };
        let upload = &mut peer.uploads[place];
        let before = upload.bytes.len();
        let taken = upload.take(block, payload, most_bytes);
        upload.until_ns = until_ns;
        self.upload_bytes = self.upload_bytes - before + upload.bytes.len();
        match taken {
            BlockOutcome::More => Code::CONTINUE,
            BlockOutcome::Refused(code) => {
                let bytes = peer.uploads.swap_remove(place).bytes.len();
                self.upload_bytes -= bytes;
                code
            }
            BlockOutcome::Whole => {
                let bytes = peer.uploads.swap_remove(place).bytes;
                self.upload_bytes -= bytes.len();
                published(self.publish(topic, &bytes))
            }
        }
    }

    /// Drops incomplete payloads of a client whose next block did not arrive in time.
    pub(super) fn drop_late_uploads(&mut self, key: Key) {
        let now_ns = self.now_ns;
        let Some(peer) = self.peers.get_mut(key) else { return };
        let (mut dropped, mut bytes) = (0, 0);
        peer.uploads.retain(|upload| {
            let late = upload.until_ns <= now_ns;
            dropped += u64::from(late);
            bytes += if late { upload.bytes.len() } else { 0 };
            !late
        });
        self.upload_bytes -= bytes;
        self.statistics.dropped_uploads += dropped;
    }

    /// Responds with a code only: in the acknowledgement if the request is confirmable. The response depends only on the
    /// request and its code, so that a repetition gets the same one.
    pub(super) fn answer(&mut self, request: Request<'_>, code: Code) {
        let message = request.message;
        self.count_refusal(code);
        let confirmable = message.kind == Kind::Confirmable;
        if is_unwanted(message, code) {
            if confirmable {
                self.send_empty(request.from, Kind::Acknowledgement, message.message_id);
            }
            return;
        }
        let Some((kind, message_id)) = self.answer_head(request) else { return };
        let most_bytes = self.settings.maximum_payload_bytes;
        self.out.clear();
        let mut writer = Writer::new(kind, code, message_id, message.token, &mut self.out);
        if let Some(block) = message.options.get(number::BLOCK1).and_then(Block::read) {
            writer.uint(number::BLOCK1, Block { more: code == Code::CONTINUE, ..block }.value());
        }
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            writer.uint(number::SIZE1, u32::try_from(most_bytes).unwrap_or(u32::MAX));
        }
        writer.end(&[]);
        self.transmit_response(request.from);
    }

    /// Kind and identifier of the response to a request.
    pub(super) fn answer_head(&mut self, request: Request<'_>) -> Option<(Kind, u16)> {
        if request.message.kind == Kind::Confirmable {
            return Some((Kind::Acknowledgement, request.message.message_id));
        }
        self.peers.get_mut(request.peer).map(|peer| (Kind::NonConfirmable, peer.message_id()))
    }
}

fn published(is_new: bool) -> Code {
    if is_new { Code::CREATED } else { Code::CHANGED }
}

/// Is there a critical option that the broker does not understand?
fn unacceptable(message: &Message<'_>) -> Option<Code> {
    let unknown = |(found, _): &(u16, &[u8])| number::is_critical(*found) && !UNDERSTOOD.contains(found);
    let (found, _) = message.options.into_iter().find(unknown)?;
    Some(match found {
        number::PROXY_URI | number::PROXY_SCHEME => Code::PROXYING_NOT_SUPPORTED,
        _ => Code::BAD_OPTION,
    })
}

/// RFC 7967: the client wants no responses of this class.
fn is_unwanted(message: &Message<'_>, code: Code) -> bool {
    let unwanted = message.options.get(number::NO_RESPONSE).and_then(uint).unwrap_or(0);
    unwanted & (1u32 << code.class().saturating_sub(1)) != 0
}
