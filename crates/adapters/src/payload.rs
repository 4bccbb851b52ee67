//! Payloads: the header, and behind it bytes of a pool, from a place that publisher and sequence number give, or a
//! document; so that a message can be made again for a repetition without being kept.

use std::ops::Range;

use pubmark_model::random::mix;
use pubmark_protocol::clients::{Body, Publication, ShardConfig, Will};
use pubmark_protocol::header;

/// Appends a whole payload of `payload_bytes` (at least [`header::COMPACT`]), header first.
pub fn append(
    config: &ShardConfig,
    publication: &Publication,
    sequence: u32,
    due_ns: u64,
    payload_bytes: usize,
    out: &mut Vec<u8>,
) {
    let publisher = publication.publisher;
    let body_bytes = payload_bytes - header::write(out, payload_bytes, config.run, publisher, sequence, due_ns);
    match &publication.body {
        None => append_pool(&config.body_pool, publisher, sequence, body_bytes, out),
        Some(Body::Pool(pool)) => append_pool(pool, publisher, sequence, body_bytes, out),
        Some(Body::Document(document)) => append_document(document, body_bytes, out),
    }
}

/// Appends the payload of a will: its header, and behind it bytes of the shard's pool.
pub fn append_will(config: &ShardConfig, will: &Will, out: &mut Vec<u8>) {
    header::write_will(out, config.run, will.publisher);
    let body_bytes = usize::from(will.payload_bytes).saturating_sub(header::WILL);
    append_pool(&config.body_pool, will.publisher, 0, body_bytes, out);
}

/// Appends a part of the payload that [`append`] would append, for protocols that send it in pieces. A part that begins
/// behind the payload's first byte begins behind its header.
pub fn append_part(
    config: &ShardConfig,
    publication: &Publication,
    sequence: u32,
    due_ns: u64,
    payload_bytes: usize,
    part: Range<usize>,
    out: &mut Vec<u8>,
) {
    let publisher = publication.publisher;
    let header_bytes = header::length_for(payload_bytes).unwrap_or(0);
    let skipped = if part.start == 0 {
        header::write(out, payload_bytes, config.run, publisher, sequence, due_ns);
        0
    } else {
        part.start.saturating_sub(header_bytes)
    };
    let bytes = part.end.saturating_sub(header_bytes + skipped);
    match &publication.body {
        None => append_pool_from(&config.body_pool, publisher, sequence, skipped, bytes, out),
        Some(Body::Pool(pool)) => append_pool_from(pool, publisher, sequence, skipped, bytes, out),
        Some(Body::Document(document)) => append_document(document.get(skipped..).unwrap_or(&[]), bytes, out),
    }
}

/// Appends `bytes` bytes of the pool, going round where it ends; zeros if the pool is empty.
fn append_pool(pool: &[u8], publisher: u32, sequence: u32, bytes: usize, out: &mut Vec<u8>) {
    append_pool_from(pool, publisher, sequence, 0, bytes, out);
}

/// The same from `skipped` bytes further on.
fn append_pool_from(pool: &[u8], publisher: u32, sequence: u32, skipped: usize, bytes: usize, out: &mut Vec<u8>) {
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
        append_pool(&pool, 3, 7, 1_000, &mut first);
        append_pool(&pool, 3, 7, 1_000, &mut again);
        append_pool(&pool, 3, 8, 1_000, &mut other);
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
    fn the_parts_of_a_payload_are_the_payload() {
        let config = ShardConfig {
            endpoints: [].into(),
            sources: [].into(),
            run: 1,
            body_pool: (0..=250).collect(),
            maximum_packet_bytes: 0,
            receive_stamps: false,
            keep_alive_s: 0,
        };
        for body in [None, Some(Body::Document((0..=99).collect()))] {
            let qos = pubmark_model::qos::Qos::BestEffort;
            let publication = Publication { publisher: 3, topic: "a".into(), qos, retain: false, body };
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            append(&config, &publication, 7, 5, 3_000, &mut whole);
            for part in [0..1_024, 1_024..2_048, 2_048..2_064, 2_064..3_000] {
                append_part(&config, &publication, 7, 5, 3_000, part, &mut parts);
            }
            assert_eq!(parts, whole);
        }
    }

    #[test]
    fn without_a_pool_a_body_is_zeros() {
        let mut out = vec![1];
        append_pool(&[], 3, 7, 2, &mut out);
        assert_eq!(out, [1, 0, 0]);
    }
}
