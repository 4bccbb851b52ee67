//! From TCP to an open session: versions, log-in, limits, channels, and whether the server still has our queue.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink};
use pubmark_wire::amqp091::{
    Declare, LEAST_FRAME_BYTES, Login, Method, Publish, Start, Tune, encode_channel_open, encode_declare,
    encode_delete, encode_open, encode_select, encode_start_ok, encode_tune_ok,
};

use super::cause::unexpected;
use super::session::{Amqp091, CONFIRMED, PLAIN, level};
use super::subscribing::kept_queue;
use crate::connection::{Dialect as _, Link, Phase, Shared};

/// Largest frame that we agree to, bytes: what RabbitMQ proposes.
const MOST_FRAME_BYTES: usize = 131_072;
/// Log-in where none is given: the one that RabbitMQ comes with.
const DEFAULT_LOGIN: (&str, &str) = ("guest", "guest");
/// The virtual host where none is given: the one that RabbitMQ comes with.
const DEFAULT_VIRTUAL_HOST: &str = "/";
/// Most that is shown of a server's list of mechanisms, bytes.
const MOST_SHOWN_BYTES: usize = 100;

/// What is awaited of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Tune,
    OpenOk,
    Nothing,
}

/// State of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    /// The session has no use for it.
    Unused,
    Closed,
    Opening,
    Open,
}

impl Channel {
    fn is_settled(self) -> bool {
        matches!(self, Channel::Unused | Channel::Open)
    }

    /// For a new connection.
    fn restart(&mut self) {
        if *self != Channel::Unused {
            *self = Channel::Closed;
        }
    }

    fn open(&mut self) {
        if *self != Channel::Unused {
            *self = Channel::Opening;
        }
    }
}

/// State of a session.
#[derive(Debug)]
pub(super) struct Opening {
    step: Step,
    plain: Channel,
    confirmed: Channel,
    /// The response to `confirm.select` has not arrived.
    selecting: bool,
    /// The check whether the session's queue exists, or its deletion, is sent and has no response yet.
    checking: bool,
    /// The queue exists.
    found: bool,
    /// The session was open before, in this run.
    was_open: bool,
    heartbeat_s: u16,
}

impl Opening {
    pub(super) fn new(config: &SessionConfig, publishes: &[Publish]) -> Opening {
        let publishes_on = |channel| publishes.iter().any(|publish| publish.channel() == channel);
        let used = |is_used| if is_used { Channel::Closed } else { Channel::Unused };
        let confirms_answers = config.options.replies_at.is_some_and(|qos| qos != Qos::BestEffort);
        let confirmed = publishes_on(CONFIRMED) || confirms_answers;
        Opening {
            step: Step::Start,
            // A session that does nothing has a channel all the same: it is what servers expect.
            plain: used(!config.subscriptions.is_empty() || publishes_on(PLAIN) || !confirmed),
            confirmed: used(confirmed),
            selecting: false,
            checking: false,
            found: false,
            was_open: false,
            heartbeat_s: 0,
        }
    }

    /// For a new connection; returns the largest frame that we take until one is agreed on, bytes.
    pub(super) fn restart(&mut self, shared: &Shared) -> usize {
        self.step = Step::Start;
        self.plain.restart();
        self.confirmed.restart();
        (self.selecting, self.checking, self.found) = (false, false, false);
        shared.config.connections.maximum_packet_bytes.clamp(LEAST_FRAME_BYTES, MOST_FRAME_BYTES)
    }

    /// Is the channel open, or requested?
    pub(super) fn has_channel(&self, channel: u16) -> bool {
        let state = match channel {
            PLAIN => self.plain,
            CONFIRMED => self.confirmed,
            _ => Channel::Unused,
        };
        matches!(state, Channel::Opening | Channel::Open)
    }

    /// Deletes the session's queue before it opens: one that exists is an earlier run's, with its messages and bindings. The
    /// queue of a group has the run's number in its name, and another member may have declared it.
    pub(super) fn deletes_queue(&self, config: &SessionConfig) -> bool {
        !self.was_open && config.options.shared.is_none()
    }

    /// Is the response to the check for the queue, or to its deletion, awaited?
    pub(super) fn awaits_queue_check(&self) -> bool {
        self.checking
    }

    /// The response to that.
    pub(super) fn answered(&mut self, found: bool) {
        (self.checking, self.found) = (false, found);
    }

    /// The channel of the consumer is opened once more.
    pub(super) fn reopen_plain(&mut self) {
        self.plain = Channel::Opening;
    }

    fn highest_channel(&self) -> u16 {
        if self.confirmed == Channel::Unused { PLAIN } else { CONFIRMED }
    }
}

impl Amqp091 {
    /// A method on the connection's own channel that belongs to its beginning.
    pub(super) fn on_opening_method(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        method: &Method<'_>,
    ) -> Result<(), Cause> {
        match (self.opening.step, method) {
            (Step::Start, Method::ConnectionStart(start)) => self.on_start(link, shared, start),
            (Step::Tune, Method::ConnectionTune(tune)) => self.on_tune(link, shared, *tune),
            (Step::Tune, Method::ConnectionSecure) => {
                Err(Cause::Refused(Reason::words("its log-in asks for more than a password")))
            }
            (Step::OpenOk, Method::ConnectionOpenOk) => {
                self.open_channels(link, shared);
                Ok(())
            }
            _ => Err(unexpected(link.phase, 0, method)),
        }
    }

    fn on_start(&mut self, link: &mut Link, shared: &mut Shared, start: &Start<'_>) -> Result<(), Cause> {
        if start.version != (0, 9) {
            let (major, minor) = start.version;
            return Err(Cause::Refused(Reason::words(format!("it speaks AMQP {major}-{minor}, not 0-9-1"))));
        }
        if !start.mechanisms.split(|byte| *byte == b' ').any(|mechanism| mechanism == b"PLAIN") {
            let offered = &start.mechanisms[..start.mechanisms.len().min(MOST_SHOWN_BYTES)];
            let words = format!("it has no log-in with a password (PLAIN), but `{}`", offered.escape_ascii());
            return Err(Cause::Refused(Reason::words(words)));
        }
        let given = link.config.log_in(&shared.config);
        let (user, password) = given.as_ref().map_or(DEFAULT_LOGIN, |login| (login.user, &*login.password));
        let login = Login {
            connection_name: &link.config.client_id,
            product: "pubmark",
            version: env!("CARGO_PKG_VERSION"),
            user,
            password,
        };
        link.outbox.append(&mut shared.pool, |out| encode_start_ok(&login, out));
        self.opening.step = Step::Tune;
        Ok(())
    }

    /// Takes the smaller one of each limit, and opens the virtual host.
    fn on_tune(&mut self, link: &mut Link, shared: &mut Shared, tune: Tune) -> Result<(), Cause> {
        let theirs = tune.frame_max as usize;
        if theirs != 0 && theirs < LEAST_FRAME_BYTES {
            return Err(Cause::Protocol(format!(
                "frames of {theirs} B at most, {LEAST_FRAME_BYTES} B must be possible"
            )));
        }
        let needed = self.opening.highest_channel();
        if tune.channel_max != 0 && tune.channel_max < needed {
            let words = format!("it allows channels up to {}, {needed} is needed", tune.channel_max);
            return Err(Cause::Refused(Reason::words(words)));
        }
        if theirs != 0 {
            self.most_frame_bytes = self.most_frame_bytes.min(theirs);
        }
        let ours_s = shared.config.connections.keep_alive_s;
        self.opening.heartbeat_s = if tune.heartbeat_s == 0 { ours_s } else { ours_s.min(tune.heartbeat_s) };
        let agreed = Tune {
            channel_max: needed,
            frame_max: self.most_frame_bytes as u32,
            heartbeat_s: self.opening.heartbeat_s,
        };
        let virtual_host = self.virtual_host.as_deref().unwrap_or(DEFAULT_VIRTUAL_HOST);
        link.outbox.append(&mut shared.pool, |out| {
            encode_tune_ok(agreed, out);
            encode_open(virtual_host, out);
        });
        self.opening.step = Step::OpenOk;
        Ok(())
    }

    /// The connection is open: requests channels and confirms. Checks whether the server has the session's queue, or deletes the one
    /// of an earlier run.
    fn open_channels(&mut self, link: &mut Link, shared: &mut Shared) {
        let opening = &mut self.opening;
        opening.step = Step::Nothing;
        opening.plain.open();
        opening.confirmed.open();
        opening.selecting = opening.confirmed != Channel::Unused;
        let deletes = opening.deletes_queue(&link.config);
        opening.checking =
            link.config.persistent && !link.config.subscriptions.is_empty() && (opening.was_open || deletes);
        let queue = &kept_queue(link, shared);
        link.outbox.append(&mut shared.pool, |out| {
            if opening.plain != Channel::Unused {
                encode_channel_open(PLAIN, out);
            }
            if opening.selecting {
                encode_channel_open(CONFIRMED, out);
                encode_select(CONFIRMED, out);
            }
            if opening.checking && deletes {
                encode_delete(PLAIN, queue, false, out);
            } else if opening.checking {
                encode_declare(PLAIN, &Declare { queue, passive: true, ..Declare::default() }, out);
            }
        });
    }

    pub(super) fn on_channel_open_ok(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        channel: u16,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let state = if channel == PLAIN { &mut self.opening.plain } else { &mut self.opening.confirmed };
        if *state != Channel::Opening {
            return Err(unexpected(link.phase, channel, &Method::ChannelOpenOk));
        }
        *state = Channel::Open;
        self.open_if_settled(link, shared, sink);
        Ok(())
    }

    pub(super) fn on_select_ok(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if !std::mem::take(&mut self.opening.selecting) {
            return Err(unexpected(link.phase, CONFIRMED, &Method::ConfirmSelectOk));
        }
        self.open_if_settled(link, shared, sink);
        Ok(())
    }

    /// Opens the session once nothing more is awaited.
    pub(super) fn open_if_settled(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let opening = &mut self.opening;
        let is_settled = opening.plain.is_settled() && opening.confirmed.is_settled();
        if link.phase == Phase::Open || !is_settled || opening.selecting || opening.checking {
            return;
        }
        link.opened(shared, opening.heartbeat_s);
        // The server stores nothing for a session that only publishes: its state is here.
        let listens = !link.config.subscriptions.is_empty();
        let session_present = link.config.persistent && if listens { opening.found } else { opening.was_open };
        opening.was_open = true;
        let asked = link.config.publications.iter().map(|publication| publication.qos).max();
        let maximum_qos = asked.filter(|asked| level(*asked) < *asked).map(|_| Qos::AtLeastOnce);
        sink.event(link.id, Event::Connected(Connected { session_present, maximum_qos, ..Connected::default() }));
        if session_present {
            self.confirms.in_flight.hold_all();
        } else {
            self.forget(link.id, sink);
        }
        self.subscribe(link, shared, session_present);
        self.send_held(link, shared, sink);
    }
}
