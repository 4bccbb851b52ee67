//! The built-in broker as a process of its own.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_model::token::SHORTEST_SECRET_BYTES;

use crate::builtin::Broker;
use crate::error::BrokerError;
use crate::net::ServerTls;
use crate::settings::{Login, Settings};
use crate::tokens::TokenKey;

/// The options that [`serve_process`] accepts.
pub const OPTIONS: &str = "--listen ADDRESS:PORT [--tls-certificate FILE --tls-key FILE] [--user NAME --password WORD] [--tokens FILE] \
[--maximum-packet-bytes N] [--in-flight-window N] [--maximum-queued-bytes N] [--maximum-queued-messages N] [--maximum-subscriptions N] \
[--most-messages-per-s N]";

/// Why a broker process failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// An option that is unknown or has no value.
    #[error("option `{option}` is unknown or lacks its value; options are {known}")]
    Option {
        /// The option.
        option: String,
        /// The options that exist.
        known: &'static str,
    },
    /// An invalid value.
    #[error("`{value}` is no value for `{option}`")]
    Value {
        /// The option.
        option: String,
        /// The value.
        value: String,
    },
    /// Two options of which only one was given.
    #[error("`{given}` needs `{missing}` too")]
    Half {
        /// The one that was given.
        given: &'static str,
        /// The one that is missing.
        missing: &'static str,
    },
    /// The secret of tokens cannot be read.
    #[error("failed to read the secret of tokens in `{path}`")]
    Secret {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The secret of tokens is too short.
    #[error(
        "the secret of tokens in `{path}` is too short for HS256: {SHORTEST_SECRET_BYTES} B or more (RFC 7518 §3.2)"
    )]
    ShortSecret {
        /// The file.
        path: PathBuf,
    },
    /// The broker failed.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// A signal could not be caught, or the line with the address could not be printed.
    #[error("failed to {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl ProcessError {
    /// Whether an option, or a file that it names, is the reason: nothing was started.
    pub fn is_usage(&self) -> bool {
        match self {
            ProcessError::Option { .. }
            | ProcessError::Value { .. }
            | ProcessError::Half { .. }
            | ProcessError::Secret { .. }
            | ProcessError::ShortSecret { .. }
            | ProcessError::Broker(BrokerError::Tls(_)) => true,
            ProcessError::Broker(_) | ProcessError::System { .. } => false,
        }
    }
}

/// Runs the built-in broker until SIGTERM or SIGINT comes or the thread that started this process ends.
/// Prints `listening ADDRESS:PORT` to `output` once clients can connect, and `statistics {…}` (JSON) at the end.
///
/// # Errors
/// A [`ProcessError`] for wrong options, an address that is in use, or TLS material that cannot be used.
pub fn serve_process(arguments: impl IntoIterator<Item = String>, output: &mut impl Write) -> Result<(), ProcessError> {
    let settings = read_options(arguments)?;
    let stop = stop_on_signals_and_orphanhood()?;
    let mut broker = Broker::bind(settings)?;
    let failed = |source| ProcessError::System { what: "print", source };
    writeln!(output, "listening {}", broker.local_address()?).and_then(|()| output.flush()).map_err(failed)?;
    broker.run(&stop)?;
    let statistics = serde_json::to_string(&broker.statistics()).map_err(|error| failed(error.into()))?;
    writeln!(output, "statistics {statistics}").and_then(|()| output.flush()).map_err(failed)
}

/// A flag that SIGTERM and SIGINT set; the kernel sends SIGTERM when our parent's thread ends.
pub(crate) fn stop_on_signals_and_orphanhood() -> Result<Arc<AtomicBool>, ProcessError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|source| ProcessError::System { what: "catch signals", source })?;
    }
    // SAFETY: plain system calls without pointers.
    let is_orphan = unsafe {
        let parent = libc::getppid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) < 0 || libc::getppid() != parent
    };
    stop.store(is_orphan, Ordering::Relaxed);
    Ok(stop)
}

fn read_options(arguments: impl IntoIterator<Item = String>) -> Result<Settings, ProcessError> {
    let mut settings = Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (mut certificate, mut key) = (None, None);
    let (mut user, mut password) = (None, None);
    let mut arguments = arguments.into_iter();
    while let Some(option) = arguments.next() {
        let unknown = || ProcessError::Option { option: option.clone(), known: OPTIONS };
        let mut value = || arguments.next().ok_or_else(unknown);
        match option.as_str() {
            "--listen" => settings.listen = number(&option, value()?)?,
            "--tls-certificate" => certificate = Some(PathBuf::from(value()?)),
            "--tls-key" => key = Some(PathBuf::from(value()?)),
            "--user" => user = Some(value()?),
            "--password" => password = Some(value()?),
            "--tokens" => settings.tokens = Some(token_key(PathBuf::from(value()?))?),
            "--maximum-packet-bytes" => settings.maximum_packet_bytes = number(&option, value()?)?,
            "--in-flight-window" => settings.in_flight_window = number(&option, value()?)?,
            "--maximum-queued-bytes" => settings.maximum_queued_bytes = number(&option, value()?)?,
            "--maximum-queued-messages" => settings.maximum_queued_messages = number(&option, value()?)?,
            "--maximum-subscriptions" => settings.maximum_subscriptions = number(&option, value()?)?,
            "--most-messages-per-s" => {
                let rate: f64 = number(&option, value()?)?;
                if !(rate.is_finite() && rate > 0.0) {
                    return Err(ProcessError::Value { option, value: rate.to_string() });
                }
                settings.most_messages_per_s = Some(rate);
            }
            _ => return Err(unknown()),
        }
    }
    settings.tls = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(ServerTls::read(&certificate, &key).map_err(BrokerError::from)?),
        (None, None) => None,
        (Some(_), None) => return Err(ProcessError::Half { given: "--tls-certificate", missing: "--tls-key" }),
        (None, Some(_)) => return Err(ProcessError::Half { given: "--tls-key", missing: "--tls-certificate" }),
    };
    settings.login = match (user, password) {
        (Some(user), Some(password)) => Some(Login { user, password: password.into_bytes() }),
        (None, None) => None,
        (Some(_), None) => return Err(ProcessError::Half { given: "--user", missing: "--password" }),
        (None, Some(_)) => return Err(ProcessError::Half { given: "--password", missing: "--user" }),
    };
    Ok(settings)
}

/// The secret in a file, without the end of its line.
fn token_key(path: PathBuf) -> Result<TokenKey, ProcessError> {
    match std::fs::read(&path) {
        Ok(bytes) => {
            let line_end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
            TokenKey::new(&bytes[..line_end]).ok_or(ProcessError::ShortSecret { path })
        }
        Err(source) => Err(ProcessError::Secret { path, source }),
    }
}

pub(crate) fn number<T: std::str::FromStr>(option: &str, value: String) -> Result<T, ProcessError> {
    match value.parse() {
        Ok(number) => Ok(number),
        Err(_) => Err(ProcessError::Value { option: option.to_string(), value }),
    }
}
