//! When a publisher sent its messages, recorded with enough precision to determine which of them were sent during a
//! subscriber's absence.
//!
//! An epoch is a number that both sides share. It counts the beginnings and ends of absences if all shards share
//! memory, and ticks of the run's clock if they do not ([`crate::progress::Progress::epoch`]).

use pubmark_metrics::holes::Range;
use serde::{Deserialize, Serialize};

/// Largest number of entries of all publishers of a shard together: 64 MB. A publisher may always have
/// [`MINIMUM_ENTRIES`] entries.
const SHARD_LIMIT: usize = 8 << 20;
/// Number of entries that a publisher may always have.
const MINIMUM_ENTRIES: usize = 64;

/// Number of entries that each of `publishers` publishers of a shard may have.
pub fn limit_for(publishers: usize) -> usize {
    (SHARD_LIMIT / publishers.max(1)).max(MINIMUM_ENTRIES)
}

/// The first sequence number that a publisher sent in each epoch. The number of entries is bounded: beyond the limit,
/// neighbouring epochs are merged. An absence then covers whole merged epochs, so that no message is called lost which
/// may have been sent during an absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epochs {
    /// Number of epochs merged into one, a power of two.
    width: u32,
    /// (First epoch of a merged one, first sequence number sent in it), ascending.
    entries: Vec<(u32, u32)>,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs { width: 1, entries: Vec::new() }
    }
}

impl Epochs {
    /// Records that `sequence`, higher than all before, is sent in `epoch`.
    pub fn note(&mut self, epoch: u32, sequence: u32, limit: usize) {
        if self.starts_another(epoch) {
            while self.entries.len() >= limit && self.width < 1 << 31 {
                self.merge_neighbours();
            }
            // After merging, `epoch` may be in the same merged epoch as the message before.
            if self.starts_another(epoch) {
                self.entries.push((self.floor(epoch), sequence));
            }
        }
    }

    /// Were epochs merged? Then it is not known exactly which messages were sent during an absence.
    pub fn are_merged(&self) -> bool {
        self.width > 1
    }

    fn starts_another(&self, epoch: u32) -> bool {
        self.entries.last().is_none_or(|(last, _)| *last < self.floor(epoch))
    }

    fn floor(&self, epoch: u32) -> u32 {
        epoch - epoch % self.width
    }

    fn merge_neighbours(&mut self) {
        self.width *= 2;
        let width = self.width;
        self.entries.iter_mut().for_each(|(epoch, _)| *epoch -= *epoch % width);
        self.entries.dedup_by_key(|(epoch, _)| *epoch);
    }

    /// Sequence numbers up to `last` that were sent from epoch `from` on and before epoch `to`; without `to`, up to the
    /// end.
    pub fn submitted(&self, from: u32, to: Option<u32>, last: u32) -> Option<Range> {
        let first = self.first_since(from)?;
        // A merged epoch in which an absence ends belongs to the absence as a whole.
        let next = to.and_then(|to| self.first_at_or_after(to.checked_next_multiple_of(self.width)?));
        let end = next.unwrap_or(last.saturating_add(1));
        (first < end).then(|| Range { first, last: end - 1 })
    }

    /// First sequence number that was sent in this epoch, or in one merged with it, or later.
    pub fn first_since(&self, epoch: u32) -> Option<u32> {
        self.first_at_or_after(self.floor(epoch))
    }

    fn first_at_or_after(&self, epoch: u32) -> Option<u32> {
        let index = self.entries.partition_point(|(seen, _)| *seen < epoch);
        self.entries.get(index).map(|(_, first)| *first)
    }
}

impl FromIterator<(u32, u32)> for Epochs {
    /// From (epoch, first sequence number sent in it), ascending.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(entries: I) -> Epochs {
        let mut epochs = Epochs::default();
        entries.into_iter().for_each(|(epoch, sequence)| epochs.note(epoch, sequence, usize::MAX));
        epochs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_the_epochs_in_which_they_were_handed_over() {
        let epochs: Epochs = [(0, 1), (1, 4), (2, 7), (5, 9)].into_iter().collect();
        assert_eq!(epochs.submitted(1, Some(2), 20), Some(Range { first: 4, last: 6 }));
        assert_eq!(epochs.submitted(3, Some(9), 20), Some(Range { first: 9, last: 20 }));
        assert_eq!(epochs.submitted(3, Some(4), 20), None);
        assert_eq!(epochs.submitted(6, None, 20), None);
    }

    #[test]
    fn past_the_limit_epochs_are_merged_and_an_absence_covers_whole_ones() {
        let mut epochs = Epochs::default();
        (0..1_000).for_each(|epoch| epochs.note(epoch, epoch + 1, 100));
        assert!(epochs.entries.len() <= 100, "{}", epochs.entries.len());
        assert_eq!(epochs.width, 16);
        // Epochs 33 and 34 are in the merged epoch 32 to 47.
        assert_eq!(epochs.submitted(33, Some(35), 1_000), Some(Range { first: 33, last: 48 }));
        assert_eq!(epochs.submitted(0, None, 1_000), Some(Range { first: 1, last: 1_000 }));
    }
}
