//! Warnings about messages.

use pubmark_model::qos::Qos;

use super::TextAndHint;
use crate::delivery::BrokenPromises;
use crate::message_log::BY_CLIENT_FILE;
use crate::quantity::{count, counted, percent};
use crate::record::Record;

pub(super) fn too_large(record: &Record) -> Option<TextAndHint> {
    (record.delivery.too_large > 0).then(|| {
        let text =
            format!("{} messages not sent: the system takes no packet of their size", count(record.delivery.too_large));
        (text, "raise the system's packet limit, or use `--profile tuned`".to_string())
    })
}

pub(super) fn sizes_raised(record: &Record) -> Option<TextAndHint> {
    (record.delivery.sizes_raised > 0).then(|| {
        let text = format!("{} messages were raised to the size of our header", count(record.delivery.sizes_raised));
        (text, "keep it in mind when comparing byte rates".to_string())
    })
}

pub(super) fn not_all_sent(record: &Record) -> Option<TextAndHint> {
    let books = &record.delivery.messages;
    let parts = [
        ("unsent", books.unsent),
        ("refused", books.refused),
        ("skipped at a lost connection", books.skipped_disconnected),
    ];
    let missing: u64 = parts.iter().map(|(_, number)| number).sum();
    if missing == 0 {
        return None;
    }
    let named: Vec<String> = parts
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{} {name}", count(*number)))
        .collect();
    let text = format!(
        "{} of {} offered messages were not sent ({}): {}",
        count(missing),
        count(books.offered),
        percent(missing as f64 / books.offered.max(1) as f64),
        named.join(", ")
    );
    Some((text, "lower the rate to find what the system sustains".to_string()))
}

pub(super) fn promise_broken(record: &Record) -> Option<TextAndHint> {
    let promises = record.delivery.broken_promises.unwrap_or_else(|| broken_of_devices(record));
    let broken = [
        (promises.lost, "lost although publisher and subscriber ask for at-least-once or exactly-once"),
        (promises.duplicated, "delivered more than once although publisher and subscriber ask for exactly-once"),
    ];
    let broken: Vec<String> = broken
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
    // Which of them such a subscription would have received is not known: those break no promise.
    let at_most = match record.connections.granted_qos_lower {
        0 => String::new(),
        lower => {
            format!(" (at most: {} granted a lower level)", counted(lower, "subscription was", "subscriptions were"))
        }
    };
    let hint = "see connections and causes in the report, and the system's queue limits";
    (!broken.is_empty()).then(|| (format!("{}{at_most}", broken.join("; ")), hint.to_owned()))
}

/// Broken promises in a record of an older version, which has the levels of the devices only.
fn broken_of_devices(record: &Record) -> BrokenPromises {
    let levels = &record.workload.qos;
    let all_at_least = |least: Qos| !levels.is_empty() && levels.iter().all(|level| *level >= least);
    let books = &record.delivery.messages;
    let if_all = |least: Qos, number: u64| if all_at_least(least) { number } else { 0 };
    BrokenPromises {
        lost: if_all(Qos::AtLeastOnce, books.lost),
        duplicated: if_all(Qos::ExactlyOnce, books.duplicated),
    }
}

pub(super) fn foreign(record: &Record) -> Option<TextAndHint> {
    (record.delivery.messages.foreign > 0).then(|| {
        let text = format!("{} messages of another run or client arrived", count(record.delivery.messages.foreign));
        (text, "stop the other client, or start the system with empty queues".to_string())
    })
}

pub(super) fn truncated(record: &Record) -> Option<TextAndHint> {
    (record.delivery.messages.truncated > 0).then(|| {
        let text =
            format!("{} messages arrived shorter than they were sent", count(record.delivery.messages.truncated));
        (text, "check the system's limits of the message size; report it to its authors with the record".to_string())
    })
}

pub(super) fn corrupt(record: &Record) -> Option<TextAndHint> {
    (record.delivery.messages.corrupt > 0).then(|| {
        let text = format!(
            "{} messages arrived changed: subscribers could not decompress, decrypt or verify them (`transform`)",
            count(record.delivery.messages.corrupt)
        );
        (
            text,
            "find out what changes messages on their way; report it to the system's authors with the record"
                .to_string(),
        )
    })
}

pub(super) fn left_in_sockets(record: &Record) -> Option<TextAndHint> {
    (record.delivery.at_end.socket_unsent_bytes > 0).then(|| {
        let text =
            format!("{} bytes were still in our sockets at the end", count(record.delivery.at_end.socket_unsent_bytes));
        (text, "lower the rate, or wait longer with `--drain`".to_string())
    })
}

pub(super) fn delivered_after_refusal(record: &Record) -> Option<TextAndHint> {
    (record.delivery.messages.delivered_after_refusal > 0).then(|| {
        let text = format!(
            "{} refused messages were delivered nevertheless",
            count(record.delivery.messages.delivered_after_refusal)
        );
        (text, "report it to the system's authors with the record".to_string())
    })
}

pub(super) fn clients_left_out(record: &Record) -> Option<TextAndHint> {
    let log = record.message_log.as_ref()?;
    let text = match &log.by_client {
        None => format!("{BY_CLIENT_FILE} is not written: the run has more than 100,000 clients"),
        Some(file) if log.by_client_without_percentiles => {
            format!("{file} has no percentiles: {} has more than 16 million rows", log.file)
        }
        Some(_) => return None,
    };
    Some((text, format!("compute them from {}, or run with fewer clients or messages", log.file)))
}

pub(super) fn log_partial(record: &Record) -> Option<TextAndHint> {
    let log = record.message_log.as_ref().filter(|log| log.is_partial())?;
    let reason = log.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    // The number of rows in a lost worker is not known.
    let rows = if log.missing > 0 { format!("{} rows", count(log.missing)) } else { "rows".to_owned() };
    let text = format!("{} lacks {rows}{reason}", log.file);
    Some((text, "figures that are computed from it are incomplete".to_string()))
}
