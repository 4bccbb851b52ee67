//! A server that accepts every session and throws everything else away, plain or over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;

use pubmark_protocol::reactor::Reactor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// CONNACK of MQTT 5.0 without properties.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
const LISTENER: u64 = u32::MAX as u64;

struct Connection {
    stream: TcpStream,
    tls: Option<Box<ServerConnection>>,
    accepted: bool,
}

/// Serves until it is killed. `files` are the key and the certificate.
pub fn run(files: Option<(&str, &str)>) {
    let setup = files.map(|(key, certificate)| {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
    });
    let listener = pubmark_conformance::ports::listen();
    listener.set_nonblocking(true).unwrap();
    println!("{}", listener.local_addr().unwrap());
    let mut reactor = Reactor::new().unwrap();
    reactor.add(listener.as_fd(), LISTENER).unwrap();
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut ready = Vec::new();
    loop {
        reactor.wait(None, &mut ready).unwrap();
        for event in &ready {
            if event.key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    stream.set_nodelay(true).unwrap();
                    reactor.add(stream.as_fd(), connections.len() as u64).unwrap();
                    let tls = setup.as_ref().map(|setup| Box::new(ServerConnection::new(Arc::clone(setup)).unwrap()));
                    connections.push(Some(Connection { stream, tls, accepted: false }));
                }
            } else {
                let place = &mut connections[event.key as usize];
                if place.as_mut().is_some_and(|connection| !connection.serve(&mut buffer)) {
                    *place = None;
                }
            }
        }
    }
}

impl Connection {
    /// Reads everything; false at the end.
    fn serve(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(bytes) => {
                    if !self.take(&buffer[..bytes]) {
                        return false;
                    }
                }
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> bool {
        let Some(tls) = &mut self.tls else {
            let first = !std::mem::replace(&mut self.accepted, true);
            return !first || self.stream.write_all(&CONNACK).is_ok();
        };
        let mut plain = [0; 16 * 1024];
        while !bytes.is_empty() {
            if tls.read_tls(&mut bytes).is_err() || tls.process_new_packets().is_err() {
                return false;
            }
            while tls.reader().read(&mut plain).is_ok_and(|bytes| bytes > 0) {
                if !std::mem::replace(&mut self.accepted, true) {
                    tls.writer().write_all(&CONNACK).unwrap();
                }
            }
            while tls.wants_write() {
                if tls.write_tls(&mut self.stream).is_err() {
                    return false;
                }
            }
        }
        true
    }
}
