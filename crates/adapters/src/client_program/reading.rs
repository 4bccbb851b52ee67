//! Checks each report of a program against what pubmark sent it. A report that cannot be true is counted, and changes nothing.

use pubmark_model::qos::Qos;
use pubmark_model::secret;
use pubmark_protocol::client_program::{End, FromProgram, Misreport, next_frame};
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Delivery, Event, Reason, Sink, Token};
use pubmark_protocol::{clock, header};

use super::clients::ProgramClients;
use super::running::ReadOutcome;
use super::session::{Answer, Phase, Session};

/// Reads of a socket in one turn: other sessions of the shard are to have theirs.
const READS_A_TURN: usize = 16;
/// Longest reason that enters a record, bytes; longer ones are cut.
const LONGEST_REASON: usize = 256;
/// How far a delivery may seem to be before its write start on another node, ns, if the clocks of the nodes are known better.
const BETWEEN_NODES_NS: u64 = 1_000_000;
/// Stands where an event is about the program, and about no session.
pub(super) const NO_SESSION: SessionId = SessionId(0);

/// When something was read, and what the program's stamps are then.
#[derive(Clone, Copy)]
struct ReadTime {
    /// The shard's clock, ns.
    now_ns: u64,
    /// The machine's clock minus that, ns.
    machine_ahead_ns: i64,
    /// How much later a write start on another node may seem to be than it was, ns.
    tolerance_ns: u64,
}

impl ReadTime {
    fn now() -> ReadTime {
        ReadTime {
            now_ns: clock::monotonic_ns(),
            machine_ahead_ns: clock::machine_ahead_ns(),
            tolerance_ns: tolerance_ns(clock::apart_ns()),
        }
    }

    /// A stamp as a time of the shard's clock; `None` if there is none, and what is wrong with it.
    fn stamp(self, stamp_ns: u64, not_before_ns: u64) -> Result<Option<u64>, Misreport> {
        if stamp_ns == 0 {
            return Ok(None);
        }
        let own_ns = stamp_ns.wrapping_sub(self.machine_ahead_ns as u64);
        match own_ns {
            _ if own_ns > self.now_ns => Err(Misreport::StampInFuture),
            _ if own_ns < not_before_ns => Err(Misreport::StampBeforeDue),
            _ => Ok(Some(own_ns)),
        }
    }
}

impl ProgramClients {
    /// Reads what there is, and reports it.
    pub(super) fn read(&mut self, sink: &mut impl Sink) {
        for _ in 0..READS_A_TURN {
            let Ok(program) = &mut self.program else { break };
            let before_ns = clock::monotonic_ns();
            let found = match program.read() {
                Ok(found) => found,
                Err(error) => return self.give_up(format!("cannot be read from: {error}"), sink),
            };
            let at = ReadTime::now();
            if found == ReadOutcome::Bytes {
                self.received_ns = at.now_ns;
            }
            self.handle(at, sink);
            match (found, &mut self.program) {
                (ReadOutcome::Bytes, _) => {}
                (ReadOutcome::End, Ok(program)) => {
                    let how = program.how_it_ended();
                    return self.give_up(how, sink);
                }
                _ => {
                    (self.unread, self.empty_ns) = (false, before_ns);
                    return;
                }
            }
        }
        self.unread = self.program.is_ok();
    }

    /// Handles all whole frames among what was read.
    fn handle(&mut self, at: ReadTime, sink: &mut impl Sink) {
        let Ok(program) = &mut self.program else { return };
        let mut input = std::mem::take(&mut program.input);
        let (mut done, longest) = (0, self.longest_frame());
        let broken = loop {
            match next_frame(&input[done..], longest) {
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
                Ok(Some(frame)) => match frame.from_program() {
                    Err(error) => break Some(error.to_string()),
                    Ok(FromProgram::Hello(_)) => break Some("a second hello".to_owned()),
                    Ok(FromProgram::Goodbye) => return self.give_up("said goodbye by itself".to_owned(), sink),
                    Ok(message) => {
                        done += frame.bytes;
                        self.take(message, at, sink);
                    }
                },
            }
        };
        input.drain(..done);
        match (broken, &mut self.program) {
            (Some(what), _) => self.give_up(format!("broke the client protocol: {what}"), sink),
            (None, Ok(program)) => program.input = input,
            (None, Err(_)) => {}
        }
    }

    fn take(&mut self, message: FromProgram<'_>, at: ReadTime, sink: &mut impl Sink) {
        let (client, connection) = match message {
            FromProgram::Hello(_) | FromProgram::Goodbye => return,
            FromProgram::Pong { number, stamp_ns } => return self.pong(number, stamp_ns, at, sink),
            FromProgram::Connected { client, connection, .. }
            | FromProgram::Closed { client, connection, .. }
            | FromProgram::Granted { client, connection, .. }
            | FromProgram::Revoked { client, connection, .. }
            | FromProgram::Written { client, connection, .. }
            | FromProgram::Abandoned { client, connection, .. }
            | FromProgram::Acknowledged { client, connection, .. }
            | FromProgram::Delivered { client, connection, .. } => (client, connection),
        };
        let Some(session) = self.sessions.get(client as usize) else {
            return sink.event(NO_SESSION, Event::Misreported(Misreport::UnknownClient));
        };
        if connection == 0 || connection > session.connection {
            return sink.event(session.id, Event::Misreported(Misreport::UnknownConnection));
        }
        if connection < session.connection || session.phase == Phase::Closed {
            // Of a connection that has ended: the frame was in flight.
            return;
        }
        if let Err(misreport) = self.of_connection(client as usize, message, at, sink) {
            sink.event(SessionId(client), Event::Misreported(misreport));
        }
    }

    fn pong(&mut self, number: u64, stamp_ns: u64, at: ReadTime, sink: &mut impl Sink) {
        match self.ping {
            Some(ping) if ping.number == number => {
                self.ping = None;
                sink.event(NO_SESSION, Event::ProgramRoundTrip(at.now_ns.saturating_sub(ping.at_ns)));
                if let Err(misreport) = at.stamp(stamp_ns, ping.at_ns) {
                    sink.event(NO_SESSION, Event::Misreported(misreport));
                }
            }
            _ => sink.event(NO_SESSION, Event::Misreported(Misreport::UnknownPing)),
        }
    }

    /// Handles a report about a client's present connection.
    fn of_connection(
        &mut self,
        index: usize,
        message: FromProgram<'_>,
        at: ReadTime,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        match message {
            FromProgram::Connected { receive_maximum, maximum_packet_bytes, .. } => {
                self.connected(index, receive_maximum, maximum_packet_bytes, sink)
            }
            FromProgram::Closed { end, code, reason, .. } => {
                let cause = cause(end, code, &self.shown(index, reason));
                self.end(index, cause, sink);
                Ok(())
            }
            _ if self.sessions[index].phase != Phase::Open => Err(Misreport::OutOfTurn),
            FromProgram::Granted { subscription, qos, reason, .. } => {
                self.granted(index, subscription, qos, reason, sink)
            }
            FromProgram::Revoked { subscription, code, reason, .. } => {
                self.revoked(index, subscription, code, reason, sink)
            }
            FromProgram::Written { publication, sequence, stamp_ns, .. } => {
                self.written(index, Token { publication, sequence }, stamp_ns, at, sink)
            }
            FromProgram::Abandoned { publication, sequence, .. } => {
                self.abandoned(index, Token { publication, sequence }, sink)
            }
            FromProgram::Acknowledged { publication, sequence, code, reason, .. } => {
                let outcome = if code < 128 { Ok(()) } else { Err(reason_of(code, &self.shown(index, reason))) };
                self.acknowledged(index, Token { publication, sequence }, outcome, at, sink)
            }
            FromProgram::Delivered { retained, stamp_ns, payload_bytes, payload, .. } => {
                self.delivered(index, retained, stamp_ns, (payload_bytes, payload), at, sink)
            }
            FromProgram::Hello(_) | FromProgram::Pong { .. } | FromProgram::Goodbye => Ok(()),
        }
    }

    /// A reason of the program's as it may enter a record: without what the client logged in with.
    fn shown(&self, index: usize, reason: &str) -> String {
        secret::without(reason, &Vec::from_iter(self.sessions[index].secret(&self.config)))
    }

    fn connected(
        &mut self,
        index: usize,
        receive_maximum: u16,
        maximum_packet_bytes: u32,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        let session = &mut self.sessions[index];
        if session.phase == Phase::Open {
            return Err(Misreport::OutOfTurn);
        }
        session.phase = Phase::Open;
        (session.receive_maximum, session.maximum_packet_bytes) = (receive_maximum, maximum_packet_bytes);
        let connected = Connected {
            receive_maximum: (receive_maximum > 0).then_some(receive_maximum),
            maximum_packet_bytes: (maximum_packet_bytes > 0).then_some(maximum_packet_bytes),
            ..Connected::default()
        };
        sink.event(session.id, Event::Connected(connected));
        session.unblock(sink);
        Ok(())
    }

    fn granted(
        &mut self,
        index: usize,
        subscription: u16,
        qos: u8,
        reason: &str,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        let granted = Qos::from_level(qos);
        let answer = if granted.is_some() { Answer::Granted } else { Answer::NotHeld };
        self.sessions[index].note_answer(subscription, Answer::Awaited, answer)?;
        let granted = granted.ok_or_else(|| reason_of(qos, &self.shown(index, reason)));
        sink.event(self.sessions[index].id, Event::Subscribed { index: usize::from(subscription), granted });
        Ok(())
    }

    /// The system ended a subscription on an open connection. It comes back with the next connection only.
    fn revoked(
        &mut self,
        index: usize,
        subscription: u16,
        code: u8,
        reason: &str,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        self.sessions[index].note_answer(subscription, Answer::Granted, Answer::NotHeld)?;
        let granted = Err(reason_of(code, &self.shown(index, reason)));
        sink.event(self.sessions[index].id, Event::Subscribed { index: usize::from(subscription), granted });
        Ok(())
    }

    fn written(
        &mut self,
        index: usize,
        token: Token,
        stamp_ns: u64,
        at: ReadTime,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        let session = self.submitted_to(index, token)?;
        let Some(unwritten) = session.take_unwritten(token) else {
            return if session.take_early(token) { Ok(()) } else { Err(Misreport::WrittenTwice) };
        };
        let id = session.id;
        self.messages -= 1;
        self.bytes -= unwritten.bytes;
        let stamp = at.stamp(stamp_ns, unwritten.write_start_ns);
        let event = match stamp {
            Ok(Some(stamp_ns)) => unwritten.written_at(stamp_ns, self.late_ns()),
            Ok(None) | Err(_) => unwritten.written_by(at.now_ns, self.empty_ns, self.late_ns()),
        };
        sink.event(id, event);
        stamp.map(|_| ())
    }

    fn abandoned(&mut self, index: usize, token: Token, sink: &mut impl Sink) -> Result<(), Misreport> {
        let session = self.submitted_to(index, token)?;
        let unwritten = session.take_unwritten(token).ok_or(Misreport::WrittenTwice)?;
        session.take_unacknowledged(token);
        // The connection is open: one that has ended is reported by `closed`.
        sink.event(session.id, Event::Declined(token));
        session.unblock(sink);
        self.messages -= 1;
        self.bytes -= unwritten.bytes;
        Ok(())
    }

    fn acknowledged(
        &mut self,
        index: usize,
        token: Token,
        outcome: Result<(), Reason>,
        at: ReadTime,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        let (empty_ns, late_ns) = (self.empty_ns, self.late_ns());
        let session = self.submitted_to(index, token)?;
        if !session.take_unacknowledged(token) {
            return Err(Misreport::AcknowledgedTwice);
        }
        let early = session.take_unwritten(token);
        let is_one_forgotten = early.is_some() && session.record_early(token);
        if let Some(unwritten) = early {
            // A library's threads may be faster than the one that reports what was written.
            sink.event(session.id, unwritten.written_by(at.now_ns, empty_ns, late_ns));
        }
        sink.event(session.id, Event::Acknowledged { token, outcome });
        session.unblock(sink);
        self.messages -= usize::from(early.is_some());
        self.bytes -= early.map_or(0, |unwritten| unwritten.bytes);
        if is_one_forgotten { Err(Misreport::NeverWritten) } else { Ok(()) }
    }

    /// The client of this index, if the program was given this message of it.
    fn submitted_to(&mut self, index: usize, token: Token) -> Result<&mut Session, Misreport> {
        let session = &mut self.sessions[index];
        if session.was_submitted(token) { Ok(session) } else { Err(Misreport::UnknownMessage) }
    }

    fn delivered(
        &mut self,
        index: usize,
        retained: bool,
        stamp_ns: u64,
        (payload_bytes, part): (u32, &[u8]),
        at: ReadTime,
        sink: &mut impl Sink,
    ) -> Result<(), Misreport> {
        let whole = payload_bytes as usize;
        // What is missing would count against the system: as a body that was changed on its way, or one that does not match.
        if part.len() != whole && self.config.connections.program.as_ref().is_some_and(|program| program.whole_payloads)
        {
            return Err(Misreport::BodyIncomplete);
        }
        let mut padded = vec![];
        let payload = if part.len() == whole {
            part
        } else {
            // The bytes after the header are not read; only their number counts.
            padded.extend_from_slice(part);
            padded.resize(whole.min(self.maximum_payload()), 0);
            &padded
        };
        let header = header::read(payload, at.now_ns).filter(|header| header::is_of_run(header, self.config.run));
        // A library cannot have received what was not handed over yet.
        let floor_ns = header.map_or(0, |header| header.earliest_write_start_ns());
        let stamp = at.stamp(stamp_ns, floor_ns.saturating_sub(at.tolerance_ns));
        let at_ns = stamp.ok().flatten().unwrap_or(at.now_ns);
        // The library reads its sockets itself: when they were empty is not known.
        let delivery = Delivery { payload, retained, at_ns, ..Delivery::default() };
        sink.event(self.sessions[index].id, Event::Delivered(delivery));
        stamp.map(|_| ())
    }
}

/// How much later a write start on another node may seem to be than it was, ns: by what the clocks of nodes may be apart, which is a
/// part of the latencies' bounds. Beyond that, a delivery before its write start is untrue.
fn tolerance_ns(apart_ns: Option<u64>) -> u64 {
    apart_ns.map_or(0, |apart_ns| apart_ns.max(BETWEEN_NODES_NS))
}

/// A reason, cut where it is long.
fn words(reason: &str) -> String {
    let mut end = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].replace(char::is_control, " ")
}

fn reason_of(code: u8, reason: &str) -> Reason {
    let text = if reason.is_empty() { "no reason given".to_owned() } else { words(reason) };
    Reason { code: (code > 0).then_some(code), text: text.into() }
}

fn cause(end: End, code: u8, reason: &str) -> Cause {
    match end {
        End::Asked => Cause::Dropped("the program closed it without a disconnect from pubmark".to_owned()),
        End::Unreachable => Cause::Unreachable(words(reason)),
        End::Refused => Cause::Refused(reason_of(code, reason)),
        End::NotAuthorized => Cause::NotAuthorized(reason_of(code, reason)),
        End::Tls => Cause::Tls(words(reason)),
        End::Server => Cause::Server { reason: reason_of(code, reason), too_large: code == TOO_LARGE },
        End::Dropped => Cause::Dropped(words(reason)),
        End::Silent => Cause::Silent,
        End::Protocol => Cause::Protocol(words(reason)),
    }
}

/// `Packet too large` (MQTT 5.0 §3.14.2.1).
const TOO_LARGE: u8 = 0x95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_before_the_write_start_is_true_as_far_as_the_clocks_of_two_nodes_may_be_apart() {
        const WRITE_START_NS: u64 = 900_000_000;
        let delivered = |before_ns: u64, apart_ns: Option<u64>| {
            let at = ReadTime { now_ns: 1_000_000_000, machine_ahead_ns: 0, tolerance_ns: tolerance_ns(apart_ns) };
            at.stamp(WRITE_START_NS - before_ns, WRITE_START_NS - at.tolerance_ns)
        };
        for (before_ns, apart_ns) in [(15_000_000, 20_000_000), (1_000_000, 0), (20_000_000, 20_000_000)] {
            assert_eq!(delivered(before_ns, Some(apart_ns)), Ok(Some(WRITE_START_NS - before_ns)));
        }
        for (before_ns, apart_ns) in [(20_000_001, Some(20_000_000)), (1_000_001, Some(0)), (1, None)] {
            assert_eq!(delivered(before_ns, apart_ns), Err(Misreport::StampBeforeDue));
        }
    }
}
