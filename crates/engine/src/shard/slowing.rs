//! A device that sends less for some time after its client received a message: which of its messages it leaves out.

use std::collections::VecDeque;
use std::time::Duration;

use pubmark_model::slowdown::Slowdown;

/// Most periods that are stored; further ones are added to the last.
const MOST_PERIODS: usize = 1_000;

/// The slow periods of a device. All times are ns relative to the start of the window.
#[derive(Debug)]
pub struct Slowing {
    interval_ns: i64,
    length_ns: i64,
    /// Start and end of each period, ascending and disjoint. Periods before the next message to be sent are not needed;
    /// several remain only while messages wait.
    periods: VecDeque<(i64, i64)>,
    /// Earliest due time of the next message in a slow period.
    next_ns: i64,
}

impl Slowing {
    /// A device that has received nothing.
    pub fn new(slowdown: &Slowdown) -> Slowing {
        let whole_ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Slowing {
            interval_ns: slowdown.interval.map_or(i64::MAX, whole_ns),
            length_ns: whole_ns(slowdown.length),
            periods: VecDeque::new(),
            next_ns: i64::MIN,
        }
    }

    /// Its client received a message at this time; `next_due_ns` is the due time of the next message that it decides about.
    pub fn begin(&mut self, at_ns: i64, next_due_ns: Option<i64>) {
        while self.periods.front().is_some_and(|(_, end_ns)| next_due_ns.is_none_or(|due_ns| *end_ns <= due_ns)) {
            self.periods.pop_front();
        }
        let end_ns = at_ns.saturating_add(self.length_ns);
        let is_full = self.periods.len() >= MOST_PERIODS;
        match self.periods.back_mut() {
            Some(last) if at_ns <= last.1 || is_full => last.1 = last.1.max(end_ns),
            _ => self.periods.push_back((at_ns, end_ns)),
        }
    }

    /// Does the device leave out the message that is due at this time? Messages are asked about in the order of their due
    /// times, and the same message may be asked about again.
    pub fn leaves_out(&self, due_ns: i64) -> bool {
        let is_slow = self.periods.iter().any(|(start_ns, end_ns)| (*start_ns..*end_ns).contains(&due_ns));
        is_slow && due_ns < self.next_ns
    }

    /// The message that was due at this time was not left out.
    pub fn note(&mut self, due_ns: i64) {
        self.next_ns = due_ns.saturating_add(self.interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::topic::TopicFilter;

    use super::*;

    const MS: i64 = 1_000_000;

    fn slowing(interval: Option<Duration>) -> Slowing {
        let length = Duration::from_millis(100);
        Slowing::new(&Slowdown { on: TopicFilter("a".to_owned()), interval, length })
    }

    /// Due times in ms, of messages every 10 ms up to 300 ms, that are not left out.
    fn sent(slowing: &mut Slowing) -> Vec<i64> {
        let mut sent = vec![];
        for due_ms in (0..300).step_by(10) {
            if !slowing.leaves_out(due_ms * MS) {
                slowing.note(due_ms * MS);
                sent.push(due_ms);
            }
        }
        sent
    }

    #[test]
    fn messages_are_left_out_from_the_receipt_to_the_end_of_the_time() {
        let mut one = slowing(Some(Duration::from_millis(40)));
        one.begin(55 * MS, Some(60 * MS));
        let expected: Vec<i64> = [0, 10, 20, 30, 40, 50, 90, 130].into_iter().chain((160..300).step_by(10)).collect();
        assert_eq!(sent(&mut one), expected);
    }

    #[test]
    fn a_further_message_begins_the_time_anew_and_silence_is_a_rate_too() {
        let mut two = slowing(None);
        two.begin(50 * MS, Some(50 * MS));
        two.begin(120 * MS, Some(120 * MS));
        let expected: Vec<i64> = (0..50).step_by(10).chain((220..300).step_by(10)).collect();
        assert_eq!(sent(&mut two), expected);
    }

    #[test]
    fn messages_that_wait_are_judged_by_the_period_of_their_due_time() {
        let mut late = slowing(None);
        late.begin(0, Some(0));
        late.begin(200 * MS, Some(0));
        let expected: Vec<i64> = std::iter::once(0).chain((100..200).step_by(10)).collect();
        // The first message has no other before it, so it is not too early.
        assert_eq!(sent(&mut late), expected);
        late.begin(900 * MS, Some(800 * MS));
        assert_eq!(late.periods.len(), 1, "periods before the next message are not needed");
        for number in 1..3_000 {
            late.begin((900 + number * 200) * MS, Some(0));
        }
        assert_eq!(late.periods.len(), MOST_PERIODS);
    }
}
