//! Values of the placeholders at each broker, and the endpoint of each.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::definition::Offer;
use crate::error::SystemError;
use crate::launch::plan::{self, BackEnd, Plan};
use crate::launch::{Endpoint, TlsFiles};
use crate::ports;
use crate::programs;
use crate::template::Values;

/// Ports of a broker, by listener.
pub(super) type Ports = Vec<(String, u16)>;

/// Chooses free ports for all listeners of all brokers, before anything is written.
pub(super) fn choose_ports(plan: &Plan) -> Result<Vec<Ports>, SystemError> {
    let listeners = &plan.definition.listeners;
    let mut free = ports::free(listeners.len() * plan.brokers())?.into_iter();
    let ports_of_one = |_| listeners.keys().cloned().zip(free.by_ref()).collect();
    Ok((0..plan.brokers()).map(ports_of_one).collect())
}

/// A broker's name, unique within the system.
pub(super) fn name_of(plan: &Plan, broker: usize) -> String {
    format!("{}-{}", plan.definition.name, broker + 1)
}

/// Folders of a broker, as paths that its program can use.
pub(super) struct Folders {
    /// The broker's private folder.
    pub(super) own: String,
    /// The folder that all brokers share.
    pub(super) shared: String,
    /// Certificates.
    pub(super) tls: Option<TlsFiles>,
}

/// All placeholder values of a broker.
pub(super) fn values(plan: &Plan, broker: usize, ports: &[Ports], folders: &Folders) -> Result<Values, SystemError> {
    let mut values = Values::default();
    for (listener, port) in &ports[broker] {
        values.set(&format!("port:{listener}"), port.to_string());
    }
    for (listener, port) in &ports[0] {
        values.set(&format!("first:port:{listener}"), port.to_string());
    }
    values.set("host", plan.options.host.to_string());
    values.set("first:host", plan.options.host.to_string());
    values.set("first:name", name_of(plan, 0));
    values.set("name", name_of(plan, broker));
    values.set("index", (broker + 1).to_string());
    values.set("brokers", plan.brokers().to_string());
    values.set("directory", &folders.own);
    values.set("shared_directory", &folders.shared);
    values.set("programs", programs::folder_text());
    values.set("user", own_user_name());
    if let BackEnd::Process { program, .. } = &plan.back_end {
        values.set("self", program.display().to_string());
    }
    if let Some(tls) = &folders.tls {
        values.set("authority", tls.authority.display().to_string());
        values.set("certificate", tls.certificate.display().to_string());
        values.set("key", tls.key.display().to_string());
    }
    if let Some(login) = &plan.login {
        values.set("login_user", &login.user);
        values.set("login_password", login.password.expose());
    }
    // If the size is not raised, this is the system's own size: texts outside `when: raised` may use it.
    let packet_bytes = plan.raised.or(plan.definition.limits.maximum_packet_bytes);
    values.set("packet_bytes", packet_bytes.unwrap_or(u32::MAX).to_string());
    values.set("profile", values.fill(&plan.profile.text));
    Ok(values)
}

/// Placeholder values for a text that is repeated for another broker.
pub(super) fn with_other(plan: &Plan, values: &Values, other: usize, ports: &[Ports]) -> Values {
    let mut values = values.clone();
    values.set("other:host", plan.options.host.to_string());
    values.set("other:name", name_of(plan, other));
    for (listener, port) in &ports[other] {
        values.set(&format!("other:port:{listener}"), port.to_string());
    }
    values
}

/// The endpoint of a broker for a protocol that clients will use.
pub(super) fn endpoint(
    plan: &Plan,
    (protocol, offer): (&str, &Offer),
    ports: &Ports,
    values: &Values,
    tls: Option<&TlsFiles>,
) -> Result<Endpoint, SystemError> {
    let missing = |reason: &str| SystemError::NoBackEnd {
        system: plan.definition.name.clone(),
        reason: format!("protocol {protocol} {reason}"),
    };
    let listener = match plan.options.websocket {
        false => &offer.listener,
        true => offer.websocket_listener.as_ref().ok_or_else(|| missing("has no listener for WebSocket"))?,
    };
    let schemes = plan.definition.listeners.get(listener).ok_or_else(|| missing("has no listener"))?;
    let port_of = |listener: &String| ports.iter().find(|(name, _)| name == listener).map(|(_, port)| *port);
    let port = port_of(listener).ok_or_else(|| missing("has no port"))?;
    let subscribers = offer.subscribe_listener.as_ref().map(|listener| {
        port_of(listener)
            .map(|port| SocketAddr::from((plan.options.host, port)))
            .ok_or_else(|| missing("has no port for subscribers"))
    });
    let scheme = match tls {
        None => schemes.scheme.clone(),
        Some(_) => schemes.tls_scheme.clone().ok_or_else(|| SystemError::NoTls {
            system: plan.definition.name.clone(),
            protocol: protocol.to_owned(),
        })?,
    };
    Ok(Endpoint {
        scheme,
        address: SocketAddr::from((plan.options.host, port)),
        subscribers: subscribers.transpose()?,
        settings: plan.profile.settings.get(protocol).cloned(),
        authority: tls.map(|tls| tls.authority.clone()),
        credentials: plan.options.credentials.clone().or_else(|| plan::fixed_login(offer)),
        values: values.clone(),
    })
}

/// Certificates with absolute paths, for programs with another working directory.
pub(super) fn absolute(tls: &TlsFiles) -> Result<TlsFiles, SystemError> {
    Ok(TlsFiles {
        authority: full_path(&tls.authority)?,
        certificate: full_path(&tls.certificate)?,
        key: full_path(&tls.key)?,
    })
}

fn full_path(path: &Path) -> Result<PathBuf, SystemError> {
    path.canonicalize().map_err(|source| SystemError::File { action: "find", path: path.to_owned(), source })
}

/// Name of the user that we run as, or the user id if the machine has no name for it.
fn own_user_name() -> String {
    // SAFETY: the call has no arguments and cannot fail.
    let uid = unsafe { libc::geteuid() }.to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&uid.as_str()))
        .map_or(uid.clone(), |fields| fields[0].to_owned())
}
