//! Messages of ours with acknowledgements, between hand-over and their last acknowledgement.
//!
//! An identifier (MQTT's packet identifier) is the index in a list plus one, so that an acknowledgement needs no search. An
//! entry has what is needed to encode the message again, not its bytes.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::events::Token;

/// State of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Handed over; its last byte is not in the socket.
    Handed,
    /// Written.
    Written,
    /// QoS 2: the server has it (PUBREC), its identifier is to be released.
    Released,
}

/// A message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was handed over.
    pub message: Outgoing,
    /// Level it was sent at.
    pub qos: Qos,
    /// Its state.
    pub progress: Progress,
    /// Counts hand-overs: resent messages stay in order.
    order: u64,
}

impl Entry {
    /// Its name in events.
    pub fn token(&self) -> Token {
        self.message.token()
    }
}

/// All messages of a session in flight.
#[derive(Debug)]
pub struct InFlight {
    places: Vec<Option<Entry>>,
    free: Vec<u16>,
    /// Identifiers without a message that are not used again before the session ends.
    retired: usize,
    limit: u16,
    /// Highest identifier for messages.
    highest: u16,
    handed: u64,
    /// Identifiers to be sent again when the server's window allows it, last first.
    held: Vec<u16>,
}

impl InFlight {
    /// Nothing in flight, at most `limit` messages.
    pub fn new(limit: u16) -> InFlight {
        let (places, free, held) = (Vec::new(), Vec::new(), Vec::new());
        InFlight { places, free, retired: 0, limit, highest: u16::MAX, handed: 0, held }
    }

    /// Sets how many messages there may be; those there are stay.
    pub fn set_limit(&mut self, limit: u16) {
        self.limit = limit;
    }

    /// Sets the highest identifier that messages may have.
    pub fn set_highest(&mut self, highest: u16) {
        self.highest = highest;
    }

    fn count(&self) -> usize {
        self.places.len() - self.free.len() - self.retired
    }

    /// Is the window not full, and an identifier left?
    pub fn has_room(&self) -> bool {
        let has_identifier = !self.free.is_empty() || self.places.len() < usize::from(self.highest);
        has_identifier && self.count() < usize::from(self.limit)
    }

    /// Adds a message and returns its packet identifier; the window must not be full.
    pub fn add(&mut self, message: Outgoing, qos: Qos) -> u16 {
        self.handed += 1;
        let progress = Progress::Handed;
        let entry = Some(Entry { message, qos, progress, order: self.handed });
        if let Some(packet_id) = self.free.pop() {
            self.places[usize::from(packet_id) - 1] = entry;
            packet_id
        } else {
            self.places.push(entry);
            self.places.len() as u16
        }
    }

    /// The message with this identifier.
    pub fn get(&mut self, packet_id: u16) -> Option<&mut Entry> {
        self.places.get_mut(usize::from(packet_id).checked_sub(1)?)?.as_mut()
    }

    /// Its last byte is in the socket.
    pub fn written(&mut self, packet_id: u16) {
        if let Some(entry) = self.get(packet_id) {
            entry.progress = Progress::Written;
        }
    }

    /// Removes a message; its identifier is free again.
    pub fn remove(&mut self, packet_id: u16) -> Option<Entry> {
        let place = self.places.get_mut(usize::from(packet_id).checked_sub(1)?)?;
        let entry = place.take()?;
        self.free.push(packet_id);
        Some(entry)
    }

    /// Removes a message whose identifier the server may still have, so that it would take the next message with it for a repetition:
    /// no message gets it before the session ends.
    pub fn retire(&mut self, packet_id: u16) -> Option<Entry> {
        let entry = self.places.get_mut(usize::from(packet_id).checked_sub(1)?)?.take()?;
        self.retired += 1;
        Some(entry)
    }

    /// Identifiers of all messages in the order in which they were handed over.
    fn in_order(&self) -> Vec<u16> {
        let mut order: Vec<(u64, u16)> = Vec::with_capacity(self.count());
        for (index, place) in self.places.iter().enumerate() {
            order.extend(place.map(|entry| (entry.order, index as u16 + 1)));
        }
        order.sort_unstable();
        order.into_iter().map(|(_, packet_id)| packet_id).collect()
    }

    /// After a reconnect that found the session: everything is to be sent again, as fast as the window allows.
    pub fn hold_all(&mut self) {
        self.held = self.in_order();
        self.held.reverse();
    }

    /// The next message to be sent again, if the window is not full.
    pub fn next_held(&mut self) -> Option<u16> {
        let on_their_way = self.count().saturating_sub(self.held.len());
        if on_their_way < usize::from(self.limit) { self.held.pop() } else { None }
    }

    /// The session is gone: empties the list, in order, and frees its memory.
    pub fn drain(&mut self) -> Vec<Entry> {
        let entries = self.in_order().into_iter().filter_map(|packet_id| self.remove(packet_id)).collect();
        (self.places, self.free, self.held) = (Vec::new(), Vec::new(), Vec::new());
        self.retired = 0;
        entries
    }
}

#[cfg(test)]
mod tests {
    use pubmark_protocol::timing::Timing;

    use super::*;
    use pubmark_model::template::BodyDraw;

    fn add(in_flight: &mut InFlight, sequence: u32) -> u16 {
        let message = Outgoing {
            publication: 0,
            sequence,
            timing: Timing::on_time(0),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes: 16,
        };
        in_flight.add(message, Qos::AtLeastOnce)
    }

    fn sequences(entries: &[Entry]) -> Vec<u32> {
        entries.iter().map(|entry| entry.message.sequence).collect()
    }

    #[test]
    fn the_window_is_respected_and_identifiers_are_used_again() {
        let mut in_flight = InFlight::new(2);
        let (first, second) = (add(&mut in_flight, 1), add(&mut in_flight, 2));
        assert!(first != 0 && second != 0 && first != second && !in_flight.has_room());
        assert_eq!(in_flight.remove(first).map(|entry| entry.message.sequence), Some(1));
        assert_eq!(in_flight.remove(first), None);
        assert!(in_flight.has_room());
        assert_eq!(add(&mut in_flight, 3), first);
        assert_eq!(sequences(&in_flight.drain()), [2, 3]);
        assert_eq!(in_flight.get(0), None);
        assert_eq!(in_flight.get(77), None);
    }

    #[test]
    fn repetitions_keep_their_order_and_a_smaller_window() {
        let mut in_flight = InFlight::new(4);
        let ids: Vec<u16> = (1..=4).map(|sequence| add(&mut in_flight, sequence)).collect();
        in_flight.remove(ids[0]);
        add(&mut in_flight, 5);
        in_flight.set_limit(3);
        in_flight.hold_all();
        let mut repeated = Vec::new();
        while let Some(packet_id) = in_flight.next_held() {
            repeated.extend(in_flight.get(packet_id).map(|entry| entry.message.sequence));
        }
        assert_eq!(repeated, [2, 3, 4]);
        in_flight.remove(ids[1]);
        assert!(!in_flight.has_room(), "the one held back goes before any new one");
        assert_eq!(in_flight.next_held(), Some(ids[0]));
        assert_eq!(in_flight.next_held(), None);
    }

    #[test]
    fn a_retired_identifier_leaves_the_window_and_is_not_used_again_before_the_session_ends() {
        let mut in_flight = InFlight::new(2);
        in_flight.set_highest(3);
        let (first, second) = (add(&mut in_flight, 1), add(&mut in_flight, 2));
        in_flight.hold_all();
        assert_eq!((in_flight.next_held(), in_flight.next_held()), (Some(first), Some(second)));
        assert_eq!(in_flight.retire(second).map(|entry| entry.message.sequence), Some(2));
        assert_eq!(in_flight.retire(second), None);
        assert!(in_flight.has_room());
        let third = add(&mut in_flight, 3);
        assert!(![first, second].contains(&third) && !in_flight.has_room());
        in_flight.retire(third);
        assert!(!in_flight.has_room(), "all identifiers are used or retired");
        in_flight.remove(first);
        assert!(in_flight.has_room());
        assert_eq!(add(&mut in_flight, 4), first);
        assert_eq!(sequences(&in_flight.drain()), [4]);
        assert_eq!(add(&mut in_flight, 5), 1);
    }
}
