//! Options of connections to a system that already runs: log-in and certificates.

use std::path::PathBuf;

use clap::Args;
use pubmark_model::experiment::EndpointChoice;

/// How clients log in at an endpoint, and with which certificates.
#[derive(Clone, Debug, Default, Args)]
pub struct EndpointOptions {
    /// Authorities (PEM) with which the server's certificate is verified [default: the machine's]
    #[arg(long, value_name = "FILE", help_heading = "Connection", hide_short_help = true)]
    pub tls_ca: Option<PathBuf>,

    /// Accept any certificate of the server; the record states it
    #[arg(long, help_heading = "Connection", hide_short_help = true)]
    pub tls_insecure: bool,

    /// Client certificate (PEM, with its chain behind it), sent to a server that requests one
    #[arg(long, value_name = "FILE", help_heading = "Connection", hide_short_help = true)]
    pub tls_cert: Option<PathBuf>,

    /// Key (PEM, not encrypted) of the certificate
    #[arg(long, value_name = "FILE", help_heading = "Connection", hide_short_help = true)]
    pub tls_key: Option<PathBuf>,

    /// User name of all clients for which the workload has none
    #[arg(long, value_name = "NAME", help_heading = "Connection", hide_short_help = true)]
    pub user: Option<String>,

    /// Environment variable with the password
    #[arg(long, value_name = "VARIABLE", help_heading = "Connection", hide_short_help = true)]
    pub password_env: Option<String>,

    /// File with the password in its first line
    #[arg(long, value_name = "FILE", help_heading = "Connection", hide_short_help = true)]
    pub password_file: Option<PathBuf>,
}

impl EndpointOptions {
    /// Whether any of them is given.
    pub fn is_given(&self) -> bool {
        let EndpointOptions { tls_ca, tls_insecure, tls_cert, tls_key, user, password_env, password_file } = self;
        let files = [tls_ca, tls_cert, tls_key, password_file];
        *tls_insecure || user.is_some() || password_env.is_some() || files.iter().any(|file| file.is_some())
    }

    /// Writes them into an endpoint of a comparison that has none.
    pub fn apply(&self, endpoint: &mut EndpointChoice) {
        let path = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        endpoint.tls_ca = path(&self.tls_ca);
        endpoint.tls_insecure = self.tls_insecure;
        endpoint.tls_cert = path(&self.tls_cert);
        endpoint.tls_key = path(&self.tls_key);
        endpoint.user.clone_from(&self.user);
        endpoint.password_env.clone_from(&self.password_env);
        endpoint.password_file = path(&self.password_file);
    }
}
