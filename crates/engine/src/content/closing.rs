//! Compares both sides of content filters: of the messages that arrived, those that match a predicate according to
//! their publishers.

use std::collections::{BTreeMap, BTreeSet};

use pubmark_metrics::holes::Range;

use super::counts::ContentCounts;
use crate::books::{Judged, JudgedStream};
use crate::message_log::Missing;
use crate::plan::RunPlan;

/// Results of one subscriber group with a predicate.
#[derive(Clone, Debug)]
pub struct GroupContent {
    /// Its index in the workload.
    pub group: u16,
    /// Counts of its clients.
    pub counts: ContentCounts,
    /// The accounting of its streams; `None` if publishers do not have notes of all messages.
    pub account: Option<ContentAccount>,
    /// Audiences for which clients and publishers differ; `None` if `account` is `None`.
    pub differing: Option<Differing>,
}

/// Audiences whose clients did not find what publishers built, each compared separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differing {
    /// Number of audiences.
    pub audiences: u64,
    /// Number of messages by which they differ, of all audiences together.
    pub messages: u64,
}

/// The accounting of a group's streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentAccount {
    /// First copies of measured messages that arrived.
    pub arrived: u64,
    /// Of these, messages that match the predicate according to what their publishers built.
    pub should_match: u64,
    /// Messages that match the predicate and that were lost or are unknown.
    pub missed: u64,
    /// Messages that the system's filter correctly removed.
    pub filtered_out: u64,
}

/// Completes the accounting of every group with a predicate. `counts` are by group.
pub fn close(plan: &RunPlan, judged: &Judged<'_>, mut counts: Vec<Option<Box<ContentCounts>>>) -> Vec<GroupContent> {
    let subscribers = &plan.workload.subscribers;
    counts.resize(subscribers.len(), None);
    let mut accounts: Vec<Option<ContentAccount>> = vec![Some(ContentAccount::default()); subscribers.len()];
    let mut by_audience: BTreeMap<u32, (u16, ContentAccount)> = BTreeMap::new();
    let groups = groups_of_audiences(plan);
    let parts = plan.subscribe_at.sessions_per_subscriber().max(1) as u32;
    for stream in judged.streams() {
        let Some(group) = groups.get((stream.row.subscriber / parts) as usize) else { continue };
        let place = usize::from(*group);
        if subscribers[place].predicate.is_some() {
            let part = of_stream(&stream, *group);
            if let Some(part) = part {
                let (_, sum) = by_audience.entry(stream.row.subscriber).or_insert((*group, ContentAccount::default()));
                *sum = sum.and(part);
            }
            accounts[place] = accounts[place].zip(part).map(|(sum, part)| sum.and(part));
        }
    }
    (0u16..)
        .zip(counts.into_iter().zip(accounts))
        .filter(|(group, _)| subscribers[usize::from(*group)].predicate.is_some())
        .map(|(group, (counts, account))| {
            let counts = counts.map_or_else(ContentCounts::new, |counts| *counts);
            let own = by_audience.iter().filter(|(_, (other, _))| *other == group);
            let own = own.map(|(audience, (_, account))| (*audience, *account)).collect();
            let differing = account.map(|_| Differing::between(&counts.by_audience, &own));
            GroupContent { group, counts, account, differing }
        })
        .collect()
}

impl ContentAccount {
    fn and(self, other: ContentAccount) -> ContentAccount {
        ContentAccount {
            arrived: self.arrived + other.arrived,
            should_match: self.should_match + other.should_match,
            missed: self.missed + other.missed,
            filtered_out: self.filtered_out + other.filtered_out,
        }
    }
}

impl Differing {
    /// The differences between the counts of clients and the accounting, by audience.
    fn between(counts: &BTreeMap<u32, [u64; 2]>, accounts: &BTreeMap<u32, ContentAccount>) -> Differing {
        let audiences: BTreeSet<u32> = counts.keys().chain(accounts.keys()).copied().collect();
        let messages = |audience: u32| {
            let [matched, filtered] = counts.get(&audience).copied().unwrap_or_default();
            let account = accounts.get(&audience).copied().unwrap_or_default();
            matched.abs_diff(account.should_match).max((matched + filtered).abs_diff(account.arrived))
        };
        let found = audiences.into_iter().map(messages).filter(|messages| *messages > 0);
        found.fold(Differing::default(), |sum, messages| Differing {
            audiences: sum.audiences + 1,
            messages: sum.messages + messages,
        })
    }
}

/// Subscriber group of each audience.
fn groups_of_audiences(plan: &RunPlan) -> Vec<u16> {
    let mut groups = vec![];
    for (subscriber, audience) in plan.fleet.subscribers().iter().zip(plan.fleet.audiences(&plan.workload)) {
        // Audiences are numbered in the order of their first members.
        if audience as usize == groups.len() {
            groups.push(subscriber.group);
        }
    }
    groups
}

fn of_stream(stream: &JudgedStream<'_>, group: u16) -> Option<ContentAccount> {
    let (book, all) = (stream.book, stream.measured());
    let notes = book.matches.iter().find(|notes| notes.group == group)?;
    if !notes.covers(all.count()) || stream.is_approximate() {
        return None;
    }
    let from_first = |range: &Range| Range { first: range.first - all.first, last: range.last - all.first };
    let missing = stream.missing_ranges();
    let missing_count: u64 = missing.iter().map(|range| range.count()).sum();
    let missing_matches: u64 = missing.iter().map(|range| notes.count_in(from_first(range))).sum();
    let is_missed = |(number, outcome): &(u32, Missing)| {
        matches!(outcome, Missing::Lost | Missing::Unknown) && notes.holds(number - all.first)
    };
    Some(ContentAccount {
        arrived: all.count() - missing_count,
        should_match: notes.count_in(from_first(&all)) - missing_matches,
        missed: stream.missing().filter(is_missed).count() as u64,
        filtered_out: stream.missing().filter(|(_, outcome)| *outcome == Missing::FilteredOut).count() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surplus_of_one_subscriber_does_not_hide_the_lack_of_another() {
        let account = |arrived, should_match| ContentAccount { arrived, should_match, ..ContentAccount::default() };
        let accounts =
            BTreeMap::from([(0, account(10, 4)), (1, account(10, 4)), (2, account(10, 4)), (5, account(1, 0))]);
        // The sums are the same on both sides: 12 of 31 match.
        let counts = BTreeMap::from([(0, [5, 5]), (1, [3, 7]), (2, [4, 6]), (5, [0, 1])]);
        assert_eq!(Differing::between(&counts, &accounts), Differing { audiences: 2, messages: 2 });
        let equal = accounts.iter().map(|(number, one)| (*number, [one.should_match, one.arrived - one.should_match]));
        assert_eq!(Differing::between(&equal.collect(), &accounts), Differing::default());
        // One audience that received nothing of what arrived, and one for which no arrival is known.
        let counts = BTreeMap::from([(0, [4, 6]), (1, [4, 6]), (2, [4, 6]), (7, [1, 1])]);
        assert_eq!(Differing::between(&counts, &accounts), Differing { audiences: 2, messages: 3 });
    }
}
