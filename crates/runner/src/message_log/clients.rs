//! Sums of the message log for each client: `by_client.csv`. A message has one sender and may have many receivers. The
//! deliveries of all senders add up to the run's, and so do those of all receivers.

use std::collections::HashMap;
use std::io::{self, Write};

use pubmark_engine::message_log::Log;
use pubmark_engine::message_log::Missing;
use pubmark_engine::message_log::entries::{Entry, EntryOutcome};

use super::names::Names;
use super::text::field;

/// Columns of the table: docs/reference/message-log.md explains each.
const HEAD: &str = "role,number,client_id,group,offered,sent,expected,delivered,lost,unknown,absent,duplicated,loss_share,\
                    payload_bytes,sent_payload_bytes,payload_efficiency,latency_lower_mean_us,latency_upper_mean_us,latency_lower_p50_us,latency_upper_p50_us,\
                    latency_lower_p99_us,latency_upper_p99_us";

/// Samples that must lie beyond a percentile for it to be printed.
const SAMPLES_BEYOND: usize = 10;

/// Largest number of rows of a log for which percentiles are computed: each message that arrived needs 16 B of memory
/// for its sender, and again for its receiver.
pub const TIMED_ROWS: u64 = 16_000_000;

/// Sums for one client.
#[derive(Default)]
struct Account {
    delivered: u64,
    lost: u64,
    unknown: u64,
    absent: u64,
    duplicated: u64,
    /// Payload bytes of messages that arrived.
    payload_bytes: u64,
    /// Payload bytes of expected messages, whether they arrived or not.
    expected_bytes: u64,
    /// Number of first copies with a latency, and the sums of the lower and upper bounds of their latencies, ns.
    timed: u64,
    sums: (i128, i128),
    /// (lower, upper) bound of each latency, ns, if percentiles are computed.
    latencies: Vec<(i64, i64)>,
}

impl Account {
    fn enter(&mut self, entry: &Entry, has_percentiles: bool) {
        let count = match entry.outcome {
            EntryOutcome::Delivered => &mut self.delivered,
            EntryOutcome::Duplicated => &mut self.duplicated,
            EntryOutcome::Missing(Missing::Lost) => &mut self.lost,
            EntryOutcome::Missing(Missing::Unknown) => &mut self.unknown,
            EntryOutcome::Missing(Missing::Absent) => &mut self.absent,
            _ => return,
        };
        *count += 1;
        let bytes = u64::from(entry.payload_bytes.unwrap_or(0));
        if matches!(
            entry.outcome,
            EntryOutcome::Delivered | EntryOutcome::Missing(Missing::Lost) | EntryOutcome::Missing(Missing::Unknown)
        ) {
            self.expected_bytes += bytes;
        }
        if let (EntryOutcome::Delivered, Some(latency)) = (entry.outcome, entry.latency_ns) {
            self.timed += 1;
            self.sums = (self.sums.0 + i128::from(latency.0), self.sums.1 + i128::from(latency.1));
            if has_percentiles {
                self.latencies.push(latency);
            }
            self.payload_bytes += bytes;
        }
    }

    fn expected(&self) -> u64 {
        self.delivered + self.lost + self.unknown
    }

    /// Counts and times of a row, after its names. `sent_bytes` is the payload that was sent by the client or to it.
    fn cells(&mut self, sent_bytes: u64) -> String {
        let (mut lower, mut upper): (Vec<i64>, Vec<i64>) = self.latencies.drain(..).unzip();
        let (means, halves, most) = (
            [mean_us(self.sums.0, self.timed), mean_us(self.sums.1, self.timed)],
            [quantile_us(&mut lower, 1, 2), quantile_us(&mut upper, 1, 2)],
            [quantile_us(&mut lower, 99, 100), quantile_us(&mut upper, 99, 100)],
        );
        let expected = self.expected();
        let loss = if expected == 0 { String::new() } else { format!("{:.6}", self.lost as f64 / expected as f64) };
        // Equation 5 of ComBench, applied to payloads: bytes that arrived divided by bytes sent.
        let efficiency = (sent_bytes > 0).then(|| self.payload_bytes as f64 / sent_bytes as f64);
        let efficiency = efficiency.map_or_else(String::new, |share| format!("{share:.6}"));
        let times = [means, halves, most].concat();
        let times = times.iter().map(|us| us.map_or_else(String::new, |us| format!("{us:.3}"))).collect::<Vec<_>>();
        let Account { delivered, lost, unknown, absent, duplicated, payload_bytes, .. } = self;
        format!(
            "{expected},{delivered},{lost},{unknown},{absent},{duplicated},{loss},{payload_bytes},{sent_bytes},{efficiency},{}",
            times.join(",")
        )
    }
}

fn mean_us(sum_ns: i128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ns as f64 / count as f64 / 1e3)
}

/// The smallest time that `share / of` of all times do not exceed, µs; `None` with too few samples beyond it.
fn quantile_us(times: &mut [i64], share: usize, of: usize) -> Option<f64> {
    let count = times.len();
    let rank = (count * share).div_ceil(of).max(1);
    (count >= rank + SAMPLES_BEYOND).then(|| *times.select_nth_unstable(rank - 1).1 as f64 / 1e3)
}

/// Sums for all clients.
pub struct Clients<'a> {
    names: &'a Names,
    log: &'a Log,
    publishers: HashMap<u32, Account>,
    audiences: HashMap<u32, Account>,
    has_percentiles: bool,
}

impl<'a> Clients<'a> {
    /// Accounts without any entries.
    pub fn new(names: &'a Names, log: &'a Log, has_percentiles: bool) -> Clients<'a> {
        Clients { names, log, publishers: HashMap::new(), audiences: HashMap::new(), has_percentiles }
    }

    /// Adds a message's outcome.
    pub fn enter(&mut self, entry: &Entry) {
        let Some(audience) = entry.audience else { return };
        self.publishers.entry(entry.publisher).or_default().enter(entry, self.has_percentiles);
        self.audiences.entry(audience).or_default().enter(entry, self.has_percentiles);
    }

    /// Writes the table: publishers, then subscribers, by number.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEAD}")?;
        let sent_bytes = self.log.sent_bytes()?;
        let mut books: Vec<_> = self.log.publishers.iter().collect();
        books.sort_by_key(|book| book.publisher);
        for book in books {
            let number = book.publisher;
            let (group, _) = self.names.group_of(number);
            let id = field(&self.names.publishers[number as usize].client_id);
            let sent = self.log.sent.get(&number).copied().unwrap_or(0);
            let cells = self.publishers.entry(number).or_default().cells(sent_bytes.get(&number).copied().unwrap_or(0));
            writeln!(out, "publisher,{number},{id},{},{},{sent},{cells}", field(group), book.offered)?;
        }
        let mut audiences: Vec<_> = self.names.audiences.iter().collect();
        audiences.sort_by_key(|(number, _)| **number);
        for (number, audience) in audiences {
            let account = self.audiences.entry(*number).or_default();
            let cells = account.cells(account.expected_bytes);
            writeln!(out, "subscriber,{number},{},{},,,{cells}", field(&audience.client_id), field(&audience.group))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_ten_samples_beyond_it_or_is_none() {
        let times = |count: i64| (1..=count).map(|us| us * 1_000).rev().collect::<Vec<_>>();
        assert_eq!(quantile_us(&mut times(1_000), 99, 100), Some(990.0));
        assert_eq!(quantile_us(&mut times(999), 99, 100), None);
        assert_eq!(quantile_us(&mut times(20), 1, 2), Some(10.0));
        assert_eq!(mean_us(0, 0), None);
    }

    fn delivered(latency_ns: (i64, i64)) -> Entry {
        Entry {
            outcome: EntryOutcome::Delivered,
            publisher: 0,
            sequence: Some(1),
            audience: Some(0),
            payload_bytes: Some(16),
            due_ns: Some(0),
            ready_ns: Some(0),
            write_start_ns: None,
            received_ns: Some(latency_ns.1),
            latency_ns: Some(latency_ns),
            out_of_order: false,
        }
    }

    #[test]
    fn without_percentiles_nothing_of_a_message_stays_in_memory_and_the_means_are_the_same() {
        let cells = |has_percentiles: bool| {
            let mut account = Account::default();
            (1..=30).for_each(|us| account.enter(&delivered((us * 500, us * 1_000)), has_percentiles));
            assert_eq!(account.latencies.len(), if has_percentiles { 30 } else { 0 });
            account.cells(960)
        };
        assert_eq!(cells(true), "30,30,0,0,0,0,0.000000,480,960,0.500000,7.750,15.500,7.500,15.000,,");
        assert_eq!(cells(false), "30,30,0,0,0,0,0.000000,480,960,0.500000,7.750,15.500,,,,");
    }

    #[test]
    fn what_is_lost_was_sent_for_its_subscriber_and_what_is_absent_was_not() {
        let mut account = Account::default();
        account.enter(&delivered((500, 1_000)), true);
        for outcome in [Missing::Lost, Missing::Unknown, Missing::Absent] {
            let missing = Entry { outcome: EntryOutcome::Missing(outcome), latency_ns: None, ..delivered((0, 0)) };
            account.enter(&missing, true);
        }
        account.enter(&Entry { outcome: EntryOutcome::Duplicated, ..delivered((0, 0)) }, true);
        assert_eq!((account.payload_bytes, account.expected_bytes), (16, 48));
        let cells = account.cells(account.expected_bytes);
        assert!(cells.starts_with("3,1,1,1,1,1,0.333333,16,48,0.333333,"), "{cells}");
        assert!(Account::default().cells(0).starts_with("0,0,0,0,0,0,,0,0,,"), "nothing was sent");
    }
}
