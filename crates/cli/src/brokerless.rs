//! Systems without a broker: nothing is started. Clients meet at a free port of this machine, or each subscriber listens at one.

use std::net::{Ipv4Addr, SocketAddr};

use pubmark_model::fleet::Fleet;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_record::record::{Deviation, SystemInfo};
use pubmark_systems::definition::Change;
use pubmark_systems::{Definition, ports};

use crate::commands::setup::{Setup, Transport};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::placement;
use crate::protocols::Spoken;

/// Has a system no broker at all?
pub fn has_no_broker(definition: &Definition) -> bool {
    let ways = &definition.back_ends;
    ways.brokerless.is_some() && ways.process.is_none() && ways.container.is_none()
}

/// Where the clients of a system without a broker find each other: one place where all meet, or one for each subscriber.
///
/// # Errors
/// Something was asked for that only a broker could have, or there are not so many free ports.
pub fn places(
    definition: &Definition,
    protocol: &Capabilities,
    setup: &Setup,
    workload: &Workload,
) -> Result<Vec<Endpoint>, Failure> {
    refuse_options_of_brokers(definition, setup)?;
    let ports = match protocol.features.subscribers_listen {
        true => listening_ports(Fleet::new(workload, 1).subscribers().len())?,
        false => vec![meeting_port(definition)?],
    };
    let listener = definition.protocols.get(protocol.name).and_then(|offer| definition.listeners.get(&offer.listener));
    let scheme = listener.map_or(protocol.name, |listener| listener.scheme.as_str());
    let profile = definition.profile(&setup.profile).map_err(|error| Failure::from_error(ExitCode::Usage, &error))?;
    let settings = profile.text.trim();
    let place = |port| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Endpoint {
            shown: format!("{scheme}://{address}{settings}"),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: (!settings.is_empty()).then(|| settings.into()),
        }
    };
    Ok(ports.into_iter().map(place).collect())
}

fn listening_ports(subscribers: usize) -> Result<Vec<u16>, Failure> {
    if subscribers == 0 {
        return Err(Failure::usage("a workload without subscribers has nobody to listen"));
    }
    ports::free(subscribers).map_err(|error| {
        Failure::from_error(ExitCode::Usage, &error)
            .during(format!("failed to find a port for each of {subscribers} subscribers"))
            .hint("fewer subscribers, or a system with a broker")
    })
}

fn meeting_port(definition: &Definition) -> Result<u16, Failure> {
    let found = match definition.back_ends.brokerless.as_ref().and_then(|brokerless| brokerless.ports.as_ref()) {
        Some(places) => ports::free_to_meet(places),
        None => ports::free(1).map(|ports| ports.first().copied().unwrap_or_default()),
    };
    found.map_err(|error| Failure::from_error(ExitCode::SystemFailed, &error))
}

/// What the record says of such a system.
pub fn info(definition: &Definition, profile: &str, places: &[Endpoint]) -> SystemInfo {
    SystemInfo {
        name: definition.name.clone(),
        version: None,
        back_end: "brokerless".to_owned(),
        profile: Some(profile.to_owned()),
        endpoint: places.first().map(|place| place.shown.clone()).unwrap_or_default(),
        ranked: definition.ranked,
        papers: definition.papers.clone(),
        ..SystemInfo::default()
    }
}

/// Refuses a profile whose settings a client library does not carry out.
///
/// # Errors
/// Which they are, and who does.
pub fn check_settings(places: &[Endpoint], spoken: Spoken, profile: &str) -> Result<(), Failure> {
    let settings = places.first().and_then(|place| place.settings.as_deref()).unwrap_or("");
    for protocol in [spoken.publish, spoken.subscribe] {
        let Some(has) = protocol.capabilities.features.settings else { continue };
        (has.check)(settings).map_err(|why| {
            Failure::usage(format!("profile `{profile}` cannot be had: {why}"))
                .hint("another `--profile`, or an `--endpoint` with settings of your own")
        })?;
    }
    Ok(())
}

/// Refuses what only a broker could have.
///
/// # Errors
/// The first of these options that was given.
fn refuse_options_of_brokers(definition: &Definition, setup: &Setup) -> Result<(), Failure> {
    let asked = [
        ("--back-end", setup.back_end.is_some()),
        ("--image", setup.image.is_some()),
        ("--topology", setup.topology.is_some()),
        ("--limit", setup.limit.is_some()),
        ("--transport", setup.transport != Transport::Tcp),
        ("--user", setup.user.is_some()),
        ("--pin system=…", !placement::pins(&setup.pin)?.system.is_empty()),
    ];
    if let Some((option, _)) = asked.iter().find(|(_, is_asked)| *is_asked) {
        let name = &definition.name;
        return Err(Failure::usage(format!("`{option}` is for a broker, and `{name}` has none")).hint("leave it out"));
    }
    Ok(())
}

/// What the definition of a system and its profile change.
pub fn deviations(definition: &Definition, profile: &str) -> Vec<Deviation> {
    let of_profile = definition.profiles.get(profile).map_or(&[][..], |profile| &profile.deviations);
    let shown = |change: &Change| Deviation {
        name: change.name.clone(),
        detail: format!("{}: {}", change.setting, change.reason),
    };
    definition.deviations.iter().chain(of_profile).map(shown).collect()
}
