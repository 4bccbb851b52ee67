//! A connection's bytes: plain, encrypted, or in frames of a WebSocket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::websocket::WebSocket;

/// Bytes passed to rustls at a time: it stores a copy until the socket accepts them.
const ENCRYPT_AT_ONCE_BYTES: usize = 64 * 1024;
/// Most reads from the socket for one read of plain bytes: records without content must not occupy the broker.
const READS_AT_A_TIME: usize = 64;

/// Why a server cannot use TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Reading a PEM file failed.
    #[error("failed to read `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("certificate and key cannot be used")]
    Material(#[from] rustls::Error),
}

/// A server's certificate and key, ready for use.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads a certificate chain and its key from PEM files.
    ///
    /// # Errors
    /// A [`TlsError`] that names the file or what does not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<ServerTls, TlsError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| TlsError::File { path, source }
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(|certificates| certificates.collect())
            .map_err(failed(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(ServerTls { config: Arc::new(config) })
    }
}

/// The bytes of a connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<Encrypted>),
    Framed(WebSocket),
}

#[derive(Debug)]
pub(crate) struct Encrypted {
    socket: TcpStream,
    tls: ServerConnection,
}

impl Stream {
    pub(crate) fn new(socket: TcpStream, tls: Option<&ServerTls>) -> Result<Stream, TlsError> {
        Ok(match tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let tls = ServerConnection::new(Arc::clone(&tls.config))?;
                Stream::Encrypted(Box::new(Encrypted { socket, tls }))
            }
        })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        match self {
            Stream::Plain(socket) => socket.as_raw_fd(),
            Stream::Encrypted(encrypted) => encrypted.socket.as_raw_fd(),
            Stream::Framed(websocket) => websocket.descriptor(),
        }
    }

    /// Reads as much as fits; 0 at the end, `WouldBlock` if there is nothing. With TLS or frames, fewer bytes than the buffer's size do
    /// not mean that nothing is left: read until `WouldBlock` ([`Stream::holds_back`]).
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Encrypted(encrypted) => encrypted.read(buffer),
            Stream::Framed(websocket) => websocket.read(buffer),
        }
    }

    /// Can bytes be available that the socket's readiness does not report?
    pub(crate) fn holds_back(&self) -> bool {
        matches!(self, Stream::Encrypted(_) | Stream::Framed(_))
    }

    /// Accepts some of the bytes; `WouldBlock` if the socket accepts none.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Encrypted(encrypted) => encrypted.write(bytes),
            Stream::Framed(websocket) => websocket.write(bytes),
        }
    }

    /// Are there accepted bytes that have not reached the socket?
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Encrypted(encrypted) => encrypted.tls.wants_write(),
            Stream::Framed(websocket) => websocket.wants_write(),
        }
    }

    /// Writes to the socket what [`Stream::write`] accepted.
    pub(crate) fn push(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Encrypted(encrypted) => encrypted.push(),
            Stream::Framed(websocket) => websocket.push(),
        }
    }

    /// Tells a TLS peer that no bytes follow (RFC 8446 §6.1), as far as the socket accepts it at once.
    pub(crate) fn notify_of_close(&mut self) {
        if let Stream::Encrypted(encrypted) = self {
            encrypted.tls.send_close_notify();
            // The connection ends whether it arrives or not.
            encrypted.push().ok();
        }
    }

    /// Closes the sending direction in order.
    pub(crate) fn end_writing(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.shutdown(Shutdown::Write),
            Stream::Encrypted(encrypted) => {
                encrypted.tls.send_close_notify();
                encrypted.push()?;
                encrypted.socket.shutdown(Shutdown::Write)
            }
            Stream::Framed(websocket) => websocket.end_writing(),
        }
    }

    /// Makes closing reset the connection instead of ending it in order.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        let option = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the option is valid for the call and its size is given.
        let result = unsafe {
            libc::setsockopt(
                self.descriptor(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                std::ptr::from_ref(&option).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 0..READS_AT_A_TIME {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The alert gives the peer the reason; the connection ends whether it arrives or not.
                self.push().ok();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            // The handshake produces its own output.
            self.push()?;
        }
        // If nothing was decrypted, the poll reports what is still in the socket.
        self.tls.reader().read(buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        if self.tls.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write(&bytes[..bytes.len().min(ENCRYPT_AT_ONCE_BYTES)])?;
        self.push()?;
        // Before the handshake ends rustls buffers a limited amount.
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn push(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
