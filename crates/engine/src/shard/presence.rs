//! When the system held the subscriptions of a shard's audiences. Each filter of an audience has a separate history,
//! because the system may grant one and refuse another.

use crate::shard_outcome::Absence;

/// The audiences of a shard, by their index on it.
#[derive(Debug)]
pub struct Presence {
    /// By audience: its number in the message accounting, and the index of its first filter.
    audiences: Vec<(u32, usize)>,
    /// By filter: number of sessions through which the system holds it.
    held: Vec<u32>,
    /// By filter: the epoch since which no session holds it. It is absent from the start until a session first holds
    /// it.
    absent_since: Vec<Option<u32>>,
    /// Absences that are over.
    over: Vec<Absence>,
}

impl Presence {
    /// No filter is held yet. `audiences` has, by index, the number in the message accounting and the number of
    /// filters.
    pub fn new(audiences: impl Iterator<Item = (u32, u16)>) -> Presence {
        let mut filters = 0;
        let row = |(number, count): (u32, u16)| {
            let first = filters;
            filters += usize::from(count);
            (number, first)
        };
        let audiences: Vec<_> = audiences.map(row).collect();
        Presence { audiences, held: vec![0; filters], absent_since: vec![Some(0); filters], over: Vec::new() }
    }

    /// An audience's number in the message accounting.
    pub fn number(&self, audience: u32) -> u32 {
        self.audiences[audience as usize].0
    }

    /// One more session of an audience holds a filter, from this epoch on.
    pub fn held_from(&mut self, audience: u32, filter: u16, epoch: u32) {
        let (subscriber, first) = self.audiences[audience as usize];
        let index = first + usize::from(filter);
        self.held[index] += 1;
        if let Some(from_epoch) = self.absent_since[index].take() {
            self.over.push(Absence { subscriber, filter, from_epoch, to_epoch: Some(epoch) });
        }
    }

    /// A session of an audience no longer holds a filter. If it was the last, the filter is absent from this epoch on.
    pub fn absent_from(&mut self, audience: u32, filter: u16, epoch: u32) {
        let index = self.audiences[audience as usize].1 + usize::from(filter);
        self.held[index] = self.held[index].saturating_sub(1);
        if self.held[index] == 0 {
            self.absent_since[index].get_or_insert(epoch);
        }
    }

    /// Does the system hold all filters of an audience?
    pub fn is_whole(&self, audience: u32) -> bool {
        let audience = audience as usize;
        let end = self.audiences.get(audience + 1).map_or(self.held.len(), |(_, first)| *first);
        self.absent_since[self.audiences[audience].1..end].iter().all(Option::is_none)
    }

    /// Discards absences that ended before anything was sent.
    pub fn begin(&mut self) {
        self.over.clear();
    }

    /// All absences, including those that last to the end.
    pub fn absences(&self) -> Vec<Absence> {
        let bounds = self.audiences.iter().map(|(_, first)| *first).skip(1).chain([self.held.len()]);
        let open = self.audiences.iter().zip(bounds).flat_map(|((subscriber, first), end)| {
            (0u16..).zip(&self.absent_since[*first..end]).filter_map(|(filter, since)| {
                since.map(|from_epoch| Absence { subscriber: *subscriber, filter, from_epoch, to_epoch: None })
            })
        });
        self.over.iter().copied().chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn absence(filter: u16, from_epoch: u32, to_epoch: Option<u32>) -> Absence {
        Absence { subscriber: 5, filter, from_epoch, to_epoch }
    }

    #[test]
    fn an_audience_is_absent_while_none_of_its_sessions_is_held() {
        let mut presence = Presence::new([(5, 1)].into_iter());
        presence.held_from(0, 0, 1);
        presence.held_from(0, 0, 2);
        presence.begin();
        presence.absent_from(0, 0, 3);
        assert_eq!((presence.absences(), presence.is_whole(0)), (vec![], true));
        presence.absent_from(0, 0, 4);
        assert_eq!(presence.absences(), [absence(0, 4, None)]);
        presence.held_from(0, 0, 6);
        assert_eq!(presence.absences(), [absence(0, 4, Some(6))]);
    }

    #[test]
    fn each_filter_is_held_by_itself() {
        let mut presence = Presence::new([(4, 1), (5, 3)].into_iter());
        presence.held_from(0, 0, 1);
        presence.held_from(1, 0, 1);
        presence.held_from(1, 2, 1);
        presence.begin();
        assert_eq!(presence.absences(), [absence(1, 0, None)]);
        assert_eq!([0, 1].map(|audience| presence.is_whole(audience)), [true, false]);
        presence.absent_from(1, 0, 3);
        presence.absent_from(1, 2, 3);
        assert_eq!(presence.absences(), [absence(0, 3, None), absence(1, 0, None), absence(2, 3, None)]);
    }
}
