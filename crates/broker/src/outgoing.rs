//! Messages at QoS 1 and 2 for one client: in flight and queued.

use std::collections::{HashMap, VecDeque};

use pubmark_model::qos::Qos;

/// A message that was sent.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    /// `None` once the client has it and the identifier waits for PUBCOMP.
    pub(crate) waiting: Option<T>,
    qos: Qos,
    /// Increases, so that resent messages stay in order.
    order: u64,
}

/// Messages at QoS 1 and 2 for a client.
#[derive(Debug)]
pub(crate) struct Outgoing<T> {
    pub(crate) in_flight: HashMap<u16, InFlight<T>>,
    pub(crate) queue: VecDeque<T>,
    pub(crate) window: u16,
    last_packet_id: u16,
    sent: u64,
}

impl<T> Outgoing<T> {
    pub(crate) fn new() -> Outgoing<T> {
        Outgoing { in_flight: HashMap::new(), queue: VecDeque::new(), window: 0, last_packet_id: 0, sent: 0 }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.len() < usize::from(self.window)
    }

    /// Puts a message in flight and gives it an identifier; the window must not be full.
    pub(crate) fn start(&mut self, message: T, qos: Qos) -> u16 {
        // The window is at most 65,535, so if it is not full one of the identifiers is free.
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if !self.in_flight.contains_key(&self.last_packet_id) {
                break;
            }
        }
        self.sent += 1;
        self.in_flight.insert(self.last_packet_id, InFlight { waiting: Some(message), qos, order: self.sent });
        self.last_packet_id
    }

    /// PUBACK (or a refusing PUBREC): the message is done. False if none has this identifier at this level.
    pub(crate) fn finish(&mut self, packet_id: u16, qos: Qos) -> bool {
        let known = self.in_flight.get(&packet_id);
        let fits = known.is_some_and(|flight| flight.waiting.is_some() && flight.qos == qos);
        if fits {
            self.in_flight.remove(&packet_id);
        }
        fits
    }

    /// PUBREC: the client has the message. False if no message at QoS 2 has this identifier.
    pub(crate) fn received(&mut self, packet_id: u16) -> bool {
        match self.in_flight.get_mut(&packet_id) {
            Some(flight) if flight.qos == Qos::ExactlyOnce => {
                flight.waiting = None;
                true
            }
            _ => false,
        }
    }

    /// PUBCOMP: the identifier is free. False if it was not waiting for it.
    pub(crate) fn complete(&mut self, packet_id: u16) -> bool {
        let waits = self.in_flight.get(&packet_id).is_some_and(|flight| flight.waiting.is_none());
        if waits {
            self.in_flight.remove(&packet_id);
        }
        waits
    }

    /// Identifiers in flight, the one sent first at the front.
    pub(crate) fn in_order(&self) -> Vec<u16> {
        let mut list: Vec<(u64, u16)> = self.in_flight.iter().map(|(id, flight)| (flight.order, *id)).collect();
        list.sort_unstable();
        list.into_iter().map(|(_, packet_id)| packet_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_in_use_are_passed_over_and_zero_is_none() {
        let mut outgoing = Outgoing { window: u16::MAX, ..Outgoing::new() };
        let ids: Vec<u16> = (0..u16::MAX).map(|_| outgoing.start((), Qos::AtLeastOnce)).collect();
        assert!(!outgoing.has_room() && !ids.contains(&0));
        assert!(outgoing.finish(7, Qos::AtLeastOnce) && !outgoing.finish(7, Qos::AtLeastOnce));
        assert_eq!(outgoing.start((), Qos::AtLeastOnce), 7);
        assert_eq!(outgoing.in_order().last(), Some(&7));
    }

    #[test]
    fn quality_2_takes_both_steps_in_order() {
        let mut outgoing = Outgoing { window: 10, ..Outgoing::new() };
        let id = outgoing.start((), Qos::ExactlyOnce);
        assert!(!outgoing.complete(id) && !outgoing.finish(id, Qos::AtLeastOnce));
        assert!(outgoing.received(id) && outgoing.received(id));
        assert!(outgoing.complete(id) && !outgoing.complete(id) && !outgoing.received(id));
    }
}
