//! Messages at QoS 1 and 2 for one client: in flight and queued.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use pubmark_model::qos::Qos;

/// A message that the client has not acknowledged.
#[derive(Debug)]
struct Stored<T> {
    message: T,
    qos: Qos,
    bytes: usize,
}

/// A message that was sent.
#[derive(Debug)]
struct InFlight<T> {
    /// `None` once the client has it and the identifier waits for PUBCOMP.
    waiting: Option<Stored<T>>,
    qos: Qos,
    /// Increases, so that resent messages stay in order.
    order: u64,
}

/// Messages at QoS 1 and 2 for a client.
#[derive(Debug)]
pub(crate) struct Outgoing<T> {
    in_flight: HashMap<u16, InFlight<T>>,
    queue: VecDeque<Stored<T>>,
    /// Identifiers of messages that were sent on an earlier connection and not yet again on this one, in order.
    owed: VecDeque<u16>,
    window: u16,
    stored_bytes: usize,
    last_packet_id: u16,
    sent: u64,
}

/// A message to be sent now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToSend<'a, T> {
    pub(crate) packet_id: u16,
    pub(crate) message: &'a T,
    /// It was sent on an earlier connection.
    pub(crate) is_repeated: bool,
}

impl<T> Outgoing<T> {
    pub(crate) fn new() -> Outgoing<T> {
        Outgoing {
            in_flight: HashMap::new(),
            queue: VecDeque::new(),
            owed: VecDeque::new(),
            window: 0,
            stored_bytes: 0,
            last_packet_id: 0,
            sent: 0,
        }
    }

    /// Adds a message of this many bytes to the end of the queue.
    pub(crate) fn push(&mut self, message: T, qos: Qos, bytes: usize) {
        self.stored_bytes += bytes;
        self.queue.push_back(Stored { message, qos, bytes });
    }

    /// The messages that were not sent yet.
    pub(crate) fn queued(&self) -> impl ExactSizeIterator<Item = &T> {
        self.queue.iter().map(|stored| &stored.message)
    }

    /// Bytes of all messages that the client has not acknowledged, sent or not.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.stored_bytes
    }

    /// The client has a new connection, on which it allows this many messages in flight: those in flight must be sent again.
    /// Returns the identifiers that wait for PUBCOMP, the one sent first at the front.
    pub(crate) fn reconnect(&mut self, window: u16) -> Vec<u16> {
        self.window = window;
        let mut list: Vec<(u64, u16)> = self.in_flight.iter().map(|(id, flight)| (flight.order, *id)).collect();
        list.sort_unstable();
        let is_waiting = |id: &u16| self.in_flight.get(id).is_some_and(|flight| flight.waiting.is_some());
        let (owed, releases): (Vec<u16>, Vec<u16>) = list.into_iter().map(|(_, id)| id).partition(is_waiting);
        self.owed = owed.into();
        releases
    }

    /// The next message, which is in flight from now on: first those of an earlier connection, then those of the queue. `None`
    /// if there is none, or the window is full (MQTT 5.0 §4.9).
    pub(crate) fn next_to_send(&mut self) -> Option<ToSend<'_, T>> {
        if self.in_flight.len() - self.owed.len() >= usize::from(self.window) {
            return None;
        }
        let (packet_id, flight, is_repeated) = match self.owed.pop_front() {
            Some(packet_id) => (packet_id, self.in_flight.get(&packet_id)?, true),
            None => {
                let (packet_id, flight) = self.start()?;
                (packet_id, flight, false)
            }
        };
        Some(ToSend { packet_id, message: &flight.waiting.as_ref()?.message, is_repeated })
    }

    /// Puts the first message of the queue in flight and gives it an identifier.
    fn start(&mut self) -> Option<(u16, &InFlight<T>)> {
        let stored = self.queue.pop_front()?;
        // The window is at most 65,535, so if it is not full one of the identifiers is free.
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if !self.in_flight.contains_key(&self.last_packet_id) {
                break;
            }
        }
        self.sent += 1;
        let (packet_id, qos) = (self.last_packet_id, stored.qos);
        let flight = InFlight { waiting: Some(stored), qos, order: self.sent };
        let flight: &InFlight<T> = self.in_flight.entry(packet_id).or_insert(flight);
        Some((packet_id, flight))
    }

    /// PUBACK (or a refusing PUBREC): the message is done. False if none has this identifier at this level.
    pub(crate) fn finish(&mut self, packet_id: u16, qos: Qos) -> bool {
        let flight = match self.in_flight.entry(packet_id) {
            Entry::Occupied(found) if found.get().waiting.is_some() && found.get().qos == qos => found.remove(),
            _ => return false,
        };
        self.release(packet_id, flight.waiting);
        true
    }

    /// PUBREC: the client has the message. False if no message at QoS 2 has this identifier.
    pub(crate) fn received(&mut self, packet_id: u16) -> bool {
        let known = self.in_flight.get_mut(&packet_id).filter(|flight| flight.qos == Qos::ExactlyOnce);
        let Some(flight) = known else { return false };
        let stored = flight.waiting.take();
        self.release(packet_id, stored);
        true
    }

    /// Frees a message that the client has; it is not sent again.
    fn release(&mut self, packet_id: u16, stored: Option<Stored<T>>) {
        self.stored_bytes -= stored.map_or(0, |stored| stored.bytes);
        // A client may acknowledge what it got on its earlier connection.
        self.owed.retain(|owed| *owed != packet_id);
    }

    /// PUBCOMP: the identifier is free. False if it was not waiting for it.
    pub(crate) fn complete(&mut self, packet_id: u16) -> bool {
        let waits = self.in_flight.get(&packet_id).is_some_and(|flight| flight.waiting.is_none());
        if waits {
            self.in_flight.remove(&packet_id);
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_window(window: u16) -> Outgoing<u32> {
        Outgoing { window, ..Outgoing::new() }
    }

    /// The next message: its identifier, the message, and whether it is repeated.
    fn next(outgoing: &mut Outgoing<u32>) -> Option<(u16, u32, bool)> {
        outgoing.next_to_send().map(|next| (next.packet_id, *next.message, next.is_repeated))
    }

    #[test]
    fn identifiers_in_use_are_passed_over_and_zero_is_none() {
        let mut outgoing = with_window(u16::MAX);
        (0..=u32::from(u16::MAX)).for_each(|number| outgoing.push(number, Qos::AtLeastOnce, 0));
        let ids: Vec<u16> = std::iter::from_fn(|| next(&mut outgoing)).map(|(id, _, _)| id).collect();
        assert_eq!((ids.len(), ids.contains(&0)), (usize::from(u16::MAX), false));
        assert!(outgoing.finish(7, Qos::AtLeastOnce) && !outgoing.finish(7, Qos::AtLeastOnce));
        assert_eq!(next(&mut outgoing), Some((7, u32::from(u16::MAX), false)));
        assert_eq!(next(&mut outgoing), None);
    }

    #[test]
    fn quality_2_takes_both_steps_in_order() {
        let mut outgoing = with_window(10);
        outgoing.push(0, Qos::ExactlyOnce, 5);
        let id = next(&mut outgoing).map_or(0, |(id, _, _)| id);
        assert!(!outgoing.complete(id) && !outgoing.finish(id, Qos::AtLeastOnce));
        assert_eq!(outgoing.stored_bytes(), 5);
        assert!(outgoing.received(id) && outgoing.received(id));
        assert_eq!(outgoing.stored_bytes(), 0);
        assert!(outgoing.complete(id) && !outgoing.complete(id) && !outgoing.received(id));
    }

    #[test]
    fn a_new_connection_gets_the_old_messages_first_and_no_more_than_its_window() {
        let mut outgoing = with_window(4);
        (1..=6).for_each(|number| outgoing.push(number, Qos::ExactlyOnce, 1));
        assert_eq!(std::iter::from_fn(|| next(&mut outgoing)).count(), 4);
        assert!(outgoing.received(2));
        assert_eq!(outgoing.reconnect(2), [2]);
        // The message that waits for PUBCOMP is one of the two.
        assert_eq!(next(&mut outgoing), Some((1, 1, true)));
        assert_eq!(next(&mut outgoing), None);
        assert!(outgoing.complete(2));
        assert_eq!(next(&mut outgoing), Some((3, 3, true)));
        assert_eq!(next(&mut outgoing), None);
        // The client had the fourth already, so it is not sent again.
        assert!(outgoing.received(4) && outgoing.complete(4));
        assert_eq!(next(&mut outgoing), None);
        assert!(outgoing.received(1) && outgoing.complete(1) && outgoing.received(3) && outgoing.complete(3));
        assert_eq!([next(&mut outgoing), next(&mut outgoing)], [Some((5, 5, false)), Some((6, 6, false))]);
        assert_eq!((next(&mut outgoing), outgoing.stored_bytes()), (None, 2));
    }
}
