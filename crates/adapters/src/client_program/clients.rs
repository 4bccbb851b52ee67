//! All clients of a shard, in one program.

use std::collections::BTreeSet;
use std::time::Duration;

use pubmark_protocol::client_program::{
    Begin, BeginEndpoint, BeginTls, How, LARGEST_PAYLOAD, LONGEST_HANDSHAKE, LONGEST_TEXT, ToProgram, VERSION,
    begin_publish, finish,
};
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::reactor::{Reactor, Ready};
use pubmark_protocol::timing::Timing;
use pubmark_protocol::{clock, header};

use super::reading::NO_SESSION;
use super::running::Running;
use super::session::{Answer, Phase, Session};
use super::starting;
use crate::payload;

/// Messages that the program has and did not call written, at most.
pub const CREDIT: usize = 1_000;
/// Bytes of them, or one message of any size.
pub const CREDIT_BYTES: usize = 1 << 20;
/// How long a client may take to connect, ns.
const CONNECT_WITHIN_NS: u64 = 30_000_000_000;
/// Between two pings, ns.
const PING_EVERY_NS: u64 = 100_000_000;
/// A program that did not respond for so long has stalled.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// Keys of the reactor.
const SOCKET: u64 = 0;
const ERRORS: u64 = 1;

/// An outstanding ping.
#[derive(Clone, Copy, Debug)]
pub struct Ping {
    /// Its number.
    pub number: u64,
    /// When it was sent, ns of the shard's clock.
    pub at_ns: u64,
}

/// All clients of a shard that a program is.
pub struct ProgramClients {
    pub(super) config: ShardConfig,
    reactor: Reactor,
    ready: Vec<Ready>,
    /// The program; why there is none any more, otherwise.
    pub(super) program: Result<Running, String>,
    pub(super) sessions: Vec<Session>,
    /// Where the header of each message begins in the buffer, and its times, since the last flush; and whose they are.
    staged: Vec<(usize, Timing)>,
    staged_of: Vec<u32>,
    /// Messages and bytes that the program has.
    pub(super) messages: usize,
    pub(super) bytes: usize,
    /// There was no credit for a message of these.
    without_credit: Vec<u32>,
    pub(super) ping: Option<Ping>,
    pings: u64,
    next_ping_ns: u64,
    /// When something came from the program last, ns of the shard's clock.
    pub(super) received_ns: u64,
    /// A time at which nothing of the program's waited to be read, ns of the shard's clock; 0 before the first.
    pub(super) empty_ns: u64,
    /// The last serve left something unread.
    pub(super) unread: bool,
}

impl ProgramClients {
    fn name(&self) -> &str {
        self.config.connections.program.as_ref().map_or("", |program| program.words[0].as_str())
    }

    /// Longest frame of the program's.
    pub(super) fn longest_frame(&self) -> usize {
        self.maximum_payload() + LONGEST_HANDSHAKE
    }

    /// Largest payload that goes either way.
    pub(super) fn maximum_payload(&self) -> usize {
        self.config.connections.maximum_packet_bytes.min(LARGEST_PAYLOAD)
    }

    /// What its clients log in with, the longest first.
    fn secrets(&self) -> Vec<&str> {
        let of_sessions = self.sessions.iter().filter_map(|session| session.secret(&self.config));
        let all: BTreeSet<&str> = of_sessions.chain(secrets_of_endpoints(&self.config)).collect();
        let mut all = Vec::from_iter(all);
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all
    }

    /// Ends the program, and every connection with it.
    pub(super) fn give_up(&mut self, why: String, sink: &mut impl Sink) {
        if self.program.is_err() {
            return;
        }
        let mut why = format!("the client program `{}` {why}", self.name());
        let now_ns = clock::monotonic_ns();
        let mut late_ns = 0;
        if let Ok(mut program) = std::mem::replace(&mut self.program, Err(String::new())) {
            late_ns = program.late_by_ns(now_ns);
            program.read_errors();
            why.push_str(&program.error_output(&self.secrets()));
            program.kill();
        }
        self.program = Err(why.clone());
        self.staged.clear();
        self.staged_of.clear();
        self.ping = None;
        sink.event(NO_SESSION, Event::ProgramEnded(&why));
        for session in self.sessions.iter_mut().filter(|session| session.phase != Phase::Closed) {
            let cause = match session.phase {
                Phase::Open => Cause::Dropped(why.clone()),
                _ => Cause::Unreachable(why.clone()),
            };
            session.end(cause, now_ns, (self.empty_ns, late_ns), sink);
        }
        (self.messages, self.bytes) = (0, 0);
    }

    /// Ends one connection.
    pub(super) fn end(&mut self, index: usize, cause: Cause, sink: &mut impl Sink) {
        let now_ns = clock::monotonic_ns();
        let late_ns = self.program.as_ref().map_or(0, |program| program.late_by_ns(now_ns));
        let (messages, bytes) = self.sessions[index].end(cause, now_ns, (self.empty_ns, late_ns), sink);
        self.messages -= messages;
        self.bytes -= bytes;
    }

    /// How long writes that a full socket had stopped waited for pubmark so far, at most, ns.
    pub(super) fn late_ns(&self) -> u64 {
        self.program.as_ref().map_or(0, Running::late_ns)
    }

    /// Writes queued frames; a program that reads nothing any more counts as ended.
    pub(super) fn write(&mut self, sink: &mut impl Sink) {
        let Ok(program) = &mut self.program else { return };
        if program.write().is_err() {
            let how = program.how_it_ended();
            self.give_up(how, sink);
        }
    }

    /// Puts the write start into the headers of what is staged, and hands it over.
    fn hand_over(&mut self, sink: &mut impl Sink) {
        let now_ns = clock::monotonic_ns();
        if let Ok(program) = &mut self.program {
            for (header_at, timing) in self.staged.drain(..) {
                header::patch_write_start(&mut program.out[header_at..], &timing, now_ns);
            }
        }
        let late_ns = self.late_ns();
        for index in self.staged_of.drain(..) {
            self.sessions[index as usize].stamp(now_ns, late_ns);
        }
        self.write(sink);
    }

    /// Reports `Writable` to sessions that had no credit.
    pub(super) fn report_credit(&mut self, sink: &mut impl Sink) {
        if self.without_credit.is_empty() || 2 * self.messages > CREDIT || 2 * self.bytes > CREDIT_BYTES {
            return;
        }
        for index in std::mem::take(&mut self.without_credit) {
            self.sessions[index as usize].unblock(sink);
        }
    }

    fn is_in_use(&self) -> bool {
        self.program.is_ok() && self.sessions.iter().any(|session| session.phase != Phase::Closed)
    }

    /// Pings, and checks time limits.
    fn watch(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if now_ns < self.next_ping_ns || !self.is_in_use() {
            return;
        }
        self.next_ping_ns = now_ns + PING_EVERY_NS;
        // A program that is busy with many connects responds to the ping after them: any frame shows that it works.
        let silent_ns = self.ping.map_or(0, |ping| now_ns.saturating_sub(ping.at_ns.max(self.received_ns)));
        if silent_ns > SILENCE_LIMIT.as_nanos() as u64 {
            let why = format!("stalled: it sent no response for {} s", SILENCE_LIMIT.as_secs());
            return self.give_up(why, sink);
        }
        if let (None, Ok(program)) = (self.ping, &mut self.program) {
            self.pings += 1;
            ToProgram::Ping { number: self.pings }.encode(&mut program.out);
            self.ping = Some(Ping { number: self.pings, at_ns: clock::monotonic_ns() });
            self.write(sink);
        }
        for index in 0..self.sessions.len() {
            if matches!(self.sessions[index].phase, Phase::Opening(until_ns) if now_ns > until_ns) {
                let seconds = CONNECT_WITHIN_NS / 1_000_000_000;
                let why = format!("the client program said nothing of this connect for {seconds} s");
                self.send_disconnect(index, How::Cut);
                self.end(index, Cause::Unreachable(why), sink);
            }
        }
    }

    fn send_disconnect(&mut self, index: usize, how: How) {
        let connection = self.sessions[index].connection;
        if let Ok(program) = &mut self.program {
            ToProgram::Disconnect { client: index as u32, connection, how }.encode(&mut program.out);
        }
    }

    /// Sends the program a client's topics, once, its filters, and the connect.
    fn send_connect(&mut self, index: usize) -> Result<(), String> {
        let Ok(program) = &mut self.program else { return Ok(()) };
        let session = &mut self.sessions[index];
        let (client, config) = (index as u32, &session.config);
        let texts = config.publications.iter().map(|publication| &publication.topic);
        let texts = texts.chain(config.subscriptions.iter().map(|subscription| &subscription.filter));
        if texts.chain([&config.client_id]).any(|text| text.len() > LONGEST_TEXT) {
            return Err("a topic, filter or client id longer than 65,535 bytes".to_owned());
        }
        if !std::mem::replace(&mut session.has_topics, true) {
            let device_type = config.options.device_type.as_deref().unwrap_or_default();
            for (publication, known) in (0..).zip(&config.publications) {
                let (qos, retain, topic) = (known.qos.level(), known.retain, &*known.topic);
                ToProgram::Topic { client, publication, qos, retain, topic, device_type }.encode(&mut program.out);
            }
        }
        let log_in = config.log_in(&self.config);
        let login = log_in.as_ref().map(|log_in| (log_in.user, &*log_in.password));
        let connection = session.connection;
        let shared = config.options.shared.as_deref().unwrap_or_default();
        for (subscription, wanted) in (0..).zip(&config.subscriptions) {
            let (qos, filter) = (wanted.qos.level(), &*wanted.filter);
            ToProgram::Subscribe { client, connection, subscription, qos, filter, shared }.encode(&mut program.out);
        }
        let (endpoint, window, client_id) = (config.endpoint, config.in_flight_window, &*config.client_id);
        ToProgram::Connect { client, connection, endpoint, window, client_id, login }.encode(&mut program.out);
        session.answers = vec![Answer::Awaited; config.subscriptions.len()];
        session.signed = login.filter(|_| config.token.is_some()).map(|(_, token)| token.to_owned());
        Ok(())
    }
}

/// Passwords that endpoints are given with.
fn secrets_of_endpoints(config: &ShardConfig) -> impl Iterator<Item = &str> {
    let credentials = config.endpoints.iter().filter_map(|endpoint| endpoint.credentials.as_ref());
    credentials.map(|credentials| credentials.password.expose())
}

fn begin_endpoint(endpoint: &Endpoint) -> BeginEndpoint {
    BeginEndpoint {
        host: endpoint.address.ip().to_string(),
        port: endpoint.address.port(),
        settings: endpoint.settings.as_deref().map(str::to_owned),
        tls: endpoint.tls.as_ref().map(|tls| BeginTls {
            server_name: tls.server_name.clone(),
            authorities: tls.authorities.as_ref().map(|path| path.display().to_string()),
        }),
    }
}

impl Clients for ProgramClients {
    fn open(config: ShardConfig) -> Result<ProgramClients, OpenError> {
        let system = |what| move |source| OpenError::System { what, source };
        let Some(wanted) = config.connections.program.clone() else {
            return Err(OpenError::Library("no client program was named".to_owned()));
        };
        let failed = |reason| OpenError::Program { program: wanted.words.join(" "), reason };
        let secrets: Vec<&str> = secrets_of_endpoints(&config).collect();
        let (mut program, hello) = starting::start(&wanted.words, &secrets).map_err(failed)?;
        if hello.claims(&wanted.protocol).is_none() {
            return Err(failed(format!("it does not speak {}", wanted.protocol)));
        }
        let reactor = Reactor::new().map_err(system("open epoll and its timer"))?;
        reactor.add(program.socket(), SOCKET).map_err(system("watch the client program"))?;
        reactor.add(program.errors(), ERRORS).map_err(system("watch the client program"))?;
        let mut clients = ProgramClients {
            reactor,
            ready: vec![],
            sessions: vec![],
            staged: vec![],
            staged_of: vec![],
            messages: 0,
            bytes: 0,
            without_credit: vec![],
            ping: None,
            pings: 0,
            next_ping_ns: 0,
            received_ns: 0,
            empty_ns: 0,
            // The frames that follow its hello may have arrived with it.
            unread: true,
            program: Err(String::new()),
            config,
        };
        let begin = Begin {
            version: VERSION,
            protocol: wanted.protocol.clone(),
            endpoints: clients.config.endpoints.iter().map(begin_endpoint).collect(),
            keep_alive_s: clients.config.connections.keep_alive_s,
            maximum_payload_bytes: clients.maximum_payload() as u32,
            credit: CREDIT as u32,
            whole_payloads: wanted.whole_payloads,
        };
        let json = serde_json::to_vec(&begin).map_err(|error| failed(error.to_string()))?;
        ToProgram::Begin(&json).encode(&mut program.out);
        if program.write().is_err() {
            let how = program.how_it_ended();
            let secrets: Vec<&str> = secrets_of_endpoints(&clients.config).collect();
            return Err(failed(format!("it {how}{}", program.error_output(&secrets))));
        }
        clients.program = Ok(program);
        Ok(clients)
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.sessions.push(Session::new(id, config));
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        let index = session.0 as usize;
        if self.sessions[index].phase != Phase::Closed {
            return;
        }
        if let Err(why) = &self.program {
            return sink.event(session, Event::Closed(Cause::Unreachable(why.clone())));
        }
        self.sessions[index].connection += 1;
        self.sessions[index].phase = Phase::Opening(clock::monotonic_ns() + CONNECT_WITHIN_NS);
        match self.send_connect(index) {
            Ok(()) => self.write(sink),
            Err(why) => self.end(index, Cause::Unreachable(why), sink),
        }
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        let index = session.0 as usize;
        if self.sessions[index].phase == Phase::Closed {
            return;
        }
        self.hand_over(sink);
        let how = match goodbye {
            Goodbye::Graceful => How::Graceful,
            Goodbye::Final => How::Final,
            Goodbye::Cut => How::Cut,
        };
        self.send_disconnect(index, how);
        // The program may have come to its end just now.
        if self.sessions[index].phase != Phase::Closed {
            self.end(index, Cause::Ours, sink);
        }
        self.write(sink);
        // Other sessions may have waited for what this one had.
        self.report_credit(sink);
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        let index = session.0 as usize;
        let payload_bytes = message.payload_bytes as usize;
        if payload_bytes > self.maximum_payload() {
            return SendOutcome::TooLarge(self.maximum_payload() as u32);
        }
        let ahead = clock::machine_ahead_ns();
        let entry = &mut self.sessions[index];
        let accepted = entry.can_send(&message);
        let has_credit = self.messages < CREDIT && (self.bytes == 0 || self.bytes + payload_bytes <= CREDIT_BYTES);
        if accepted.is_ok() && !has_credit && !entry.blocked {
            self.without_credit.push(session.0);
        }
        match (accepted, &mut self.program) {
            (Err(too_large @ SendOutcome::TooLarge(_)), _) => return too_large,
            (Ok(()), Ok(program)) if has_credit => {
                let of_machine = |at_ns: u64| at_ns.wrapping_add_signed(ahead);
                let (due_ns, ready_ns) = (message.timing.due_ns, message.timing.submitted_ns);
                let at = begin_publish(
                    &mut program.out,
                    (session.0, entry.connection),
                    (message.publication, message.sequence),
                    of_machine(due_ns),
                    of_machine(ready_ns),
                );
                let header_at = program.out.len();
                let publication = &entry.config.publications[usize::from(message.publication)];
                payload::append(&self.config, publication, &message, &mut program.out);
                finish(&mut program.out, at);
                self.staged.push((header_at, message.timing));
            }
            _ => {
                entry.blocked = true;
                return SendOutcome::WouldBlock;
            }
        }
        entry.enter(&message);
        if self.staged_of.last() != Some(&session.0) {
            self.staged_of.push(session.0);
        }
        self.messages += 1;
        self.bytes += payload_bytes;
        SendOutcome::Accepted
    }

    fn flush(&mut self, _: SessionId, sink: &mut impl Sink) {
        self.hand_over(sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        let ping_ns = self.is_in_use().then_some(self.next_ping_ns);
        let until_ns = match (until_ns, ping_ns) {
            _ if self.unread => Some(0),
            (Some(until_ns), Some(ping_ns)) => Some(until_ns.min(ping_ns)),
            (until_ns, ping_ns) => until_ns.or(ping_ns),
        };
        Ok(self.reactor.wait(until_ns, &mut self.ready)?.at_ns)
    }

    fn has_unread(&self) -> bool {
        self.unread
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if !self.unread {
            self.empty_ns = self.empty_ns.max(self.reactor.quiet_at_ns());
        }
        let ready = std::mem::take(&mut self.ready);
        for one in &ready {
            match (one.key, &mut self.program) {
                (ERRORS, Ok(program)) => program.read_errors(),
                (SOCKET, Ok(program)) => {
                    if one.writable {
                        program.note_full(self.reactor.quiet_at_ns());
                        self.write(sink);
                    }
                    self.unread |= one.readable || one.ended;
                }
                _ => {}
            }
        }
        self.ready = ready;
        if self.unread {
            self.read(sink);
        }
        self.report_credit(sink);
        self.watch(now_ns, sink);
    }

    fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.bytes as u64
    }
}
