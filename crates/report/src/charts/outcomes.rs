//! Outcomes of the messages offered and of the messages expected.

use pubmark_record::record::Record;

use super::{Chart, Picture};
use crate::numbers::{count, share};
use crate::plot::bars::{Bar, Bars, Part};
use crate::words::{Outcome, delivery_outcomes, sending_outcomes, sentence};

const TITLE: &str = "What became of the messages?";
const CSV: &str = "csv/summary.csv";

/// Colour classes of [`sending_outcomes`], in order.
pub const SENDING: [&str; 6] = ["p-good", "p-planned", "p-cut", "p-refused", "p-unsent", "p-slowed"];
/// Colour classes of [`delivery_outcomes`], in order.
pub const DELIVERY: [&str; 4] = ["p-good", "p-late", "p-lost", "p-unknown"];

pub(super) fn draw(record: &Record) -> Chart {
    let books = &record.delivery.messages;
    if books.offered == 0 && books.expected == 0 {
        return Chart::missing(TITLE, CSV, "No message was due in the measured window.");
    }
    let mut bars = vec![bar(format!("{} offered", count(books.offered)), sending_outcomes(books), &SENDING)];
    if books.expected > 0 {
        bars.push(bar(
            format!("{} expected by subscribers", count(books.expected)),
            delivery_outcomes(books),
            &DELIVERY,
        ));
    }
    Chart {
        title: TITLE,
        finding: finding(record),
        notes: vec![
            format!("n = {}", count(books.offered)),
            "a part that is there is drawn at least 3 pixels wide".to_string(),
        ],
        csv: CSV,
        picture: Picture::Bars(Bars { bars }),
    }
}

fn bar(label: String, outcomes: Vec<Outcome>, classes: &[&'static str]) -> Bar {
    let parts = outcomes
        .iter()
        .zip(classes)
        .map(|(outcome, class)| Part { name: outcome.name, class, count: outcome.count })
        .collect();
    Bar { label, parts }
}

fn finding(record: &Record) -> String {
    let books = &record.delivery.messages;
    if books.expected == 0 {
        return sentence(&format!(
            "{} of {} offered messages were sent, none was expected by a subscriber",
            count(books.sent),
            count(books.offered)
        ));
    }
    if books.delivered == books.expected {
        return sentence(&format!("all {} expected messages were delivered", count(books.expected)));
    }
    sentence(&format!(
        "{} of {} expected messages were delivered ({}), {} lost, {} unknown",
        count(books.delivered),
        count(books.expected),
        share(books.delivered, books.expected),
        count(books.lost),
        count(books.unknown)
    ))
}
