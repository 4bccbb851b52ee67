//! The protocols that the clients of a run use.

use std::collections::BTreeSet;

use pubmark_model::workload::Workload;
use pubmark_protocol::client_program::Hello;
use pubmark_protocols::{self as protocols, Protocol, ProtocolPair, known};

use crate::client_program;
use crate::error::RunError;
use crate::spec::RunSpec;
use crate::{suggestion, suitability, target, unbuilt};

/// The protocols of devices and of subscribers.
///
/// # Errors
/// A protocol or a client library that does not exist, or an endpoint whose scheme belongs to no protocol.
pub fn of(spec: &RunSpec, workload: &Workload) -> Result<ProtocolPair, RunError> {
    let (protocols, target) = (&spec.protocols, &spec.target);
    let words = client_program::words(spec)?;
    let hello = words.map(|words| client_program::hello(spec, &words)).transpose()?;
    let hello = hello.as_ref();
    let publish = side(spec, workload, protocols.publish_protocol.as_deref(), target.endpoint.as_deref(), hello)?;
    let at = target.subscribe_endpoint.as_deref().or(target.endpoint.as_deref());
    let subscribe = side(spec, workload, protocols.subscribe_protocol.as_deref(), at, hello)?;
    Ok(ProtocolPair { publish, subscribe })
}

/// The protocol of one side: the requested one, otherwise the first of our protocols that the system offers and that
/// can carry the workload.
fn side(
    spec: &RunSpec,
    workload: &Workload,
    own: Option<&str>,
    endpoint: Option<&str>,
    hello: Option<&Hello>,
) -> Result<&'static Protocol, RunError> {
    let protocol = match (own.or(spec.protocols.protocol.as_deref()), endpoint) {
        (Some(name), _) => protocols::find(name).ok_or_else(|| unbuilt::no_protocol(name)),
        (None, Some(endpoint)) => of_endpoint(endpoint),
        (None, None) => target::usual_protocol(spec, workload, hello),
    }?;
    if let Some(hello) = hello {
        return client_program::spoken_by(hello, protocol);
    }
    let Some(client) = &spec.protocols.client else { return Ok(protocol) };
    let title = protocol.capabilities.title;
    let found = protocol.with_client(client).map_err(|known| {
        let programs = client_program::names(spec, protocol.capabilities.name);
        let names: Vec<&str> = known.into_iter().chain(programs.iter().map(String::as_str)).collect();
        let command = "the command of a program of yours (docs/how-to/write-a-client.md)";
        let hint = match names.is_empty() {
            true => format!("leave `--client` out, or give {command}"),
            false => format!("{}; or {command}", suggestion::choices(client, names)),
        };
        RunError::input(format!(
            "`--client {client}` is no client library for {title}, and no client program that is known"
        ))
        .hint(hint)
    })?;
    match found.client.and_then(|client| (client.missing)()) {
        Some(why) => Err(RunError::input(why).hint("leave `--client` out for one that is there")),
        None => Ok(found),
    }
}

/// The protocol whose endpoints have this endpoint's scheme; parsing refuses an endpoint without a scheme.
///
/// # Errors
/// No protocol has this scheme, or this build leaves it out.
pub fn of_endpoint(endpoint: &str) -> Result<&'static Protocol, RunError> {
    let Some((scheme, _)) = endpoint.split_once("://") else { return Ok(&protocols::PROTOCOLS[0]) };
    let scheme = scheme.to_ascii_lowercase();
    protocols::of_scheme(&scheme).ok_or_else(|| {
        if let Some(known) = known::left_out_of_scheme(&scheme) {
            return unbuilt::failure(known);
        }
        let schemes = protocols::PROTOCOLS.iter().flat_map(|protocol| protocol.capabilities.schemes);
        let all: BTreeSet<String> = schemes.map(|scheme| format!("`{scheme}`")).collect();
        RunError::input(format!("endpoint scheme `{scheme}` is none that pubmark speaks"))
            .hint(format!("there are: {}", Vec::from_iter(all).join(", ")))
    })
}

/// Notes for the user about a choice that the specification did not make.
pub fn notes(spec: &RunSpec, workload: &Workload, protocol_pair: ProtocolPair) -> Vec<String> {
    let mut notes = vec![];
    let usual = protocols::PROTOCOLS[0].capabilities.name;
    let chosen = protocol_pair.publish.capabilities.name;
    let is_asked = spec.protocols.protocol.is_some() || spec.protocols.publish_protocol.is_some();
    if let Some(system) = &spec.target.system
        && !is_asked
        && spec.target.endpoint.is_none()
        && chosen != usual
    {
        let usual_for_both = ProtocolPair { publish: &protocols::PROTOCOLS[0], subscribe: &protocols::PROTOCOLS[0] };
        let lacking = suitability::lacking(workload, usual_for_both);
        let reason = lacking.unwrap_or_else(|| format!("`{system}` does not speak {usual}"));
        notes.push(format!("{reason}: clients speak {chosen}"));
    }
    let stands_in = protocol_pair.publish.stands_in_for();
    if let (None, Some(why), Some(version)) =
        (&spec.protocols.client, stands_in, protocol_pair.publish.client_version())
    {
        notes.push(format!("clients are {version}: {why}"));
    }
    notes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn chosen(workload: &str, system: &str) -> Result<ProtocolPair, RunError> {
        let mut spec = RunSpec::new(workload);
        spec.target.system = Some(system.to_owned());
        of(&spec, &spec.load()?)
    }

    #[test]
    fn the_first_protocol_that_can_carry_the_workload_is_chosen() {
        let name = |workload: &str| chosen(workload, "nats").unwrap().publish.capabilities.name;
        assert_eq!((name("hello"), name("request-reply")), ("mqtt311", "nats"));
        let mut spec = RunSpec::new("request-reply");
        spec.target.system = Some("nats".to_owned());
        let workload = spec.load().unwrap();
        let notes = notes(&spec, &workload, of(&spec, &workload).unwrap());
        assert!(notes[0].contains("does not speak mqtt5: clients speak nats"), "{notes:?}");
    }

    #[test]
    fn an_unknown_client_is_refused_with_the_list_of_known_ones() {
        let mut spec = RunSpec::new("hello");
        spec.target.system = Some("mosquitto".to_owned());
        spec.protocols.client = Some("pahoo".to_owned());
        let error = of(&spec, &spec.load().unwrap()).map(|_| ()).unwrap_err();
        assert!(format!("{error:?}").contains("did you mean `paho`? There are: `mqttjs`, `paho`"), "{error:?}");
    }

    #[test]
    fn a_system_that_is_not_there_is_refused() {
        assert_eq!(chosen("hello", "nowhere").map(|_| ()).unwrap_err().kind, ErrorKind::Input);
    }
}
