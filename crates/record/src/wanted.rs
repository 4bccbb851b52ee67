//! Wanted deliveries: those that were expected, and those that the system prevented before they were.

use crate::delivery::Delivery;
use crate::record::Record;

/// Deliveries that the system prevented before they were expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prevented {
    /// Of messages that it refused or did not take in time, or whose publisher's connection it ended.
    pub not_sent: u64,
    /// For subscribers whose session it had ended.
    pub absent: u64,
}

impl Prevented {
    /// All of them.
    pub fn all(self) -> u64 {
        self.not_sent + self.absent
    }
}

/// The deliveries of `books` (a run's, or those of one of its device types) that count as prevented by the system. Faults are
/// injected by the run itself: under faults none does. A flood always has more to send than the system takes, so what was not
/// sent does not count there.
pub fn prevented(record: &Record, books: &Delivery) -> Prevented {
    if record.conditions.faults.is_some() {
        return Prevented::default();
    }
    // Some of them arrived in spite of the refusal, and count for neither side.
    let not_sent = books.prevented.saturating_sub(books.delivered_after_refusal);
    Prevented { not_sent: if record.settings.flood { 0 } else { not_sent }, absent: books.absent }
}

/// Wanted deliveries of `books` that did not arrive: lost, unknown, or prevented.
pub fn not_delivered(record: &Record, books: &Delivery) -> u64 {
    wanted(record, books).saturating_sub(books.delivered)
}

/// Share of a run's wanted deliveries that arrived; `None` where none was wanted.
pub fn delivered_share(record: &Record) -> Option<f64> {
    share(record, record.delivery.messages.delivered)
}

/// Share of a run's wanted deliveries that arrived not more than 2 s after the end of publishing, however long after they
/// were due; `None` where none was wanted.
pub fn delivered_by_the_end_share(record: &Record) -> Option<f64> {
    let books = &record.delivery.messages;
    share(record, books.delivered.saturating_sub(books.late))
}

fn share(record: &Record, arrived: u64) -> Option<f64> {
    let wanted = wanted(record, &record.delivery.messages);
    (wanted > 0).then(|| arrived as f64 / wanted as f64)
}

fn wanted(record: &Record, books: &Delivery) -> u64 {
    books.expected + prevented(record, books).all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_prevented_was_not_delivered() {
        let share = |books: Delivery, change: fn(&mut Record)| {
            let mut record = crate::sample::record();
            record.delivery.messages = books;
            change(&mut record);
            delivered_share(&record)
        };
        let books = Delivery { offered: 8, sent: 4, expected: 8, delivered: 8, ..Delivery::default() };
        assert_eq!(share(books, |_| {}), Some(1.0));
        // Two subscribers: each message is wanted twice.
        let refused = Delivery { refused: 4, prevented: 8, ..books };
        assert_eq!(share(refused, |_| {}), Some(0.5));
        assert_eq!(share(refused, |it| it.settings.flood = true), Some(1.0));
        assert_eq!(share(refused, |it| it.conditions.faults = Some(Default::default())), Some(1.0));
        assert_eq!(share(Delivery { refused: 4, ..books }, |_| {}), Some(1.0), "nobody subscribes to them");
        let despite = Delivery { delivered_after_refusal: 8, ..refused };
        assert_eq!(share(despite, |_| {}), Some(1.0), "refused, and delivered nevertheless");
        let absent = Delivery { expected: 6, delivered: 6, absent: 2, ..books };
        assert_eq!(share(absent, |_| {}), Some(0.75));
        assert_eq!(share(absent, |it| it.connections.planned_leaves = 1), Some(0.75), "only devices leave as planned");
        assert_eq!(share(absent, |it| it.conditions.faults = Some(Default::default())), Some(1.0));
        assert_eq!(share(Delivery { refused: 5, prevented: 5, ..Delivery::default() }, |_| {}), Some(0.0));
        assert_eq!(share(Delivery { sent: 5, ..Delivery::default() }, |_| {}), None, "nobody subscribes");
    }

    #[test]
    fn what_was_not_delivered_is_the_rest_of_the_share_and_nothing_counts_twice() {
        let mut record = crate::sample::record();
        let books = Delivery { expected: 8, delivered: 5, lost: 2, unknown: 1, absent: 3, ..Delivery::default() };
        record.delivery.messages = Delivery { refused: 2, prevented: 4, delivered_after_refusal: 1, ..books };
        let books = record.delivery.messages;
        assert_eq!(prevented(&record, &books), Prevented { not_sent: 3, absent: 3 });
        assert_eq!((not_delivered(&record, &books), delivered_share(&record)), (9, Some(5.0 / 14.0)));
        record.settings.flood = true;
        assert_eq!((not_delivered(&record, &books), delivered_share(&record)), (6, Some(5.0 / 11.0)));
        record.conditions.faults = Some(Default::default());
        assert_eq!((not_delivered(&record, &books), delivered_share(&record)), (3, Some(5.0 / 8.0)));
    }
}
