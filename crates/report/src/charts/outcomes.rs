//! Outcomes of the messages offered and of the messages expected.

use pubmark_record::figures::delivered_share;
use pubmark_record::record::Record;

use super::{Chart, Picture};
use crate::numbers::{count, percentage};
use crate::plot::bars::{Bar, Bars, Part};
use crate::words::{Outcome, delivery_outcomes, named_counts, prevented_outcomes, sending_outcomes, sentence};

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
    let share = delivered_share(record);
    // Where the system prevented deliveries, the share is of more than the expected ones.
    let is_of_more = share.is_some_and(|share| share < books.delivered as f64 / books.expected as f64);
    let prevented = match is_of_more {
        true => {
            format!("; {} of the wanted deliveries: {}", percentage(share), named_counts(&prevented_outcomes(record)))
        }
        false => String::new(),
    };
    if books.delivered == books.expected {
        return sentence(&format!("all {} expected messages were delivered{prevented}", count(books.expected)));
    }
    let of_expected = if is_of_more { String::new() } else { format!(" ({})", percentage(share)) };
    sentence(&format!(
        "{} of {} expected messages were delivered{of_expected}, {} lost, {} unknown{prevented}",
        count(books.delivered),
        count(books.expected),
        count(books.lost),
        count(books.unknown)
    ))
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::Delivery;
    use pubmark_record::sample;

    use super::*;

    #[test]
    fn a_finding_has_the_share_by_which_runs_are_judged() {
        let found = |books: Delivery| {
            let mut record = sample::record();
            record.delivery.messages = books;
            finding(&record)
        };
        let books = Delivery { offered: 8, sent: 4, expected: 8, delivered: 8, ..Delivery::default() };
        assert_eq!(found(books), "All 8 expected messages were delivered.");
        let lost = Delivery { delivered: 6, lost: 2, ..books };
        assert_eq!(found(lost), "6 of 8 expected messages were delivered (75 %), 2 lost, 0 unknown.");
        let refused = Delivery { refused: 4, prevented: 8, ..books };
        assert_eq!(found(refused), "All 8 expected messages were delivered; 50 % of the wanted deliveries: 4 refused.");
        let both = Delivery { delivered: 6, lost: 2, ..refused };
        assert_eq!(
            found(both),
            "6 of 8 expected messages were delivered, 2 lost, 0 unknown; 37.5 % of the wanted deliveries: 4 refused."
        );
    }
}
