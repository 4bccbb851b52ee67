//! Requests and their replies in words.

use pubmark_record::record::Record;
use pubmark_record::requests::{RequestBooks, ResponseBooks};

use super::{Distribution, Outcome, distribution, interval, outcome};

/// Outcomes of the requests sent; they add up to `sent`.
pub fn request_outcomes(books: &RequestBooks) -> Vec<Outcome> {
    vec![
        outcome("answered", "in time", books.answered),
        outcome("late", "the reply came after they were given up", books.late),
        outcome("timed out", "given up, no reply came", books.timed_out),
        outcome("unknown", "no reply; their connection ended meanwhile, or the run did", books.unknown),
    ]
}

/// Of the late requests, those that only pubmark made late; `None` if there are none.
pub fn late_by_pubmark(books: &RequestBooks) -> Option<Outcome> {
    let found = outcome("of the late, by pubmark's own delay", "in time without it", books.late_by_generator);
    (found.count > 0).then_some(found)
}

/// Counts that are not part of the accounting of requests.
pub fn further_answers(books: &RequestBooks) -> Vec<Outcome> {
    vec![
        outcome("further replies", "to a request that had one", books.duplicated),
        outcome("misdirected replies", "to another request, or to none", books.misdirected),
        outcome("replies after refusal", "to requests that the system had refused", books.after_refusal),
    ]
}

/// Outcomes of requests at responders; they add up to `received`.
pub fn response_outcomes(books: &ResponseBooks) -> Vec<Outcome> {
    vec![
        outcome("answered", "their replies were written", books.answered),
        outcome("dropped", "too many waited already", books.dropped),
        outcome("without address", "they named no address for the reply", books.without_address),
        outcome("refused", "replies larger than the system accepts", books.refused),
        outcome("broken", "their connection ended before the reply was written", books.broken),
        outcome("unsent", "still with the responder when the run ended", books.unsent),
    ]
}

/// Of the dropped requests, those for which there may have been room without pubmark's lateness; `None` if there are none.
pub fn dropped_by_pubmark(books: &ResponseBooks) -> Option<Outcome> {
    let meaning = "there may have been room if pubmark's threads had been in time";
    let found = outcome("of the dropped, perhaps because pubmark was late", meaning, books.dropped_by_generator);
    (found.count > 0).then_some(found)
}

/// Distributions of requests, in the order in which they are shown; empty without requesters.
pub fn request_distributions(record: &Record) -> Vec<Distribution<'_>> {
    let Some(requests) = &record.requests else { return vec![] };
    vec![
        interval("round trip", "round_trip", "request due → reply", &requests.round_trip),
        interval(
            "service round trip",
            "service_round_trip",
            "request's write start → reply",
            &requests.service_round_trip,
        ),
        interval("round trip travel", "round_trip_travel", "round trip without the responder's part", &requests.travel),
        distribution("responder wait", "responder_wait", "request's arrival → taken up", requests.waiting.as_ref()),
        distribution("responder lag", "responder_lag", "reply due → ready: ours", requests.responder_lag.as_ref()),
        distribution(
            "reply lateness",
            "answer_receive_lateness",
            "reply's arrival → our read, upper bound: ours",
            requests.receive_lateness.as_ref(),
        ),
    ]
}

/// Requesters and responders in one line; `None` without requesters.
pub fn parties(record: &Record) -> Option<String> {
    let requests = record.requests.as_ref()?;
    let counted = crate::numbers::counted;
    Some(format!(
        "{}, {}; {} answered/s, at most {} at once",
        counted(requests.requesters, "requester", "requesters"),
        counted(requests.responders, "responder", "responders"),
        crate::numbers::significant(requests.answered_per_s),
        crate::numbers::count(requests.peak_in_flight),
    ))
}
