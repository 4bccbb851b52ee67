//! Our side of a session: senders and their credit, the server's window, what is in flight.

use std::collections::HashMap;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Publication;

use super::unsettled::Unsettled;
use crate::connection::{Blocked, InFlight, Refusal};

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The server has not responded.
    Requested,
    /// The server has no other end for it; a detach with the reason follows.
    Refused,
    /// It is there.
    Attached,
    /// We have ended it; the server has not agreed yet.
    Leaving,
    /// It has ended, and its index is free.
    Ended,
}

/// What goes out on a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderContent {
    /// Messages of some publications: the first of them, whose topic and level are the link's.
    Publications(u16),
    /// Replies to any address.
    AllReplies,
    /// Replies to this address.
    RepliesTo(Box<str>),
}

/// A link on which pubmark sends messages.
#[derive(Debug)]
pub struct Sender {
    /// What it is for.
    pub carries: SenderContent,
    /// Deliveries are settled before they are sent.
    pub settles: bool,
    /// Its state.
    pub state: LinkState,
    /// Deliveries that may be sent.
    pub credit: u32,
    /// Deliveries sent (part 2, §2.6.7).
    pub delivery_count: u32,
    /// Largest message that the server accepts on it, bytes.
    pub most_bytes: u32,
    /// Number of the last delivery on it, or of the first that could have been.
    pub last_delivery: u32,
}

/// Our side of a session.
#[derive(Debug)]
pub struct Outgoing {
    /// One for each topic and level; after them one for all replies, or those attached for replies.
    pub senders: Vec<Sender>,
    /// Number of senders that are attached when a session begins; the session is open when they are ready.
    pub fixed: usize,
    /// So many of these are for publications.
    topics: usize,
    /// The sender of each publication.
    of_publication: Vec<u16>,
    /// Messages that wait for their outcome, by the identifiers that pubmark gave them.
    pub in_flight: InFlight,
    /// The same by the numbers of deliveries.
    pub unsettled: Unsettled,
    /// Number of the next transfer.
    pub next_transfer: u32,
    /// Number of the next delivery.
    pub next_delivery: u32,
    /// Transfers that the server accepts from there on.
    pub window: u32,
    /// The widest that this window was.
    pub widest_window: u32,
    /// Message that the last attempt could not send, because the link gave no credit.
    blocked: Option<BlockedOn>,
}

/// What a blocked message waits for.
#[derive(Clone, Copy, Debug)]
enum BlockedOn {
    /// Checks that a sender has credit and window for this number of transfers.
    Room(u16, u32),
    /// A free handle for one more sender.
    Sender,
}

impl Outgoing {
    /// Before the first connection.
    pub fn new(publications: &[Publication]) -> Outgoing {
        let mut senders = vec![];
        let mut known = HashMap::new();
        let of_publication = publications.iter().enumerate().map(|(publication, entry)| {
            let settles = entry.qos == Qos::BestEffort;
            *known.entry((&entry.topic, settles)).or_insert_with(|| {
                senders.push(Sender::new(SenderContent::Publications(publication as u16), settles));
                (senders.len() - 1) as u16
            })
        });
        let of_publication = of_publication.collect();
        let topics = senders.len();
        Outgoing {
            senders,
            fixed: topics,
            topics,
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
        self.senders.truncate(self.topics);
        self.fixed = self.topics;
        for sender in &mut self.senders {
            *sender = Sender::new(sender.carries.clone(), sender.settles);
        }
        self.in_flight.set_limit(in_flight_window.clamp(1, u16::MAX - 1));
        self.unsettled.clear();
        (self.next_transfer, self.next_delivery, self.window, self.widest_window) = (0, 0, 0, 0);
        self.blocked = None;
    }

    /// Sets the window that the server announced.
    pub fn set_window(&mut self, transfers: u32, taken_from: u32) {
        let on_their_way = self.next_transfer.wrapping_sub(taken_from);
        self.window = transfers.saturating_sub(on_their_way);
        self.widest_window = self.widest_window.max(transfers);
    }

    /// The sender of a publication.
    pub fn sender_of(&self, publication: u16) -> u16 {
        self.of_publication[usize::from(publication)]
    }

    /// Can a message of this size be sent now in this number of transfers? If not, records what it waits for.
    pub fn admit(&mut self, sender: u16, message_bytes: usize, transfers: u32) -> Result<(), Refusal> {
        let most_bytes = self.senders[usize::from(sender)].most_bytes;
        if message_bytes > most_bytes as usize {
            return Err(Refusal::TooLarge(most_bytes));
        }
        if transfers > self.widest_window.max(1) {
            // No window that the server ever had is large enough.
            let part_bytes = (message_bytes as u64).div_ceil(u64::from(transfers));
            let bytes = part_bytes * u64::from(self.widest_window);
            return Err(Refusal::TooLarge(u32::try_from(bytes).unwrap_or(u32::MAX)));
        }
        if self.has_room_for(sender, transfers) {
            return Ok(());
        }
        self.blocked = Some(BlockedOn::Room(sender, transfers));
        Err(Refusal::Blocked(Blocked::Window))
    }

    fn has_room_for(&self, sender: u16, transfers: u32) -> bool {
        let sender = &self.senders[usize::from(sender)];
        sender.credit > 0 && self.window >= transfers && (sender.settles || self.in_flight.has_room())
    }

    /// Can the message that would have blocked last be sent now, or be refused?
    pub fn has_room(&self) -> bool {
        match self.blocked {
            None => true,
            Some(BlockedOn::Room(sender, transfers)) => {
                let has_ended = self.senders[usize::from(sender)].state == LinkState::Ended;
                has_ended || self.has_room_for(sender, transfers)
            }
            Some(BlockedOn::Sender) => self.ended_sender().is_some() || self.idle_sender().is_some(),
        }
    }

    /// A message needs one more sender, and there may be no more.
    pub fn block_for_sender(&mut self) -> Refusal {
        self.blocked = Some(BlockedOn::Sender);
        Refusal::Blocked(Blocked::Window)
    }

    /// The senders that were attached for replies, with their indices.
    fn reply_senders(&self) -> impl Iterator<Item = (u16, &Sender)> {
        self.senders.iter().enumerate().skip(self.fixed).map(|(place, sender)| (place as u16, sender))
    }

    /// A sender that has ended.
    pub fn ended_sender(&self) -> Option<u16> {
        self.reply_senders().find(|(_, sender)| sender.state == LinkState::Ended).map(|(place, _)| place)
    }

    /// The least recently used sender for replies, if no delivery on it waits for its outcome, and if no other one is being
    /// detached.
    pub fn idle_sender(&self) -> Option<u16> {
        if self.reply_senders().any(|(_, sender)| sender.state == LinkState::Leaving) {
            return None;
        }
        let age = |number: u32| self.next_delivery.wrapping_sub(number);
        let attached = self.reply_senders().filter(|(_, sender)| sender.state == LinkState::Attached);
        let (place, sender) = attached.max_by_key(|(_, sender)| age(sender.last_delivery))?;
        let is_idle = self.unsettled.oldest().is_none_or(|oldest| age(sender.last_delivery) > age(oldest));
        is_idle.then_some(place)
    }

    /// Adds a sender, or reuses the index of an ended one; returns its index.
    pub fn add_sender(&mut self, carries: SenderContent, settles: bool) -> u16 {
        let sender = Sender { last_delivery: self.next_delivery, ..Sender::new(carries, settles) };
        match self.ended_sender() {
            Some(place) => {
                self.senders[usize::from(place)] = sender;
                place
            }
            None => {
                self.senders.push(sender);
                (self.senders.len() - 1) as u16
            }
        }
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
        sender.last_delivery = delivery;
        delivery
    }
}

impl Sender {
    fn new(carries: SenderContent, settles: bool) -> Sender {
        Sender {
            carries,
            settles,
            state: LinkState::Requested,
            credit: 0,
            delivery_count: 0,
            most_bytes: u32::MAX,
            last_delivery: 0,
        }
    }

    /// Applies the credit that the server grants: a number of deliveries, counted from a delivery count. That is the initial one if the
    /// server
    /// has not seen it.
    pub fn grant(&mut self, counted: Option<u32>, credit: u32) {
        let limit = counted.unwrap_or(0).wrapping_add(credit);
        // Less than was sent in the meantime: credit was withdrawn.
        self.credit = u32::try_from(limit.wrapping_sub(self.delivery_count) as i32).unwrap_or(0);
    }

    /// Uses up the credit, as the server requests.
    pub fn drain(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(std::mem::take(&mut self.credit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::payload::HeaderPlace;

    fn outgoing(levels: &[(&str, Qos)]) -> Outgoing {
        let publication = |(topic, qos): &(&str, Qos)| Publication {
            publisher: 1,
            topic: (*topic).into(),
            qos: *qos,
            retain: false,
            body: None,
            header: HeaderPlace::Payload,
            properties: [].into(),
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
    fn credit_and_window_block_until_they_are_granted_again() {
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
