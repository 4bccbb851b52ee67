//! The body of a payload, after its header: bytes of a pool, from an offset that depends on publisher and sequence number, a
//! document, or the output of a template; and these after the steps of `transform`.

use std::sync::Arc;

use pubmark_model::random::mix;
use pubmark_model::template::{BodyDraw, Filling, Template};

use crate::transform::TransformedBody;

/// The content of a payload after its header.
#[derive(Clone, Debug)]
pub enum Body {
    /// Bytes of a pool, from an offset that depends on publisher and sequence number; the pool repeats at its end.
    Pool(Arc<[u8]>),
    /// A document from its beginning, cut or padded with spaces.
    Document(Arc<[u8]>),
    /// The output of a template for each message, padded with spaces.
    Template {
        /// The template.
        template: Arc<Template>,
        /// Name of the device, as its fields have it.
        device: Box<str>,
    },
    /// One of the others after the steps of `transform`. Missing bytes, as in a probe, are zeros.
    Transformed(Arc<TransformedBody>),
}

/// The message whose body is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Number of the publisher in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// When it was due, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// What the fields of a template depend on.
    pub draw: BodyDraw,
    /// Wall clock − `CLOCK_MONOTONIC`, ns: see [`crate::clients::ShardConfig::wall_ahead_ns`].
    pub wall_ahead_ns: i64,
    /// Bytes of the body before the steps of `transform`; 0 if there are none.
    pub plain_bytes: u32,
}

impl Body {
    /// Appends `bytes` bytes of a message's body, from its byte `skipped` on.
    pub fn append(&self, message: &Filled, skipped: usize, bytes: usize, out: &mut Vec<u8>) {
        match self {
            Body::Pool(pool) => append_pool(pool, message.publisher, message.sequence, skipped, bytes, out),
            Body::Document(document) => append_document(document.get(skipped..).unwrap_or(&[]), bytes, out),
            Body::Template { template, device } => {
                let due_unix_ns = message.due_ns.saturating_add_signed(message.wall_ahead_ns);
                let at = out.len();
                template.append(&Filling { draw: message.draw, device, due_unix_ns }, out);
                if skipped > 0 {
                    out.drain(at..out.len().min(at + skipped));
                }
                out.resize(at + bytes, b' ');
            }
            Body::Transformed(body) => body.append(message, skipped, bytes, out),
        }
    }
}

/// Appends `bytes` bytes of a message's part of the pool from `skipped` on; the pool repeats at its end. Zeros if it is empty.
pub fn append_pool(pool: &[u8], publisher: u32, sequence: u32, skipped: usize, bytes: usize, out: &mut Vec<u8>) {
    if bytes == 0 {
        return;
    }
    if pool.is_empty() {
        out.resize(out.len() + bytes, 0);
        return;
    }
    let place = mix(u64::from(publisher) << 32 | u64::from(sequence)) % pool.len() as u64;
    let place = (place as usize + skipped) % pool.len();
    let first = &pool[place..];
    let first = &first[..bytes.min(first.len())];
    out.extend_from_slice(first);
    let mut missing = bytes - first.len();
    while missing > 0 {
        let part = &pool[..missing.min(pool.len())];
        out.extend_from_slice(part);
        missing -= part.len();
    }
}

/// Appends the first `bytes` bytes of a document, padded with spaces if it is shorter.
fn append_document(document: &[u8], bytes: usize, out: &mut Vec<u8>) {
    let part = &document[..bytes.min(document.len())];
    out.extend_from_slice(part);
    out.resize(out.len() + bytes - part.len(), b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_goes_round_a_pool_smaller_than_itself_and_can_be_made_again() {
        let pool: Vec<u8> = (0..100).collect();
        let (mut first, mut again, mut other) = (Vec::new(), Vec::new(), Vec::new());
        append_pool(&pool, 3, 7, 0, 1_000, &mut first);
        append_pool(&pool, 3, 7, 0, 1_000, &mut again);
        append_pool(&pool, 3, 8, 0, 1_000, &mut other);
        assert_eq!((first.len(), &first), (1_000, &again));
        assert_ne!(first, other);
        assert!(first.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 100));
    }

    #[test]
    fn a_document_is_cut_or_padded_with_spaces() {
        let (mut cut, mut padded) = (Vec::new(), Vec::new());
        append_document(b"{\"a\":1}", 4, &mut cut);
        append_document(b"{\"a\":1}", 9, &mut padded);
        assert_eq!((cut.as_slice(), padded.as_slice()), (&b"{\"a\""[..], &b"{\"a\":1}  "[..]));
    }

    #[test]
    fn without_a_pool_a_body_is_zeros() {
        let mut out = vec![1];
        append_pool(&[], 3, 7, 0, 2, &mut out);
        assert_eq!(out, [1, 0, 0]);
    }
}
