//! What fills a payload behind its header: bytes of the pool, from a place that publisher and sequence number give, so
//! that a message can be made again for a repetition without being kept.

use pubmark_model::random::mix;

/// Appends `bytes` bytes of the pool, going round where it ends; zeros if the pool is empty.
pub fn append(pool: &[u8], publisher: u32, sequence: u32, bytes: usize, out: &mut Vec<u8>) {
    if bytes == 0 {
        return;
    }
    if pool.is_empty() {
        out.resize(out.len() + bytes, 0);
        return;
    }
    let place = mix(u64::from(publisher) << 32 | u64::from(sequence)) % pool.len() as u64;
    let first = &pool[place as usize..];
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
pub fn append_document(document: &[u8], bytes: usize, out: &mut Vec<u8>) {
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
        append(&pool, 3, 7, 1_000, &mut first);
        append(&pool, 3, 7, 1_000, &mut again);
        append(&pool, 3, 8, 1_000, &mut other);
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
        append(&[], 3, 7, 2, &mut out);
        assert_eq!(out, [1, 0, 0]);
    }
}
