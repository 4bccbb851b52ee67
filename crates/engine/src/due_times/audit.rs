//! Compares the due times that messages carried with those of the schedule, which is computed again.
//!
//! A message has a sequence number, not a place in the schedule: a message that was due and was not passed to the adapter
//! uses no number. Those that were planned offline are known from the schedule. If others were left out (a lost connection,
//! a device that sends less, a message that is too large), a message may have as many more places, and its due time must be
//! that of one of them. Messages that still waited at the end come after all others.

use std::cmp::Reverse;
use std::collections::HashMap;

use pubmark_model::fleet::Device;
use pubmark_model::schedule::{Cursor, Rules};
use pubmark_protocol::header::COMPACT_STEP_NS;
use pubmark_record::delivery::{DueTimeAudit, WrongDueTime};

use super::sample::DueClaim;
use crate::plan::RunPlan;
use crate::shard_outcome::PublisherBook;

/// Largest number of due times that an audit computes and compares: about a second of CPU time. Messages beyond it are not
/// audited.
const MOST_STEPS: u64 = 10_000_000;

/// A place in a publisher's schedule: whether it is in the measured window, and its number there or in the warm-up, from 0,
/// among the messages that are planned to be sent.
type Place = (bool, u64);

/// Compares the messages that shards sampled. Floods and reactions have no schedule and are left out.
pub(crate) fn audit(plan: &RunPlan, publishers: &[PublisherBook], claims: &[DueClaim]) -> DueTimeAudit {
    let mut claims_of: HashMap<u32, Vec<DueClaim>> = HashMap::new();
    for claim in claims {
        claims_of.entry(claim.publisher).or_default().push(*claim);
    }
    let mut sampled: Vec<(&PublisherBook, Vec<DueClaim>)> =
        publishers.iter().filter_map(|book| Some((book, claims_of.remove(&book.publisher)?))).collect();
    // The shortest schedules first, so that the steps suffice for as many messages as possible.
    sampled.sort_by_key(|(book, claims)| (claims.iter().map(|claim| claim.sequence).max(), book.publisher));
    let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
    let (mut found, mut steps) = (DueTimeAudit::default(), MOST_STEPS);
    for (book, claims) in sampled {
        let Some(device) = plan.fleet.devices().get(book.publisher as usize) else { continue };
        let group = usize::from(device.group);
        if !rules[group].is_flood() && plan.workload.devices[group].reaction().is_none() {
            compare(&rules[group], device, book, &claims, &mut steps, &mut found);
        }
    }
    found
}

/// Compares the messages of one publisher, in one pass over its schedule.
fn compare(
    rules: &Rules,
    device: &Device,
    book: &PublisherBook,
    claims: &[DueClaim],
    steps: &mut u64,
    found: &mut DueTimeAudit,
) {
    let mut later: Vec<Compared> = claims.iter().filter_map(|claim| Compared::new(book, *claim)).collect();
    later.sort_by_key(|one| Reverse(one.first));
    let mut open: Vec<Compared> = vec![];
    let mut cursor = Cursor::new(rules, device);
    let mut place: Place = (false, 0);
    while !later.is_empty() || !open.is_empty() {
        let Some((due_ns, planned_online)) = cursor.take_time(rules) else { break };
        let Some(left) = steps.checked_sub(1 + open.len() as u64) else {
            *steps = 0;
            return;
        };
        *steps = left;
        if !planned_online {
            continue;
        }
        if due_ns >= 0 && !place.0 {
            place = (true, 0);
        }
        while later.last().is_some_and(|next| next.first <= place) {
            open.extend(later.pop());
        }
        open.retain_mut(|one| {
            let is_open = one.compare(place, due_ns);
            if !is_open {
                one.enter(found);
            }
            is_open
        });
        place.1 += 1;
    }
    open.iter().for_each(|one| one.enter(found));
}

/// A message of the sample, and what was found of it so far.
struct Compared {
    claim: DueClaim,
    /// The places that it can have.
    first: Place,
    last: Place,
    /// Of their due times the one that is nearest to what the message carried, ns relative to the start of the window.
    nearest_ns: Option<i64>,
    is_as_scheduled: bool,
}

impl Compared {
    /// `None` for a number that the publisher did not use: the accounting counts such messages as never sent.
    fn new(book: &PublisherBook, claim: DueClaim) -> Option<Compared> {
        if claim.sequence == 0 || claim.sequence > book.last {
            return None;
        }
        let (first, last) = match claim.sequence.checked_sub(book.first_measured) {
            Some(number) if book.first_measured > 0 => {
                let used = u64::from(book.last - book.first_measured) + 1;
                let left_out = book.planned_online.saturating_sub(used.saturating_add(book.unsent));
                let first = u64::from(number);
                ((true, first), (true, first.saturating_add(left_out)))
            }
            // A message of the warm-up is not due in the window, whichever it is.
            _ => {
                let place = (false, u64::from(claim.sequence) - 1);
                (place, place)
            }
        };
        Some(Compared { claim, first, last, nearest_ns: None, is_as_scheduled: false })
    }

    /// Compares it with the message at a place. Returns whether it can still be one of the following.
    fn compare(&mut self, place: Place, due_ns: i64) -> bool {
        if self.first <= place && place <= self.last {
            let distance = |other_ns: i64| other_ns.abs_diff(self.claim.due_ns);
            if self.nearest_ns.is_none_or(|nearest_ns| distance(due_ns) < distance(nearest_ns)) {
                self.nearest_ns = Some(due_ns);
            }
            self.is_as_scheduled |= is_same(self.claim.due_ns, due_ns);
        }
        !self.is_as_scheduled && place < self.last
    }

    fn enter(&self, found: &mut DueTimeAudit) {
        let Some(scheduled_ns) = self.nearest_ns else { return };
        found.audited += 1;
        if !self.is_as_scheduled {
            found.wrong += 1;
            let DueClaim { publisher, sequence, due_ns: claimed_ns } = self.claim;
            found.example = found.example.or(Some(WrongDueTime { publisher, sequence, claimed_ns, scheduled_ns }));
        }
    }
}

/// Whether a header with this due time is that of a message that was due then: a compact header rounds down.
fn is_same(claimed_ns: i64, due_ns: i64) -> bool {
    due_ns.checked_sub(claimed_ns).is_some_and(|above_ns| (0..COMPACT_STEP_NS as i64).contains(&above_ns))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use pubmark_model::schedule::Timeline;

    use super::*;
    use crate::virtual_time::{self, ONE_TO_ONE};

    const MS: i64 = 1_000_000;

    /// A device that sends every 10 ms, half a second of it in the warm-up.
    fn plan() -> RunPlan {
        let plan = virtual_time::plan(ONE_TO_ONE, Duration::from_secs(1));
        RunPlan { timeline: Timeline { warmup_ns: 500_000_000, ..plan.timeline }, ..plan }
    }

    /// Due times of the device in the warm-up, and in the window.
    fn due_times() -> (Vec<i64>, Vec<i64>) {
        let plan = plan();
        let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
        let mut cursor = Cursor::new(&rules[0], &plan.fleet.devices()[0]);
        std::iter::from_fn(|| cursor.take(&rules[0])).map(|due| due.due_ns).partition(|due_ns| *due_ns < 0)
    }

    /// The device's side of the accounting, if all of its messages but these many of the window were passed to the adapter.
    fn book(left_out: u32) -> PublisherBook {
        let (before, due) = due_times();
        let (before, due) = (before.len() as u32, due.len() as u32);
        PublisherBook {
            offered: due.into(),
            planned_online: due.into(),
            first_measured: before + 1,
            last: before + due - left_out,
            ..PublisherBook::default()
        }
    }

    /// Of messages with these numbers in the window, from 0, and due times.
    fn audited(book: &PublisherBook, claims: &[(u32, i64)]) -> DueTimeAudit {
        let claim = |(number, due_ns): &(u32, i64)| DueClaim {
            publisher: 0,
            sequence: book.first_measured + number,
            due_ns: *due_ns,
        };
        audit(&plan(), std::slice::from_ref(book), &claims.iter().map(claim).collect::<Vec<_>>())
    }

    #[test]
    fn a_due_time_that_is_moved_within_the_window_is_found() {
        let (_, due) = due_times();
        let book = book(0);
        let all: Vec<(u32, i64)> = (0..).zip(due.iter().copied()).collect();
        let audit = audited(&book, &all);
        assert_eq!((audit.audited, audit.wrong, audit.example), (due.len() as u64, 0, None));
        for moved_ns in [MS, -MS, 256, -256, 10 * MS] {
            let claims = [(3, due[3]), (50, due[50] + moved_ns)];
            let audit = audited(&book, &claims);
            let sequence = book.first_measured + 50;
            let (claimed_ns, scheduled_ns) = (due[50] + moved_ns, due[50]);
            let example = WrongDueTime { publisher: 0, sequence, claimed_ns, scheduled_ns };
            assert_eq!((audit.audited, audit.wrong, audit.example), (2, 1, Some(example)), "{moved_ns}");
        }
    }

    #[test]
    fn the_rounding_of_a_compact_header_is_no_other_due_time() {
        let (_, due) = due_times();
        let rounded: Vec<(u32, i64)> = (0..).zip(due.iter().map(|due_ns| due_ns & !255)).collect();
        assert!(rounded.iter().zip(&due).any(|((_, rounded_ns), due_ns)| rounded_ns != due_ns));
        let audit = audited(&book(0), &rounded);
        assert_eq!((audit.audited, audit.wrong), (due.len() as u64, 0));
    }

    #[test]
    fn where_messages_were_left_out_a_later_place_is_possible_and_no_other_time() {
        let (_, due) = due_times();
        let mut book = book(2);
        let wrong = |book: &PublisherBook, due_ns: i64| audited(book, &[(50, due_ns)]).wrong;
        let at: Vec<i64> = (49..54).map(|number| due[number]).collect();
        assert_eq!(at.iter().map(|due_ns| wrong(&book, *due_ns)).collect::<Vec<_>>(), [1, 0, 0, 0, 1]);
        assert_eq!(wrong(&book, at[1] + MS), 1);
        let example = audited(&book, &[(50, at[2] + MS)]).example.unwrap();
        assert_eq!(example.scheduled_ns, at[2], "the nearest one");
        // Messages that still waited at the end leave no doubt about those before them.
        book.unsent = 2;
        assert_eq!(at.iter().map(|due_ns| wrong(&book, *due_ns)).collect::<Vec<_>>(), [1, 0, 1, 1, 1]);
    }

    #[test]
    fn a_message_of_the_warm_up_that_claims_a_due_time_in_the_window_is_found() {
        let (before, due) = due_times();
        let claims = [DueClaim { publisher: 0, sequence: 1, due_ns: due[0] }];
        let audit = audit(&plan(), &[book(0)], &claims);
        assert_eq!((audit.audited, audit.wrong), (1, 1));
        assert_eq!(audit.example.unwrap().scheduled_ns, before[0]);
    }

    #[test]
    fn messages_that_nobody_sent_or_whose_publisher_is_unknown_are_left_out() {
        let book = book(0);
        for (publisher, sequence) in [(0, 0), (0, book.last + 1), (0, u32::MAX), (1, 1), (u32::MAX, 1)] {
            let claims = [DueClaim { publisher, sequence, due_ns: 5 }];
            assert_eq!(audit(&plan(), std::slice::from_ref(&book), &claims), DueTimeAudit::default());
        }
        // The schedule has a place for this number: two messages were left out.
        let book = self::book(2);
        let unused = book.last + 1 - book.first_measured;
        assert_eq!(audited(&book, &[(unused, 5)]), DueTimeAudit::default());
    }

    #[test]
    fn an_accounting_with_more_messages_than_the_schedule_hides_no_other_due_time() {
        let (_, due) = due_times();
        let mut book = book(0);
        book.planned_online += 3;
        let claims = [(50, due[50]), (60, due[60] + MS)];
        let audit = audited(&book, &claims);
        assert_eq!((audit.audited, audit.wrong), (2, 1));
        assert_eq!(audited(&book, &[(99, due[99] + MS)]).wrong, 1, "up to the last message of the schedule");
    }

    #[test]
    fn a_flood_has_no_schedule_to_compare_with() {
        let flood = ONE_TO_ONE.replace("arrival: periodic, every: 10ms", "arrival: flood");
        let plan = virtual_time::plan(&flood, Duration::from_secs(1));
        let claims = [DueClaim { publisher: 0, sequence: 1, due_ns: 5 }];
        assert_eq!(
            audit(&plan, &[PublisherBook { first_measured: 1, last: 1, ..book(0) }], &claims),
            DueTimeAudit::default()
        );
    }

    #[test]
    fn messages_beyond_the_steps_are_not_audited() {
        let (before, due) = due_times();
        let (plan, book) = (plan(), book(0));
        let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
        let claim = |number: u32| DueClaim { publisher: 0, sequence: book.first_measured + number, due_ns: MS / 3 };
        let mut found = DueTimeAudit::default();
        let mut steps = before.len() as u64 + 10;
        let claims = [claim(5), claim(due.len() as u32 - 1)];
        compare(&rules[0], &plan.fleet.devices()[0], &book, &claims, &mut steps, &mut found);
        assert_eq!((found.audited, found.wrong, steps), (1, 1, 0));
    }
}
