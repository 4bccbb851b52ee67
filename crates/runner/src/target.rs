//! The system that a run measures: one that already runs, or one that is started for the run.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pubmark_engine::endpoints::Endpoints;
use pubmark_links::addresses::CORE_V4;
use pubmark_model::fleet::ConnectionCounts;
use pubmark_model::topology::TopologyMode;
use pubmark_model::workload::{Credentials, DeviceGroup, Workload};
use pubmark_protocol::client_program::Hello;
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::{Endpoint, Tls, Upgrade};
use pubmark_protocols::{self as protocols, Protocol, ProtocolPair};
use pubmark_record::record::{Deviation, SystemInfo};
use pubmark_systems::{Definition, RunningSystem, StartOptions, SystemError};

use crate::brokerless::Apart;
use crate::error::{ErrorKind, RunError};
use crate::host::Host;
use crate::progress_text::seconds;
use crate::spec::text::Text as _;
use crate::spec::{PlacedSystem, RunSpec, Transport};
use crate::{brokerless, linked, log_in, offers, pins, sources, suggestion, suitability, unbuilt};

mod external;

use external::{external, external_target};

/// System of a run that does not name one.
const DEFAULT_SYSTEM: &str = "builtin";

/// Longest wait until connected brokers forward messages to each other.
const CROSSING: Duration = Duration::from_secs(30);

/// The requested system, checked, with nothing started.
pub enum CheckedTarget {
    /// An endpoint, with its host name resolved.
    External {
        /// Endpoint of devices.
        endpoint: Box<Endpoint>,
        /// Endpoint of subscribers.
        subscribe_endpoint: Box<Endpoint>,
        /// TLS without verification of the certificate.
        unchecked: bool,
        /// Definition of the system, if the user named it.
        definition: Option<Box<Definition>>,
        /// How the system was started, if that is known.
        placed: Option<Box<PlacedSystem>>,
    },
    /// A system without a broker.
    Brokerless {
        /// Endpoints at which its clients find each other; `None` on machines that join, whose addresses are not yet
        /// known.
        endpoints: Option<Endpoints>,
        /// The network namespaces or nodes in which its clients run.
        apart: Apart,
        /// Each subscriber listens at one of the endpoints, and each device connects to all of them.
        to_each: bool,
        /// Definition of the system.
        definition: Box<Definition>,
        /// Profile of the system.
        profile: String,
    },
    /// A system to start.
    Started {
        /// Definition of the system.
        definition: Box<Definition>,
        /// How it is started.
        options: Box<StartOptions>,
    },
}

/// A system that can be reached.
pub struct Target {
    /// Where devices connect.
    pub publish_at: Endpoints,
    /// Where subscribers connect.
    pub subscribe_at: Endpoints,
    /// The record's section about the system.
    pub info: SystemInfo,
    /// Differences from the system's defaults.
    pub deviations: Vec<Deviation>,
    /// The system that was started; it is stopped when this is dropped.
    pub running: Option<RunningSystem>,
}

impl CheckedTarget {
    /// Checks what a specification says about the system, and whether the system offers it.
    ///
    /// # Errors
    /// The first field that contradicts another one, cannot be parsed, or is not offered.
    pub fn of(
        spec: &RunSpec,
        protocol_pair: ProtocolPair,
        workload: &Workload,
        host: &Host,
    ) -> Result<CheckedTarget, RunError> {
        if spec.target.endpoint.is_some() {
            brokerless::refuse_endpoint(spec.nodes.nodes.unwrap_or(0), protocol_pair)?;
        }
        let login = log_in::of(&spec.connection)?;
        let wanted = match &spec.target.endpoint {
            Some(url) => external(url, spec, protocol_pair, login, host),
            None => started(spec, protocol_pair, workload, login, host),
        }?;
        spec.connection.source_addresses.as_ref().map_or(Ok(()), |sources| sources::check(sources, &wanted))?;
        if let CheckedTarget::Started { definition, options } = &wanted {
            offers::check(definition, options, workload)?;
        }
        Ok(wanted)
    }

    /// Address of a system that will be started.
    pub fn listens_at(&self) -> Option<Ipv4Addr> {
        match self {
            CheckedTarget::Started { options, .. } => Some(options.host),
            CheckedTarget::External { .. } | CheckedTarget::Brokerless { .. } => None,
        }
    }

    /// Starts the system if necessary; `on_nodes` has the endpoints at which clients without a broker find each other
    /// on machines that joined.
    pub fn reach(&self, protocol_pair: ProtocolPair, on_nodes: Option<Endpoints>) -> Result<Target, RunError> {
        match self {
            CheckedTarget::External { endpoint, subscribe_endpoint, unchecked, definition, placed } => {
                let mut target = external_target([endpoint, subscribe_endpoint], *unchecked, definition.as_deref());
                if let Some(placed) = placed {
                    target.info.image = Some(placed.image.clone());
                    target.info.profile = Some(placed.profile.clone());
                    target.info.limits = placed.limits.clone();
                    target.info.configuration = placed.configuration.clone();
                    target.deviations.extend(placed.deviations.iter().cloned());
                }
                target.info.version = protocol_pair.publish.client_version();
                Ok(target)
            }
            CheckedTarget::Brokerless { endpoints, apart, definition, profile, .. } => {
                let endpoints = on_nodes.or_else(|| endpoints.clone());
                let endpoints =
                    endpoints.ok_or_else(|| RunError::new(ErrorKind::Internal, "no place for clients to meet"))?;
                let mut info = brokerless::info(definition, profile, &endpoints);
                // Without a broker, the client library is what was measured.
                info.version =
                    protocol_pair.publish.program.map(str::to_owned).or_else(|| protocol_pair.publish.client_version());
                Ok(Target {
                    info,
                    deviations: brokerless::deviations(definition, profile, *apart),
                    publish_at: endpoints.clone(),
                    subscribe_at: endpoints,
                    running: None,
                })
            }
            CheckedTarget::Started { definition, options } => {
                let mut ready = |found: &pubmark_systems::Endpoint| {
                    protocol_pair.publish.round_trip(&connectable(found), &for_subscribers(found))
                };
                let running = pubmark_systems::start(definition, options, &mut ready)
                    .map_err(|error| not_started(error, &definition.name))?;
                let endpoints: Vec<Endpoint> = running.endpoints().iter().map(connectable).collect();
                let second = running.second_endpoints();
                let title = &definition.title;
                for found in second {
                    let nothing =
                        || format!("`{title}` carried no message over {}", protocol_pair.subscribe.capabilities.title);
                    let [from, to] = [connectable(found), for_subscribers(found)];
                    keep_trying(options, title, nothing, || protocol_pair.subscribe.round_trip(&from, &to))?;
                }
                let subscribers = if second.is_empty() { running.endpoints() } else { second };
                let subscribers: Vec<Endpoint> = subscribers.iter().map(for_subscribers).collect();
                let independent = options.topology.mode == TopologyMode::Shard;
                if !independent {
                    wait_for_each_other(protocol_pair.publish, &endpoints, options, title)?;
                }
                Ok(Target {
                    publish_at: several(endpoints, independent)?,
                    subscribe_at: several(subscribers, independent)?,
                    info: running.info(),
                    deviations: running.deviations().to_vec(),
                    running: Some(running),
                })
            }
        }
    }
}

fn several(endpoints: Vec<Endpoint>, independent: bool) -> Result<Endpoints, RunError> {
    Endpoints::several(endpoints, independent)
        .ok_or_else(|| RunError::new(ErrorKind::Internal, "a system that was reached has no endpoint"))
}

/// Connected brokers need time until messages pass from each one to each other one.
fn wait_for_each_other(
    protocol: &Protocol,
    endpoints: &[Endpoint],
    options: &StartOptions,
    title: &str,
) -> Result<(), RunError> {
    for (from, to) in crossings(endpoints.len()) {
        let lost = || format!("messages of broker {} of `{title}` did not reach broker {}", from + 1, to + 1);
        keep_trying(options, title, lost, || protocol.round_trip(&endpoints[from], &endpoints[to]))?;
    }
    Ok(())
}

/// Retries until it succeeds, the run is stopped, or [`CROSSING`] is over.
fn keep_trying(
    options: &StartOptions,
    title: &str,
    what_failed: impl Fn() -> String,
    attempt: impl Fn() -> Result<(), String>,
) -> Result<(), RunError> {
    let deadline_ns = clock::monotonic_ns() + CROSSING.as_nanos() as u64;
    while let Err(reason) = attempt() {
        if options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(RunError::new(ErrorKind::Interrupted, format!("interrupted while `{title}` was starting")));
        }
        if clock::monotonic_ns() >= deadline_ns {
            let mut failure = RunError::new(ErrorKind::System, what_failed());
            failure.chain.push(reason);
            return Err(failure);
        }
    }
    Ok(())
}

/// Pairs of each broker and the next, and of the last and the first: each broker sends and receives once.
fn crossings(brokers: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..brokers).map(move |from| (from, (from + 1) % brokers)).filter(|(from, to)| from != to)
}

fn started(
    spec: &RunSpec,
    protocol_pair: ProtocolPair,
    workload: &Workload,
    login: Option<Credentials>,
    host: &Host,
) -> Result<CheckedTarget, RunError> {
    let definition = definition(spec.target.system.as_deref().unwrap_or(DEFAULT_SYSTEM))?;
    definition.offer(protocol_pair.publish.capabilities.name).map_err(not_offered)?;
    definition.offer(protocol_pair.subscribe.capabilities.name).map_err(not_offered)?;
    definition.profile(spec.target.profile.as_str()).map_err(not_offered)?;
    if brokerless::has_no_broker(&definition) {
        if spec.connection.tls {
            return Err(RunError::unsupported(format!(
                "`{}` has no broker to encrypt connections to",
                definition.name
            ))
            .hint("leave `--tls` out"));
        }
        let can = &protocol_pair.subscribe.capabilities;
        brokerless::refuse_options_of_brokers(&definition, spec)?;
        let (apart, machines) = match (spec.nodes.nodes, linked::any(workload)) {
            (_, true) => (Apart::Links, &[][..]),
            (Some(_), false) => (Apart::Nodes, &[IpAddr::V4(Ipv4Addr::LOCALHOST)][..]),
            (None, false) => (Apart::No, &[][..]),
        };
        let settings = brokerless::settings(&definition, can, &spec.target.profile, machines)?;
        brokerless::check_settings(&settings, protocol_pair, &spec.target.profile)?;
        let is_here = spec.nodes.nodes.is_none();
        return Ok(CheckedTarget::Brokerless {
            endpoints: is_here.then(|| brokerless::meeting_endpoints(&definition, can, spec, workload)).transpose()?,
            apart,
            to_each: can.features.subscribers_listen && !can.features.only_requests,
            profile: spec.target.profile.clone(),
            definition: Box::new(definition),
        });
    }
    let options = StartOptions {
        profile: spec.target.profile.as_str().to_owned(),
        credentials: login,
        stop: Some(Arc::clone(&host.stop)),
        supervisor: host.program.clone(),
        back_end: spec.target.back_end.map(Into::into),
        image: spec.target.image.clone(),
        topology: spec.target.topology.unwrap_or_default(),
        limits: spec.target.limit.clone(),
        host: listening_address(spec, workload)?,
        websocket: spec.target.transport == Transport::Websocket,
        encrypt: spec.connection.tls,
        pinned_cores: pins::of_system(&spec.generator.pin, host, spec.target.limit.as_ref())?,
        packet_bytes: (!spec.target.strict_defaults).then(|| largest_packet_bytes(workload)),
        second_protocol: protocol_pair.second().map(|second| second.capabilities.name.to_owned()),
        ..StartOptions::new(protocol_pair.publish.capabilities.name)
    };
    Ok(CheckedTarget::Started { definition: Box::new(definition), options: Box::new(options) })
}

/// Address on which a started system listens.
fn listening_address(spec: &RunSpec, workload: &Workload) -> Result<Ipv4Addr, RunError> {
    match (linked::are_here(spec, workload), spec.target.system_host) {
        (true, None) => Ok(CORE_V4),
        (true, Some(_)) => Err(RunError::input("behind links a system has an address of the emulated network")
            .hint("leave `--system-host` out, or `--link none`")),
        (false, asked) => Ok(asked.unwrap_or(Ipv4Addr::LOCALHOST)),
    }
}

/// The definition with this name or path.
pub fn definition(name: &str) -> Result<Definition, RunError> {
    Definition::load(name).map_err(|error| match error {
        SystemError::Unknown { .. } => {
            RunError::input(format!("there is no system `{name}`")).hint(match is_elsewhere(name) {
                true => "`--endpoint URL` in place of `--system` is for a system that runs already, for instance \
                     `--endpoint mqtt://HOST:1883`"
                    .to_owned(),
                false => format!("{}; or the path of a definition", suggestion::choices(name, Definition::names())),
            })
        }
        error => usage(error),
    })
}

/// The warm-up of a run: `least`, or what its system needs if that is longer.
///
/// # Errors
/// There is no such system.
pub fn warm_up(spec: &RunSpec, least: Duration) -> Result<Duration, RunError> {
    let Some(system) = &spec.target.system else { return Ok(least) };
    Ok(definition(system)?.warm_up().max(least))
}

/// Whether a name, which is not a known system's, means a system that pubmark does not start.
fn is_elsewhere(name: &str) -> bool {
    ["endpoint", "external"].contains(&name) || name.contains("://")
}

fn usage(error: SystemError) -> RunError {
    with_hint(RunError::from_error(ErrorKind::Input, &error))
}

fn not_offered(error: SystemError) -> RunError {
    with_hint(RunError::from_error(ErrorKind::Unsupported, &error))
}

fn with_hint(error: RunError) -> RunError {
    error.hint("`pubmark list systems` shows what is built in; a definition of your own is given by its path")
}

/// The first of our protocols that the run's system offers and that can carry the workload; if none can, the first that
/// it offers, so that the error names it.
pub fn usual_protocol(
    spec: &RunSpec,
    workload: &Workload,
    hello: Option<&Hello>,
) -> Result<&'static Protocol, RunError> {
    let definition = definition(spec.target.system.as_deref().unwrap_or(DEFAULT_SYSTEM))?;
    let ours = protocols::names().into_iter().filter(|name| definition.protocols.contains_key(*name));
    let is_spoken = |name: &&str| hello.is_none_or(|hello| hello.claims(name).is_some());
    // If a client program supports none of them, the error names the first.
    let protocol_pair: Vec<&str> = ours.clone().filter(is_spoken).collect();
    let ours = if protocol_pair.is_empty() { ours.collect() } else { protocol_pair };
    let offered: Vec<&Protocol> = ours.into_iter().filter_map(protocols::find).collect();
    let carries = |both: &&&'static Protocol| {
        suitability::lacking(workload, ProtocolPair { publish: both, subscribe: both }).is_none()
    };
    offered.iter().find(carries).or(offered.first()).copied().ok_or_else(|| {
        if let Some(known) = unbuilt::of(&definition) {
            return unbuilt::failure(known);
        }
        let theirs = definition.protocols.keys().cloned().collect::<Vec<_>>().join(", ");
        let ours = protocols::names().join(", ");
        let name = &definition.name;
        RunError::input(format!(
            "`{name}` speaks {theirs}, which pubmark's clients do not speak yet: they speak {ours}"
        ))
        .hint("`pubmark list systems` says which system speaks what")
    })
}

/// Space for the header of a message in the largest packet: topic, properties, lengths.
const HEAD_BYTES: u32 = 1_024;

/// Largest packet that a workload sends, if its sizes have a limit.
pub fn largest_packet_bytes(workload: &Workload) -> u32 {
    let largest = workload.devices.iter().map(DeviceGroup::largest_payload_bytes).max().unwrap_or(0);
    largest.saturating_add(HEAD_BYTES)
}

/// An endpoint in the form that adapters use, for devices.
pub fn connectable(found: &pubmark_systems::Endpoint) -> Endpoint {
    let server_name = found.address.ip().to_string();
    let offers = protocols::PROTOCOLS.iter().filter_map(|protocol| protocol.capabilities.features.websocket);
    let over = offers.into_iter().find(|over| over.schemes.contains(&found.scheme.as_str()));
    let upgrade = over.map(|over| Upgrade {
        host: found.address.to_string(),
        path: over.path.to_owned(),
        subprotocol: over.subprotocol.to_owned(),
    });
    Endpoint {
        shown: found.to_string(),
        address: found.address,
        tls: found.authority.clone().map(|authority| Tls { server_name, authorities: Some(authority), identity: None }),
        credentials: found.credentials.clone(),
        upgrade,
        settings: found.settings.as_deref().map(Into::into),
    }
}

/// As [`connectable`], for subscribers, which may need a separate port of the system.
pub fn for_subscribers(found: &pubmark_systems::Endpoint) -> Endpoint {
    let address = found.subscribers.unwrap_or(found.address);
    connectable(&pubmark_systems::Endpoint { address, ..found.clone() })
}

fn not_started(error: SystemError, name: &str) -> RunError {
    let kind = match error {
        SystemError::Interrupted { .. } => ErrorKind::Interrupted,
        SystemError::Missing { .. } => ErrorKind::NotInstalled,
        _ if error.is_local() => ErrorKind::Input,
        _ => ErrorKind::System,
    };
    let failure = RunError::from_error(kind, &error);
    match error {
        SystemError::File { .. } => failure.hint(
            "`TMPDIR` names the folder for the system's files: it must be there, be yours to write, and have room",
        ),
        SystemError::Packet { .. } => failure.hint("smaller payloads (`--payload`), or another system"),
        SystemError::Missing { .. } => {
            failure.hint(format!("`pubmark install {name}` installs it; `--system builtin` needs no installation"))
        }
        SystemError::Untrusted { .. } => failure.hint(format!(
            "`pubmark install --again {name}` as the user who runs pubmark, in a folder of that user alone"
        )),
        _ => failure,
    }
}

impl CheckedTarget {
    /// Text for people: the endpoint, or the system and its profile.
    pub fn shown(&self) -> String {
        match self {
            CheckedTarget::External { endpoint, .. } => endpoint.shown.clone(),
            CheckedTarget::Brokerless { definition, profile, .. } => format!("{}, profile {profile}", definition.title),
            CheckedTarget::Started { definition, options } => {
                format!("{}, profile {}", definition.title, options.profile)
            }
        }
    }

    /// Endpoints of devices and subscribers of a system that already runs.
    pub fn external_endpoints(&self) -> Option<[&Endpoint; 2]> {
        match self {
            CheckedTarget::External { endpoint, subscribe_endpoint, .. } => Some([endpoint, subscribe_endpoint]),
            CheckedTarget::Brokerless { .. } | CheckedTarget::Started { .. } => None,
        }
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        match self {
            CheckedTarget::External { endpoint, subscribe_endpoint, .. } => {
                endpoint.tls.is_some() || subscribe_endpoint.tls.is_some()
            }
            CheckedTarget::Brokerless { .. } => false,
            CheckedTarget::Started { options, .. } => options.encrypts(),
        }
    }

    /// Addresses of the system, as far as they are known before anything starts: for devices, for subscribers.
    pub fn addresses(&self) -> [IpAddr; 2] {
        match self {
            CheckedTarget::External { endpoint, subscribe_endpoint, .. } => {
                [endpoint, subscribe_endpoint].map(|endpoint| endpoint.address.ip())
            }
            CheckedTarget::Brokerless { .. } | CheckedTarget::Started { .. } => [Ipv4Addr::LOCALHOST.into(); 2],
        }
    }

    /// Whether devices and subscribers connect to the same endpoint.
    pub fn has_one_endpoint(&self) -> bool {
        match self {
            CheckedTarget::External { endpoint, subscribe_endpoint, .. } => {
                endpoint.address == subscribe_endpoint.address
            }
            CheckedTarget::Brokerless { .. } => true,
            CheckedTarget::Started { definition, options } => {
                let apart = definition.offer(&options.protocol).is_ok_and(|offer| offer.subscribe_listener.is_some());
                options.second_protocol.is_none() && !apart
            }
        }
    }

    /// Number of brokers.
    pub fn brokers(&self) -> u64 {
        match self {
            CheckedTarget::External { .. } | CheckedTarget::Brokerless { .. } => 1,
            CheckedTarget::Started { options, .. } => u64::from(options.topology.brokers.max(1)),
        }
    }

    /// Sessions that each subscriber needs: one for each independent broker.
    pub fn sessions_per_subscriber(&self) -> u64 {
        match self {
            CheckedTarget::Started { options, .. } if options.topology.mode == TopologyMode::Shard => {
                u64::from(options.topology.brokers)
            }
            _ => 1,
        }
    }

    /// Sockets of some clients, among all of a run. If subscribers listen, each has a socket for each device, too.
    pub fn sockets(&self, own: ConnectionCounts, all: ConnectionCounts) -> u64 {
        let ConnectionCounts { devices, subscribers } = own;
        match self {
            CheckedTarget::Brokerless { to_each: true, .. } => {
                devices * all.subscribers + subscribers * all.devices + subscribers
            }
            _ => devices + subscribers * self.sessions_per_subscriber(),
        }
    }

    /// Title of the system, and the warm-up that its definition asks for; `None` without a definition.
    pub fn warm_up(&self) -> Option<(&str, Duration)> {
        let definition: &Definition = match self {
            CheckedTarget::External { definition, .. } => definition.as_deref()?,
            CheckedTarget::Brokerless { definition, .. } | CheckedTarget::Started { definition, .. } => definition,
        };
        Some((definition.title.as_str(), definition.warm_up()))
    }

    /// The note for the user about a warm-up that is shorter than the system's.
    pub fn too_cold(&self, warmup: Duration) -> Option<String> {
        let (title, needed) = self.warm_up().filter(|(_, needed)| warmup < *needed)?;
        Some(format!(
            "`{title}` needs {} of load until it is warm, and the warm-up has {}: the run measures it cold (`--warmup {}`)",
            seconds(needed),
            seconds(warmup),
            needed.write()
        ))
    }

    /// Largest packet that the system accepts, if it is known before anything starts.
    pub fn packet_limit_bytes(&self) -> Option<u32> {
        match self {
            CheckedTarget::External { .. } | CheckedTarget::Brokerless { .. } => None,
            // As at the start: raised as far as allowed, unless limits have to stay unchanged.
            CheckedTarget::Started { definition, options } => {
                let limits = &definition.limits;
                limits.maximum_packet_bytes.map(|most| match options.packet_bytes {
                    Some(_) => limits.raised_to_at_most_bytes.unwrap_or(most).max(most),
                    None => most,
                })
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_system_has_its_changed_settings_in_the_record() {
        let mqtt5 = protocols::find("mqtt5").unwrap();
        let endpoint = Box::new(Endpoint {
            shown: "mqtt://127.0.0.1:1883".to_owned(),
            address: ([127, 0, 0, 1], 1883).into(),
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        });
        let deviation =
            Deviation { name: "queue".to_owned(), detail: "queue 9: the default drops messages".to_owned() };
        let placed = PlacedSystem {
            deviations: vec![deviation.clone()],
            configuration: Some("queue 9".to_owned()),
            ..PlacedSystem::default()
        };
        let target = CheckedTarget::External {
            subscribe_endpoint: endpoint.clone(),
            endpoint,
            unchecked: true,
            definition: None,
            placed: Some(Box::new(placed)),
        };
        let reached = target.reach(ProtocolPair { publish: mqtt5, subscribe: mqtt5 }, None).unwrap();
        assert_eq!(reached.deviations[1..], [deviation], "after that of the certificate which was not checked");
        assert_eq!(reached.info.configuration.as_deref(), Some("queue 9"));
    }
}
