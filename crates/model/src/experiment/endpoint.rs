//! A value of the axis `system` that runs already: where it is, and how clients log in there.

/// A system that runs already. A password is never in it: it is named by where it is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointChoice {
    /// Where clients connect, without a password.
    pub url: String,
    /// Where subscribers connect, if that is another place.
    pub subscribe_endpoint: Option<String>,
    /// The node_exporter of its machine.
    pub node_exporter: Option<String>,
    /// User name of all clients that have none of their own.
    pub user: Option<String>,
    /// Environment variable that holds the password.
    pub password_env: Option<String>,
    /// File that holds the password in its first line.
    pub password_file: Option<String>,
    /// Authorities (PEM) that its certificate is checked against; the machine's if `None`.
    pub tls_ca: Option<String>,
    /// Any certificate is accepted.
    pub tls_insecure: bool,
    /// Certificate (PEM) that clients show.
    pub tls_cert: Option<String>,
    /// Its key (PEM).
    pub tls_key: Option<String>,
}

impl EndpointChoice {
    /// A place without a log-in.
    pub fn at(url: &str) -> EndpointChoice {
        EndpointChoice { url: url.to_owned(), ..EndpointChoice::default() }
    }

    /// Paths that it names.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.password_file, &mut self.tls_ca, &mut self.tls_cert, &mut self.tls_key].into_iter().flatten()
    }

    /// URLs that it names.
    pub fn urls(&self) -> impl Iterator<Item = &String> {
        [Some(&self.url), self.subscribe_endpoint.as_ref(), self.node_exporter.as_ref()].into_iter().flatten()
    }
}
