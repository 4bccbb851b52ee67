//! Warnings about requests and their replies.

use super::TextAndHint;
use crate::quantity::{count, percent};
use crate::record::Record;

/// The counts that are not 0, with their names.
fn named(parts: &[(&str, u64)]) -> Vec<String> {
    let there = parts.iter().filter(|(_, number)| *number > 0);
    there.map(|(name, number)| format!("{} {name}", count(*number))).collect()
}

pub(super) fn without_reply(record: &Record) -> Option<TextAndHint> {
    let requests = record.requests.as_ref()?;
    let books = &requests.outcomes;
    let missing = books.without_reply();
    if missing == 0 {
        return None;
    }
    let parts = [
        ("given up", books.timed_out),
        ("answered late", books.late),
        ("unknown", books.unknown),
        ("dropped by a full responder", requests.responses.dropped),
        ("of these perhaps because pubmark was late", requests.responses.dropped_by_generator),
    ];
    let share = percent(missing as f64 / books.sent.max(1) as f64);
    let text = format!(
        "{} of {} requests had no reply in time ({share}): {}",
        count(missing),
        count(books.sent),
        named(&parts).join(", ")
    );
    Some((text, "lower the rate, or raise `timeout` and the responders' `concurrency`".to_string()))
}

pub(super) fn wrong_replies(record: &Record) -> Option<TextAndHint> {
    let books = record.requests.as_ref()?.outcomes;
    let parts = [
        ("further replies", books.duplicated),
        ("replies to other requests", books.misdirected),
        ("replies to refused requests", books.after_refusal),
    ];
    let wrong = named(&parts);
    if wrong.is_empty() {
        return None;
    }
    Some((wrong.join(", "), "see whether another client replies to the same requests".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{RequestBooks, RequestFigures, ResponseBooks};
    use crate::sample;

    #[test]
    fn what_pubmark_made_a_responder_drop_is_beside_what_it_dropped() {
        let text_of = |dropped_by_generator: u64| {
            let outcomes = RequestBooks { sent: 100, answered: 88, timed_out: 12, ..RequestBooks::default() };
            let responses = ResponseBooks { dropped: 12, dropped_by_generator, ..ResponseBooks::default() };
            let requests = Some(RequestFigures { outcomes, responses, ..RequestFigures::default() });
            without_reply(&Record { requests, ..sample::record() }).expect("a warning").0
        };
        let dropped = "12 given up, 12 dropped by a full responder";
        assert!(text_of(0).ends_with(dropped), "{}", text_of(0));
        let found = text_of(3);
        assert!(found.ends_with(&format!("{dropped}, 3 of these perhaps because pubmark was late")), "{found}");
    }
}
