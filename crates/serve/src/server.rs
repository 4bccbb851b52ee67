//! The server: creates its parts and threads.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pubmark_runner::Host;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::allow::Allow;
use crate::following::Following;
use crate::guard::{Guard, Of};
use crate::library::Library;
use crate::library::removal::{self, REMOVED_FOLDER};
use crate::listener::{self, MOST_CONNECTIONS};
use crate::live::Views;
use crate::metrics::Latest;
use crate::problem::Problem;
use crate::queue::Queue;
use crate::queue::machine::{Machine, NoPlace};
use crate::routes;
use crate::shared::Shared;
use crate::store::{Store, StoreError};
use crate::tls::{self, TlsChoice};
use crate::token::Token;

/// Number of threads that serve requests. Few, so that they do not disturb the run.
const THREADS: usize = 2;
/// Number of threads for long work: reading records, validating submissions.
const SLOW_THREADS: usize = 2;
/// Number of threads for summaries of results, beside other long work.
const READ_THREADS: usize = 2;
/// Number of threads for short reads of files.
const BRIEF_THREADS: usize = 2;
/// Niceness of all these threads, the maximum.
const NICENESS: libc::c_int = 19;
/// Interval between two checks of the request to stop.
const LOOK: Duration = Duration::from_millis(100);
/// File of the token in the server's folder.
const TOKEN_FILE: &str = "token";

/// File of the index of results, in the server's folder.
const INDEX_FILE: &str = "headlines.jsonl";

/// Settings of a server.
pub struct Options {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The results folder.
    pub runs: PathBuf,
    /// What submissions are allowed to do.
    pub allow: Allow,
    /// Encryption of connections, and the certificate for it.
    pub tls: TlsChoice,
    /// Accepted host names besides those of loopback and the address.
    pub hosts: Vec<String>,
    /// The `pubmark` that executes runs.
    pub program: PathBuf,
}

/// What the user who starts the server needs to know.
pub struct Ready {
    /// URL of the server, with the port that was chosen.
    pub url: String,
    /// The file of the token.
    pub token_file: PathBuf,
    /// The token, if it is new.
    pub new_token: Option<String>,
    /// SHA-256 fingerprint of the certificate, if it was created at this start.
    pub fingerprint: Option<String>,
    /// File of the certificate for clients to trust, if it was created at this start.
    pub certificate_file: Option<PathBuf>,
    /// Warnings: what is no longer needed and could not be deleted, why, and what to do.
    pub warnings: Vec<String>,
}

/// Reason why a server does not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without encryption, others could read the connection or send on it.
    #[error("`{0}` can be reached from other machines, and connections are not encrypted")]
    NotEncrypted(SocketAddr),
    /// An operation on the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock that all servers share failed.
    #[error(transparent)]
    Machine(#[from] NoPlace),
    /// An operation on the token file failed.
    #[error("failed to use the token in `{}`", path.display())]
    Token {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// Loading the certificate and key failed.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// Listening failed.
    #[error("failed to listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// Starting threads failed.
    #[error("failed to start the threads that answer")]
    Threads(#[source] io::Error),
}

impl ServeError {
    /// Whether the machine refused what no option or file changes: the user's input is not the reason.
    pub fn is_internal(&self) -> bool {
        matches!(self, ServeError::Threads(_))
    }

    /// What to type instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            ServeError::NotEncrypted(_) => Some(
                "`--tls-self` makes a certificate, `--tls-cert FILE --tls-key FILE` takes yours; or listen on 127.0.0.1"
                    .to_owned(),
            ),
            ServeError::Store(StoreError::InUse(_)) => Some("choose another folder with `--runs`".to_owned()),
            ServeError::Machine(_) => {
                Some("set `XDG_RUNTIME_DIR` to a folder that is yours alone, the same one for all servers".to_owned())
            }
            ServeError::Listen { .. } => Some("choose another address with `--listen`, port 0 for a free one".to_owned()),
            _ => None,
        }
    }
}

/// A server that already listens.
pub struct Server {
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    ready: Ready,
}

impl Server {
    /// Opens the results folder and listens.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn open(options: Options) -> Result<Server, ServeError> {
        if !options.listen.ip().is_loopback() && matches!(options.tls, TlsChoice::Off) {
            return Err(ServeError::NotEncrypted(options.listen));
        }
        let machine = Machine::this();
        // Tests that the lock is usable before a submission waits for it.
        drop(machine.try_take()?);
        let store = Arc::new(Store::open(&options.runs)?);
        let removed = removal::finish(&store.serve_folder().join(REMOVED_FOLDER));
        let warnings = store.left_over().iter().chain(&removed).map(left_over).collect();
        // Listens before the token is created: a new token is shown once, so the server must be able to start.
        let failed = |source| ServeError::Listen { address: options.listen, source };
        let listener = std::net::TcpListener::bind(options.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token_file = store.serve_folder().join(TOKEN_FILE);
        let found =
            Token::of_file(&token_file).map_err(|source| ServeError::Token { path: token_file.clone(), source })?;
        let tls = tls::acceptor(&options.tls, &options.hosts, options.listen.ip(), &store.serve_folder())?;
        let new_token = found.is_new.then(|| found.token.expose().to_owned());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let ready = Ready {
            url: format!("{scheme}://{address}"),
            token_file,
            new_token,
            fingerprint: tls.as_ref().and_then(|tls| tls.fingerprint.clone()),
            certificate_file: tls.as_ref().and_then(|tls| tls.file.clone()),
            warnings,
        };
        let guard = Guard::new(Of::Server, found.token, address, &options.hosts, tls.is_some());
        let queue = Arc::new(Queue::new(Arc::clone(&store), options.program.clone(), machine));
        let library = Library::with_index(store.serve_folder().join(INDEX_FILE));
        let shared = Arc::new(Shared {
            store,
            library,
            queue,
            allow: options.allow,
            host: Host::with_program(options.program),
            views: Views::default(),
            latest: Latest::default(),
            nodes: Following::default(),
            guard,
            exports: Arc::new(Semaphore::new(1)),
            plans: Arc::new(Semaphore::new(1)),
            reads: Arc::new(Semaphore::new(READ_THREADS)),
            slow: Arc::new(Semaphore::new(SLOW_THREADS)),
            lists: Arc::new(Semaphore::new(1)),
        });
        Ok(Server { shared, listener, tls: tls.map(|tls| tls.acceptor), ready })
    }

    /// What to print for the user who started the server.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Serves requests and executes submissions until `stop` is set.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn serve(self, stop: &AtomicBool) -> Result<(), ServeError> {
        let Server { shared, listener, tls, .. } = self;
        let queue = Arc::clone(&shared.queue);
        // This thread starts the runs; they inherit its priority, which is that of the caller.
        let carried = std::thread::Builder::new()
            .name("queue".to_owned())
            .spawn(move || queue.carry_out())
            .map_err(ServeError::Threads)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            // One more for an export and one for a plan, which run beside all others.
            .max_blocking_threads(SLOW_THREADS + READ_THREADS + BRIEF_THREADS + 2)
            .thread_name("serve")
            .on_thread_start(be_nice)
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServeError::Threads)?;
        let router = routes::router(Arc::clone(&shared));
        let listening = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let accepting = tokio::spawn(listener::accept(listener, tls, router, MOST_CONNECTIONS));
            while !stop.load(Ordering::Relaxed) && !accepting.is_finished() {
                tokio::time::sleep(LOOK).await;
            }
            accepting.abort();
            Ok(())
        });
        shared.queue.stop();
        // First waits for the orderly end of the current run.
        let _ = carried.join();
        runtime.shutdown_timeout(Duration::from_secs(1));
        listening.map_err(ServeError::Threads)
    }
}

/// The warning that something could not be deleted.
fn left_over(failed: &StoreError) -> String {
    let reason = Problem::internal(failed).body.error;
    format!(
        "{reason}; the server needs it no longer: delete it by hand, or remove the cause and start the server again"
    )
}

/// Gives the calling thread the lowest priority: on Linux, niceness is a property of a thread (`setpriority(2)`).
pub(crate) fn be_nice() {
    // SAFETY: setpriority has no memory to be unsafe with. A refusal would leave the priority as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_the_kernel_refuses_are_not_the_users_mistake() {
        let refused = || io::Error::from(io::ErrorKind::WouldBlock);
        assert!(ServeError::Threads(refused()).is_internal());
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        for error in [ServeError::NotEncrypted(address), ServeError::Listen { address, source: refused() }] {
            assert!(!error.is_internal(), "{error}");
        }
    }
}
