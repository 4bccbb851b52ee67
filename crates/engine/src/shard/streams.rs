//! Finds the stream of the ledger for a message, by its publisher.

use std::collections::HashMap;

use pubmark_model::fleet::StreamSource;

/// Streams of a subscriber by publisher.
pub(super) enum Streams {
    /// Every publisher from `first` on, or every second, third, … (distributed over brokers), with one filter each. The
    /// stream is computed by a subtraction and a division.
    Regular { first: u32, step: u32, base: u32, count: u32 },
    /// Any others: publisher → (stream, filters).
    Sparse { rows: HashMap<u32, (u32, u8)> },
}

impl Streams {
    pub(super) fn new(sources: &[StreamSource], base: u32) -> (Streams, u32) {
        let step = match sources {
            [first, second, ..] => second.publisher - first.publisher,
            _ => 1,
        };
        let regular = sources.windows(2).all(|pair| pair[0].publisher + step == pair[1].publisher)
            && sources.iter().all(|entry| entry.filters == 1);
        if let (true, Some(first)) = (regular, sources.first()) {
            let count = sources.len() as u32;
            return (Streams::Regular { first: first.publisher, step, base, count }, count);
        }
        let mut next = base;
        let mut row = |entry: &StreamSource| {
            let filters = u8::try_from(entry.filters).unwrap_or(u8::MAX);
            let stream = next;
            next += u32::from(filters);
            (entry.publisher, (stream, filters))
        };
        let rows = sources.iter().map(&mut row).collect();
        (Streams::Sparse { rows }, next - base)
    }

    #[inline]
    pub(super) fn find(&self, publisher: u32) -> Option<(u32, u8)> {
        match self {
            Streams::Regular { first, step, base, count } => {
                let distance = publisher.checked_sub(*first)?;
                let place =
                    if *step == 1 { distance } else { distance.is_multiple_of(*step).then(|| distance / step)? };
                (place < *count).then_some((base + place, 1))
            }
            Streams::Sparse { rows, .. } => rows.get(&publisher).copied(),
        }
    }

    /// Streams that more than one filter matches, with the number of filters.
    pub(super) fn overlapping(&self) -> impl Iterator<Item = (u32, u8)> {
        let rows = match self {
            Streams::Regular { .. } => None,
            Streams::Sparse { rows } => Some(rows.values().copied()),
        };
        rows.into_iter().flatten().filter(|(_, filters)| *filters > 1)
    }

    /// Each publisher with its stream and the number of filters.
    pub(super) fn rows(&self) -> Box<dyn ExactSizeIterator<Item = (u32, u32, u8)> + '_> {
        match self {
            Streams::Regular { first, step, base, count } => {
                Box::new((0..*count).map(move |place| (first + place * step, base + place, 1_u8)))
            }
            Streams::Sparse { rows } => {
                Box::new(rows.iter().map(|(publisher, (stream, filters))| (*publisher, *stream, *filters)))
            }
        }
    }
}
