//! What the broker knows of one client, connected or not.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use pubmark_model::qos::Qos;

use super::message::{Manner, Message};
use crate::net::Key;

/// A client's state, which may outlive its connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client_id: Rc<str>,
    /// Its connection, while there is one.
    pub(crate) peer: Option<Key>,
    /// Seconds that it outlives its connection, `u32::MAX` for ever.
    pub(crate) expiry_s: u32,
    /// When the connection ended.
    pub(crate) disconnected_ns: u64,
    /// Its topic filters; how it subscribes to them stands in the tree.
    pub(crate) filters: HashSet<Box<str>>,
    pub(crate) outgoing: Outgoing,
    /// Messages at QoS 2 received and not yet released by the client.
    pub(crate) unreleased: HashSet<u16>,
    pub(crate) will: Option<Will>,
    /// When the will is due, once the connection ended.
    pub(crate) will_due_ns: Option<u64>,
    /// Number of the last message that was routed here, and its place in the list of targets: found without a search where
    /// several filters of the client match.
    pub(crate) routed: (u64, u32),
}

/// A message to be published when the connection ends without a goodbye.
#[derive(Debug)]
pub(crate) struct Will {
    pub(crate) message: Message,
    pub(crate) manner: Manner,
    pub(crate) delay_s: u32,
}

/// A message that waits for room in the window.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message: Rc<Message>,
    pub(crate) manner: Manner,
    pub(crate) subscription_ids: Box<[u32]>,
}

/// A message that was sent.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// `None` once the client has it and the identifier waits for PUBCOMP.
    pub(crate) waiting: Option<Queued>,
    /// Counts up, so that repetitions keep their order.
    pub(crate) order: u64,
}

/// Messages at QoS 1 and 2 on their way to a client.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) in_flight: HashMap<u16, InFlight>,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) window: u16,
    last_packet_id: u16,
    sent: u64,
}

impl Outgoing {
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.len() < usize::from(self.window)
    }

    /// Puts a message in flight and gives it an identifier; there must be room.
    pub(crate) fn start(&mut self, queued: Queued) -> u16 {
        // The window is at most 65,535, so with room one of the identifiers is free.
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if !self.in_flight.contains_key(&self.last_packet_id) {
                break;
            }
        }
        self.sent += 1;
        self.in_flight.insert(self.last_packet_id, InFlight { waiting: Some(queued), order: self.sent });
        self.last_packet_id
    }

    /// PUBACK (or a refusing PUBREC): the message is done. False if none has this identifier at this level.
    pub(crate) fn finish(&mut self, packet_id: u16, qos: Qos) -> bool {
        let known = self.in_flight.get(&packet_id).and_then(|flight| flight.waiting.as_ref());
        let fits = known.is_some_and(|queued| queued.manner.qos == qos);
        if fits {
            self.in_flight.remove(&packet_id);
        }
        fits
    }

    /// PUBREC: the client has the message. False if no message at QoS 2 has this identifier.
    pub(crate) fn received(&mut self, packet_id: u16) -> bool {
        match self.in_flight.get_mut(&packet_id) {
            Some(flight) if flight.waiting.as_ref().is_none_or(|queued| queued.manner.qos == Qos::ExactlyOnce) => {
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

impl Session {
    pub(crate) fn new(client_id: Rc<str>) -> Session {
        Session {
            client_id,
            peer: None,
            expiry_s: 0,
            disconnected_ns: 0,
            filters: HashSet::new(),
            outgoing: Outgoing::default(),
            unreleased: HashSet::new(),
            will: None,
            will_due_ns: None,
            routed: (0, 0),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pubmark_wire::mqtt::{Properties, Publish, PublishHead};

    fn queued(qos: Qos) -> Queued {
        let head = PublishHead {
            dup: false,
            qos: Qos::BestEffort,
            retain: false,
            topic: "a",
            packet_id: None,
            properties: Properties::NONE,
        };
        let message = Rc::new(Message::new(&Publish { head, payload: b"x" }, 0).unwrap());
        Queued { message, manner: Manner { qos, retain: false }, subscription_ids: Box::default() }
    }

    #[test]
    fn identifiers_in_use_are_passed_over_and_zero_is_none() {
        let mut outgoing = Outgoing { window: u16::MAX, ..Outgoing::default() };
        let ids: Vec<u16> = (0..u16::MAX).map(|_| outgoing.start(queued(Qos::AtLeastOnce))).collect();
        assert!(!outgoing.has_room() && !ids.contains(&0));
        assert!(outgoing.finish(7, Qos::AtLeastOnce) && !outgoing.finish(7, Qos::AtLeastOnce));
        assert_eq!(outgoing.start(queued(Qos::AtLeastOnce)), 7);
        assert_eq!(outgoing.in_order().last(), Some(&7));
    }

    #[test]
    fn quality_2_takes_both_steps_in_order() {
        let mut outgoing = Outgoing { window: 10, ..Outgoing::default() };
        let id = outgoing.start(queued(Qos::ExactlyOnce));
        assert!(!outgoing.complete(id) && !outgoing.finish(id, Qos::AtLeastOnce));
        assert!(outgoing.received(id) && outgoing.received(id));
        assert!(outgoing.complete(id) && !outgoing.complete(id) && !outgoing.received(id));
    }
}
