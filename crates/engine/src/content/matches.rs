//! The publishers' side of content filters: which of their messages match the predicates.

use std::collections::HashSet;
use std::sync::Arc;

use pubmark_metrics::holes::Range;
use pubmark_model::fleet::StreamSource;
use pubmark_model::template::{BodyDraw, Filling};
use pubmark_model::workload::Workload;
use pubmark_protocol::body::Body;
use serde::{Deserialize, Serialize};

/// Largest number of notes of all publishers of a shard: 64 MiB, which is half a billion messages with one predicate.
const SHARD_BITS: u64 = 64 << 23;

/// Bits per word.
const BITS: usize = u64::BITS as usize;

/// One bit for each measured message of a publisher, in the order of their sequence numbers: whether the predicate
/// holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchNotes {
    /// The subscriber group with the predicate.
    pub group: u16,
    words: Vec<u64>,
    count: u32,
    /// The limit was reached, so no notes are stored.
    full: bool,
}

impl MatchNotes {
    fn new(group: u16) -> MatchNotes {
        MatchNotes { group, words: vec![], count: 0, full: false }
    }

    /// Notes of messages for which the predicate holds or not.
    #[cfg(test)]
    pub fn of(group: u16, all: &[bool]) -> MatchNotes {
        let mut notes = MatchNotes::new(group);
        all.iter().for_each(|holds| notes.push(*holds, &mut 0));
        notes
    }

    /// Adds the note of the next message; `noted` is the number of bits of all publishers of the shard.
    fn push(&mut self, holds: bool, noted: &mut u64) {
        let place = self.count as usize;
        if self.full || *noted >= SHARD_BITS {
            *noted -= u64::from(self.count);
            (self.words, self.count, self.full) = (vec![], 0, true);
            return;
        }
        *noted += 1;
        if place.is_multiple_of(BITS) {
            self.words.push(0);
        }
        self.words[place / BITS] |= u64::from(holds) << (place % BITS);
        self.count += 1;
    }

    /// Does it have a note for each of `messages` messages?
    pub fn covers(&self, messages: u64) -> bool {
        !self.full && u64::from(self.count) == messages && self.words.len() == (self.count as usize).div_ceil(BITS)
    }

    /// Does the predicate hold for this message, counted from 0?
    pub fn holds(&self, message: u32) -> bool {
        let word = self.words.get(message as usize / BITS).copied().unwrap_or(0);
        word >> (message as usize % BITS) & 1 == 1
    }

    /// For how many messages of a range, counted from 0, does the predicate hold?
    pub fn count_in(&self, range: Range) -> u64 {
        let of_word = |word: usize| {
            let first = (range.first as usize).saturating_sub(word * BITS);
            let last = (range.last as usize - word * BITS).min(BITS - 1);
            let mask = (u64::MAX >> (BITS - 1 - last)) & (u64::MAX << first);
            u64::from((self.words.get(word).copied().unwrap_or(0) & mask).count_ones())
        };
        (range.first as usize / BITS..=range.last as usize / BITS).map(of_word).sum()
    }
}

/// State that the publishers of a shard share for their notes.
#[derive(Debug, Default)]
pub struct NoteBuffer {
    /// Buffer for one document.
    document: Vec<u8>,
    /// Number of bits of all publishers.
    noted: u64,
}

/// The predicates of subscribers that receive a publisher's messages.
pub struct Matching {
    workload: Arc<Workload>,
    body: Body,
    /// Wall clock − `CLOCK_MONOTONIC`, ns, as used by the adapter that creates the payloads.
    wall_ahead_ns: i64,
    /// Groups for which the system filters, with the number of their audiences that receive this publisher's messages.
    filtered: Vec<(u16, u32)>,
}

/// A message that was passed to the adapter.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    /// The values that the fields of its body depend on.
    pub draw: BodyDraw,
    /// When it was due, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// Is it measured?
    pub is_measured: bool,
}

impl Matching {
    /// For a publisher with this body.
    pub fn new(workload: &Arc<Workload>, body: Body, wall_ahead_ns: i64) -> Matching {
        Matching { workload: Arc::clone(workload), body, wall_ahead_ns, filtered: vec![] }
    }

    /// Adds the subscriber groups for which the system filters, each with the number of its audiences that receive this
    /// publisher's messages.
    pub fn with_filters(self, filtered: Vec<(u16, u32)>) -> Matching {
        Matching { filtered, ..self }
    }

    /// Number of audiences that receive this publisher's messages and for which the system filters.
    pub fn filtered_audiences(&self) -> u32 {
        self.filtered.iter().map(|(_, audiences)| audiences).sum()
    }

    /// Creates the document of a message again. If the message is measured, records whether each predicate holds.
    /// Returns the number of audiences that the system must not deliver it to.
    pub fn note(&self, message: Noted, room: &mut NoteBuffer, notes: &mut [MatchNotes]) -> u32 {
        let Noted { draw, due_ns, is_measured } = message;
        if !is_measured && self.filtered.is_empty() {
            return 0;
        }
        let NoteBuffer { document, noted } = room;
        document.clear();
        let document: &[u8] = match &self.body {
            Body::Document(text) => text,
            Body::Template { template, device } => {
                let due_unix_ns = due_ns.saturating_add_signed(self.wall_ahead_ns);
                template.append(&Filling { draw, device, due_unix_ns }, document);
                document
            }
            // A validated workload has no such body here.
            Body::Pool(_) | Body::Transformed(_) => &[],
        };
        let mut excluded = 0;
        for notes in notes {
            let predicate = self.workload.subscribers[usize::from(notes.group)].predicate.as_ref();
            let holds = predicate.is_some_and(|predicate| predicate.holds(document) == Ok(true));
            let audiences =
                self.filtered.iter().find(|(group, _)| *group == notes.group).map_or(0, |(_, count)| *count);
            excluded += if holds { 0 } else { audiences };
            if is_measured {
                notes.push(holds, noted);
            }
        }
        excluded
    }
}

/// By publisher: notes for each subscriber group with a predicate that receives its topic, still empty.
pub fn notes_of_publishers(
    workload: &Workload,
    fleet: &pubmark_model::fleet::Fleet,
    streams: &[Arc<[StreamSource]>],
) -> Vec<Vec<MatchNotes>> {
    if workload.subscribers.iter().all(|group| group.predicate.is_none()) {
        return vec![];
    }
    let mut notes: Vec<Vec<MatchNotes>> = vec![vec![]; fleet.devices().len()];
    // Subscribers with the same filters share a list, which is processed once.
    let mut seen = HashSet::new();
    for (subscriber, sources) in fleet.subscribers().iter().zip(streams) {
        let has_predicate = workload.subscribers[usize::from(subscriber.group)].predicate.is_some();
        if !has_predicate || !seen.insert((subscriber.group, Arc::as_ptr(sources))) {
            continue;
        }
        for entry in sources.iter() {
            let of_publisher = &mut notes[entry.publisher as usize];
            if of_publisher.iter().all(|notes| notes.group != subscriber.group) {
                of_publisher.push(MatchNotes::new(subscriber.group));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notes_without_room_are_none() {
        let mut notes = MatchNotes::new(0);
        let mut noted = SHARD_BITS - 100;
        (0..100).for_each(|_| notes.push(true, &mut noted));
        assert!(notes.covers(100) && !notes.covers(99));
        notes.push(true, &mut noted);
        assert_eq!(noted, SHARD_BITS - 100, "their room is free for others");
        assert!(!notes.covers(101) && !notes.covers(0));
        assert_eq!(notes.count_in(Range { first: 0, last: 99 }), 0);
    }

    proptest! {
        #[test]
        fn counts_of_ranges_agree_with_a_plain_list(
            bits in proptest::collection::vec(any::<bool>(), 1..300), first: proptest::sample::Index, length: proptest::sample::Index,
        ) {
            let mut notes = MatchNotes::new(0);
            bits.iter().for_each(|holds| notes.push(*holds, &mut 0));
            let first = first.index(bits.len());
            let last = first + length.index(bits.len() - first);
            let expected = bits[first..=last].iter().filter(|holds| **holds).count() as u64;
            prop_assert_eq!(notes.count_in(Range { first: first as u32, last: last as u32 }), expected);
            prop_assert!((0..bits.len()).all(|place| notes.holds(place as u32) == bits[place]));
            prop_assert!(notes.covers(bits.len() as u64));
        }
    }
}
