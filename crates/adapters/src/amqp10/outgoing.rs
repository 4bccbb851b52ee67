//! Our side of a session: senders and their credit, the server's window, what is in flight.

use std::collections::HashMap;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Publication;

use super::unsettled::Unsettled;
use crate::connection::{Blocked, InFlight, Refusal};

/// How far a link has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The server has not answered.
    Asked,
    /// The server has no other end for it; a detach that says why is to follow.
    Refused,
    /// It is there.
    Attached,
}

/// A link of ours on which messages go out.
#[derive(Debug)]
pub struct Sender {
    /// The first of the publications that use it: its topic and level are the link's.
    pub publication: u16,
    /// Deliveries are settled before they are sent.
    pub settles: bool,
    /// How far it has come.
    pub state: LinkState,
    /// Deliveries that may be sent.
    pub credit: u32,
    /// Deliveries sent (part 2, §2.6.7).
    pub delivery_count: u32,
    /// Largest message that the server takes on it, bytes.
    pub most_bytes: u32,
}

/// Our side of a session.
#[derive(Debug)]
pub struct Outgoing {
    /// One a topic and level.
    pub senders: Vec<Sender>,
    /// The sender of each publication.
    of_publication: Vec<u16>,
    /// Messages that wait for their outcome, by identifiers of ours.
    pub in_flight: InFlight,
    /// The same by the numbers of deliveries.
    pub unsettled: Unsettled,
    /// Number of the next transfer.
    pub next_transfer: u32,
    /// Number of the next delivery.
    pub next_delivery: u32,
    /// Transfers that the server takes from there on.
    pub window: u32,
    /// The widest that this window was.
    pub widest_window: u32,
    /// What was not taken last: its sender and its transfers.
    blocked: Option<(u16, u32)>,
}

impl Outgoing {
    /// Before the first connection.
    pub fn new(publications: &[Publication]) -> Outgoing {
        let mut senders = vec![];
        let mut known = HashMap::new();
        let of_publication = publications.iter().enumerate().map(|(publication, entry)| {
            let settles = entry.qos == Qos::BestEffort;
            *known.entry((&entry.topic, settles)).or_insert_with(|| {
                senders.push(Sender::new(publication as u16, settles));
                (senders.len() - 1) as u16
            })
        });
        let of_publication = of_publication.collect();
        Outgoing {
            senders,
            of_publication,
            in_flight: InFlight::new(0),
            unsettled: Unsettled::default(),
            next_transfer: 0,
            next_delivery: 0,
            window: 0,
            widest_window: 0,
            blocked: None,
        }
    }

    /// A new connection: all links are to be made again.
    pub fn reset(&mut self, in_flight_window: u16) {
        for sender in &mut self.senders {
            *sender = Sender::new(sender.publication, sender.settles);
        }
        self.in_flight.set_limit(in_flight_window.clamp(1, u16::MAX - 1));
        self.unsettled.clear();
        (self.next_transfer, self.next_delivery, self.window, self.widest_window) = (0, 0, 0, 0);
        self.blocked = None;
    }

    /// Sets the window, as the server has told it.
    pub fn set_window(&mut self, transfers: u32, taken_from: u32) {
        let on_their_way = self.next_transfer.wrapping_sub(taken_from);
        self.window = transfers.saturating_sub(on_their_way);
        self.widest_window = self.widest_window.max(transfers);
    }

    /// The sender of a publication.
    pub fn sender_of(&self, publication: u16) -> u16 {
        self.of_publication[usize::from(publication)]
    }

    /// Can a message of this size, in so many transfers, be sent now? Remembers what was not taken.
    pub fn admit(&mut self, sender: u16, message_bytes: usize, transfers: u32) -> Result<(), Refusal> {
        let most_bytes = self.senders[usize::from(sender)].most_bytes;
        if message_bytes > most_bytes as usize {
            return Err(Refusal::TooLarge(most_bytes));
        }
        if transfers > self.widest_window.max(1) {
            // No window that the server ever had could take it.
            let part_bytes = (message_bytes as u64).div_ceil(u64::from(transfers));
            let bytes = part_bytes * u64::from(self.widest_window);
            return Err(Refusal::TooLarge(u32::try_from(bytes).unwrap_or(u32::MAX)));
        }
        if self.has_room_for(sender, transfers) {
            return Ok(());
        }
        self.blocked = Some((sender, transfers));
        Err(Refusal::Blocked(Blocked::Window))
    }

    fn has_room_for(&self, sender: u16, transfers: u32) -> bool {
        let sender = &self.senders[usize::from(sender)];
        sender.credit > 0 && self.window >= transfers && (sender.settles || self.in_flight.has_room())
    }

    /// Could what was not taken last be taken now?
    pub fn has_room(&self) -> bool {
        self.blocked.is_none_or(|(sender, transfers)| self.has_room_for(sender, transfers))
    }

    /// Counts a delivery that was admitted; returns its number.
    pub fn count(&mut self, sender: u16, transfers: u32) -> u32 {
        let delivery = self.next_delivery;
        self.next_delivery = delivery.wrapping_add(1);
        self.next_transfer = self.next_transfer.wrapping_add(transfers);
        self.window = self.window.saturating_sub(transfers);
        let sender = &mut self.senders[usize::from(sender)];
        sender.credit = sender.credit.saturating_sub(1);
        sender.delivery_count = sender.delivery_count.wrapping_add(1);
        delivery
    }
}

impl Sender {
    fn new(publication: u16, settles: bool) -> Sender {
        Sender { publication, settles, state: LinkState::Asked, credit: 0, delivery_count: 0, most_bytes: u32::MAX }
    }

    /// Takes what the server says of its credit: so many deliveries from a count on, which is ours at the beginning if it
    /// has not seen it.
    pub fn grant(&mut self, counted: Option<u32>, credit: u32) {
        let limit = counted.unwrap_or(0).wrapping_add(credit);
        // Less than was sent meanwhile: credit was taken back.
        self.credit = u32::try_from(limit.wrapping_sub(self.delivery_count) as i32).unwrap_or(0);
    }

    /// Uses up the credit, as the server asks for.
    pub fn drain(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(std::mem::take(&mut self.credit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(levels: &[(&str, Qos)]) -> Outgoing {
        let publication = |(topic, qos): &(&str, Qos)| Publication {
            publisher: 1,
            topic: (*topic).into(),
            qos: *qos,
            retain: false,
            body: None,
        };
        let mut outgoing = Outgoing::new(&levels.iter().map(publication).collect::<Vec<_>>());
        outgoing.reset(2);
        outgoing
    }

    #[test]
    fn publications_of_one_topic_and_level_share_a_sender() {
        let (settled, acknowledged) = (Qos::BestEffort, Qos::AtLeastOnce);
        let outgoing = outgoing(&[("a", settled), ("b", settled), ("a", acknowledged), ("a", settled)]);
        assert_eq!(outgoing.of_publication, [0, 1, 2, 0]);
        assert_eq!(outgoing.senders.iter().map(|sender| sender.settles).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn credit_and_window_block_and_come_back() {
        let mut outgoing = outgoing(&[("a", Qos::BestEffort)]);
        let blocked = Err(Refusal::Blocked(Blocked::Window));
        outgoing.set_window(3, 0);
        assert_eq!(outgoing.admit(0, 100, 1), blocked, "no credit yet");
        outgoing.senders[0].grant(None, 2);
        assert!(outgoing.has_room());
        assert_eq!(outgoing.admit(0, 100, 2), Ok(()));
        assert_eq!((outgoing.count(0, 2), outgoing.window), (0, 1));
        assert_eq!(outgoing.admit(0, 100, 2), blocked, "the window is too narrow");
        assert!(!outgoing.has_room());
        // The server has seen one of both transfers.
        outgoing.set_window(3, 1);
        assert_eq!(outgoing.window, 2);
        assert!(outgoing.has_room());
        assert_eq!(outgoing.count(0, 2), 1);
        outgoing.set_window(3, 4);
        assert_eq!(outgoing.admit(0, 100, 1), blocked, "no credit left");
        outgoing.senders[0].grant(Some(2), 1);
        assert!(outgoing.has_room());
        outgoing.senders[0].grant(Some(1), 0);
        assert_eq!(outgoing.senders[0].credit, 0, "credit can be taken back");
        assert_eq!(outgoing.admit(0, 400, 4), Err(Refusal::TooLarge(300)), "no window will ever take it");
    }

    #[test]
    fn a_drained_sender_has_counted_what_it_did_not_send() {
        let mut outgoing = outgoing(&[("a", Qos::BestEffort)]);
        outgoing.senders[0].grant(Some(u32::MAX), 6);
        assert_eq!(outgoing.senders[0].credit, 5);
        outgoing.senders[0].drain();
        assert_eq!((outgoing.senders[0].credit, outgoing.senders[0].delivery_count), (0, 5));
        outgoing.senders[0].grant(Some(5), 1);
        assert_eq!(outgoing.senders[0].credit, 1);
    }
}
