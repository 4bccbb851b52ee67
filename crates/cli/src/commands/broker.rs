//! `pubmark broker`: the built-in broker as a process of its own; how `--system builtin` is started.

use std::path::PathBuf;

use clap::Args;

/// The built-in MQTT broker: prints `listening ADDRESS` and runs until SIGTERM.
#[derive(Debug, Args)]
pub struct Broker {
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,

    /// Certificate chain and key (PEM): encrypt
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
    pub tls: Option<Vec<PathBuf>>,
}
