//! Determines which of a publisher's messages were sent during an absence of a subscription.
//!
//! A stream is absent while the system holds none of the filters that match its topic. A refused filter has no effect
//! on a message that another filter of the same subscription matches.

use std::cell::OnceCell;
use std::collections::HashMap;

use pubmark_metrics::holes::Range;
use pubmark_model::topic::TopicFilter;

use crate::plan::RunPlan;
use crate::shard_outcome::{Absence, PublisherBook, StreamRow};

/// The filters of an audience's subscription that match a publisher's topic, by (audience, publisher).
pub type Matching<'a> = dyn Fn(u32, u32) -> Vec<u16> + 'a;

/// The filters of a plan that match its topics. Computed at the first call, because most runs have no absence.
pub fn matching(plan: &RunPlan) -> impl Fn(u32, u32) -> Vec<u16> + '_ {
    let sessions = plan.subscribe_at.sessions_per_subscriber().max(1) as u32;
    // By audience: its first member. Audiences are numbered in the order of their first members.
    let members: OnceCell<Vec<usize>> = OnceCell::new();
    move |audience, publisher| {
        let members = members.get_or_init(|| {
            let mut members = vec![];
            for (subscriber, number) in plan.fleet.audiences(&plan.workload).into_iter().enumerate() {
                if number as usize == members.len() {
                    members.push(subscriber);
                }
            }
            members
        });
        let member = members.get((audience / sessions) as usize).map(|member| &plan.fleet.subscribers()[*member]);
        let (Some(member), Some(device)) = (member, plan.fleet.devices().get(publisher as usize)) else {
            return vec![];
        };
        let topic = plan.fleet.topic(&plan.workload, device);
        let filters = (0u16..).zip(plan.fleet.filters(&plan.workload, member));
        filters.filter(|(_, filter)| TopicFilter(filter.clone()).matches(&topic)).map(|(place, _)| place).collect()
    }
}

/// The absences of a shard's audiences.
pub struct Absences<'a> {
    by_audience: HashMap<u32, Vec<Absence>>,
    matching: &'a Matching<'a>,
}

impl<'a> Absences<'a> {
    /// Sorts them by audience.
    pub fn new(absences: &[Absence], matching: &'a Matching<'a>) -> Absences<'a> {
        let mut by_audience: HashMap<u32, Vec<Absence>> = HashMap::new();
        absences.iter().for_each(|absence| by_audience.entry(absence.subscriber).or_default().push(*absence));
        Absences { by_audience, matching }
    }

    /// The publisher's sequence numbers that were sent during absences of a stream, as ascending, non-adjacent ranges.
    pub fn of(&self, stream: &StreamRow, book: &PublisherBook) -> Vec<Range> {
        let Some(absences) = self.by_audience.get(&stream.subscriber) else { return vec![] };
        let filters = (self.matching)(stream.subscriber, stream.publisher);
        let of_filter = |filter: &u16| {
            let own = absences.iter().filter(|absence| absence.filter == *filter);
            let range = |absence: &Absence| book.epochs.submitted(absence.from_epoch, absence.to_epoch, book.last);
            merged(own.filter_map(range).collect())
        };
        filters.iter().map(of_filter).reduce(|one, other| intersection(&one, &other)).unwrap_or_default()
    }
}

/// Sorts ranges and joins those that overlap or are adjacent.
pub fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(|range| range.first);
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.first <= last.last.saturating_add(1) => last.last = last.last.max(range.last),
            _ => joined.push(range),
        }
    }
    joined
}

/// The numbers that are in a range of both lists. Each list must be ascending, without overlaps.
pub fn intersection(one: &[Range], other: &[Range]) -> Vec<Range> {
    let (mut left, mut right, mut found) = (0, 0, Vec::new());
    while let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
        let (first, last) = (a.first.max(b.first), a.last.min(b.last));
        if first <= last {
            found.push(Range { first, last });
        }
        match a.last < b.last {
            true => left += 1,
            false => right += 1,
        }
    }
    found
}

/// Is a number in one of these ranges? The ranges must be ascending, without overlaps.
pub fn holds(ranges: &[Range], number: u32) -> bool {
    let index = ranges.partition_point(|range| range.last < number);
    ranges.get(index).is_some_and(|range| range.first <= number)
}

/// How many numbers these ranges contain. The ranges must not overlap.
pub fn count(ranges: &[Range]) -> u64 {
    ranges.iter().map(|range| range.count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges(pairs: &[(u32, u32)]) -> Vec<Range> {
        pairs.iter().map(|(first, last)| Range { first: *first, last: *last }).collect()
    }

    fn book() -> PublisherBook {
        PublisherBook {
            epochs: (0..10).map(|epoch| (epoch, epoch * 10 + 1)).collect(),
            last: 100,
            ..Default::default()
        }
    }

    const STREAM: StreamRow = StreamRow { subscriber: 0, publisher: 0, stream: 0, filters: 2, filtered_for: None };

    fn absence(filter: u16, from_epoch: u32, to_epoch: Option<u32>) -> Absence {
        Absence { subscriber: 0, filter, from_epoch, to_epoch }
    }

    #[test]
    fn two_absences_that_overlap_are_one() {
        let both = [absence(0, 2, Some(5)), absence(0, 4, Some(6))];
        let found = Absences::new(&both, &|_, _| vec![0]).of(&STREAM, &book());
        assert_eq!(found, ranges(&[(21, 60)]));
    }

    #[test]
    fn a_stream_is_absent_where_every_filter_that_matches_it_is() {
        let absences = [absence(0, 0, None), absence(1, 3, Some(4)), absence(2, 0, None)];
        let of = |filters: Vec<u16>| Absences::new(&absences, &move |_, _| filters.clone()).of(&STREAM, &book());
        assert_eq!(of(vec![0]), ranges(&[(1, 100)]), "refused from the start");
        assert_eq!(of(vec![0, 1]), ranges(&[(31, 40)]), "one of the two was held but for an epoch");
        assert_eq!(of(vec![1, 3]), [], "a filter that was never absent");
    }

    proptest! {
        #[test]
        fn ranges_agree_with_sets(
            one in proptest::collection::vec((0u32..200, 0u32..30), 0..12),
            other in proptest::collection::vec((0u32..200, 0u32..30), 0..12),
        ) {
            let of = |pairs: Vec<(u32, u32)>| {
                merged(pairs.iter().map(|(first, length)| Range { first: *first, last: first + length }).collect())
            };
            let (one, other) = (of(one), of(other));
            let both = intersection(&one, &other);
            for number in 0..240 {
                prop_assert_eq!(holds(&both, number), holds(&one, number) && holds(&other, number), "{}", number);
            }
            let counted = (0..240).filter(|number| holds(&both, *number)).count() as u64;
            prop_assert_eq!(count(&both), counted);
        }
    }
}
