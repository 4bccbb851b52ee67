//! The sending side of a session: its writers, what waits to be written, what waits to be acknowledged.

use std::collections::VecDeque;
use std::ffi::CString;

use pubmark_cyclone::entities::Written;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::events::{Cause, Event, Sink, Token};
use pubmark_protocol::{clock, header};

use super::acknowledging::Unacknowledged;
use super::binding::{Binding, Writing};
use super::network::Network;
use crate::payload;

/// Messages that may wait between two calls of flush.
const MOST_WAITING: usize = 1_000;
/// How long a writer waits for readers before it is held for open without any: its topic may have none.
pub(super) const MATCH_LIMIT_NS: u64 = 1_000_000_000;

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has no writers and readers.
    Closed,
    /// Its writers look for readers until this time.
    Matching(u64),
    /// It waits until readers know its writers. A writer that has discovered a reader was not yet discovered by it, and samples
    /// before that would be lost, reliable or not.
    Requesting,
    /// It can send.
    Open,
}

/// One publication on the network.
struct Publishing<W> {
    writer: W,
    /// The topic that goes into samples.
    topic: CString,
}

/// A session.
pub(super) struct Session<B: Binding> {
    pub(super) id: SessionId,
    pub(super) config: SessionConfig,
    pub(super) phase: Phase,
    publishing: Vec<Publishing<B::Writer>>,
    waiting: VecDeque<Outgoing>,
    unacknowledged: Unacknowledged,
    /// A writer is full.
    pub(super) full: bool,
    /// When one was full last, ns of `CLOCK_MONOTONIC`; 0 if none was.
    full_until_ns: u64,
    /// The last send would have blocked.
    refused: bool,
}

impl<B: Binding> Session<B> {
    pub(super) fn new(id: SessionId, config: SessionConfig) -> Session<B> {
        Session {
            id,
            config,
            phase: Phase::Closed,
            publishing: vec![],
            waiting: VecDeque::new(),
            unacknowledged: Unacknowledged::default(),
            full: false,
            full_until_ns: 0,
            refused: false,
        }
    }

    /// Makes the writers. They are there when this returns; whom they match, time will show.
    pub(super) fn open(&mut self, network: &mut Network<B>) -> Result<(), String> {
        let device_type = self.config.options.device_type.as_deref();
        let mut publishing = Vec::with_capacity(self.config.publications.len());
        for publication in &self.config.publications {
            let name = network.settings.topics.name(&publication.topic, device_type);
            let topic = CString::new(&*publication.topic).map_err(|_| "a topic with a zero byte".to_owned())?;
            let qos = network.settings.qos(publication.qos);
            publishing.push(Publishing { writer: network.writer(&name, &qos)?, topic });
        }
        self.publishing = publishing;
        self.phase = Phase::Matching(clock::monotonic_ns() + MATCH_LIMIT_NS);
        Ok(())
    }

    /// Has every writer a reader, or is the time over in which that was waited for?
    pub(super) fn has_matched(&self, now_ns: u64) -> bool {
        let Phase::Matching(until_ns) = self.phase else { return false };
        now_ns >= until_ns || self.publishing.iter().all(|publishing| publishing.writer.has_matched())
    }

    /// Does it write at a level at which nothing may be lost? At best effort a writer begins when it has matched, as any would.
    pub(super) fn is_reliable(&self) -> bool {
        self.config.publications.iter().any(|publication| publication.qos > Qos::BestEffort)
    }

    /// Accepts a message; the outcome otherwise.
    pub(super) fn take(&mut self, message: Outgoing) -> SendOutcome {
        let most = B::CAPABILITIES.maximum_payload_bytes;
        if message.payload_bytes > most {
            return SendOutcome::TooLarge(most);
        }
        if self.phase != Phase::Open || self.full || self.waiting.len() >= MOST_WAITING {
            self.refused = true;
            return SendOutcome::WouldBlock;
        }
        self.waiting.push_back(message);
        SendOutcome::Accepted
    }

    /// Writes queued messages, as far as the writers accept them.
    pub(super) fn write(
        &mut self,
        shard: &ShardConfig,
        scratch: &mut Vec<u8>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        self.full = false;
        while let Some(message) = self.waiting.front().filter(|_| self.phase == Phase::Open) {
            let Outgoing { publication, timing, .. } = *message;
            let config = &self.config.publications[usize::from(publication)];
            let Publishing { writer, topic } = &self.publishing[usize::from(publication)];
            scratch.clear();
            payload::append(shard, config, message, scratch);
            let write_start_ns = clock::monotonic_ns();
            // Until a writer was full last, the system accepted no message; since then, this shard did not try.
            let timing = timing.waited_until(self.full_until_ns);
            header::patch_write_start(scratch, &timing, write_start_ns);
            match writer.write(topic, scratch) {
                Ok(Written::Yes) => {}
                Ok(Written::Full) => {
                    (self.full, self.full_until_ns) = (true, write_start_ns);
                    break;
                }
                Err(error) => return Err(Cause::Dropped(error)),
            }
            let (token, own_ns) = (message.token(), timing.since_submitted_ns(write_start_ns));
            self.waiting.pop_front();
            let written_ns = clock::monotonic_ns();
            sink.event(self.id, Event::Written { token, write_start_ns, written_ns, own_ns });
            if config.qos > Qos::BestEffort {
                self.unacknowledged.add(token);
            }
        }
        if !self.full && self.phase == Phase::Open && std::mem::take(&mut self.refused) {
            sink.event(self.id, Event::Writable);
        }
        Ok(())
    }

    /// Does it wait for acknowledgements?
    pub(super) fn awaits(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// Reports what is acknowledged by now.
    pub(super) fn acknowledge(&mut self, sink: &mut impl Sink) -> Result<(), Cause> {
        for (publication, publishing) in (0..).zip(&self.publishing) {
            if !self.unacknowledged.has(publication) {
                continue;
            }
            let all = publishing.writer.all_acknowledged().map_err(Cause::Dropped)?;
            if all {
                let id = self.id;
                self.unacknowledged
                    .take_of(publication, |token| sink.event(id, Event::Acknowledged { token, outcome: Ok(()) }));
            }
        }
        Ok(())
    }

    /// Gives up the writers and reports what is known of their messages.
    pub(super) fn end(&mut self, cause: Cause, sink: &mut impl Sink) -> Vec<B::Writer> {
        // What was acknowledged until now counts; errors of a writer are ignored.
        let _ = self.acknowledge(sink);
        let writers = std::mem::take(&mut self.publishing).into_iter().map(|publishing| publishing.writer).collect();
        self.phase = Phase::Closed;
        (self.full, self.refused) = (false, false);
        for message in self.waiting.drain(..) {
            sink.event(
                self.id,
                Event::Abandoned(Token { publication: message.publication, sequence: message.sequence }),
            );
        }
        let id = self.id;
        self.unacknowledged.take(|token| sink.event(id, Event::Unacknowledged(token)));
        sink.event(self.id, Event::Closed(cause));
        writers
    }

    /// Bytes that wait for a writer.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.waiting.iter().map(|message| u64::from(message.payload_bytes)).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use pubmark_model::payload::HeaderPlace;
    use pubmark_model::template::BodyDraw;
    use pubmark_protocol::clients::{Publication, SessionOptions};
    use pubmark_protocol::timing::Timing;

    use super::*;
    use crate::dds::memory::{self, Memory};
    use crate::dds::settings::Settings;

    /// What of the wait of each written message is pubmark's, ns.
    #[derive(Default)]
    struct Own(Vec<u64>);

    impl Sink for Own {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            if let Event::Written { own_ns, .. } = event {
                self.0.push(own_ns);
            }
        }
    }

    fn opened() -> Session<Memory> {
        let publication = Publication {
            publisher: 1,
            topic: "t".into(),
            qos: Qos::AtLeastOnce,
            retain: false,
            body: None,
            header: HeaderPlace::Payload,
            properties: [].into(),
        };
        let config = SessionConfig {
            endpoint: 0,
            network: None,
            client_id: "writing".into(),
            credentials: None,
            token: None,
            nkey: None,
            certificate: None,
            persistent: false,
            in_flight_window: 20,
            publications: vec![publication],
            subscriptions: vec![],
            options: SessionOptions::default(),
        };
        let mut session = Session::new(SessionId(0), config);
        session.open(&mut Network::new(Settings::parse("").unwrap(), Arc::new(|| {}))).unwrap();
        session.phase = Phase::Open;
        session
    }

    #[test]
    fn the_wait_for_a_writer_that_is_full_is_the_systems_and_the_time_until_the_next_attempt_is_not() {
        let mut session = opened();
        let message = Outgoing {
            publication: 0,
            sequence: 1,
            // Long ago.
            timing: Timing::on_time(1),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes: 24,
        };
        assert_eq!(session.take(message), SendOutcome::Accepted);
        memory::fill_writers(1);
        let (mut own, before_ns) = (Own::default(), clock::monotonic_ns());
        for is_full in [true, false] {
            session.write(&ShardConfig::default(), &mut vec![], &mut own).unwrap();
            assert_eq!(session.full, is_full);
        }
        let since_full_ns = clock::monotonic_ns() - before_ns;
        assert!(own.0.len() == 1 && own.0[0] <= since_full_ns, "{:?} ns in {since_full_ns} ns", own.0);
    }
}
