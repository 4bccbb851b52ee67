//! Incoming connections of nodes. Their certificates are checked here, so that the reason of a refusal is known.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::hub::Hub;
use crate::credentials::{Credentials, in_words};
use crate::error::{Refusal, causes};
use crate::limits;

/// Most handshakes at a time; further connections wait in the kernel's queue.
const HANDSHAKES: usize = 64;

/// Bytes of a connection, including those of TLS.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// To the node.
    pub sent: AtomicU64,
    /// From the node.
    pub received: AtomicU64,
}

/// The remote end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Bytes that the connection carried.
    pub carried: Arc<Carried>,
}

/// A connection that counts its bytes.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    peer: Peer,
}

impl Connected for Counted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let done = ready!(Pin::new(&mut self.stream).poll_read(context, to));
        self.peer.carried.received.fetch_add((to.filled().len() - before) as u64, Relaxed);
        Poll::Ready(done)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let done = ready!(Pin::new(&mut self.stream).poll_write(context, from));
        self.peer.carried.sent.fetch_add(*done.as_ref().unwrap_or(&0) as u64, Relaxed);
        Poll::Ready(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// TLS settings by which the coordinator authenticates itself and its nodes; an error text if they are not usable.
pub(super) fn acceptor(credentials: &Credentials) -> Result<TlsAcceptor, String> {
    let certificates = |pem: &str| {
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(&credentials.authority)? {
        roots.add(authority).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(credentials.key.as_bytes()).map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|config| {
            config
                .with_client_cert_verifier(verifier)
                .with_single_cert(certificates(&credentials.certificate).unwrap_or_default(), key)
        })
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts connections until their receiver is dropped.
pub(super) async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    hub: Arc<Hub>,
    accepted: mpsc::Sender<io::Result<TlsStream<Counted>>>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    while let Ok(room) = Arc::clone(&handshakes).acquire_owned().await {
        let (stream, address) = tokio::select! {
            () = accepted.closed() => return,
            next = listener.accept() => match next {
                Ok(next) => next,
                // Too many open files, or an aborted connection: further connections may succeed.
                Err(_) => {
                    tokio::time::sleep(limits::ANSWER).await;
                    continue;
                }
            },
        };
        // Without TCP_NODELAY, a heartbeat may wait for the acknowledgement of the previous one. If the option cannot
        // be set, everything else works.
        let _ = stream.set_nodelay(true);
        let (acceptor, hub, accepted) = (acceptor.clone(), Arc::clone(&hub), accepted.clone());
        tokio::spawn(async move {
            let counted = Counted { stream, peer: Peer { address, carried: Arc::default() } };
            match timeout(limits::INTRODUCTION, acceptor.accept(counted).into_fallible()).await {
                Ok(Ok(stream)) => {
                    // If the coordinator is ending, the receiver is dropped, and this fails.
                    let _ = accepted.send(Ok(stream)).await;
                }
                Ok(Err((error, stream))) => {
                    hub.refuse(Refusal { address, name: None, why: why(&error) });
                    let_read(stream.stream).await;
                }
                Err(_) => hub.refuse(Refusal {
                    address,
                    name: None,
                    why: format!("it did not introduce itself within {} s", limits::INTRODUCTION.as_secs()),
                }),
            }
            drop(room);
        });
    }
}

/// Gives the other end time to read the reason of its refusal: closing a socket with unread received data discards data
/// that was sent.
async fn let_read(mut stream: TcpStream) {
    let _ = timeout(limits::REFUSAL_TIMEOUT, async {
        // An error means that the other end has disconnected, which is what this waits for.
        let _ = stream.shutdown().await;
        while let Ok(1..) = stream.read(&mut [0; 1024]).await {}
    })
    .await;
}

/// Why a connection failed, in words for the user of the coordinator.
fn why(error: &io::Error) -> String {
    let words = causes(error);
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::NoCertificatesPresented) => "it has no certificate".to_owned(),
        Some(rustls::Error::InvalidCertificate(error)) => in_words(error),
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS".to_owned(),
        Some(rustls::Error::AlertReceived(_)) => format!("it does not trust this coordinator's certificate ({words})"),
        _ => words,
    }
}
