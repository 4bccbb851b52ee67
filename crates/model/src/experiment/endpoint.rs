//! A value of the axis `system` that runs already: where it is, and how clients log in there.

use super::definition::{Experiment, SystemChoice};

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

impl SystemChoice {
    /// An endpoint under its label.
    pub fn at(label: &str, url: &str) -> SystemChoice {
        let endpoint = Some(EndpointChoice::at(url));
        SystemChoice { label: label.to_owned(), endpoint, ..SystemChoice::default() }
    }
}

impl Experiment {
    /// Puts an endpoint into the axis `system`. In place of a value of the same label it keeps that one's protocol and delivery level, and
    /// its log-in and certificates if it was an endpoint; if it was a system to be started, the endpoint is said to be that system.
    #[must_use]
    pub fn with_endpoint(mut self, label: &str, url: &str) -> Experiment {
        let Some(known) = self.axes.system.iter_mut().find(|choice| choice.label == label) else {
            self.axes.system.push(SystemChoice::at(label, url));
            return self;
        };
        let was = std::mem::take(known);
        let endpoint = EndpointChoice {
            url: url.to_owned(),
            // Both were places of the other one.
            subscribe_endpoint: None,
            node_exporter: None,
            ..was.endpoint.unwrap_or_default()
        };
        let SystemChoice { label, system, protocol, qos, .. } = was;
        *known = SystemChoice { label, system, protocol, qos, endpoint: Some(endpoint), ..SystemChoice::default() };
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn an_endpoint_is_added_or_takes_the_place_of_its_label() {
        let text = "{name: t, workload: hello, axes: {system: [a, {system: emqx, label: EMQX, protocol: mqtt5, profile: tuned}, \
                    {endpoint: 'mqtts://old', label: ours, user: ann, password_env: PW, node_exporter: 'http://old:9100'}]}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let changed = ["EMQX", "ours", "new"]
            .into_iter()
            .fold(experiment, |experiment, label| experiment.with_endpoint(label, "mqtt://host"));
        let systems = &changed.axes.system;
        assert_eq!(
            systems.iter().map(|choice| choice.label.as_str()).collect::<Vec<_>>(),
            ["a", "EMQX", "ours", "new"]
        );
        assert_eq!(systems[0], SystemChoice::named("a"));
        let endpoint = Some(EndpointChoice::at("mqtt://host"));
        let (system, protocol) = (Some("emqx".to_owned()), Some("mqtt5".to_owned()));
        let emqx = SystemChoice { label: "EMQX".to_owned(), system, protocol, endpoint, ..SystemChoice::default() };
        assert_eq!(systems[1], emqx, "what pubmark would have started it with goes");
        let ours = systems[2].endpoint.as_ref().unwrap();
        assert_eq!((ours.url.as_str(), ours.user.as_deref(), &ours.node_exporter), ("mqtt://host", Some("ann"), &None));
        assert_eq!(systems[3], SystemChoice::at("new", "mqtt://host"));
    }
}
