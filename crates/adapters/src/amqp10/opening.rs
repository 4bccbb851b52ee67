//! From TCP to a session: SASL, open, begin. Links come next, see `links`.

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Reason, Sink};
use pubmark_wire::amqp10::{
    Begin, Naming, Open, ProtocolHeader, SMALLEST_FRAME_LIMIT, SaslFrame, encode_anonymous, encode_plain, outcome_name,
    virtual_host, words,
};

use super::causes::broken;
use super::incoming::WINDOW;
use super::outgoing::SenderContent;
use super::replying::{MOST_LINKS, Replying};
use super::session::{Amqp10, frame_limit};
use crate::connection::{Link, Shared};
use crate::virtual_host::named_in;

/// Our only channel.
pub const CHANNEL: u16 = 0;
/// Smallest number of handles that the server must support for its own ends of the links that we attach.
const LEAST_HANDLES: usize = 256;

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// That the server agrees to SASL.
    SaslHeader,
    /// Its mechanisms.
    Mechanisms,
    /// The outcome of the log-in.
    Outcome,
    /// That it agrees to AMQP 1.0.
    Header,
    /// Its open.
    Open,
    /// Its begin.
    Begin,
    /// Attach and credit for every sender.
    Links,
    /// Nothing: the session is open.
    Running,
}

/// Host name of the server in the open frame.
fn hostname(link: &Link, shared: &Shared) -> String {
    let endpoint = &shared.config.endpoints[usize::from(link.config.endpoint)];
    endpoint.tls.as_ref().map_or_else(|| endpoint.address.ip().to_string(), |tls| tls.server_name.clone())
}

/// Chooses a mechanism: PLAIN with a log-in, ANONYMOUS without.
fn log_in(link: &mut Link, shared: &mut Shared, offered: &[&str]) -> Result<(), Cause> {
    let hostname = hostname(link, shared);
    let credentials = link.config.log_in(&shared.config);
    let needed = if credentials.is_some() { "PLAIN" } else { "ANONYMOUS" };
    if !offered.contains(&needed) {
        let words = format!("it offers the mechanisms {}, not {needed}", offered.join(", "));
        return Err(Cause::NotAuthorized(Reason::words(words)));
    }
    if credentials.as_ref().is_some_and(|known| known.user.contains('\0') || known.password.contains('\0')) {
        return Err(Cause::Dropped("ended by us: PLAIN cannot carry a log-in with a NUL in it".to_owned()));
    }
    link.outbox.append(&mut shared.pool, |out| match &credentials {
        Some(known) => encode_plain(known.user, &known.password, &hostname, out),
        None => encode_anonymous(&hostname, out),
    });
    Ok(())
}

impl Amqp10 {
    /// TCP is connected: the first words.
    pub(super) fn start(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        let topics = link.config.publications.iter().map(|publication| &publication.topic);
        let filters = link.config.subscriptions.iter().map(|subscription| &subscription.filter);
        if let Some(error) = topics.chain(filters).find_map(|topic| words(topic).err()) {
            return Err(Cause::Dropped(format!("ended by us: {error}")));
        }
        let settings = shared.config.endpoints[usize::from(link.config.endpoint)].settings.as_deref();
        self.virtual_host = named_in(settings).map_err(|error| Cause::Dropped(format!("ended by us: {error}")))?;
        self.stage = Stage::SaslHeader;
        self.links = Vec::new();
        self.outgoing.reset(link.config.in_flight_window);
        self.replying = Replying::default();
        self.incoming.reset();
        link.outbox.append(&mut shared.pool, |out| ProtocolHeader::SASL.encode(out));
        Ok(())
    }

    pub(super) fn on_header(&mut self, header: ProtocolHeader) -> Result<(), Cause> {
        match (self.stage, header) {
            (Stage::SaslHeader, ProtocolHeader::SASL) => self.stage = Stage::Mechanisms,
            (Stage::Header, ProtocolHeader::AMQP) => self.stage = Stage::Open,
            (Stage::SaslHeader | Stage::Header, ProtocolHeader { id: 2, .. }) => {
                return Err(Cause::Refused(Reason::words("it takes connections with TLS only")));
            }
            // RabbitMQ's response to a client that has logged in anonymously where that is not allowed.
            (Stage::Header, ProtocolHeader::SASL) => {
                return Err(Cause::NotAuthorized(Reason::words("it asks for a log-in")));
            }
            (Stage::SaslHeader | Stage::Header, other) => {
                return Err(Cause::Refused(Reason::words(format!("it speaks {other}"))));
            }
            _ => return Err(Cause::Protocol(format!("the header of {header} in the middle of a connection"))),
        }
        Ok(())
    }

    pub(super) fn on_sasl(&mut self, link: &mut Link, shared: &mut Shared, body: &[u8]) -> Result<(), Cause> {
        match (self.stage, SaslFrame::decode(body).map_err(broken)?) {
            (Stage::Mechanisms, SaslFrame::Mechanisms(offered)) => {
                log_in(link, shared, &offered)?;
                self.stage = Stage::Outcome;
                Ok(())
            }
            (Stage::Outcome, SaslFrame::Outcome(0)) => {
                self.send_open(link, shared);
                self.stage = Stage::Header;
                Ok(())
            }
            (Stage::Outcome, SaslFrame::Outcome(code)) => {
                let reason = Reason::code(code, outcome_name(code));
                Err(if code == 1 { Cause::NotAuthorized(reason) } else { Cause::Refused(reason) })
            }
            (Stage::Outcome, SaslFrame::Challenge) => {
                Err(Cause::Protocol("a challenge, which neither PLAIN nor ANONYMOUS has".to_owned()))
            }
            _ => Err(Cause::Protocol("words of a log-in that were not awaited".to_owned())),
        }
    }

    fn send_open(&mut self, link: &mut Link, shared: &mut Shared) {
        let keep_alive_ms = u32::from(shared.config.connections.keep_alive_s) * 1_000;
        let hostname = match &self.virtual_host {
            Some(name) => virtual_host(name),
            None => hostname(link, shared),
        };
        let open = Open {
            container_id: &link.config.client_id,
            hostname: Some(&hostname),
            max_frame_bytes: frame_limit(shared.config.connections.maximum_packet_bytes) as u32,
            channel_max: CHANNEL,
            idle_time_out_ms: (keep_alive_ms > 0).then_some(keep_alive_ms),
            anonymous_relay: false,
            product: Some(env!("CARGO_PKG_NAME")),
            version: Some(env!("CARGO_PKG_VERSION")),
        };
        link.outbox.append(&mut shared.pool, |out| {
            ProtocolHeader::AMQP.encode(out);
            open.encode(out);
        });
    }

    pub(super) fn on_open(&mut self, link: &mut Link, shared: &mut Shared, open: &Open<'_>) -> Result<(), Cause> {
        if self.stage != Stage::Open {
            return Err(Cause::Protocol("a second open".to_owned()));
        }
        if (open.max_frame_bytes as usize) < SMALLEST_FRAME_LIMIT {
            let (bytes, least) = (open.max_frame_bytes, SMALLEST_FRAME_LIMIT);
            return Err(Cause::Protocol(format!(
                "it takes frames of {bytes} B, less than the {least} B of the standard"
            )));
        }
        self.frame_bytes = open.max_frame_bytes as usize;
        self.server_idle_ms = open.idle_time_out_ms.unwrap_or(0);
        // Checked with the begin: a server that refuses a connection sends open and close, and may leave out its product.
        self.naming = open.product.and_then(Naming::of_product).ok_or_else(|| {
            let known: Vec<&str> = Naming::PRODUCTS.iter().map(|(product, _)| *product).collect();
            let (product, known) = (open.product.unwrap_or("no name"), known.join(" and "));
            format!("its product is `{product}`; the syntax of addresses is known of {known}").into()
        });
        if self.naming.as_ref().is_ok_and(|naming| !naming.has_virtual_hosts()) && self.virtual_host.is_some() {
            self.naming = Err("it has no virtual hosts that a client chooses from".into());
        }
        let on_one_link = self.naming.as_ref().is_ok_and(|naming| naming.accepts_replies_on_one_link());
        if let Some(qos) = link.config.options.replies_at.filter(|_| on_one_link && open.anonymous_relay) {
            self.replying.all = Some(self.outgoing.add_sender(SenderContent::AllReplies, qos == Qos::BestEffort));
            self.outgoing.fixed += 1;
        }
        let on_links = link.config.options.replies_at.is_some() && self.replying.all.is_none();
        // A sender's index has 16 bits, which the client's own topics may have used up.
        let places_left = usize::from(u16::MAX).saturating_sub(self.outgoing.senders.len());
        self.replying.most_links = if on_links { MOST_LINKS.min(places_left) } else { 0 };
        self.handle_max = (self.link_count() + self.replying.most_links).max(LEAST_HANDLES) as u32 - 1;
        self.stage = Stage::Begin;
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle_max: self.handle_max,
        };
        link.outbox.append(&mut shared.pool, |out| begin.encode(CHANNEL, out));
        Ok(())
    }

    /// All links that the session begins with.
    fn link_count(&self) -> usize {
        self.outgoing.fixed + self.incoming.receivers.len()
    }

    pub(super) fn on_begin(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        channel: u16,
        begin: &Begin,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.stage != Stage::Begin || begin.remote_channel != Some(CHANNEL) {
            return Err(Cause::Protocol("a begin of a session that we did not ask for".to_owned()));
        }
        if self.link_count() > begin.handle_max as usize + 1 {
            let (most, needed) = (u64::from(begin.handle_max) + 1, self.link_count());
            return Err(Cause::Refused(Reason::words(format!(
                "it takes {most} links in a session, {needed} are needed"
            ))));
        }
        let naming = self.naming.clone().map_err(|why| Cause::Refused(Reason::words(String::from(why))))?;
        self.channel = channel;
        let left = begin.handle_max as usize + 1 - self.link_count();
        self.replying.most_links = self.replying.most_links.min(left);
        self.incoming.next_transfer = begin.next_outgoing_id;
        self.outgoing.set_window(begin.incoming_window, 0);
        self.stage = Stage::Links;
        self.attach_senders(link, shared, naming);
        self.open_if_ready(link, shared, sink);
        Ok(())
    }
}
