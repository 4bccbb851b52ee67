//! Packet identifiers of the server's messages at QoS 2 that it has not released yet.
//!
//! We follow method B of the standards (MQTT 3.1.1 figure 4.3; allowed by MQTT 5.0 §4.3.3): a message is delivered when its
//! PUBLISH arrives, its identifier is stored until PUBREL, and a PUBLISH with a stored identifier is acknowledged but not
//! delivered again.

/// A set of packet identifiers; small as a rule (the server's window), so a sorted list.
#[derive(Debug, Default)]
pub struct ReceivedIds {
    sorted: Vec<u16>,
}

impl ReceivedIds {
    /// Stores an identifier; false if it was stored already: the message is a repetition.
    pub fn insert(&mut self, packet_id: u16) -> bool {
        match self.sorted.binary_search(&packet_id) {
            Ok(_) => false,
            Err(place) => {
                self.sorted.insert(place, packet_id);
                true
            }
        }
    }

    /// Removes an identifier; false if it was not stored.
    pub fn remove(&mut self, packet_id: u16) -> bool {
        match self.sorted.binary_search(&packet_id) {
            Ok(place) => {
                self.sorted.remove(place);
                true
            }
            Err(_) => false,
        }
    }

    /// Forgets all: the session is gone.
    pub fn clear(&mut self) {
        self.sorted = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_identifier_is_a_repetition_until_it_is_released() {
        let mut ids = ReceivedIds::default();
        assert!(ids.insert(9) && ids.insert(3));
        assert!(!ids.insert(9));
        assert!(ids.remove(9) && !ids.remove(9));
        assert!(ids.insert(9));
        ids.clear();
        assert!(ids.insert(3));
    }
}
