//! Links: attached, granted credit, detached.
//!
//! The session is open when the server has granted credit to every sender, so that a message can be sent at that moment; then
//! the receivers are attached, each with a response of its own.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink};
use pubmark_protocol::requests::LONGEST_ADDRESS_BYTES;
use pubmark_wire::amqp10::{Attach, Detach, Flow, Naming, ReplyAddress, Role, SenderSettles, Terminus, words};

use super::causes::{ended, refused, words as words_of};
use super::incoming::{CREDIT, WINDOW};
use super::opening::{CHANNEL, Stage};
use super::outgoing::{LinkState, SenderContent};
use super::session::{Amqp10, End};
use crate::connection::{Link, Shared};

/// Names of links: these letters, and their index.
const SENDER: char = 's';
const RECEIVER: char = 'r';
/// The server has this many times our idle-time-out to send something: half of the allowed time must be announced (part 2,
/// §2.4.5).
const IDLE_TIMES: u64 = 2;

/// Name of a sender of ours.
pub(super) fn sender_name(place: u16) -> String {
    format!("{SENDER}{place}")
}

/// Name of a receiver of ours. A server knows by it which receivers share a subscription, so one of a group has the group's.
fn receiver_name(config: &SessionConfig, index: usize) -> String {
    let group = config.options.shared.as_deref().map(|group| format!("{group}.")).unwrap_or_default();
    format!("{group}{RECEIVER}{index}")
}

impl Amqp10 {
    /// Attaches a sender for each topic and level, and one for all replies if needed.
    pub(super) fn attach_senders(&self, link: &mut Link, shared: &mut Shared, naming: Naming) {
        for (place, sender) in (0..).zip(&self.outgoing.senders) {
            match sender.carries {
                SenderContent::Publications(first) => {
                    let topic = &link.config.publications[usize::from(first)].topic;
                    let address =
                        naming.address(&words(topic).expect("topics were looked at before the connection was begun"));
                    let target = Terminus { capabilities: naming.capabilities(), ..Terminus::at(Some(&address)) };
                    self.attach_sender(link, shared, place, target);
                }
                SenderContent::AllReplies => self.attach_sender(link, shared, place, Terminus::at(None)),
                // Attached with the first of them.
                SenderContent::RepliesTo(_) => {}
            }
        }
    }

    /// Our number of a receiver: behind the senders that are there from the beginning.
    pub(super) fn receiver_handle(&self, index: usize) -> u32 {
        (self.outgoing.fixed + index) as u32
    }

    /// Our handle of a sender; those for replies to one address come after the receivers.
    pub(super) fn handle_of_sender(&self, place: u16) -> u32 {
        let receivers = if usize::from(place) < self.outgoing.fixed { 0 } else { self.incoming.receivers.len() };
        u32::from(place) + receivers as u32
    }

    fn attach_receivers(&mut self, link: &mut Link, shared: &mut Shared, naming: Naming, sink: &mut impl Sink) {
        let sends_requests = link.config.options.reply_topic.is_some();
        let shares = link.config.options.shared.is_some();
        for index in 0..link.config.subscriptions.len() {
            let filter = &link.config.subscriptions[index].filter;
            let words = words(filter).expect("filters were looked at before the connection was begun");
            let (address, capabilities) = match sends_requests.then(|| naming.reply_address(&words)) {
                Some(ReplyAddress::Dynamic(capabilities)) => (None, Some(capabilities)),
                Some(ReplyAddress::Node { source, reply_to }) => {
                    self.reply_to = reply_to.into();
                    (Some(source), Some(&[][..]))
                }
                None if shares => (Some(naming.address(&words)), naming.sharing()),
                None => (Some(naming.address(&words)), Some(naming.capabilities())),
            };
            if let Some(capabilities) = capabilities {
                let selector = link.config.options.selector.clone();
                let (dynamic, address, selector) = (address.is_none(), address.as_deref(), selector.as_deref());
                self.attach_receiver(link, shared, index, Terminus { address, dynamic, capabilities, selector });
            } else {
                self.incoming.receivers[index].state = LinkState::Ended;
                let words = "it offers no shared subscriptions over AMQP 1.0";
                sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::words(words)) });
            }
        }
    }

    fn attach_receiver(&self, link: &mut Link, shared: &mut Shared, index: usize, source: Terminus<'_>) {
        let settles = link.config.subscriptions[index].qos == Qos::BestEffort;
        let attach = Attach {
            name: &receiver_name(&link.config, index),
            handle: self.receiver_handle(index),
            role: Role::Receiver,
            sender_settles: if settles { SenderSettles::Settled } else { SenderSettles::Unsettled },
            source: Some(source),
            target: Some(Terminus::at(Some(&link.config.client_id))),
            initial_delivery_count: None,
            max_message_bytes: Some(shared.config.connections.maximum_packet_bytes as u64),
        };
        link.outbox.append(&mut shared.pool, |out| attach.encode(CHANNEL, out));
    }

    /// The session is open once every sender has credit.
    pub(super) fn open_if_ready(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let senders = &self.outgoing.senders[..self.outgoing.fixed];
        let ready = senders.iter().all(|sender| sender.state == LinkState::Attached && sender.credit > 0);
        let Some(naming) = self.naming.as_ref().ok().copied().filter(|_| self.stage == Stage::Links && ready) else {
            return;
        };
        self.stage = Stage::Running;
        let keep_alive_ms = u64::from(shared.config.connections.keep_alive_s) * 1_000;
        let allowed_ms = [keep_alive_ms, u64::from(self.server_idle_ms)].into_iter().filter(|ms| *ms > 0).min();
        link.opened_with_heartbeats(shared, allowed_ms.unwrap_or(0), IDLE_TIMES * keep_alive_ms);
        let least = senders.iter().map(|sender| sender.most_bytes).min().filter(|bytes| *bytes < u32::MAX);
        sink.event(link.id, Event::Connected(Connected { maximum_packet_bytes: least, ..Connected::default() }));
        self.attach_receivers(link, shared, naming, sink);
    }

    /// The server's attach for a link.
    pub(super) fn on_attach(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        attach: &Attach<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let wrong = |what: &str| Err(Cause::Protocol(format!("an attach of `{}`, {what}", attach.name.escape_debug())));
        let Some(end) = self.end_named(&link.config, attach) else { return wrong("which we did not ask for") };
        if attach.handle > self.handle_max {
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
            End::Receiver(index) => self.on_receiver(link, shared, index as usize, attach, sink)?,
        }
        Ok(())
    }

    /// The link with this name for which pubmark sent an attach and has received no response.
    fn end_named(&self, config: &SessionConfig, attach: &Attach<'_>) -> Option<End> {
        let requested = |state: Option<LinkState>| state == Some(LinkState::Requested);
        match attach.role {
            Role::Receiver => {
                let place: u16 = attach.name.strip_prefix(SENDER)?.parse().ok()?;
                let stage = if usize::from(place) < self.outgoing.fixed { Stage::Links } else { Stage::Running };
                let state = self.outgoing.senders.get(usize::from(place)).map(|sender| sender.state);
                (self.stage == stage && requested(state)).then_some(End::Sender(place))
            }
            Role::Sender => {
                let index: u32 = attach.name.rsplit_once(RECEIVER)?.1.parse().ok()?;
                let state = self.incoming.receivers.get(index as usize).map(|receiver| receiver.state);
                let is_it = self.stage == Stage::Running && requested(state);
                (is_it && attach.name == receiver_name(config, index as usize)).then_some(End::Receiver(index))
            }
        }
    }

    fn on_receiver(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        attach: &Attach<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.requested_node(link) {
            let address = attach.source.and_then(|source| source.address).unwrap_or("");
            if address.is_empty() || address.len() > LONGEST_ADDRESS_BYTES {
                let bytes = address.len();
                return Err(Cause::Protocol(format!("an address of {bytes} B for the node that it was asked for")));
            }
            self.reply_to = address.into();
        }
        // A source has the filters that the server applies (part 3, §3.5.3): one that is not there is not applied.
        let applied = attach.source.and_then(|source| source.selector);
        if link.config.options.selector.is_some() && applied != link.config.options.selector.as_deref() {
            self.incoming.receivers[index].state = LinkState::Leaving;
            let ours = Detach { handle: self.receiver_handle(index), closed: true, error: None };
            link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
            let reason = Reason::words("it did not accept the content filter (`at: client` needs none)");
            sink.event(link.id, Event::Subscribed { index, granted: Err(reason) });
            return Ok(());
        }
        let receiver = &mut self.incoming.receivers[index];
        receiver.state = LinkState::Attached;
        receiver.delivery_count = attach.initial_delivery_count.unwrap_or(0);
        self.give_credit(link, shared, index);
        // A server that settles before it sends gives no more than best effort, whatever was requested.
        let most = match attach.sender_settles {
            SenderSettles::Settled => Qos::BestEffort,
            SenderSettles::Unsettled | SenderSettles::Mixed => Qos::AtLeastOnce,
        };
        sink.event(link.id, Event::Subscribed { index, granted: Ok(link.config.subscriptions[index].qos.min(most)) });
        Ok(())
    }

    /// Was the server requested to create and name the node for replies?
    fn requested_node(&self, link: &Link) -> bool {
        let sends_requests = link.config.options.reply_topic.is_some();
        sends_requests
            && self.naming.as_ref().is_ok_and(|naming| matches!(naming.reply_address(""), ReplyAddress::Dynamic(_)))
    }

    /// Where we stand, about the session alone.
    fn flow_state(&self) -> Flow {
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

    /// Sends a flow with our state, which opens our window again.
    pub(super) fn send_flow(&mut self, link: &mut Link, shared: &mut Shared, flow: &Flow) {
        self.incoming.window = WINDOW;
        link.respond(shared, |out| flow.encode(CHANNEL, out));
    }

    /// Opens our window again.
    pub(super) fn open_window(&mut self, link: &mut Link, shared: &mut Shared) {
        let flow = self.flow_state();
        self.send_flow(link, shared, &flow);
    }

    /// Lets a receiver's messages come.
    pub(super) fn give_credit(&mut self, link: &mut Link, shared: &mut Shared, index: usize) {
        self.incoming.receivers[index].credit = CREDIT;
        let flow = self.flow_state_of(End::Receiver(index as u32));
        self.send_flow(link, shared, &flow);
    }

    /// The session's transfer counts, and the credit of a link that pubmark attached.
    fn flow_state_of(&self, end: End) -> Flow {
        let (handle, delivery_count, credit) = match end {
            End::Sender(index) => {
                let sender = &self.outgoing.senders[usize::from(index)];
                (self.handle_of_sender(index), sender.delivery_count, sender.credit)
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
            ..self.flow_state()
        }
    }

    /// The server announces its window, and the credit of a sender.
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
        let mut answer = flow.echo.then(|| end.map_or_else(|| self.flow_state(), |end| self.flow_state_of(end)));
        if let (Some(End::Sender(index)), Some(credit)) = (end, flow.link_credit) {
            let sender = &mut self.outgoing.senders[usize::from(index)];
            sender.grant(flow.delivery_count, credit);
            if flow.drain {
                sender.drain();
            }
            if flow.echo || flow.drain {
                answer = Some(Flow { drain: flow.drain, ..self.flow_state_of(End::Sender(index)) });
            }
        }
        if let Some(answer) = answer {
            self.send_flow(link, shared, &answer);
        }
        self.open_if_ready(link, shared, sink);
        Ok(())
    }

    /// The server detaches a link, or states why it has none.
    pub(super) fn on_detach(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        detach: &Detach<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let end = self.link_of(detach.handle).ok_or_else(|| no_link("detach", detach.handle))?;
        match end {
            End::Sender(place) => {
                let sender = &self.outgoing.senders[usize::from(place)];
                let otherwise = match sender.carries {
                    SenderContent::RepliesTo(_) => {
                        self.on_reply_sender_detached(link, shared, place, detach, sink);
                        return Ok(());
                    }
                    SenderContent::AllReplies => "it takes no messages to any address".to_owned(),
                    SenderContent::Publications(first) => {
                        let topic = &link.config.publications[usize::from(first)].topic;
                        format!("it takes no messages to `{topic}`")
                    }
                };
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
                if std::mem::replace(&mut self.incoming.receivers[index].state, LinkState::Ended) == LinkState::Leaving
                {
                    return Ok(());
                }
                let ours = Detach { handle: self.receiver_handle(index), closed: true, error: None };
                link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
                sink.event(link.id, Event::Subscribed { index, granted: Err(words_of(detach.error, &otherwise)) });
                Ok(())
            }
        }
    }
}

/// Words about a link that is none.
pub fn no_link(what: &str, handle: u32) -> Cause {
    Cause::Protocol(format!("a {what} of handle {handle}, which is no link"))
}
