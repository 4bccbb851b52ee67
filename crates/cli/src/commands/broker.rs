//! `pubmark broker`: the built-in brokers as separate processes; `--system builtin` and `--system coap` start them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pubmark_broker::{BrokerError, ProcessError};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// A built-in broker: prints `listening ADDRESS` and runs until SIGTERM.
#[derive(Debug, Args)]
pub struct Broker {
    /// Protocol: MQTT 3.1.1 and 5, or CoAP publish/subscribe over UDP
    #[arg(long, value_enum, default_value = "mqtt")]
    pub protocol: BrokerProtocol,

    /// Address and port to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,

    /// Certificate chain and key (PEM): encrypt; MQTT only
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
    pub tls: Option<Vec<PathBuf>>,

    /// Require JSON Web Tokens (HS256) signed with the secret in this file; MQTT only
    ///
    /// A client sends its token as the data of the MQTT 5 authentication method `JWT`, or as its password. The broker
    /// checks the signature and `exp`, and ends a connection whose token has expired. With the method, a client can send a
    /// new token on the open connection (re-authentication).
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,

    /// Accept at most this many messages a second: a broker of known capacity; MQTT only
    #[arg(long, value_name = "RATE")]
    pub at_most: Option<f64>,
}

/// Protocol of a built-in broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BrokerProtocol {
    /// MQTT 3.1.1 and 5.
    Mqtt,
    /// CoAP publish/subscribe.
    Coap,
}

impl Broker {
    /// Serves until it is stopped by a signal, or until the process that started it has ended.
    pub fn perform(self) -> Outcome {
        if self.protocol == BrokerProtocol::Coap {
            return self.serve_coap();
        }
        let mut options = vec!["--listen".to_owned(), self.listen];
        if let Some([certificate, key]) = self.tls.as_deref() {
            options.extend(["--tls-certificate".to_owned(), certificate.display().to_string()]);
            options.extend(["--tls-key".to_owned(), key.display().to_string()]);
        }
        if let Some(file) = self.tokens {
            options.extend(["--tokens".to_owned(), file.display().to_string()]);
        }
        if let Some(rate) = self.at_most {
            options.extend(["--most-messages-per-s".to_owned(), rate.to_string()]);
        }
        match pubmark_broker::serve_process(options, &mut std::io::stdout()) {
            Ok(()) => Ok(ExitCode::Ok),
            Err(error) => Err(failure(&error)),
        }
    }

    fn serve_coap(self) -> Outcome {
        if self.tls.is_some() || self.tokens.is_some() || self.at_most.is_some() {
            return Err(Failure::usage("`--tls`, `--tokens` and `--at-most` are for `--protocol mqtt`".to_owned())
                .hint("the CoAP broker neither encrypts, nor checks clients, nor holds back: leave them out"));
        }
        let options = ["--listen".to_owned(), self.listen];
        match pubmark_broker::coap::serve_process(options, &mut std::io::stdout()) {
            Ok(()) => Ok(ExitCode::Ok),
            Err(error) => Err(failure(&error)),
        }
    }
}

fn failure(error: &ProcessError) -> Failure {
    let hint = match error {
        ProcessError::Secret { .. } | ProcessError::ShortSecret { .. } => {
            "`openssl rand -hex 32 > secret` makes one for `--tokens secret`"
        }
        ProcessError::Broker(BrokerError::Tls(_)) => "`--tls CERTIFICATE KEY` takes two PEM files",
        _ => "`--listen 127.0.0.1:0` takes a free port",
    };
    let code = if error.is_usage() { ExitCode::Usage } else { ExitCode::SystemFailed };
    Failure::from_error(code, error).hint(hint)
}
