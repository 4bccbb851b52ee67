//! Accepts connections: their number is limited, and each has limits of time and size.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

/// Maximum number of connections of `pubmark serve`; further ones wait in the kernel's queue until one ends.
pub const MOST_CONNECTIONS: usize = 256;
/// Maximum time for the head of a request, and between two requests of a connection.
pub const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time of a TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time in which a client reads nothing of what it is sent.
pub const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// Maximum size of a request's head, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// Maximum number of lines of a head.
const HEAD_LINES: usize = 64;
/// Wait after a failed accept: without free file descriptors, the next attempt fails, too.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Accepts connections, at most `most` at the same time, and serves requests on them. Never returns.
pub async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, most: usize) {
    let room = Arc::new(Semaphore::new(most));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, tls.clone(), router.clone(), permit));
            }
            // The client has already disconnected, or there are no file descriptors.
            Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, _permit: OwnedSemaphorePermit) {
    // Small responses should not wait for each other; if the socket refuses the option, responses are only slower.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream, WRITE_LIMIT);
    match tls {
        None => answer(stream, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                answer(stream, router).await;
            }
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    // An error on a connection is caused by the client: the connection is closed.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_headers(HEAD_LINES)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
}

/// A stream whose writes fail if the peer reads nothing for some time: a client that does not read holds a connection no
/// longer than one that does not write. While a client waits for events, nothing has to be written.
struct WriteTimeout<Stream> {
    stream: Stream,
    limit: Duration,
    /// Timer that runs while a write is blocked.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<Stream> WriteTimeout<Stream> {
    fn new(stream: Stream, limit: Duration) -> WriteTimeout<Stream> {
        WriteTimeout { stream, limit, waits: None }
    }

    /// Result of a write, or a timeout error if it was blocked too long.
    fn judged<Value>(
        &mut self,
        written: Poll<io::Result<Value>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Value>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let limit = self.limit;
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for WriteTimeout<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<Stream> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judged(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judged(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn paused<T>(work: impl Future<Output = T>) -> T {
        let built = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        built.expect("a runtime").block_on(work)
    }

    #[test]
    fn a_client_that_takes_nothing_is_given_up_and_one_that_is_slow_is_not() {
        paused(async {
            let (ours, _theirs) = tokio::io::duplex(64);
            let mut stream = WriteTimeout::new(ours, WRITE_LIMIT);
            let began = tokio::time::Instant::now();
            let failed = stream.write_all(&[0; 1_000]).await.map_err(|error| error.kind());
            assert_eq!((failed, began.elapsed().as_secs()), (Err(io::ErrorKind::TimedOut), WRITE_LIMIT.as_secs()));

            let (ours, mut theirs) = tokio::io::duplex(64);
            let mut stream = WriteTimeout::new(ours, WRITE_LIMIT);
            let reading = tokio::spawn(async move {
                let mut piece = [0; 64];
                let mut taken = 0;
                while taken < 1_000 {
                    tokio::time::sleep(WRITE_LIMIT - Duration::from_secs(1)).await;
                    taken += theirs.read(&mut piece).await.unwrap_or(0);
                }
                taken
            });
            assert!(stream.write_all(&[0; 1_000]).await.is_ok());
            assert_eq!(reading.await.ok(), Some(1_000));
        });
    }
}
