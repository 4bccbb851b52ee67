//! A system as a container on another machine would run it: all placeholders are filled in, nothing is started.

use pubmark_record::record::Deviation;

use crate::condition::{Neighbours, Situation};
use crate::definition::{ConfigurationFile, ContainerBackEnd, Definition};
use crate::error::SystemError;
use crate::launch::plan::raised_packet;
use crate::launch::{StartOptions, changed_settings};
use crate::template::Values;

/// Well-known ports, by scheme. Other listeners get the next free port from [`FIRST_PORT`] on.
const KNOWN_PORTS: &[(&str, u16)] =
    &[("mqtt", 1883), ("nats", 4222), ("redis", 6379), ("amqp", 5672), ("coap", 5683), ("ws", 8083)];
/// First port of listeners without a well-known port.
const FIRST_PORT: u16 = 21_000;

/// What is needed to run a container of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The image, pinned to a version.
    pub image: String,
    /// Entry point, if the image's own is not suitable.
    pub entrypoint: Option<String>,
    /// User in the container, if the image's own is not suitable.
    pub user: Option<String>,
    /// Folder in the container for the files.
    pub directory: String,
    /// Files by name.
    pub files: Vec<(String, String)>,
    /// Arguments that follow the image on a command line.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Where clients of the protocol reach it.
    pub endpoint: RenderedEndpoint,
    /// Where clients of the second protocol reach it; `None` if all use one protocol.
    pub second_endpoint: Option<RenderedEndpoint>,
    /// The endpoint's port is a UDP port.
    pub datagrams: bool,
    /// All ports, including those of the endpoints.
    pub ports: Vec<u16>,
    /// Differences from the system's defaults, as recorded.
    pub deviations: Vec<Deviation>,
}

/// An endpoint of a container whose host is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedEndpoint {
    /// Scheme of the protocol.
    pub scheme: String,
    /// Port of the protocol.
    pub port: u16,
    /// What clients write after the port; empty if the profile has no settings for them.
    pub settings: String,
}

impl RenderedEndpoint {
    /// The URL of the endpoint at a host.
    pub fn url(&self, host: &str) -> String {
        format!("{}://{host}:{}{}", self.scheme, self.port, self.settings)
    }
}

impl Rendered {
    /// Text of the first configuration file, as recorded; `None` if the system has none.
    pub fn configuration(&self) -> Option<&str> {
        self.files.first().map(|(_, text)| text.as_str())
    }
}

/// Renders one broker without encryption and without a log-in, which listens at all addresses of its container.
///
/// # Errors
/// The system has no container back end, has no such profile, or does not offer the protocol.
pub fn rendered(definition: &Definition, options: &StartOptions) -> Result<Rendered, SystemError> {
    let missing = |reason: &str| SystemError::NoBackEnd { system: definition.name.clone(), reason: reason.to_owned() };
    let back_end = definition.back_ends.container.as_ref();
    let back_end: &ContainerBackEnd = back_end.ok_or_else(|| missing("its definition has no container"))?;
    let protocols = [&options.protocol].into_iter().chain(&options.second_protocol).map(String::as_str);
    let profile = definition.profile_for(&options.profile, protocols)?;
    let offer = definition.offer(&options.protocol)?;
    let raised = raised_packet(definition, options)?;
    let situation = Situation {
        tls: false,
        websocket: false,
        password: false,
        container: true,
        neighbours: Neighbours::None,
        first: true,
        raised: raised.is_some(),
    };
    let ports = ports(definition);
    let mut values = Values::default();
    for (listener, port) in &ports {
        values.set(&format!("port:{listener}"), port.to_string());
        values.set(&format!("first:port:{listener}"), port.to_string());
    }
    let name = format!("{}-1", definition.name);
    let packet_bytes = raised.or(definition.limits.maximum_packet_bytes).unwrap_or(u32::MAX).to_string();
    let shared = format!("{}-shared", back_end.directory);
    for (key, value) in [
        ("host", "0.0.0.0"),
        ("first:host", "0.0.0.0"),
        ("first:name", &name),
        ("name", &name),
        ("index", "1"),
        ("brokers", "1"),
        ("directory", &back_end.directory),
        ("shared_directory", &shared),
        ("packet_bytes", &packet_bytes),
    ] {
        values.set(key, value);
    }
    values.set("profile", values.fill(&profile.text));
    let of_parts = back_end.arguments.iter().filter(|part| part.when.applies(&situation)).flat_map(|part| &part.add);
    let environment = back_end.environment.iter().chain(&profile.environment);
    let listener = definition.listeners.get(&offer.listener).ok_or_else(|| missing("its protocol has no listener"))?;
    let endpoint = |protocol: &String| -> Result<RenderedEndpoint, SystemError> {
        let listener = &definition.offer(protocol)?.listener;
        let scheme = definition.listeners.get(listener).map(|listener| listener.scheme.clone());
        Ok(RenderedEndpoint {
            scheme: scheme.ok_or_else(|| missing("its protocol has no listener"))?,
            port: ports.iter().find(|(name, _)| name == listener).ok_or_else(|| missing("its protocol has no port"))?.1,
            settings: profile.settings.get(protocol).cloned().unwrap_or_default(),
        })
    };
    Ok(Rendered {
        image: options.image.clone().unwrap_or_else(|| back_end.image.clone()),
        entrypoint: back_end.entrypoint.clone(),
        user: back_end.user.clone(),
        directory: back_end.directory.clone(),
        files: files(definition, &situation, &values),
        arguments: of_parts.chain(&profile.arguments).map(|argument| values.fill(argument)).collect(),
        environment: environment.map(|(name, value)| (name.clone(), values.fill(value))).collect(),
        endpoint: endpoint(&options.protocol)?,
        second_endpoint: options.second_protocol.as_ref().map(endpoint).transpose()?,
        datagrams: listener.datagrams,
        ports: ports.iter().map(|(_, port)| *port).collect(),
        deviations: changed_settings(definition, profile, &situation, &values).collect(),
    })
}

fn ports(definition: &Definition) -> Vec<(String, u16)> {
    let mut taken: Vec<(String, u16)> = vec![];
    for (name, listener) in &definition.listeners {
        let known = KNOWN_PORTS.iter().find(|(scheme, _)| *scheme == listener.scheme).map(|(_, port)| *port);
        let is_free = |port: &u16| taken.iter().all(|(_, other)| other != port);
        let next = (FIRST_PORT..).find(is_free).unwrap_or(FIRST_PORT);
        taken.push((name.clone(), known.filter(is_free).unwrap_or(next)));
    }
    taken
}

fn files(definition: &Definition, situation: &Situation, values: &Values) -> Vec<(String, String)> {
    let text = |file: &ConfigurationFile| {
        let parts = file.parts.iter().filter(|part| part.when.applies(situation) && !part.for_each_other);
        parts.map(|part| values.fill(&part.text)).collect::<String>()
    };
    let applying = definition.files.iter().filter(|file| file.when.applies(situation));
    applying.map(|file| (file.name.clone(), text(file))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_system_with_a_container_can_be_rendered_and_leaves_no_placeholder() {
        let mut count = 0;
        for name in Definition::names() {
            let definition = Definition::load(name).unwrap();
            if definition.back_ends.container.is_none() {
                continue;
            }
            for protocol in definition.protocols.keys() {
                let rendered = rendered(&definition, &StartOptions::new(protocol)).unwrap();
                assert!(rendered.image.contains(':') && rendered.endpoint.port > 0, "{name}: {rendered:?}");
                let texts = rendered.files.iter().map(|(_, text)| text).chain(&rendered.arguments);
                for text in texts {
                    for left in ["{port:", "{host}", "{directory}", "{profile}", "{name}"] {
                        assert!(!text.contains(left), "{name}: `{left}` in {text}");
                    }
                }
                count += 1;
            }
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn changed_settings_are_named_as_at_a_start() {
        let mosquitto = Definition::load("mosquitto").unwrap();
        let names = |options: &StartOptions| -> Vec<String> {
            let rendered = rendered(&mosquitto, options).unwrap();
            rendered.deviations.iter().map(|deviation| deviation.name.clone()).collect()
        };
        let default = StartOptions::new("mqtt5");
        let tuned = names(&StartOptions { profile: "tuned".to_owned(), ..default.clone() });
        assert!(tuned.len() > names(&default).len(), "{tuned:?}");
        let rendered = rendered(&mosquitto, &default).unwrap();
        assert_eq!(rendered.configuration(), Some(rendered.files[0].1.as_str()));
    }

    #[test]
    fn a_packet_that_is_too_large_is_allowed_or_refused() {
        let raises = |definition: &Definition| definition.limits.raised_to_at_most_bytes.is_some();
        let can_run = |definition: &Definition| definition.back_ends.container.is_some();
        let definitions = Definition::embedded().unwrap();
        let definition = definitions.iter().find(|one| raises(one) && can_run(one)).unwrap();
        let protocol = definition.protocols.keys().next().unwrap();
        let default = definition.limits.maximum_packet_bytes.unwrap();
        let of = |bytes: u32| {
            rendered(definition, &StartOptions { packet_bytes: Some(bytes), ..StartOptions::new(protocol) })
        };
        assert_ne!(of(default + 1).unwrap(), of(default).unwrap(), "{}", definition.name);
        let most = definition.limits.raised_to_at_most_bytes.unwrap();
        assert!(matches!(of(most + 1), Err(SystemError::Packet { .. })), "{}", definition.name);
    }

    #[test]
    fn mosquitto_listens_where_everybody_expects_it() {
        let rendered = rendered(&Definition::load("mosquitto").unwrap(), &StartOptions::new("mqtt5")).unwrap();
        assert_eq!(rendered.endpoint.url("h"), "mqtt://h:1883");
        assert!(rendered.files[0].1.contains("listener 1883 0.0.0.0\n"), "{:?}", rendered.files);
        assert!(rendered.arguments.contains(&format!("{}/mosquitto.conf", rendered.directory)), "{rendered:?}");
    }
}
