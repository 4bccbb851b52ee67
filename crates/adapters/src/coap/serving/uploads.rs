//! Requests in blocks (RFC 7959, Block1), distinguished by sender, path and Request-Tag (RFC 9175 §3).

use std::collections::HashMap;
use std::net::SocketAddr;

use pubmark_wire::coap::{Block, Code};

use super::reply::ShortBytes;

/// Most requests in blocks at the same time.
const MOST: usize = 16_384;
/// Bytes of all of them, at most.
const MOST_BYTES: usize = 64 << 20;

/// Which request a block is of.
pub type Key = (SocketAddr, ShortBytes, Box<str>);

/// The blocks of a request that have arrived.
#[derive(Debug)]
struct Upload {
    bytes: Vec<u8>,
    /// When it is given up.
    until_ns: u64,
}

/// What a block leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum BlockOutcome {
    /// More must come.
    More,
    /// The request is whole.
    Whole(Vec<u8>),
    /// It is refused.
    Refused(Code),
}

/// Requests of which some blocks have arrived.
#[derive(Debug, Default)]
pub struct Uploads {
    entries: HashMap<Key, Upload>,
    bytes: usize,
}

impl Uploads {
    /// Adds a block; a whole request has at most `most_bytes`.
    pub fn take(&mut self, key: Key, block: Block, payload: &[u8], most_bytes: usize, until_ns: u64) -> BlockOutcome {
        let fits = if block.more { payload.len() == block.bytes() } else { payload.len() <= block.bytes() };
        if !fits || payload.is_empty() {
            return BlockOutcome::Refused(Code::BAD_REQUEST);
        }
        if block.number == 0 {
            // It begins anew.
            self.remove(&key);
            if self.entries.len() >= MOST {
                return BlockOutcome::Refused(Code::SERVICE_UNAVAILABLE);
            }
            self.entries.insert(key.clone(), Upload { bytes: Vec::new(), until_ns });
        }
        let Some(upload) = self.entries.get_mut(&key).filter(|upload| upload.bytes.len() == block.offset()) else {
            return BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        };
        if upload.bytes.len() + payload.len() > most_bytes {
            self.remove(&key);
            return BlockOutcome::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        if self.bytes + payload.len() > MOST_BYTES {
            self.remove(&key);
            return BlockOutcome::Refused(Code::SERVICE_UNAVAILABLE);
        }
        upload.bytes.extend_from_slice(payload);
        upload.until_ns = until_ns;
        self.bytes += payload.len();
        if block.more { BlockOutcome::More } else { BlockOutcome::Whole(self.remove(&key)) }
    }

    fn remove(&mut self, key: &Key) -> Vec<u8> {
        let bytes = self.entries.remove(key).map(|upload| upload.bytes).unwrap_or_default();
        self.bytes -= bytes.len();
        bytes
    }

    /// When [`Uploads::forget`] has something to do.
    pub fn due_ns(&self) -> Option<u64> {
        self.entries.values().map(|upload| upload.until_ns).min()
    }

    /// Gives up those whose time is over.
    pub fn forget(&mut self, now_ns: u64) {
        self.entries.retain(|_, upload| upload.until_ns > now_ns);
        self.bytes = self.entries.values().map(|upload| upload.bytes.len()).sum();
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Uploads::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_put_together_by_sender_path_and_tag() {
        let mut uploads = Uploads::default();
        let key = |tag: &[u8]| (SocketAddr::from(([127, 0, 0, 1], 9)), ShortBytes::of(tag), Box::from("a"));
        let block = |number, more| Block { number, more, exponent: 0 };
        let mut take = |tag: &[u8], block, payload: &[u8]| uploads.take(key(tag), block, payload, 40, 100);
        assert_eq!(take(b"x", block(0, true), &[1; 16]), BlockOutcome::More);
        assert_eq!(take(b"y", block(0, true), &[2; 16]), BlockOutcome::More);
        assert_eq!(take(b"x", block(2, true), &[1; 16]), BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE));
        assert_eq!(take(b"x", block(1, true), &[1; 15]), BlockOutcome::Refused(Code::BAD_REQUEST));
        assert_eq!(take(b"z", block(1, false), &[1; 15]), BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE));
        assert_eq!(take(b"x", block(1, false), &[3; 4]), BlockOutcome::Whole([[1; 16].as_slice(), &[3; 4]].concat()));
        assert_eq!(take(b"y", block(1, true), &[2; 16]), BlockOutcome::More);
        assert_eq!(take(b"y", block(2, false), &[2; 9]), BlockOutcome::Refused(Code::REQUEST_ENTITY_TOO_LARGE));
        assert_eq!(take(b"y", block(2, false), &[2; 8]), BlockOutcome::Refused(Code::REQUEST_ENTITY_INCOMPLETE));
        assert_eq!(take(b"y", block(0, true), &[2; 16]), BlockOutcome::More);
        assert_eq!((uploads.bytes, uploads.due_ns()), (16, Some(100)));
        uploads.forget(100);
        assert_eq!((uploads.bytes, uploads.due_ns()), (0, None));
    }

    #[test]
    fn stored_replies_are_bounded() {
        let mut uploads = Uploads::default();
        let block = Block { number: 0, more: true, exponent: 6 };
        for port in 0..=MOST as u16 {
            let key = (SocketAddr::from(([127, 0, 0, 1], port)), ShortBytes::default(), Box::from("a"));
            let refused = usize::from(port) == MOST;
            let taken = uploads.take(key, block, &[0; 1_024], usize::MAX, 1);
            assert_eq!(taken == BlockOutcome::Refused(Code::SERVICE_UNAVAILABLE), refused, "{port}");
        }
        assert!(uploads.bytes <= MOST_BYTES);
    }
}
