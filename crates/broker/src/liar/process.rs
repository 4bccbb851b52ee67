//! The lying broker as a process of its own.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::parse::ScriptError;
use super::script::Script;
use super::server::{Liar, LiarSettings};
use crate::error::BrokerError;
use crate::net::ServerTls;
use crate::process::{ProcessError, number, stop_on_signals_and_orphanhood};

/// The options that [`serve_liar`] accepts.
pub const OPTIONS: &str = "--listen ADDRESS:PORT --journal FILE [--script FILE] [--tls-certificate FILE --tls-key FILE | --transport websocket] [--nagle on]";

/// Why a lying broker's process failed.
#[derive(Debug, thiserror::Error)]
pub enum LiarError {
    /// An option that is unknown, has no value, or is required.
    #[error("option `{option}` is unknown, lacks its value, or is missing; options are {OPTIONS}")]
    Option {
        /// The option.
        option: String,
    },
    /// Reading the script failed.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The script is invalid.
    #[error("failed to understand `{path}`")]
    Script {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: ScriptError,
    },
    /// An error that the built-in broker's process can have too.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl From<BrokerError> for LiarError {
    fn from(error: BrokerError) -> LiarError {
        LiarError::Process(error.into())
    }
}

/// Runs the lying broker until SIGTERM or SIGINT comes or the thread that started this process ends. Prints `listening
/// ADDRESS:PORT` to `output` once clients can connect. The journal is complete when the process has ended.
///
/// # Errors
/// A [`LiarError`] for wrong options, an unreadable script, an address that is in use, or a journal that cannot be written.
pub fn serve_liar(arguments: impl IntoIterator<Item = String>, output: &mut impl Write) -> Result<(), LiarError> {
    let settings = read_options(arguments)?;
    let stop = stop_on_signals_and_orphanhood()?;
    let mut liar = Liar::bind(settings)?;
    let failed = |source| ProcessError::System { what: "print", source };
    writeln!(output, "listening {}", liar.local_address()?).and_then(|()| output.flush()).map_err(failed)?;
    Ok(liar.run(&stop)?)
}

fn read_options(arguments: impl IntoIterator<Item = String>) -> Result<LiarSettings, LiarError> {
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let (mut journal, mut script, mut certificate, mut key) = (None, None, None, None);
    let (mut websocket, mut nagle) = (false, false);
    let mut arguments = arguments.into_iter();
    while let Some(option) = arguments.next() {
        let unknown = || LiarError::Option { option: option.clone() };
        let value = arguments.next().ok_or_else(unknown)?;
        match option.as_str() {
            "--listen" => listen = number(&option, value)?,
            "--journal" => journal = Some(PathBuf::from(value)),
            "--script" => script = Some(PathBuf::from(value)),
            "--tls-certificate" => certificate = Some(PathBuf::from(value)),
            "--tls-key" => key = Some(PathBuf::from(value)),
            "--transport" if value == "websocket" => websocket = true,
            "--nagle" if value == "on" => nagle = true,
            _ => return Err(unknown()),
        }
    }
    let missing = |option: &str| LiarError::Option { option: option.to_string() };
    let tls = match (certificate, key) {
        (Some(_), Some(_)) if websocket => return Err(missing("--transport")),
        (Some(certificate), Some(key)) => Some(ServerTls::read(&certificate, &key).map_err(BrokerError::from)?),
        (None, None) => None,
        (Some(_), None) => return Err(missing("--tls-key")),
        (None, Some(_)) => return Err(missing("--tls-certificate")),
    };
    let script = match script {
        None => Script::default(),
        Some(path) => {
            let text =
                std::fs::read_to_string(&path).map_err(|source| LiarError::Read { path: path.clone(), source })?;
            Script::parse(&text).map_err(|source| LiarError::Script { path, source })?
        }
    };
    let journal = journal.ok_or_else(|| missing("--journal"))?;
    Ok(LiarSettings { listen, tls, websocket, nagle, script, journal })
}
