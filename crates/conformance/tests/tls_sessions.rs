//! Resumption of TLS sessions: a device resumes its own session, never that of another one, and none if resumption is
//! disabled. The peer is the server of rustls, which reports the kind of handshake.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;

use pubmark_conformance::certificates::Certificates;
use pubmark_protocol::endpoint::Tls;
use pubmark_protocol::tls::{DeviceTls, TlsSetup};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};

/// Transfers bytes between both sides until neither has any.
fn exchange(client: &mut ClientConnection, server: &mut ServerConnection) {
    let mut wire = Vec::new();
    while client.wants_write() || server.wants_write() {
        wire.clear();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut from_client = wire.as_slice();
        while !from_client.is_empty() {
            server.read_tls(&mut from_client).unwrap();
            server.process_new_packets().unwrap();
        }
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut from_server = wire.as_slice();
        while !from_server.is_empty() {
            client.read_tls(&mut from_server).unwrap();
            client.process_new_packets().unwrap();
        }
    }
}

struct TestBed {
    setup: TlsSetup,
    server: Arc<ServerConfig>,
    _folder: tempfile::TempDir,
}

impl TestBed {
    fn new(version: &'static SupportedProtocolVersion) -> TestBed {
        let folder = tempfile::tempdir().unwrap();
        let files = Certificates::make(folder.path(), "own");
        let chain = vec![CertificateDer::from_pem_file(&files.server).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        server.ticketer = ring::Ticketer::new().unwrap();
        let tls = Tls { server_name: "localhost".into(), authorities: Some(files.authority), identity: None };
        TestBed { setup: TlsSetup::new(&tls).unwrap(), server: Arc::new(server), _folder: folder }
    }

    /// Connects, and returns the kind of handshake according to both sides.
    fn connect(&self, device: Option<&mut DeviceTls>) -> HandshakeKind {
        let mut client = self.setup.connection(device).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&self.server)).unwrap();
        exchange(&mut client, &mut server);
        assert!(!client.is_handshaking() && !server.is_handshaking());
        let kind = client.handshake_kind().unwrap();
        assert_eq!(server.handshake_kind(), Some(kind));
        kind
    }
}

#[test]
fn a_device_takes_up_its_own_session_and_never_another_s() {
    for version in [&TLS12, &TLS13] {
        let bed = TestBed::new(version);
        let (mut one, mut other) = (DeviceTls::default(), DeviceTls::default());
        assert_eq!(bed.connect(Some(&mut one)), HandshakeKind::Full);
        assert_eq!(bed.connect(Some(&mut other)), HandshakeKind::Full, "it was never here before");
        for _ in 0..3 {
            assert_eq!(bed.connect(Some(&mut one)), HandshakeKind::Resumed);
        }
        assert_eq!(bed.connect(Some(&mut other)), HandshakeKind::Resumed);
    }
}

#[test]
fn without_stored_tickets_every_handshake_is_full() {
    for version in [&TLS12, &TLS13] {
        let bed = TestBed::new(version);
        for _ in 0..3 {
            assert_eq!(bed.connect(None), HandshakeKind::Full);
        }
    }
}
