//! A value of the axis `system` that already runs: its address, and the credentials of clients.

/// A system that already runs. It never contains a password, only the source of the password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointChoice {
    /// URL that clients connect to, without a password.
    pub url: String,
    /// URL that subscribers connect to, if it is different.
    pub subscribe_endpoint: Option<String>,
    /// URL of the node_exporter of its machine.
    pub node_exporter: Option<String>,
    /// User name of all clients that have none in the workload.
    pub user: Option<String>,
    /// Environment variable with the password.
    pub password_env: Option<String>,
    /// File with the password in its first line.
    pub password_file: Option<String>,
    /// Certificate authorities (PEM) for its certificate; the machine's if `None`.
    pub tls_ca: Option<String>,
    /// Whether any certificate is accepted.
    pub tls_insecure: bool,
    /// Client certificate (PEM).
    pub tls_cert: Option<String>,
    /// Private key (PEM) of the client certificate.
    pub tls_key: Option<String>,
}

impl EndpointChoice {
    /// An endpoint without credentials.
    pub fn at(url: &str) -> EndpointChoice {
        EndpointChoice { url: url.to_owned(), ..EndpointChoice::default() }
    }

    /// Paths in the endpoint.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.password_file, &mut self.tls_ca, &mut self.tls_cert, &mut self.tls_key].into_iter().flatten()
    }

    /// URLs in the endpoint.
    pub fn urls(&self) -> impl Iterator<Item = &String> {
        [Some(&self.url), self.subscribe_endpoint.as_ref(), self.node_exporter.as_ref()].into_iter().flatten()
    }
}
