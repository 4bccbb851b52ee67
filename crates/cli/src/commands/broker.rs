//! `pubmark broker`: the built-in broker as a process of its own; how `--system builtin` is started.

use std::path::PathBuf;

use clap::Args;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// The built-in MQTT broker: prints `listening ADDRESS` and runs until SIGTERM.
#[derive(Debug, Args)]
pub struct Broker {
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,

    /// Certificate chain and key (PEM): encrypt
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
    pub tls: Option<Vec<PathBuf>>,

    /// Take so many messages a second at most: a broker of known capacity
    #[arg(long, value_name = "RATE")]
    pub at_most: Option<f64>,
}

impl Broker {
    /// Serves until it is told to stop, or until the process that started it is gone.
    pub fn perform(self) -> Outcome {
        let mut options = vec!["--listen".to_owned(), self.listen];
        if let Some([certificate, key]) = self.tls.as_deref() {
            options.extend(["--tls-certificate".to_owned(), certificate.display().to_string()]);
            options.extend(["--tls-key".to_owned(), key.display().to_string()]);
        }
        if let Some(rate) = self.at_most {
            options.extend(["--most-messages-per-s".to_owned(), rate.to_string()]);
        }
        match pubmark_broker::serve_process(options, &mut std::io::stdout()) {
            Ok(()) => Ok(ExitCode::Ok),
            Err(error) => Err(Failure::from_error(ExitCode::SystemFailed, &error)
                .hint("`--listen 127.0.0.1:0` takes a free port; `--tls` wants PEM files")),
        }
    }
}
