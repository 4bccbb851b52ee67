//! Both sides against each other: of the messages that arrived, those that their publishers say a predicate chooses.

use pubmark_metrics::holes::Range;

use super::counts::ContentCounts;
use crate::books::{Judged, JudgedStream};
use crate::message_log::Missing;
use crate::plan::RunPlan;

/// What one group of subscribers with a predicate came to.
#[derive(Clone, Debug)]
pub struct GroupContent {
    /// Its index in the workload.
    pub group: u16,
    /// What its clients did.
    pub counts: ContentCounts,
    /// What its streams hold by the books; `None` where publishers have no notes of all messages.
    pub account: Option<ContentAccount>,
}

/// What the streams of a group hold by the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentAccount {
    /// First copies of measured messages that arrived.
    pub arrived: u64,
    /// Of these, those that the predicate chooses by what their publishers built.
    pub should_match: u64,
    /// Messages that the predicate chooses and that were lost or are unknown.
    pub missed: u64,
    /// Messages that the system's filter kept back, as it should.
    pub filtered_out: u64,
}

/// Closes the account of every group with a predicate. `counts` are by group.
pub fn close(plan: &RunPlan, judged: &Judged<'_>, mut counts: Vec<Option<Box<ContentCounts>>>) -> Vec<GroupContent> {
    let subscribers = &plan.workload.subscribers;
    counts.resize(subscribers.len(), None);
    let mut accounts: Vec<Option<ContentAccount>> = vec![Some(ContentAccount::default()); subscribers.len()];
    let groups = groups_of_audiences(plan);
    let parts = plan.subscribe_at.sessions_per_subscriber().max(1) as u32;
    for stream in judged.streams() {
        let Some(group) = groups.get((stream.row.subscriber / parts) as usize) else { continue };
        let group = usize::from(*group);
        if subscribers[group].predicate.is_some() {
            accounts[group] = accounts[group].zip(of_stream(&stream, group as u16)).map(|(sum, part)| ContentAccount {
                arrived: sum.arrived + part.arrived,
                should_match: sum.should_match + part.should_match,
                missed: sum.missed + part.missed,
                filtered_out: sum.filtered_out + part.filtered_out,
            });
        }
    }
    (0u16..)
        .zip(counts.into_iter().zip(accounts))
        .filter(|(group, _)| subscribers[usize::from(*group)].predicate.is_some())
        .map(|(group, (counts, account))| GroupContent {
            group,
            counts: counts.map_or_else(ContentCounts::new, |counts| *counts),
            account,
        })
        .collect()
}

/// Group of subscribers of each audience.
fn groups_of_audiences(plan: &RunPlan) -> Vec<u16> {
    let mut groups = vec![];
    for (subscriber, audience) in plan.fleet.subscribers().iter().zip(plan.fleet.audiences(&plan.workload)) {
        // They are numbered in the order of their first members.
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
