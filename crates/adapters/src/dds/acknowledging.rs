//! Messages that are not known to be acknowledged. DDS reports of a writer only whether all samples are acknowledged; so any
//! number of messages may wait for that, and they are stored as ranges of their numbers, which increase by one.

use std::collections::VecDeque;

use pubmark_protocol::events::Token;

/// Consecutive numbers of one publication, not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    publication: u16,
    first: u32,
    last: u32,
}

/// A session's messages that are not known to be acknowledged, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Unacknowledged {
    rows: VecDeque<Row>,
}

impl Unacknowledged {
    /// One more was written.
    pub(super) fn add(&mut self, token: Token) {
        let Token { publication, sequence } = token;
        match self.rows.iter_mut().rev().find(|row| row.publication == publication) {
            Some(row) if row.last.checked_add(1) == Some(sequence) => row.last = sequence,
            _ => self.rows.push_back(Row { publication, first: sequence, last: sequence }),
        }
    }

    /// Is there none?
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Has a publication any?
    pub(super) fn has(&self, publication: u16) -> bool {
        self.rows.iter().any(|row| row.publication == publication)
    }

    /// Takes those of a publication, oldest first.
    pub(super) fn take_of(&mut self, publication: u16, mut each: impl FnMut(Token)) {
        self.rows.retain(|row| {
            if row.publication == publication {
                row.tokens().for_each(&mut each);
            }
            row.publication != publication
        });
    }

    /// Takes all, oldest first.
    pub(super) fn take(&mut self, each: impl FnMut(Token)) {
        std::mem::take(&mut self.rows).iter().flat_map(Row::tokens).for_each(each);
    }
}

impl Row {
    fn tokens(&self) -> impl Iterator<Item = Token> + use<> {
        let publication = self.publication;
        (self.first..=self.last).map(move |sequence| Token { publication, sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(publication: u16, unacknowledged: &mut Unacknowledged) -> Vec<u32> {
        let mut numbers = vec![];
        unacknowledged.take_of(publication, |token| numbers.push(token.sequence));
        numbers
    }

    #[test]
    fn numbers_in_a_row_take_the_room_of_one() {
        let mut unacknowledged = Unacknowledged::default();
        for sequence in 1..=1_000_000 {
            unacknowledged.add(Token { publication: 0, sequence });
        }
        assert_eq!(unacknowledged.rows.len(), 1);
        assert_eq!(numbers(0, &mut unacknowledged).len(), 1_000_000);
        assert!(unacknowledged.is_empty());
    }

    #[test]
    fn publications_are_acknowledged_separately() {
        let mut unacknowledged = Unacknowledged::default();
        for (publication, sequence) in [(0, 1), (1, 1), (0, 2), (0, 3), (1, 4)] {
            unacknowledged.add(Token { publication, sequence });
        }
        assert_eq!(numbers(0, &mut unacknowledged), [1, 2, 3]);
        assert!(!unacknowledged.has(0) && unacknowledged.has(1));
        let mut rest = vec![];
        unacknowledged.take(|token| rest.push(token.sequence));
        assert_eq!(rest, [1, 4]);
    }
}
