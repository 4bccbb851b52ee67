//! `pubmark serve`: runs, results and a live view over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use pubmark_serve::allow::{Allow, Right};
use pubmark_serve::tls::TlsChoice;
use pubmark_serve::{Options, Ready, ServeError, Server};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::signals;
use crate::values::{Word, one_of};

/// Accept runs over HTTP, run them one after the other, and show them.
///
/// The interface is described at /openapi.json (docs/reference/openapi.json). Every request needs a token, which is
/// printed at the first start. Runs are executed by separate processes; the queue survives a restart.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on; port 0 selects a free port. Addresses other than loopback need TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7780")]
    pub listen: SocketAddr,

    /// Folder of results; those that are already in it are listed, too
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,

    /// What submissions may do in addition to running built-in workloads on the built-in broker
    #[arg(long, value_name = "RIGHTS", value_parser = one_of(RIGHTS), value_delimiter = ',')]
    pub allow: Vec<Right>,

    /// Certificate (PEM, with its chain behind it) to encrypt connections with
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_self")]
    pub tls_cert: Option<PathBuf>,

    /// Key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Encrypt connections with a certificate that is made at the first start
    #[arg(long)]
    pub tls_self: bool,

    /// Another name of the server; may be repeated
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,

    /// End when standard input is closed, as with Ctrl-C: a program that starts the server has the other end open, so
    /// that the server ends when the program does, for whatever reason
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// Rights of submissions.
const RIGHTS: &[Word<Right>] = &[
    ("systems", "Start systems that `pubmark list systems` names", Right::Systems),
    ("endpoints", "Connect to, or listen for, other machines", Right::Endpoints),
    ("commands", "Use definitions, images, files and variables of this machine: they hold commands", Right::Commands),
];

impl Serve {
    /// Serves until Ctrl-C.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let stop = signals::watch()?;
        if self.until_stdin_closes {
            end_with_stdin(Arc::clone(&stop))?;
        }
        let program = std::env::current_exe().map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error).during("failed to find this program's own file")
        })?;
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => TlsChoice::Files { certificate, key },
            _ if self.tls_self => TlsChoice::OwnMade,
            _ => TlsChoice::Off,
        };
        let server = Server::open(Options {
            listen: self.listen,
            runs: self.runs,
            allow: Allow(self.allow.into_iter().collect()),
            tls,
            hosts: self.host,
            program,
        })
        .map_err(failed)?;
        server.ready().warnings.iter().for_each(|warning| printer.warning(warning));
        printer.result(&ready(server.ready()))?;
        server.serve(&stop).map_err(failed)?;
        Ok(ExitCode::Interrupted)
    }
}

/// Sets `stop` when standard input is closed. What is read from it until then is discarded.
fn end_with_stdin(stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let wait = move || {
        // A read error counts as closed: it no longer shows that the other end is open.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(wait)
        .map(drop)
        .map_err(|error| Failure::from_error(ExitCode::Internal, &error).during("failed to watch standard input"))
}

fn failed(error: ServeError) -> Failure {
    let exit = if error.is_internal() { ExitCode::Internal } else { ExitCode::Usage };
    let failure = Failure::from_error(exit, &error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What the person who started the server needs to know: addresses and the token.
fn ready(ready: &Ready) -> String {
    let mut text = format!("listening on {}\n", ready.url);
    match &ready.new_token {
        Some(token) => {
            text.push_str(&format!("token {token}\n  shown once; it is in {}\n", ready.token_file.display()))
        }
        None => text.push_str(&format!("the token is in {}\n", ready.token_file.display())),
    }
    if let (Some(file), Some(fingerprint)) = (&ready.certificate_file, &ready.fingerprint) {
        text.push_str(&format!("certificate {}\n  SHA-256 {fingerprint}\n", file.display()));
    }
    text
}
