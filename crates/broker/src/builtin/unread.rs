//! Clients that do not read what waits for them: reading from them is paused until they have.

use super::broker::Broker;
use super::peer::Farewell;
use crate::net::Key;

impl Broker {
    /// Is reading from this client paused?
    pub(super) fn is_paused(&self, key: Key) -> bool {
        self.peers.get(key).is_some_and(|peer| peer.connection.is_paused())
    }

    /// Pauses reading from a client for which more bytes wait than the limit, after an attempt to write them, and resumes it
    /// otherwise. Whether it is paused.
    ///
    /// Messages for a client have limits of their own, but a packet such as PINGREQ or SUBSCRIBE needs a response that cannot
    /// be dropped. So a client that sends and does not read gets no further responses than those to one read; what it sends
    /// fills the kernel's buffers and then blocks. A client that reads again loses nothing; one that reads nothing during one
    /// and a half times its keep-alive is ended.
    pub(super) fn must_pause(&mut self, key: Key) -> bool {
        let most = self.settings.maximum_queued_bytes;
        let is_above =
            |broker: &Broker| broker.peers.get(key).is_some_and(|peer| peer.connection.pending_bytes() > most);
        if is_above(self) {
            self.flush(key);
        }
        let must_pause = is_above(self);
        let Some(peer) = self.peers.get_mut(key).filter(|peer| peer.connection.is_paused() != must_pause) else {
            return must_pause;
        };
        self.statistics.reading_paused += u64::from(must_pause);
        if !must_pause {
            peer.note_progress(self.now_ns);
        }
        if peer.connection.pause(&self.poll, key, must_pause).is_err() {
            self.end(key, Farewell::Lost);
        }
        must_pause
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::super::served::{PATIENCE, PINGREQ, PINGRESP, SUBACK, SUBSCRIBE, Served};

    const LIMIT: usize = 100_000;
    /// Most bytes of one read.
    const READ: usize = 256 * 1024;
    /// More than all buffers of the kernel between a client and the broker.
    const WITHOUT_END: usize = 128 << 20;

    fn served() -> Served {
        Served::with(|settings| settings.maximum_queued_bytes = LIMIT)
    }

    impl Served {
        fn most_pending_bytes(&self) -> usize {
            self.broker.peers.iter().map(|(_, peer)| peer.connection.pending_bytes()).max().unwrap_or(0)
        }

        /// Sends a packet again and again, until reading is paused and the kernel's buffers are full; the bytes that were sent.
        fn fill(&mut self, client: &mut TcpStream, packet: &[u8]) -> usize {
            let until = Instant::now() + PATIENCE;
            let many = packet.repeat(4_096);
            let mut sent = 0;
            loop {
                let written = client.write(&many[sent % packet.len()..]);
                self.wake_up();
                assert!(self.most_pending_bytes() <= LIMIT + READ, "{} bytes wait", self.most_pending_bytes());
                match written {
                    Ok(taken) => sent += taken,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        if self.broker.statistics.reading_paused > 0 {
                            return sent;
                        }
                    }
                }
                assert!(
                    sent < WITHOUT_END && Instant::now() < until,
                    "{sent} bytes were sent, and no response was read"
                );
            }
        }
    }

    #[test]
    fn a_client_that_sends_and_does_not_read_takes_limited_memory_and_is_served_once_it_reads() {
        for (packet, response) in [(&PINGREQ[..], &PINGRESP[..]), (&SUBSCRIBE[..], &SUBACK[..])] {
            let mut served = served();
            let mut hostile = served.client(b'h');
            let sent = served.fill(&mut hostile, packet);
            let mut other = served.client(b'o');
            other.write_all(&PINGREQ).unwrap();
            assert_eq!(served.received(&mut other, PINGRESP.len()), PINGRESP);
            let responses = sent / packet.len();
            assert!(served.received(&mut hostile, responses * response.len()) == response.repeat(responses));
            assert_eq!((served.most_pending_bytes(), served.broker.statistics.protocol_errors), (0, 0));
        }
    }

    #[test]
    fn a_client_that_leaves_while_reading_from_it_is_paused_is_noticed() {
        let mut served = served();
        let mut hostile = served.client(b'h');
        served.fill(&mut hostile, &PINGREQ);
        drop(hostile);
        let until = Instant::now() + PATIENCE;
        while served.broker.peers.len() > 0 {
            served.wake_up();
            assert!(Instant::now() < until, "the connection is still there");
        }
    }

    #[test]
    fn a_paused_client_that_reads_nothing_is_ended_after_its_keep_alive() {
        let mut served = served();
        let mut hostile = served.client_with_keep_alive(b'h', 1);
        served.fill(&mut hostile, &PINGREQ);
        let until = Instant::now() + PATIENCE;
        while served.broker.peers.len() > 0 {
            served.wake_up();
            assert!(Instant::now() < until, "the connection is still there");
        }
        assert_eq!(served.broker.statistics.silent, 1);
    }

    #[test]
    fn a_paused_client_that_reads_slowly_is_not_ended() {
        let mut served = served();
        let mut slow = served.client_with_keep_alive(b's', 2);
        let sent = served.fill(&mut slow, &PINGREQ);
        // It sends as well, so that what it reads does not end.
        let mut more = PINGREQ.repeat(4_096);
        more.rotate_left(sent % PINGREQ.len());
        let mut buffer = vec![0; 16 * 1024];
        let until = Instant::now() + Duration::from_secs(6);
        while Instant::now() < until {
            match slow.read(&mut buffer) {
                Ok(read) => assert!(read > 0, "the connection has ended"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            if let Ok(written) = slow.write(&more) {
                more.rotate_left(written % PINGREQ.len());
            }
            served.wake_up();
            assert_eq!(served.broker.peers.len(), 1);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!((served.broker.statistics.silent, served.broker.statistics.protocol_errors), (0, 0));
    }
}
