//! Streams over real sockets: times of writes, and the kernel's receive timestamps of TLS records.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubmark_protocol::endpoint::Tls;
use pubmark_protocol::events::Token;
use pubmark_protocol::outbox::{BufferPool, Message, Outbox};
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::stream::{ReadBuffers, Stream};
use pubmark_protocol::timing::Timing;
use pubmark_protocol::tls::TlsSetup;
use pubmark_testing::assert_count_eq;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{default_provider, sign};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection, SignatureScheme};

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(10);

/// A stream with the kernel's receive timestamps, and its peer.
#[allow(clippy::field_reassign_with_default)] // Other fields of a factory are private.
fn connect() -> (Stream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut factory = SocketFactory::default();
    factory.receive_stamps = true;
    let (peer, _) = listener.accept().unwrap();
    peer.set_nodelay(true).unwrap();
    peer.set_read_timeout(Some(LIMIT)).unwrap();
    (Stream::new(factory.adopt(ours).unwrap()), peer)
}

fn withheld() -> Message {
    let token = Token { publication: 0, sequence: 1 };
    Message { token, timing: Timing::on_time(1_000), tag: 0, repeated: false, withheld: true }
}

#[test]
fn a_message_of_no_bytes_is_reported_and_no_bytes_were_accepted() {
    let (mut stream, _peer) = connect();
    let (mut outbox, mut pool, mut reported) = (Outbox::default(), BufferPool::default(), 0);
    outbox.append_nothing(&mut pool, withheld(), 2_000);
    let wrote = stream.write(&mut outbox, &mut pool, |_, _, _| reported += 1).unwrap();
    assert_count_eq!(reported, 1);
    assert_eq!((wrote.at_ns, wrote.full), (None, false));
    outbox.append(&mut pool, |out| out.extend_from_slice(b"ping"));
    assert!(stream.write(&mut outbox, &mut pool, |_, _, _| {}).unwrap().at_ns.is_some());
}

#[test]
fn what_waits_for_a_handshake_was_not_written() {
    let (mut stream, _peer) = connect();
    let tls = Tls { server_name: "localhost".into(), authorities: None, identity: None };
    stream.encrypt(TlsSetup::new(&tls).unwrap().connection(None).unwrap());
    let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
    outbox.append(&mut pool, |out| out.extend_from_slice(b"ping"));
    let mut write = || stream.write(&mut outbox, &mut pool, |_, _, _| {}).unwrap().at_ns;
    assert!(write().is_some(), "our first message of the handshake");
    assert_eq!(write(), None, "the server has not sent its own");
}

/// Accepts everything: these tests are not about certificates, and the server's is none.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Both sides of TLS, before their first message.
fn both_sides() -> (ClientConnection, ServerConnection) {
    let provider = Arc::new(default_provider());
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_ref().to_vec()));
    let certified = CertifiedKey::new(vec![CertificateDer::from(vec![0; 8])], sign::any_ecdsa_type(&key).unwrap());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let server = server.unwrap().with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = client.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer)).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    (ClientConnection::new(Arc::new(client), name).unwrap(), ServerConnection::new(Arc::new(server)).unwrap())
}

/// A stream with TLS, and the server's side after its handshake.
struct Encrypted {
    stream: Stream,
    peer: TcpStream,
    tls: ServerConnection,
    buffers: ReadBuffers,
}

impl Encrypted {
    fn new() -> Encrypted {
        let (mut stream, mut peer) = connect();
        let (client, mut tls) = both_sides();
        stream.encrypt(client);
        let server = std::thread::spawn(move || {
            tls.complete_io(&mut peer).unwrap();
            (peer, tls)
        });
        let (mut buffers, mut outbox, mut pool) = (ReadBuffers::default(), Outbox::default(), BufferPool::default());
        let begin = Instant::now();
        while stream.is_handshaking() || stream.wants_write() {
            assert!(begin.elapsed() < LIMIT, "no handshake");
            stream.write(&mut outbox, &mut pool, |_, _, _| {}).unwrap();
            stream.read(&mut buffers).unwrap();
        }
        let (peer, tls) = server.join().unwrap();
        Encrypted { stream, peer, tls, buffers }
    }

    /// A record of the server's with these bytes, not sent yet; what TLS had to send before it goes first.
    fn record(&mut self, bytes: &[u8]) -> Vec<u8> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.peer).unwrap();
        }
        self.tls.writer().write_all(bytes).unwrap();
        let mut record = vec![];
        while self.tls.wants_write() {
            self.tls.write_tls(&mut record).unwrap();
        }
        record
    }

    /// Sends raw bytes at once, and reads until there are plain ones; these, and whether the read has a stamp.
    fn carry(&mut self, raw: &[u8]) -> (Vec<u8>, bool) {
        self.peer.write_all(raw).unwrap();
        let begin = Instant::now();
        loop {
            let read = self.stream.read(&mut self.buffers).unwrap();
            if !read.bytes.is_empty() {
                return (read.bytes.to_vec(), read.stamp_realtime_ns.is_some());
            }
            assert!(begin.elapsed() < LIMIT, "nothing arrived");
        }
    }

    /// The kernel enables timestamps in the background: sends records until one has a stamp.
    fn await_stamps(&mut self) {
        let begin = Instant::now();
        loop {
            let whole = self.record(b"whole");
            if self.carry(&whole).1 {
                return;
            }
            assert!(begin.elapsed() < LIMIT, "no read has a timestamp");
        }
    }
}

#[test]
fn the_stamp_of_a_record_that_is_not_whole_does_not_go_with_the_message_before_it() {
    let mut encrypted = Encrypted::new();
    encrypted.await_stamps();
    for cut in [1, 4, 5, 20] {
        let (first, second) = (encrypted.record(b"first"), encrypted.record(b"second"));
        let (begun, rest) = second.split_at(cut);
        let (plain, stamped) = encrypted.carry(&[&first[..], begun].concat());
        assert_eq!((plain.as_slice(), stamped), (&b"first"[..], false), "{cut} bytes of the next record");
        let (plain, stamped) = encrypted.carry(rest);
        assert_eq!((plain.as_slice(), stamped), (&b"second"[..], true), "the rest of it");
    }
}

#[test]
fn the_stamp_of_a_record_of_tls_s_own_does_not_go_with_the_message_before_it() {
    let mut encrypted = Encrypted::new();
    encrypted.await_stamps();
    let mut raw = encrypted.record(b"message");
    // A key update is a record of TLS's own, as a ticket is.
    encrypted.tls.refresh_traffic_keys().unwrap();
    while encrypted.tls.wants_write() {
        encrypted.tls.write_tls(&mut raw).unwrap();
    }
    let (plain, stamped) = encrypted.carry(&raw);
    assert_eq!((plain.as_slice(), stamped), (&b"message"[..], false));
}
