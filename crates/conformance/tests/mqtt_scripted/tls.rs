//! TLS under MQTT: a server that ends it with an alert.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubmark_adapters::mqtt::Mqtt5;
use pubmark_conformance::certificates::Certificates;
use pubmark_conformance::peer::{Peer, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SessionId};
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocol::events::Cause;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{PacketType, frame};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use crate::script::{packet, payload};

const PATIENCE: Duration = Duration::from_secs(20);

/// The server's side of one connection.
struct Server {
    stream: TcpStream,
    tls: ServerConnection,
    received: Vec<u8>,
}

impl Server {
    /// Accepts a connection with this version of TLS.
    fn accept(listener: &TcpListener, files: &Certificates, version: &'static SupportedProtocolVersion) -> Server {
        let chain = vec![CertificateDer::from_pem_file(&files.server).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        Server { stream, tls: ServerConnection::new(Arc::new(config)).unwrap(), received: Vec::new() }
    }

    /// Runs the client's loop until its next packet has arrived, which must be of this type.
    fn expect(&mut self, peer: &mut Peer<Mqtt5>, expected: PacketType) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = frame(&self.received, usize::MAX).unwrap() {
                assert_eq!(found.packet_type(), Some(expected));
                let bytes = found.total_bytes;
                self.received.drain(..bytes);
                return;
            }
            assert!(Instant::now() < deadline, "no {expected} came; events: {:#?}", peer.record.events);
            peer.linger(1);
            self.read();
            self.flush();
        }
    }

    fn read(&mut self) {
        match self.tls.read_tls(&mut self.stream) {
            Ok(_) => {
                let state = self.tls.process_new_packets().unwrap();
                let mut plain = vec![0; state.plaintext_bytes_to_read()];
                self.tls.reader().read_exact(&mut plain).unwrap();
                self.received.extend(plain);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }

    /// Sends everything that TLS has, in one write.
    fn flush(&mut self) {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records).unwrap();
        }
        self.stream.write_all(&records).unwrap();
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
        self.flush();
    }

    /// Sends bytes in one record and a fatal alert behind it, in one write.
    fn send_with_alert(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
        // The alert is TLS's own response to a record that nobody encrypted.
        let mut forged = vec![0x17_u8, 3, 3, 0, 32];
        forged.resize(5 + 32, 0);
        self.tls.read_tls(&mut forged.as_slice()).unwrap();
        self.tls.process_new_packets().unwrap_err();
        self.flush();
    }
}

/// Clients of a server with this certificate.
fn clients(listener: &TcpListener, files: &Certificates) -> Peer<Mqtt5> {
    let address = listener.local_addr().unwrap();
    let authorities = Some(files.authority.clone());
    let tls = Some(Tls { server_name: "localhost".to_owned(), authorities, identity: None });
    let shown = format!("mqtts://{address}");
    Peer::open(Endpoint { shown, address, tls, credentials: None, upgrade: None, settings: None })
}

/// A subscriber whose server has sent three messages and a fatal alert in one write.
fn alerted(
    folder: &Path,
    version: &'static SupportedProtocolVersion,
    is_busy: bool,
) -> (Peer<Mqtt5>, SessionId, Server) {
    let files = Certificates::make(folder, "alerted");
    let listener = pubmark_conformance::ports::listen();
    let mut peer = clients(&listener, &files);
    let session = peer.clients.add_session(subscriber("alerted", "topic", Qos::BestEffort));
    peer.record.works = is_busy.then_some(session);
    peer.clients.connect(session, &mut peer.record);
    let mut server = Server::accept(&listener, &files, version);
    server.expect(&mut peer, PacketType::Connect);
    server.send_bytes(&packet(0x20, &[0, 0, 0]));
    server.expect(&mut peer, PacketType::Subscribe);
    let publish = |sequence| packet(0x30, &[b"\0\x05topic\0".as_slice(), &payload(sequence, 100)].concat());
    server.send_with_alert(&[publish(1), publish(2), publish(3)].concat());
    (peer, session, server)
}

#[test]
fn messages_before_an_alert_in_the_same_read_are_delivered() {
    for (version, is_busy) in [(&TLS12, false), (&TLS13, false), (&TLS13, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut peer, session, _server) = alerted(folder.path(), version, is_busy);
        if is_busy {
            peer.process_each(session, 3);
        }
        peer.wait("closed", |record| !record.causes(session).is_empty());
        let causes = peer.record.causes(session);
        assert!(matches!(&causes[..], [Cause::Tls(_)]), "{causes:?}");
        assert_count_eq!(peer.record.sequences(session), [1, 2, 3]);
    }
}
