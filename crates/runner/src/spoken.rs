//! Which protocols the clients of a run speak.

use std::collections::BTreeSet;

use pubmark_protocols::{self as protocols, Protocol, Spoken, known};

use crate::error::RunError;
use crate::spec::RunSpec;
use crate::{suggestion, target, unbuilt};

/// What clients speak.
///
/// # Errors
/// A protocol or a client library that is not there, or an endpoint's scheme that no protocol has.
pub fn of(spec: &RunSpec) -> Result<Spoken, RunError> {
    let (protocols, target) = (&spec.protocols, &spec.target);
    let publish = side(spec, protocols.publish_protocol.as_deref(), target.endpoint.as_deref())?;
    let at = target.subscribe_endpoint.as_deref().or(target.endpoint.as_deref());
    let subscribe = side(spec, protocols.subscribe_protocol.as_deref(), at)?;
    Ok(Spoken { publish, subscribe })
}

/// What one side speaks: what was asked for, otherwise the first of our protocols that the system offers.
fn side(spec: &RunSpec, own: Option<&str>, endpoint: Option<&str>) -> Result<&'static Protocol, RunError> {
    let protocol = match (own.or(spec.protocols.protocol.as_deref()), endpoint) {
        (Some(name), _) => protocols::find(name).ok_or_else(|| unbuilt::no_protocol(name)),
        (None, Some(endpoint)) => of_endpoint(endpoint),
        (None, None) => target::first_protocol(spec),
    }?;
    let Some(client) = &spec.protocols.client else { return Ok(protocol) };
    let title = protocol.capabilities.title;
    let found = protocol.with_client(client).map_err(|known| {
        RunError::input(format!("`--client {client}` is no client library for {title}")).hint(match known[..] {
            [] => "it has one client only: leave `--client` out".to_owned(),
            _ => suggestion::choices(client, known),
        })
    })?;
    match found.client.and_then(|client| (client.missing)()) {
        Some(why) => Err(RunError::input(why).hint("leave `--client` out for one that is there")),
        None => Ok(found),
    }
}

/// The protocol whose endpoints have this one's scheme; an endpoint without any is refused when it is read.
fn of_endpoint(endpoint: &str) -> Result<&'static Protocol, RunError> {
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

/// What a reader should know of a choice that the specification did not make.
pub fn notes(spec: &RunSpec, spoken: Spoken) -> Vec<String> {
    let mut notes = vec![];
    let usual = protocols::PROTOCOLS[0].capabilities.name;
    let chosen = spoken.publish.capabilities.name;
    let is_asked = spec.protocols.protocol.is_some() || spec.protocols.publish_protocol.is_some();
    if let Some(system) = &spec.target.system
        && !is_asked
        && spec.target.endpoint.is_none()
        && chosen != usual
    {
        notes.push(format!("`{system}` does not speak {usual}: clients speak {chosen}"));
    }
    let stands_in = spoken.publish.stands_in_for();
    if let (None, Some(why), Some(version)) = (&spec.protocols.client, stands_in, spoken.publish.client_version()) {
        notes.push(format!("clients are {version}: {why}"));
    }
    notes
}
