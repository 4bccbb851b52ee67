//! The receiving side of a shard: determines the stream of a delivery, whether it is a first copy, and its latency.

use std::collections::HashSet;
use std::sync::Arc;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_metrics::ledger::{Arrival, Ledger};
use pubmark_model::fleet::StreamSource;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::{self, Header};

use super::figures::{Figures, type_row};
use super::presence::Presence;
use super::streams::Streams;
use super::window::Window;
use crate::announced::Announced;
use crate::content::counts::{ContentFilter, FirstCopy};
use crate::message_log::row::{Row, RowKind};
use crate::plan::LATE_AFTER;
use crate::probes::{self, ReachedPairs};
use crate::shard_outcome::StreamRow;
use crate::transform::Reversal;

/// Receives each message once: a subscriber, or the members of a shared group together.
#[derive(Clone, Debug)]
pub struct Audience {
    /// Its number in the message accounting.
    pub number: u32,
    /// Publishers whose topics its filters match.
    pub sources: Arc<[StreamSource]>,
    /// Number of filters of its subscription.
    pub filters: u16,
    /// Its subscriber group.
    pub group: u16,
    /// It is a shared group. The sockets of its members are read in any order, and the order of its messages is not
    /// guaranteed (MQTT 5.0 §4.6).
    pub shared: bool,
}

/// The audiences of a shard.
pub struct Receiver {
    /// Number in the message accounting, by index on this shard.
    numbers: Vec<u32>,
    /// Is it a shared group?
    shared: Vec<bool>,
    streams: Vec<Streams>,
    /// First stream of each audience in the ledger, followed by the end of the last audience's streams.
    begins: Vec<u32>,
    /// Audiences that the ledger regards as absent.
    absent: HashSet<u32>,
    /// Message accounting of all their streams.
    pub ledger: Ledger,
    /// Group of each publisher of the fleet.
    groups: Arc<[u16]>,
    /// The smallest payload that a device of each group sends, bytes.
    smallest: Arc<[u32]>,
    /// Node of each publisher of the fleet, in a run on several nodes.
    nodes: Option<Arc<[u16]>>,
    /// How far publishers of this process have sent, and a local copy by publisher as of the last read.
    announced: Arc<Announced>,
    known: Vec<u32>,
    run: u32,
    /// Pairs that exchanged a probe, in a run with probes.
    reached: Option<ReachedPairs>,
    /// Probes that arrived.
    probes: u64,
    /// The predicates of its audiences, if any.
    content: Option<Box<ContentFilter>>,
    /// Reverses the steps of `transform`, if any group has steps.
    reversal: Option<Box<Reversal>>,
}

impl Receiver {
    /// Empty message accounting for audiences.
    pub fn new(
        audiences: &[Audience],
        groups: Arc<[u16]>,
        smallest: Arc<[u32]>,
        announced: Arc<Announced>,
        run: u32,
    ) -> Receiver {
        let mut base = 0;
        let mut streams = Vec::with_capacity(audiences.len());
        let mut begins = vec![0];
        for audience in audiences {
            let (entry, count) = Streams::new(&audience.sources, base);
            streams.push(entry);
            base += count;
            begins.push(base);
        }
        let mut ledger = Ledger::new(base as usize);
        // The order of copies for further matching filters is not guaranteed: one copy for all of them is as correct.
        for (stream, filters) in streams.iter().flat_map(Streams::overlapping) {
            ledger.leave_gaps_out(stream + 1..stream + u32::from(filters));
        }
        Receiver {
            numbers: audiences.iter().map(|audience| audience.number).collect(),
            shared: audiences.iter().map(|audience| audience.shared).collect(),
            streams,
            begins,
            absent: HashSet::new(),
            ledger,
            known: vec![0; if audiences.is_empty() { 0 } else { groups.len() }],
            announced,
            groups,
            smallest,
            nodes: None,
            run,
            reached: None,
            probes: 0,
            content: None,
            reversal: None,
        }
    }

    /// Sets the node of each publisher of the fleet, in a run on several nodes.
    pub fn from_nodes(self, nodes: Option<Arc<[u16]>>) -> Receiver {
        Receiver { nodes, ..self }
    }

    /// Sets the device groups that send probes, in a run with probes.
    pub fn with_probes(self, groups: Option<Arc<[bool]>>) -> Receiver {
        let streams = self.ledger.streams();
        Receiver { reached: groups.map(|groups| ReachedPairs::new(groups, streams)), ..self }
    }

    /// Sets the predicates.
    pub fn with_content(mut self, content: Option<ContentFilter>) -> Receiver {
        if let Some(content) = &content {
            // What the system's filter removes leaves gaps, and only the sender knows which gaps those are.
            let filtered = (0..self.numbers.len()).filter(|audience| content.filtered_for(*audience).is_some());
            for audience in filtered.collect::<Vec<_>>() {
                self.ledger.leave_gaps_out(self.begins[audience]..self.begins[audience + 1]);
            }
        }
        Receiver { content: content.map(Box::new), ..self }
    }

    /// Sets the reversal of `transform`, if groups have steps.
    pub fn with_transforms(self, reversal: Option<Reversal>) -> Receiver {
        Receiver { reversal: reversal.map(Box::new), ..self }
    }

    /// Number of pairs of this shard's audiences that exchanged a probe.
    pub fn reached(&self) -> u64 {
        self.reached.as_ref().map_or(0, ReachedPairs::pairs)
    }

    /// Number of probes that have arrived.
    pub fn probes(&self) -> u64 {
        self.probes
    }

    /// Counts a delivery if it is a probe; returns false if it is not.
    fn record_probe(&mut self, subscriber: u32, delivery: &Delivery<'_>) -> bool {
        let Some(reached) = &mut self.reached else { return false };
        let header = delivery.read_header();
        let Some(header) =
            header.filter(|header| header.sequence == probes::SEQUENCE && header::is_of_run(header, self.run))
        else {
            return false;
        };
        self.probes += 1;
        if let Some((stream, _)) = self.streams[subscriber as usize].find(header.publisher) {
            reached.enter(self.groups[header.publisher as usize], stream);
        }
        true
    }

    /// Does the system hold all subscriptions of an audience? A message that is sent while it does not is not lost.
    pub fn note_presence(&mut self, audience: u32, is_present: bool) {
        let changed = if is_present { self.absent.remove(&audience) } else { self.absent.insert(audience) };
        if changed {
            let index = audience as usize;
            self.ledger.note_presence(self.begins[index]..self.begins[index + 1], is_present);
        }
    }

    /// Publishers of an audience's streams, each with the number after the highest that arrived; `None` for a shared group.
    pub fn next_numbers(&self, audience: u32) -> Option<impl ExactSizeIterator<Item = (u32, u32)>> {
        let index = audience as usize;
        let row = move |(publisher, stream, _): (u32, u32, u8)| (publisher, self.ledger.next_number(stream));
        (!self.shared[index]).then(|| self.streams[index].rows().map(row))
    }

    /// Records the audiences that are absent when devices begin to send.
    pub fn note_absent(&mut self, presence: &Presence) {
        for audience in 0..self.numbers.len() as u32 {
            self.note_presence(audience, presence.is_whole(audience));
        }
    }

    /// Does this shard have subscribers?
    pub fn has_subscribers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Group of a publisher of the fleet from which a delivery was counted.
    pub fn group_of(&self, publisher: u32) -> u16 {
        self.groups[publisher as usize]
    }

    /// Publisher and audience of the ledger's streams.
    pub fn stream_rows(&self) -> Vec<StreamRow> {
        let rows = |(index, (subscriber, streams)): (usize, (&u32, &Streams))| {
            let subscriber = *subscriber;
            let filtered_for = self.content.as_ref().and_then(|content| content.filtered_for(index));
            let row =
                move |(publisher, stream, filters)| StreamRow { subscriber, publisher, stream, filters, filtered_for };
            streams.rows().map(row).collect::<Vec<_>>()
        };
        self.numbers.iter().zip(&self.streams).enumerate().flat_map(rows).collect()
    }

    /// Has the publisher sent a message with this number? If it runs in another process, this is unknown here, and is
    /// checked when the message accounting is completed.
    #[inline]
    fn may_have_sent(&mut self, publisher: u32, sequence: u32) -> bool {
        let Some(known) = self.known.get_mut(publisher as usize) else { return false };
        // If the sender is far ahead, its counter is not read for each message, because the sender writes to that cache
        // line.
        if sequence >= *known {
            *known = self.announced.next(publisher).unwrap_or(u32::MAX);
        }
        sequence < *known
    }

    /// The header of a message of this run, its stream and the filters that match it; `None` for any other message.
    #[inline]
    fn stream_of(&mut self, subscriber: u32, delivery: &Delivery<'_>, window: &Window) -> Option<(Header, u32, u8)> {
        let header = delivery.read_header()?;
        if !header::is_of_run(&header, self.run) || header.sequence == probes::SEQUENCE || !window.is_set() {
            return None;
        }
        let (stream, filters) = self.streams[subscriber as usize].find(header.publisher)?;
        self.may_have_sent(header.publisher, header.sequence).then_some((header, stream, filters))
    }

    /// Counts a delivery. Returns its header if it was a first copy (of the measured window or the warm-up).
    pub fn enter(
        &mut self,
        subscriber: u32,
        delivery: &Delivery<'_>,
        window: &Window,
        figures: &mut Figures,
    ) -> Option<Header> {
        let Some((header, stream, filters)) = self.stream_of(subscriber, delivery, window) else {
            if self.record_probe(subscriber, delivery) {
                return None;
            }
            let counters = &mut figures.counters;
            *match (header::is_will_of_run(delivery.payload, self.run), delivery.retained) {
                (true, false) => &mut counters.wills,
                (true, true) => &mut counters.retained_replay,
                (false, _) => &mut counters.foreign,
            } += 1;
            return None;
        };
        if delivery.retained {
            figures.counters.retained_replay += 1;
            return None;
        }
        let group = self.groups[header.publisher as usize];
        // A message that arrives truncated does not count as delivered.
        if delivery.payload.len() < self.smallest[usize::from(group)] as usize {
            figures.counters.truncated += 1;
            return None;
        }
        let measured = window.measures(header.chain_due_ns());
        if let Some(reversal) = &mut self.reversal {
            let counted = measured.then_some(&mut figures.transform);
            if reversal.reverse(group, &header, delivery, counted).is_err() {
                figures.counters.corrupt += u64::from(measured);
                return None;
            }
        }
        match self.ledger.enter(stream, header.sequence) {
            Arrival::Duplicate => {
                // Further copies are counted for further matching filters; a copy that no filter accounts for is a
                // duplicate.
                let overlap = (1..u32::from(filters))
                    .any(|level| self.ledger.enter(stream + level, header.sequence) != Arrival::Duplicate);
                if measured {
                    let row = type_row(&mut figures.types, group);
                    let (total, part) = match overlap {
                        true => (&mut figures.counters.overlap, &mut row.overlap),
                        false => (&mut figures.counters.duplicated, &mut row.duplicated),
                    };
                    *total += 1;
                    *part += 1;
                    let kind = if overlap { RowKind::Overlap } else { RowKind::Duplicated };
                    self.note(subscriber, kind, &header, delivery, figures);
                }
                None
            }
            order => {
                let order = if self.shared[subscriber as usize] { Arrival::InOrder } else { order };
                self.first_copy(delivery, &header, group, measured, order, window, figures);
                if measured && let Some(content) = &self.content {
                    let copy = FirstCopy {
                        audience: subscriber,
                        number: self.numbers[subscriber as usize],
                        group,
                        payload: delivery.payload,
                        reversed: self.reversal.as_ref().and_then(|reversal| reversal.document(group)),
                        latency_ns: window.relative(delivery.at_ns) - window.relative(header.due_ns),
                        width_ns: header.lag_ns.saturating_add(delivery.late_ns(header.earliest_write_start_ns())),
                    };
                    content.enter(&copy, &mut figures.content);
                }
                if measured && figures.log.is_some() {
                    self.note(subscriber, first_copy_kind(order), &header, delivery, figures);
                }
                Some(header)
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn first_copy(
        &self,
        delivery: &Delivery<'_>,
        header: &Header,
        group: u16,
        measured: bool,
        order: Arrival,
        window: &Window,
        figures: &mut Figures,
    ) {
        let due_ns = window.relative(header.due_ns);
        let at_ns = window.relative(delivery.at_ns);
        let latency_ns = at_ns - due_ns;
        // The generator's possible part in the latency: before the write, and after the arrival.
        let sent_ns = header.earliest_write_start_ns();
        let late_ns = delivery.late_ns(sent_ns);
        let width_ns = header.lag_ns.saturating_add(late_ns);
        if window.is_plausible(header.due_ns, delivery.at_ns) {
            figures.series.record_latency(due_ns, latency_ns, width_ns);
            figures.show_latency(latency_ns, width_ns, measured);
        }
        figures.series.record_delivery(at_ns, delivery.payload.len() as u64);
        if window.holds(delivery.at_ns) {
            figures.counters.delivered_in_window += 1;
            figures.counters.bytes_in_window += delivery.payload.len() as u64;
        }
        if !measured {
            return;
        }
        let row = type_row(&mut figures.types, group);
        figures.times.latency.record(latency_ns, width_ns);
        row.latency.record(latency_ns, width_ns);
        figures.due_times.note(header.publisher, header.sequence, due_ns);
        if let Some(nodes) = &self.nodes {
            let node = usize::from(nodes[header.publisher as usize]);
            if figures.from_nodes.len() <= node {
                figures.from_nodes.resize(node + 1, None);
            }
            let empty = || Box::new(Bounds::new(Precision::Breakdown));
            figures.from_nodes[node].get_or_insert_with(empty).record(latency_ns, width_ns);
        }
        if let Some(root) = header.root {
            let chain_ns = at_ns - window.relative(root.due_ns);
            figures.times.chain.record(chain_ns, root.lag_ns.saturating_add(width_ns));
        }
        match header.write_start_us {
            Some(u32::MAX) => {
                figures.times.service_latency.record_clipped();
                row.service_latency.record_clipped();
            }
            Some(delay_us) => {
                let service_ns = latency_ns - i64::from(delay_us) * 1_000;
                let width_ns = late_ns.saturating_add(header::WRITE_START_ROUNDED_NS);
                figures.times.service_latency.record(service_ns, width_ns);
                row.service_latency.record(service_ns, width_ns);
            }
            None => figures.counters.without_write_start += 1,
        }
        // Nothing is recorded if nothing is known: a client library that reads by itself provides neither value.
        if delivery.absent_at_ns().is_some() {
            figures.times.receive_lateness.record(delivery.receive_lateness_ns(sent_ns) as i64);
        }
        if let Some(kernel_ns) = delivery.kernel_ns {
            figures.times.kernel_lateness.record(delivery.at_ns as i64 - kernel_ns as i64);
        }
        if order == Arrival::OutOfOrder {
            figures.counters.out_of_order += 1;
            row.out_of_order += 1;
        }
        // A reaction may be due after the end of the window.
        if delivery.at_ns > window.closed_ns().max(header.due_ns).saturating_add(LATE_AFTER.as_nanos() as u64) {
            figures.counters.late += 1;
            row.late += 1;
        }
    }

    /// Logs a copy of a measured message, in a run with a message log.
    fn note(&self, subscriber: u32, kind: RowKind, header: &Header, delivery: &Delivery<'_>, figures: &mut Figures) {
        let Some(log) = &mut figures.log else { return };
        log.note(Row {
            kind,
            publisher: header.publisher,
            sequence: header.sequence,
            audience: self.numbers[subscriber as usize],
            payload_bytes: delivery.payload.len() as u32,
            due_ns: header.due_ns,
            at_ns: delivery.at_ns,
            lag_ns: header.lag_ns,
            late_ns: delivery.late_ns(header.earliest_write_start_ns()),
            write_start_us: header.write_start_us,
        });
    }
}

/// The kind of a first copy in the message log.
fn first_copy_kind(order: Arrival) -> RowKind {
    if order == Arrival::OutOfOrder { RowKind::DeliveredOutOfOrder } else { RowKind::Delivered }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_protocol::timing::Timing;

    use super::*;
    use crate::shard_outcome::Counters;

    const RUN: u32 = 7;
    const SMALLEST: u32 = 16;

    fn receiver(shared: bool) -> Receiver {
        let sources: Arc<[StreamSource]> = [StreamSource { publisher: 0, filters: 1 }].into();
        let announced = Announced::new(1);
        announced.begin(0);
        announced.announce(0, 3);
        let audience = Audience { number: 5, sources, filters: 1, group: 0, shared };
        Receiver::new(&[audience], [0].into(), [SMALLEST].into(), Arc::new(announced), RUN)
    }

    fn delivery(payload: &[u8]) -> Delivery<'_> {
        Delivery { payload, at_ns: 2_000, empty_at_ns: Some(1_500), ..Delivery::default() }
    }

    /// Counts messages of publisher 0 and returns the counters.
    fn counted(receiver: &mut Receiver, sequences: &[u32]) -> Counters {
        let mut figures = Figures::new(1, 0, 1_000_000_000);
        for sequence in sequences {
            let mut payload = Vec::new();
            header::write(&mut payload, 16, RUN, 0, *sequence, 1_000);
            let delivery = delivery(&payload);
            receiver.enter(0, &delivery, &Window::new(0, 0, 1_000_000), &mut figures);
        }
        figures.counters
    }

    #[test]
    fn a_shared_group_is_judged_as_one_and_promised_no_order() {
        // Two members; it does not matter which of them received a message: 3 came before 2, 1 came twice.
        let counters = counted(&mut receiver(true), &[1, 3, 2, 1]);
        assert_eq!((counters.out_of_order, counters.duplicated), (0, 1));
        let counters = counted(&mut receiver(false), &[1, 3, 2, 1]);
        assert_eq!((counters.out_of_order, counters.duplicated), (1, 1));
    }

    #[test]
    fn a_gap_is_counted_unless_the_subscriber_was_absent() {
        let mut receiver = receiver(false);
        counted(&mut receiver, &[2]);
        assert_eq!(receiver.ledger.gaps().opened, 1);
        receiver.note_presence(0, false);
        receiver.note_presence(0, true);
        receiver.announced.announce(0, 9);
        counted(&mut receiver, &[5, 6, 8, 7]);
        let gaps = receiver.ledger.gaps();
        assert_eq!((gaps.opened, gaps.filled), (2, 1), "3 and 4 were sent meanwhile, 7 came after 8");
    }

    #[test]
    fn copies_for_further_filters_leave_no_gaps() {
        let sources: Arc<[StreamSource]> = [StreamSource { publisher: 0, filters: 2 }].into();
        let audience = Audience { number: 5, sources, filters: 2, group: 0, shared: false };
        let announced = Announced::new(1);
        announced.begin(0);
        announced.announce(0, 4);
        let mut receiver = Receiver::new(&[audience], [0].into(), [SMALLEST].into(), Arc::new(announced), RUN);
        counted(&mut receiver, &[1, 2, 3, 3]);
        assert_eq!(receiver.ledger.gaps().opened, 0);
    }

    #[test]
    fn a_probe_is_one_only_in_a_run_that_has_probes() {
        let mut plain = receiver(false);
        assert_eq!((counted(&mut plain, &[0, 0]).foreign, plain.reached()), (2, 0));
        let mut probed = receiver(false).with_probes(Some([true].into()));
        let counters = counted(&mut probed, &[0, 1, 0]);
        assert_eq!((counters.foreign, counters.delivered_in_window, probed.reached()), (0, 1, 1));
    }

    #[test]
    fn a_message_that_its_publisher_never_announced_is_foreign() {
        let mut receiver = receiver(false);
        let counters = counted(&mut receiver, &[1, 4, 9_000, 2]);
        assert_eq!((counters.foreign, counters.delivered_in_window), (2, 2));
        receiver.announced.announce(0, 4);
        let counters = counted(&mut receiver, &[4]);
        assert_eq!((counters.foreign, counters.delivered_in_window), (0, 1));
    }

    #[test]
    fn a_message_without_its_end_is_not_delivered() {
        let mut receiver = receiver(false);
        receiver.smallest = [SMALLEST + 1].into();
        let counters = counted(&mut receiver, &[1, 2]);
        assert_eq!((counters.truncated, counters.delivered_in_window, counters.foreign), (2, 0, 0));
        receiver.smallest = [SMALLEST].into();
        let counters = counted(&mut receiver, &[1, 2]);
        assert_eq!((counters.truncated, counters.delivered_in_window), (0, 2));
    }

    #[test]
    fn a_message_waited_for_its_read_no_longer_than_since_its_write() {
        let mut receiver = receiver(false);
        let mut figures = Figures::new(1, 0, 1_000_000_000);
        let mut payload = Vec::new();
        header::write(&mut payload, 30, RUN, 0, 1, 1_000);
        payload.resize(30, 0);
        // 5 ms of back-pressure, then the write at once. The socket was last known to be empty when the message was due.
        let timing = Timing { due_ns: 1_000, submitted_ns: 5_001_000, lag_ns: 0 };
        header::patch_write_start(&mut payload, &timing, 5_001_000);
        let delivery = Delivery { at_ns: 7_001_000, empty_at_ns: Some(1_000), ..delivery(&payload) };
        receiver.enter(0, &delivery, &Window::new(0, 0, 1_000_000_000), &mut figures).unwrap();
        let times = &figures.times;
        let milliseconds = [&times.latency.lower, &times.latency.upper, &times.receive_lateness]
            .map(|times| (times.max_ns() as f64 / 1e6).round());
        assert_eq!(milliseconds, [5.0, 7.0, 2.0]);
    }

    #[test]
    fn a_service_latency_allows_for_the_rounding_of_its_write_start() {
        let mut receiver = receiver(false);
        let mut figures = Figures::new(1, 0, 1_000_000_000);
        let mut payload = Vec::new();
        header::write(&mut payload, 30, RUN, 0, 1, 1_000);
        payload.resize(30, 0);
        // The header says 1 µs. The message arrived between 6 and 7 ms after its due time.
        header::patch_write_start(&mut payload, &Timing::on_time(1_000), 2_999);
        let delivery = Delivery { at_ns: 7_001_000, empty_at_ns: Some(6_001_000), ..delivery(&payload) };
        receiver.enter(0, &delivery, &Window::new(0, 0, 1_000_000_000), &mut figures).unwrap();
        let service = &figures.times.service_latency;
        assert_eq!(
            [&service.lower, &service.upper].map(|times| times.mean_ns()),
            [Some(5_998_001.0), Some(6_999_000.0)]
        );
    }

    #[test]
    fn a_message_before_the_window_is_known_is_foreign() {
        let mut receiver = receiver(false);
        let mut figures = Figures::new(1, 0, 1_000_000_000);
        let mut payload = Vec::new();
        header::write(&mut payload, 16, RUN, 0, 1, 1_000);
        let delivery = delivery(&payload);
        assert_eq!(receiver.enter(0, &delivery, &Window::NONE, &mut figures), None);
        assert_eq!(figures.counters.foreign, 1);
        assert_eq!(figures.series.width_ns(), 1_000_000_000);
    }

    #[test]
    fn a_will_is_counted_separately() {
        let mut receiver = receiver(false);
        let mut figures = Figures::new(1, 0, 1_000_000_000);
        for (run, retained) in [(RUN, false), (RUN, false), (RUN, true), (RUN + 1, false)] {
            let mut payload = Vec::new();
            header::write_will(&mut payload, run, 0);
            payload.resize(30, 0);
            let delivery = Delivery { retained, ..delivery(&payload) };
            assert_eq!(receiver.enter(0, &delivery, &Window::new(0, 0, 1_000_000), &mut figures), None);
        }
        let counters = figures.counters;
        assert_eq!((counters.wills, counters.retained_replay, counters.foreign), (2, 1, 1));
    }
}
