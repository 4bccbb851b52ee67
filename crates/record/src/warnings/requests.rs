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
