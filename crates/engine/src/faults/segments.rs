//! The completed message accounting, divided by segment and QoS level.

use pubmark_metrics::holes::Range;
use pubmark_model::fleet::Fleet;
use pubmark_model::workload::Workload;
use pubmark_record::faults::LevelBooks;
use pubmark_record::record::Delivery;

use super::log::{EndedStream, FaultNotes, LEVELS};
use crate::absences::{intersection, merged};
use crate::books::{Judged, Received};
use crate::plan::RunPlan;
use crate::shard_outcome::PublisherBook;

/// The message accounting of each segment. The notes already have the counters that are incremented during the run; they
/// are not changed.
pub(crate) fn by_segment(
    plan: &RunPlan,
    publishers: &[PublisherBook],
    received: &[Received<'_>],
    notes: &mut FaultNotes,
) -> Vec<[LevelBooks; LEVELS]> {
    let mut books = std::mem::take(&mut notes.tallies);
    notes.ended.streams.sort_unstable_by_key(stream_of);
    let ended = &notes.ended;
    for (level, book) in books.iter_mut().flat_map(|levels| levels.iter_mut().enumerate()) {
        book.qos = level as u32;
    }
    let listening = levels_of_audiences(&plan.workload, &plan.fleet);
    let sessions = plan.subscribe_at.sessions_per_subscriber().max(1) as u32;
    let judged = Judged::new(publishers, received);
    for stream in judged.streams() {
        let subscribed_level = listening.get((stream.row.subscriber / sessions) as usize).copied().unwrap_or(0);
        let group = &plan.workload.devices[usize::from(stream.book.group)];
        let level = subscribed_level.min(usize::from(group.qos.level()));
        // A publisher has the system's word for a message at QoS 2 before the exchange of its packets ends: what is lost of
        // the rest is lost with its session.
        let may_lose = ended.audiences.contains(&stream.row.subscriber)
            || (level == LEVELS - 1 && ended.publishers.contains(&stream.book.publisher));
        let ends = ends_of((stream.row.subscriber, stream.book.publisher), &ended.streams);
        let in_transit = in_transit(ends, stream.book);
        for (segment, range) in ranges(stream.book) {
            let mut found = Delivery::default();
            stream.judge(range, &mut found);
            let Some(book) = books.get_mut(usize::from(segment)).map(|levels| &mut levels[level]) else { continue };
            book.expected += found.expected;
            book.delivered += found.delivered;
            book.lost += found.lost;
            let mut with_session = Delivery::default();
            intersection(&[range], &in_transit).iter().for_each(|range| stream.judge(*range, &mut with_session));
            book.lost_with_session += if may_lose { found.lost } else { with_session.lost };
            book.unknown += found.unknown;
            book.absent += found.absent;
        }
    }
    books
}

/// The stream of a row, as (audience, publisher).
fn stream_of(end: &EndedStream) -> (u32, u32) {
    (end.audience, end.publisher)
}

/// The rows of a stream, of rows that are sorted by stream.
fn ends_of(stream: (u32, u32), ends: &[EndedStream]) -> &[EndedStream] {
    let from = ends.partition_point(|end| stream_of(end) < stream);
    let until = ends.partition_point(|end| stream_of(end) <= stream);
    &ends[from..until]
}

/// The sequence numbers of a stream that were in transit to its subscriber when a session of that ended, as ascending ranges.
fn in_transit(ends: &[EndedStream], book: &PublisherBook) -> Vec<Range> {
    let range = |end: &EndedStream| {
        let until = book.epochs.first_since(end.epoch).unwrap_or(book.last.saturating_add(1));
        (end.next < until).then(|| Range { first: end.next, last: until - 1 })
    };
    merged(ends.iter().filter_map(range).collect())
}

/// By audience: the QoS level that its members request.
pub(crate) fn levels_of_audiences(workload: &Workload, fleet: &Fleet) -> Vec<usize> {
    let mut levels = Vec::new();
    for (subscriber, audience) in fleet.subscribers().iter().zip(fleet.audiences(workload)) {
        // Audiences are numbered in the order of their first members.
        if audience as usize == levels.len() {
            levels.push(usize::from(workload.subscribers[usize::from(subscriber.group)].qos.level()));
        }
    }
    levels
}

/// The measured sequence numbers of a publisher by the segment in which they were sent.
fn ranges(book: &PublisherBook) -> impl Iterator<Item = (u16, Range)> + '_ {
    let starts = book.segments.iter().enumerate();
    starts.filter_map(|(index, (segment, first))| {
        let next = book.segments.get(index + 1).map_or(book.last.saturating_add(1), |(_, next)| *next);
        let first = (*first).max(book.first_measured);
        (book.first_measured > 0 && first < next).then(|| (*segment, Range { first, last: next - 1 }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_stream_are_those_of_its_audience_and_its_publisher() {
        let row = |(audience, publisher, epoch): (u32, u32, u32)| EndedStream { audience, publisher, next: 1, epoch };
        let ends = [(0, 2, 5), (1, 1, 5), (1, 1, 9), (1, 3, 5), (4, 0, 6)].map(row);
        let epochs = |stream| ends_of(stream, &ends).iter().map(|end| end.epoch).collect::<Vec<_>>();
        assert_eq!([(1, 1), (4, 0), (1, 2), (9, 9)].map(epochs), [vec![5, 9], vec![6], vec![], vec![]]);
    }

    #[test]
    fn in_transit_was_what_was_sent_before_the_end_of_a_session_and_after_what_had_arrived() {
        let epochs = [(0, 1), (4, 41), (9, 81)].into_iter().collect();
        let book = PublisherBook { first_measured: 1, last: 100, epochs, ..Default::default() };
        let of = |ends: &[(u32, u32)]| {
            let end =
                |(next, epoch): &(u32, u32)| EndedStream { audience: 0, publisher: 0, next: *next, epoch: *epoch };
            let ends: Vec<EndedStream> = ends.iter().map(end).collect();
            in_transit(&ends, &book).iter().map(|range| (range.first, range.last)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(35, 4)]), [(35, 40)]);
        assert_eq!(of(&[(41, 4)]), vec![], "everything had arrived");
        assert_eq!(of(&[(98, 10)]), [(98, 100)], "nothing was sent afterwards");
        assert_eq!(of(&[(35, 4), (35, 9), (99, 10)]), [(35, 80), (99, 100)], "the second session received nothing");
    }

    #[test]
    fn a_publisher_s_numbers_are_dealt_out_to_segments_without_gap() {
        let book = PublisherBook {
            first_measured: 4,
            last: 20,
            segments: vec![(0, 1), (1, 8), (3, 15)],
            ..Default::default()
        };
        let found: Vec<_> = ranges(&book).map(|(segment, range)| (segment, range.first, range.last)).collect();
        assert_eq!(found, [(0, 4, 7), (1, 8, 14), (3, 15, 20)]);
        let late = PublisherBook { first_measured: 9, last: 20, segments: vec![(0, 1), (1, 8)], ..Default::default() };
        assert_eq!(ranges(&late).map(|(segment, range)| (segment, range.first)).collect::<Vec<_>>(), [(1, 9)]);
        assert_eq!(ranges(&PublisherBook { last: 3, segments: vec![(0, 1)], ..Default::default() }).count(), 0);
    }
}
