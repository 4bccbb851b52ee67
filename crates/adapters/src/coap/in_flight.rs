//! Confirmable publications between hand-over and the server's response. An entry has what is needed to encode the message
//! again, not its bytes.

use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::events::Token;
use pubmark_wire::coap::Exchange;

/// A message whose response is awaited.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What was handed over.
    pub message: Outgoing,
    /// Distinguishes successive entries with the same index.
    pub salt: u16,
    /// Once it was written.
    pub sent: Option<Sent>,
}

impl Entry {
    /// Its name in events.
    pub fn token(&self) -> Token {
        self.message.token()
    }
}

/// A message in flight.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The same in every repetition.
    pub message_id: u16,
    /// Of the first transmission: repetitions carry the same bytes.
    pub write_start_ns: u64,
    /// When it is repeated.
    pub exchange: Exchange,
}

/// All messages of a session in flight.
#[derive(Debug)]
pub struct InFlight {
    places: Vec<Option<Entry>>,
    free: Vec<u16>,
    limit: u16,
    /// Counts entries; the salt of the next one.
    salt: u16,
}

impl InFlight {
    /// Nothing in flight, at most `limit` messages.
    pub fn new(limit: u16) -> InFlight {
        InFlight { places: Vec::new(), free: Vec::new(), limit, salt: 0 }
    }

    /// Is the window not full?
    pub fn has_room(&self) -> bool {
        self.places.len() - self.free.len() < usize::from(self.limit)
    }

    /// Adds a message and returns its index; the window must not be full.
    pub fn add(&mut self, message: Outgoing) -> u16 {
        self.salt = self.salt.wrapping_add(1);
        let entry = Some(Entry { message, salt: self.salt, sent: None });
        if let Some(place) = self.free.pop() {
            self.places[usize::from(place)] = entry;
            place
        } else {
            self.places.push(entry);
            (self.places.len() - 1) as u16
        }
    }

    /// The message at an index.
    pub fn get(&self, place: u16) -> Option<&Entry> {
        self.places.get(usize::from(place))?.as_ref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, place: u16) -> Option<&mut Entry> {
        self.places.get_mut(usize::from(place))?.as_mut()
    }

    /// The index of the message in flight with this identifier.
    pub fn find(&self, message_id: u16) -> Option<u16> {
        let has = |entry: &Entry| entry.sent.is_some_and(|sent| sent.message_id == message_id);
        self.places.iter().position(|place| place.as_ref().is_some_and(has)).map(|place| place as u16)
    }

    /// Removes a message; its index is free again.
    pub fn remove(&mut self, place: u16) -> Option<Entry> {
        let entry = self.places.get_mut(usize::from(place))?.take()?;
        self.free.push(place);
        Some(entry)
    }

    /// Places, used or not, up to the last one that ever was used.
    pub fn places(&self) -> std::ops::Range<u16> {
        0..self.places.len() as u16
    }

    /// When the next message must be checked.
    pub fn due_ns(&self) -> Option<u64> {
        self.places.iter().flatten().filter_map(|entry| entry.sent).map(|sent| sent.exchange.due_ns()).min()
    }

    /// The connection is gone: empties the list, in the order of writing, and frees its memory.
    pub fn drain(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.places.drain(..).flatten().collect();
        entries.sort_by_key(|entry| entry.sent.map(|sent| sent.write_start_ns));
        (self.places, self.free) = (Vec::new(), Vec::new());
        entries
    }
}

#[cfg(test)]
mod tests {
    use pubmark_protocol::timing::Timing;

    use super::*;
    use pubmark_model::template::BodyDraw;
    use pubmark_wire::coap::Times;

    #[test]
    fn places_are_used_again_with_another_salt() {
        let mut in_flight = InFlight::new(2);
        let message = |sequence| Outgoing {
            publication: 0,
            sequence,
            timing: Timing::on_time(0),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes: 16,
        };
        let mut add = |sequence| in_flight.add(message(sequence));
        let (first, second) = (add(1), add(2));
        assert!(first != second && !in_flight.has_room());
        let sent = |at_ns| {
            let exchange = Exchange::start(&Times::STANDARD, at_ns, 0);
            Some(Sent { message_id: 7 + at_ns as u16, write_start_ns: at_ns, exchange })
        };
        in_flight.get_mut(first).expect("an entry").sent = sent(2);
        in_flight.get_mut(second).expect("an entry").sent = sent(1);
        assert_eq!((in_flight.find(9), in_flight.find(10)), (Some(first), None));
        assert_eq!(in_flight.due_ns(), Some(2_000_000_001));
        let removed = in_flight.remove(first).expect("an entry");
        assert!(in_flight.remove(first).is_none() && in_flight.has_room());
        assert_eq!(in_flight.add(message(3)), first);
        assert_ne!(in_flight.get_mut(first).expect("an entry").salt, removed.salt);
        in_flight.get_mut(first).expect("an entry").sent = sent(3);
        let left: Vec<u32> = in_flight.drain().iter().map(|entry| entry.message.sequence).collect();
        assert_eq!((left, in_flight.has_room()), (vec![2, 3], true));
    }
}
