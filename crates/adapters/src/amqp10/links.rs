//! Links: asked for, answered, given credit, taken back.
//!
//! The session is open when the server has given credit to every sender, so that a message can be sent at that moment; then
//! the receivers are asked for, and each is answered by itself.

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Connected, Sink};
use pubmark_wire::amqp10::{Attach, Detach, Flow, Naming, Role, SenderSettles, Terminus, words};

use super::causes::{ended, refused, words as words_of};
use super::incoming::{CREDIT, WINDOW};
use super::opening::{CHANNEL, Stage};
use super::outgoing::LinkState;
use super::session::{Amqp10, End};
use crate::connection::{Link, Shared};

/// Names of links: these letters, and their place.
const SENDER: char = 's';
const RECEIVER: char = 'r';
/// The server has this many times our idle-time-out to say something: it is to be told half of what is allowed
/// (part 2, §2.4.5).
const IDLE_TIMES: u64 = 2;

impl Amqp10 {
    /// Asks for a sender for each topic and level.
    pub(super) fn ask_for_senders(&self, link: &mut Link, shared: &mut Shared, naming: Naming) {
        for (index, sender) in self.outgoing.senders.iter().enumerate() {
            let topic = &link.config.publications[usize::from(sender.publication)].topic;
            let address = naming.address(&words(topic).expect("topics were looked at before the connection was begun"));
            let attach = Attach {
                name: &format!("{SENDER}{index}"),
                handle: index as u32,
                role: Role::Sender,
                sender_settles: if sender.settles { SenderSettles::Settled } else { SenderSettles::Unsettled },
                source: Some(Terminus { address: Some(&link.config.client_id), capability: None }),
                target: Some(Terminus { address: Some(&address), capability: naming.capability() }),
                initial_delivery_count: Some(0),
                max_message_bytes: None,
            };
            link.outbox.append(&mut shared.pool, |out| attach.encode(CHANNEL, out));
        }
    }

    /// Our number of a receiver: behind the senders.
    fn receiver_handle(&self, index: usize) -> u32 {
        (self.outgoing.senders.len() + index) as u32
    }

    fn ask_for_receivers(&self, link: &mut Link, shared: &mut Shared, naming: Naming) {
        for (index, subscription) in link.config.subscriptions.iter().enumerate() {
            let filter = &subscription.filter;
            let address =
                naming.address(&words(filter).expect("filters were looked at before the connection was begun"));
            let settles = subscription.qos == Qos::BestEffort;
            let attach = Attach {
                name: &format!("{RECEIVER}{index}"),
                handle: self.receiver_handle(index),
                role: Role::Receiver,
                sender_settles: if settles { SenderSettles::Settled } else { SenderSettles::Unsettled },
                source: Some(Terminus { address: Some(&address), capability: naming.capability() }),
                target: Some(Terminus { address: Some(&link.config.client_id), capability: None }),
                initial_delivery_count: None,
                max_message_bytes: Some(shared.config.maximum_packet_bytes as u64),
            };
            link.outbox.append(&mut shared.pool, |out| attach.encode(CHANNEL, out));
        }
    }

    /// The session is open once every sender has credit.
    pub(super) fn open_if_ready(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let senders = &self.outgoing.senders;
        let ready = senders.iter().all(|sender| sender.state == LinkState::Attached && sender.credit > 0);
        let Some(naming) = self.naming.as_ref().ok().copied().filter(|_| self.stage == Stage::Links && ready) else {
            return;
        };
        self.stage = Stage::Running;
        let keep_alive_ms = u64::from(shared.config.keep_alive_s) * 1_000;
        let allowed_ms = [keep_alive_ms, u64::from(self.server_idle_ms)].into_iter().filter(|ms| *ms > 0).min();
        link.opened_with_heartbeats(shared, allowed_ms.unwrap_or(0), IDLE_TIMES * keep_alive_ms);
        let least = senders.iter().map(|sender| sender.most_bytes).min().filter(|bytes| *bytes < u32::MAX);
        sink.connected(link.id, Connected { maximum_packet_bytes: least, ..Connected::default() });
        self.ask_for_receivers(link, shared, naming);
    }

    /// The server answers a link.
    pub(super) fn on_attach(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        attach: &Attach<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let wrong = |what: &str| Err(Cause::Protocol(format!("an attach of `{}`, {what}", attach.name.escape_debug())));
        let Some(end) = self.end_named(attach) else { return wrong("which we did not ask for") };
        if attach.handle > self.handle_max() {
            return wrong("with a handle beyond those that it may give");
        }
        let place = attach.handle as usize;
        if self.links.len() <= place {
            self.links.resize(place + 1, None);
        }
        if self.links[place].is_some() {
            return wrong("with the handle of another link");
        }
        self.links[place] = Some(end);
        match end {
            End::Sender(index) => {
                let sender = &mut self.outgoing.senders[usize::from(index)];
                let most_bytes = attach.max_message_bytes.filter(|bytes| *bytes > 0).unwrap_or(u64::MAX);
                sender.most_bytes = u32::try_from(most_bytes).unwrap_or(u32::MAX);
                sender.state = if attach.target.is_some() { LinkState::Attached } else { LinkState::Refused };
                self.open_if_ready(link, shared, sink);
            }
            End::Receiver(index) if attach.source.is_none() => {
                self.incoming.receivers[index as usize].state = LinkState::Refused;
            }
            End::Receiver(index) => self.on_receiver(link, shared, index as usize, attach, sink),
        }
        Ok(())
    }

    /// The link of ours with this name that was not answered yet.
    fn end_named(&self, attach: &Attach<'_>) -> Option<End> {
        let asked = |state: Option<LinkState>| state == Some(LinkState::Asked);
        match (attach.role, attach.name.strip_prefix(SENDER), attach.name.strip_prefix(RECEIVER)) {
            (Role::Receiver, Some(place), _) => {
                let index: u16 = place.parse().ok()?;
                let state = self.outgoing.senders.get(usize::from(index)).map(|sender| sender.state);
                (self.stage == Stage::Links && asked(state)).then_some(End::Sender(index))
            }
            (Role::Sender, _, Some(place)) => {
                let index: u32 = place.parse().ok()?;
                let state = self.incoming.receivers.get(index as usize).map(|receiver| receiver.state);
                (self.stage == Stage::Running && asked(state)).then_some(End::Receiver(index))
            }
            _ => None,
        }
    }

    fn on_receiver(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        attach: &Attach<'_>,
        sink: &mut impl Sink,
    ) {
        let receiver = &mut self.incoming.receivers[index];
        receiver.state = LinkState::Attached;
        receiver.delivery_count = attach.initial_delivery_count.unwrap_or(0);
        self.give_credit(link, shared, index);
        // A server that settles before it sends gives no more than best effort, whatever was asked for.
        let most = match attach.sender_settles {
            SenderSettles::Settled => Qos::BestEffort,
            SenderSettles::Unsettled | SenderSettles::Mixed => Qos::AtLeastOnce,
        };
        sink.subscribed(link.id, index, Ok(link.config.subscriptions[index].qos.min(most)));
    }

    /// Where we stand, about the session alone.
    fn standing(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.incoming.next_transfer),
            incoming_window: WINDOW,
            next_outgoing_id: self.outgoing.next_transfer,
            outgoing_window: WINDOW,
            handle: None,
            delivery_count: None,
            link_credit: None,
            drain: false,
            echo: false,
        }
    }

    /// Says where we stand, which opens our window again.
    pub(super) fn say_flow(&mut self, link: &mut Link, shared: &mut Shared, flow: &Flow) {
        self.incoming.window = WINDOW;
        link.outbox.append(&mut shared.pool, |out| flow.encode(CHANNEL, out));
    }

    /// Opens our window again.
    pub(super) fn open_window(&mut self, link: &mut Link, shared: &mut Shared) {
        let flow = self.standing();
        self.say_flow(link, shared, &flow);
    }

    /// Lets a receiver's messages come.
    pub(super) fn give_credit(&mut self, link: &mut Link, shared: &mut Shared, index: usize) {
        self.incoming.receivers[index].credit = CREDIT;
        let flow = self.standing_of(End::Receiver(index as u32));
        self.say_flow(link, shared, &flow);
    }

    /// Where we stand, with a link of ours.
    fn standing_of(&self, end: End) -> Flow {
        let (handle, delivery_count, credit) = match end {
            End::Sender(index) => {
                let sender = &self.outgoing.senders[usize::from(index)];
                (u32::from(index), sender.delivery_count, sender.credit)
            }
            End::Receiver(index) => {
                let receiver = &self.incoming.receivers[index as usize];
                (self.receiver_handle(index as usize), receiver.delivery_count, receiver.credit)
            }
        };
        Flow {
            handle: Some(handle),
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            ..self.standing()
        }
    }

    /// The server tells its window, and the credit of a sender.
    pub(super) fn on_flow(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        flow: &Flow,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let taken_from = flow.next_incoming_id.unwrap_or(0);
        let next = self.outgoing.next_transfer;
        if (next.wrapping_sub(taken_from) as i32) < 0 {
            return Err(Cause::Protocol(format!("a flow that expects transfer {taken_from} when {next} was not sent")));
        }
        self.outgoing.set_window(flow.incoming_window, taken_from);
        let end = match flow.handle {
            None => None,
            Some(handle) => Some(self.link_of(handle).ok_or_else(|| no_link("flow", handle))?),
        };
        let mut answer = flow.echo.then(|| end.map_or_else(|| self.standing(), |end| self.standing_of(end)));
        if let (Some(End::Sender(index)), Some(credit)) = (end, flow.link_credit) {
            let sender = &mut self.outgoing.senders[usize::from(index)];
            sender.grant(flow.delivery_count, credit);
            if flow.drain {
                sender.drain();
            }
            if flow.echo || flow.drain {
                answer = Some(Flow { drain: flow.drain, ..self.standing_of(End::Sender(index)) });
            }
        }
        if let Some(answer) = answer {
            self.say_flow(link, shared, &answer);
        }
        self.open_if_ready(link, shared, sink);
        Ok(())
    }

    /// The server takes a link back, or says why it has none.
    pub(super) fn on_detach(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        detach: &Detach<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let end = self.link_of(detach.handle).ok_or_else(|| no_link("detach", detach.handle))?;
        match end {
            End::Sender(index) => {
                let publication = usize::from(self.outgoing.senders[usize::from(index)].publication);
                let otherwise = format!("it takes no messages to `{}`", link.config.publications[publication].topic);
                Err(match self.stage {
                    Stage::Running => ended(detach.error, &otherwise),
                    _ => refused(detach.error, &otherwise),
                })
            }
            End::Receiver(index) => {
                let index = index as usize;
                let otherwise = format!("it has no messages from `{}`", link.config.subscriptions[index].filter);
                if self.incoming.receivers[index].state == LinkState::Attached {
                    return Err(ended(detach.error, &otherwise));
                }
                self.links[detach.handle as usize] = None;
                let ours = Detach { handle: self.receiver_handle(index), closed: true, error: None };
                link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
                sink.subscribed(link.id, index, Err(words_of(detach.error, &otherwise)));
                Ok(())
            }
        }
    }
}

/// Words about a link that is none.
pub fn no_link(what: &str, handle: u32) -> Cause {
    Cause::Protocol(format!("a {what} of handle {handle}, which is no link"))
}
