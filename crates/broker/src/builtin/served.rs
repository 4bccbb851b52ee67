//! A broker for tests that make its wake-ups themselves.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::broker::Broker;
use crate::net::{Events, Key};
use crate::settings::Settings;

/// Longest wait for something; only a failing test waits so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const CONNECT: [u8; 15] = [0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, 1, b'c'];
pub(super) const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
pub(super) const PINGREQ: [u8; 2] = [0xc0, 0];
pub(super) const PINGRESP: [u8; 2] = [0xd0, 0];
pub(super) const SUBSCRIBE: [u8; 8] = [0x82, 6, 0, 1, 0, 1, b't', 0];
pub(super) const SUBACK: [u8; 5] = [0x90, 3, 0, 1, 0];

pub(super) struct Served {
    pub(super) broker: Broker,
    events: Events,
    pub(super) buffer: Vec<u8>,
}

impl Served {
    pub(super) fn with(change: impl FnOnce(&mut Settings)) -> Served {
        let mut settings = Settings::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        change(&mut settings);
        Served { broker: Broker::bind(settings).unwrap(), events: Events::new(), buffer: vec![] }
    }

    pub(super) fn wake_up(&mut self) {
        self.broker.serve_ready(&mut self.events, &mut self.buffer, Duration::ZERO).unwrap();
    }

    /// A socket that does not block, and that the broker will accept.
    pub(super) fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.broker.local_address().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// A client of this name without keep-alive that is connected, whose socket does not block.
    pub(super) fn client(&mut self, name: u8) -> TcpStream {
        self.client_with_keep_alive(name, 0)
    }

    /// The same with a keep-alive, s.
    pub(super) fn client_with_keep_alive(&mut self, name: u8, keep_alive_s: u8) -> TcpStream {
        let mut client = self.socket();
        let mut connect = CONNECT;
        (connect[11], connect[14]) = (keep_alive_s, name);
        client.write_all(&connect).unwrap();
        assert_eq!(self.received(&mut client, CONNACK.len()), CONNACK);
        client
    }

    /// The next bytes for a client.
    pub(super) fn received(&mut self, client: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let until = Instant::now() + PATIENCE;
        let mut found = vec![0; bytes];
        let mut filled = 0;
        while filled < bytes {
            match client.read(&mut found[filled..]) {
                Ok(0) => panic!("the connection ended after {filled} of {bytes} bytes"),
                Ok(read) => filled += read,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            assert!(Instant::now() < until, "{filled} of {bytes} bytes");
            self.wake_up();
        }
        found
    }

    /// The broker's key of its only connection.
    pub(super) fn only_peer(&self) -> Key {
        assert_eq!(self.broker.peers.len(), 1);
        self.broker.peers.iter().next().unwrap().0
    }

    /// Waits until the broker's socket of a connection is readable, without reading from it.
    pub(super) fn wait_until_readable(&self, key: Key) {
        let descriptor = self.broker.peers.get(key).unwrap().connection.descriptor();
        let mut wanted = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry, as its count says.
        assert_eq!(unsafe { libc::poll(&mut wanted, 1, PATIENCE.as_millis() as libc::c_int) }, 1);
    }
}
