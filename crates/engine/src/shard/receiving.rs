//! The deliveries to the subscribers of a shard: each is entered in the message accounting and in the shard's figures.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::Header;
use pubmark_protocol::sampling::Sampling;

use super::following::Following;
use super::receiver::Receiver;
use super::sessions::Sessions;
use super::timetable::Timetable;
use super::totals::Totals;
use crate::followed::FollowedDeliveries;
use crate::shard_outcome::Counters;

/// A first copy with a longer latency is overdue, ns.
const OVERDUE_AFTER_NS: i64 = 2_000_000_000;

/// Values of the counters that a delivery may change, before the delivery.
#[derive(Clone, Copy)]
struct CopyCounts {
    duplicated: u64,
    out_of_order: u64,
}

impl CopyCounts {
    fn of(counters: &Counters) -> CopyCounts {
        CopyCounts { duplicated: counters.duplicated, out_of_order: counters.out_of_order }
    }
}

/// The subscribers of a shard.
pub struct Receiving {
    /// Their message accounting.
    pub receiver: Receiver,
    following: Option<Box<Following>>,
    /// First copies, warm-up included.
    pub(super) delivered: u64,
}

impl Receiving {
    /// Nothing received. `follows` selects the messages whose deliveries are recorded individually.
    pub fn new(
        receiver: Receiver,
        follows: Option<Sampling>,
        networks: impl Iterator<Item = Option<u16>>,
    ) -> Receiving {
        let following = follows.map(|sampling| Box::new(Following::new(sampling, networks.collect())));
        Receiving { receiver, following, delivered: 0 }
    }

    /// Counts a message that a session received. Returns its header if it was a first copy.
    #[inline]
    pub fn enter(
        &mut self,
        session: SessionId,
        delivery: &Delivery<'_>,
        sessions: &mut Sessions,
        timetable: &mut Timetable,
        totals: &mut Totals,
    ) -> Option<Header> {
        totals.note_event();
        let Some(subscriber) = sessions[session].subscriber else {
            totals.figures.counters.foreign += 1;
            return None;
        };
        let window = &timetable.window;
        let before = CopyCounts::of(&totals.figures.counters);
        let probes = self.receiver.probes();
        let header = self.receiver.enter(subscriber, delivery, window, &mut totals.figures);
        // No processing time applies to a probe.
        if self.receiver.probes() == probes {
            sessions.take_up(session, delivery, header.as_ref(), &mut timetable.timers);
        }
        if sessions.faults.is_some() {
            self.note_level(session, delivery, header.as_ref(), before, sessions, timetable, totals);
        }
        let header = header?;
        self.delivered += 1;
        totals.tally.received(session, delivery.payload.len() as u64);
        if let Some(following) = self.following.as_mut().filter(|_| window.measures(header.chain_due_ns())) {
            following.note(session, &header, delivery);
        }
        Some(header)
    }

    /// Counts a delivery by its QoS level, and its latency, in a run with faults.
    #[allow(clippy::too_many_arguments)]
    fn note_level(
        &self,
        session: SessionId,
        delivery: &Delivery<'_>,
        header: Option<&Header>,
        before: CopyCounts,
        sessions: &mut Sessions,
        timetable: &Timetable,
        totals: &Totals,
    ) {
        let requested_qos = sessions[session].requested_qos;
        let Some(log) = &mut sessions.faults else { return };
        let (counters, window) = (&totals.figures.counters, &timetable.window);
        let (duplicated, out_of_order) =
            (counters.duplicated - before.duplicated, counters.out_of_order - before.out_of_order);
        let overdue = header.is_some_and(|header| {
            let due_ns = window.relative(header.due_ns);
            let latency_ns = window.relative(delivery.at_ns) - due_ns;
            if window.is_plausible(header.due_ns, delivery.at_ns) {
                log.notes.fine.enter(due_ns, latency_ns);
            }
            window.measures(header.chain_due_ns()) && latency_ns > OVERDUE_AFTER_NS
        });
        if duplicated + out_of_order + u64::from(overdue) == 0 {
            return;
        }
        // For a duplicate there is no header yet; it is read from the payload to determine the publisher.
        let Some(header) = header.copied().or_else(|| delivery.read_header()) else { return };
        let received_at = requested_qos.map_or(0, |qos| usize::from(qos.level()));
        let tally = log.tally(received_at.min(timetable.level(self.receiver.group_of(header.publisher))));
        tally.duplicated += duplicated;
        tally.out_of_order += out_of_order;
        tally.overdue += u64::from(overdue);
    }

    /// Removes and returns the individually recorded deliveries.
    pub fn take_followed(&mut self) -> FollowedDeliveries {
        self.following.take().map(|following| following.into_followed()).unwrap_or_default()
    }
}
