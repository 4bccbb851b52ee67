//! Whether a system that was installed works: it is started, and a message is sent through it over each of its protocols. A client
//! program is started once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_protocols as protocols;
use pubmark_systems::install::InstallError;
use pubmark_systems::{Definition, Endpoint, StartOptions};

use crate::error::{ErrorKind, RunError};
use crate::spec::RunSpec;
use crate::{client_program, readiness};

/// Starts the system for each protocol and sends a message through it. Returns the protocols; one for which neither pubmark nor a probe has
/// a client is omitted with a note.
///
/// # Errors
/// The system fails over a protocol, or `stop` was set.
pub fn try_out(definition: &Definition, stop: &Arc<AtomicBool>, note: &dyn Fn(&str)) -> Result<Vec<String>, RunError> {
    let mut tried = Vec::new();
    for (protocol, offer) in &definition.protocols {
        if protocols::find(protocol).is_none() && offer.probe.is_none() {
            note(&format!("{} over {protocol} is not tried: no probe is known", definition.name));
            continue;
        }
        let options = StartOptions { stop: Some(Arc::clone(stop)), ..StartOptions::new(protocol) };
        let mut ready = |endpoint: &Endpoint| readiness::over(definition, protocol, endpoint);
        pubmark_systems::start(definition, &options, &mut ready).map_err(|error| {
            let kind = if stop.load(Ordering::Relaxed) { ErrorKind::Interrupted } else { ErrorKind::System };
            RunError::from_error(kind, &error)
                .during(format!("`{}` is installed but does not work over {protocol}", definition.name))
        })?;
        tried.push(protocol.clone());
    }
    Ok(tried)
}

/// Starts a client program that pubmark brings once. Returns its library and the protocols that it supports.
///
/// # Errors
/// It is not installed, or does not start.
pub fn try_out_client(name: &str) -> Result<(String, Vec<String>), RunError> {
    let mut spec = RunSpec::new("hello");
    spec.protocols.client = Some(name.to_owned());
    let words = client_program::words(&spec)?;
    let words = words.ok_or_else(|| RunError::input(format!("there is no client program `{name}`")))?;
    let hello = client_program::hello(&spec, &words)?;
    Ok((hello.title(), hello.protocols.into_iter().map(|claims| claims.name).collect()))
}

impl From<InstallError> for RunError {
    fn from(error: InstallError) -> RunError {
        let kind = match error {
            InstallError::NoProgram { .. } | InstallError::NoFolder { .. } => ErrorKind::Input,
            InstallError::Interrupted { .. } => ErrorKind::Interrupted,
            _ => ErrorKind::System,
        };
        let found = RunError::from_error(kind, &error);
        match error {
            InstallError::NoFolder { .. } => {
                found.hint("`export PUBMARK_PROGRAMS=/opt/pubmark/programs`, a folder of yours alone")
            }
            InstallError::NeedsRoot { command, .. } => found.hint(format!("`{command}`")),
            InstallError::Failed { .. } => {
                found.hint("its output stands above; `pubmark install --print SYSTEM` prints the commands")
            }
            InstallError::TooSlow { .. } => found.hint("run the commands by hand: `pubmark install --print SYSTEM`"),
            _ => found,
        }
    }
}
