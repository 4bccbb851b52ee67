//! A system that already runs: its endpoint, checked and resolved.

use pubmark_engine::endpoints::Endpoints;
use pubmark_model::workload::Credentials;
use pubmark_protocol::endpoint::{Endpoint, Identity};
use pubmark_protocol::tls::TlsSetup;
use pubmark_protocols::ProtocolPair;
use pubmark_record::record::{BackEndKind, Deviation, SystemInfo};
use pubmark_systems::Definition;

use super::{CheckedTarget, Target, definition};
use crate::endpoint::Written;
use crate::error::RunError;
use crate::host::Host;
use crate::spec::RunSpec;
use crate::{brokerless, certificates};

/// A system that already runs; `--system` gives it the name of that system, and it may then be ranked under that name.
pub(super) fn external(
    url: &str,
    spec: &RunSpec,
    protocol_pair: ProtocolPair,
    login: Option<Credentials>,
    host: &Host,
) -> Result<CheckedTarget, RunError> {
    let written = Written::parse(url, &protocol_pair.publish.capabilities)?;
    let second = spec.target.subscribe_endpoint.as_deref();
    if second.is_none() && protocol_pair.second().is_none() && protocol_pair.subscribe.capabilities.features.two_ports {
        let can = &protocol_pair.subscribe.capabilities;
        let scheme = can.schemes.first().unwrap_or(&"");
        return Err(RunError::input(format!(
            "`{}` is one port of a system that has two over {}",
            written.shown(),
            can.name
        ))
        .hint(format!(
            "`--endpoint` says where devices connect, `--subscribe-endpoint {scheme}://…` where subscribers do"
        )));
    }
    let subscribe = match second {
        Some(url) => Written::parse(url, &protocol_pair.subscribe.capabilities)?,
        None => Written::parse(url, &protocol_pair.subscribe.capabilities).map_err(|error| {
            match protocol_pair.second() {
                Some(protocol) => RunError::from(error).hint(format!(
                    "subscribers speak {}: `--subscribe-endpoint {}://…` says where",
                    protocol.capabilities.name,
                    protocol.capabilities.schemes.first().unwrap_or(&"")
                )),
                None => RunError::from(error),
            }
        })?,
    };
    let connection = &spec.connection;
    let checks = connection.tls_ca.is_some() || connection.tls_insecure || connection.tls_cert.is_some();
    if connection.tls_cert.is_some() && protocol_pair.publish.program.is_some() {
        return Err(RunError::unsupported("`--tls-cert` is given, and a client program shows no certificate")
            .hint("leave `--tls-cert` and `--tls-key` out, or `--client` for pubmark's own clients"));
    }
    if checks && !written.encrypted && !subscribe.encrypted {
        let can = &protocol_pair.publish.capabilities;
        let over = can.features.websocket.filter(|_| written.upgrade.is_some());
        let encrypted = over.map(|over| over.schemes[1]).or(can.tls_schemes.first().copied()).unwrap_or("");
        let what = if connection.tls_cert.is_some() { "asked for" } else { "checked" };
        return Err(RunError::input(format!("`{}` is not encrypted, so no certificate is {what}", written.shown()))
            .hint(format!("`--endpoint {encrypted}://{}`", written.host)));
    }
    for (written, protocol) in [(&written, protocol_pair.publish), (&subscribe, protocol_pair.subscribe)] {
        if (login.is_some() || written.credentials.is_some()) && !protocol.capabilities.features.log_in {
            let name = protocol.capabilities.name;
            return Err(RunError::input(format!("a log-in is given, and {name} has none")).hint("leave it out"));
        }
    }
    let subscribe_endpoint = Box::new(resolved(subscribe, spec, login.clone(), host)?);
    let definition = spec.target.system.as_deref().map(definition).transpose()?.map(Box::new);
    let endpoint = Box::new(resolved(written, spec, login, host)?);
    let unchecked = spec.connection.tls_insecure;
    let placed = spec.target.placed.clone().map(Box::new);
    Ok(CheckedTarget::External { endpoint, subscribe_endpoint, unchecked, definition, placed })
}

/// An endpoint with its credentials and authorities, and its host name resolved.
fn resolved(
    mut written: Written,
    spec: &RunSpec,
    login: Option<Credentials>,
    host: &Host,
) -> Result<Endpoint, RunError> {
    if written.credentials.is_some() && login.is_some() {
        return Err(RunError::input("the log-in is given twice: in `--endpoint` and with `--user`"));
    }
    written.credentials = written.credentials.or(login);
    let authorities = match &spec.connection.tls_ca {
        Some(file) if written.encrypted => Some(file.clone()),
        None if written.encrypted && !spec.connection.tls_insecure => Some(certificates::of_machine(&written.shown())?),
        _ => None,
    };
    let identity = spec.connection.tls_cert.clone().zip(spec.connection.tls_key.clone());
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let endpoint = written.resolve(authorities, identity, host.relay.as_deref())?;
    if let Some(tls) = &endpoint.tls {
        // A file that cannot be read is reported before anything else starts.
        TlsSetup::new(tls).map_err(|error| certificates::unusable(&error))?;
    }
    Ok(endpoint)
}

pub(super) fn external_target(
    [endpoint, subscribe_endpoint]: [&Endpoint; 2],
    unchecked: bool,
    definition: Option<&Definition>,
) -> Target {
    let deviation = Deviation {
        name: "tls-unchecked".to_owned(),
        detail: "the server's certificate was not checked (--tls-insecure): anybody could have answered".to_owned(),
    };
    Target {
        publish_at: Endpoints::one(endpoint.clone()),
        subscribe_at: Endpoints::one(subscribe_endpoint.clone()),
        info: SystemInfo {
            name: definition.map_or("external", |definition| &definition.name).to_owned(),
            version: None,
            back_end: match definition {
                Some(definition) if brokerless::has_no_broker(definition) => BackEndKind::Brokerless,
                _ => BackEndKind::External,
            },
            profile: None,
            endpoint: endpoint.shown.clone(),
            ranked: definition.is_none_or(|definition| definition.ranked),
            papers: definition.map(|definition| definition.papers.clone()).unwrap_or_default(),
            ..SystemInfo::default()
        },
        deviations: unchecked.then_some(deviation).into_iter().collect(),
        running: None,
    }
}
