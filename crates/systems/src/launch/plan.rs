//! What a start needs, checked before anything is created: back end, profile, protocol, log-in, topology, packet size.

use std::path::PathBuf;

use pubmark_model::topology::{MOST_BROKERS, TopologyMode};
use pubmark_model::workload::Credentials;

use crate::condition::{Neighbours, Situation};
use crate::container::Engine;
use crate::definition::{ContainerBackEnd, Definition, Offer, ProcessBackEnd, Profile};
use crate::error::SystemError;
use crate::launch::{BackEndChoice, StartOptions};
use crate::limits::ResourceLimits;
use crate::programs::{SELF, find_program};

/// The packet size is raised in multiples of this many bytes.
const PACKET_STEP: u32 = 1_000_000;

/// A start whose options have been checked.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) definition: &'a Definition,
    pub(super) options: &'a StartOptions,
    pub(super) profile: &'a Profile,
    pub(super) offer: &'a Offer,
    pub(super) back_end: BackEnd<'a>,
    /// Log-in that the system requires: the requested one, or the one that it always requires.
    pub(super) login: Option<Credentials>,
    /// Packet size that the system is raised to, bytes.
    pub(super) raised: Option<u32>,
    /// Limits; `None` if nothing is limited.
    pub(super) limits: Option<&'a ResourceLimits>,
}

/// The back end chosen.
#[derive(Debug)]
pub(super) enum BackEnd<'a> {
    /// A program on this machine.
    Process { found: &'a ProcessBackEnd, program: PathBuf },
    /// A container.
    Container { found: &'a ContainerBackEnd, image: String, engine: Box<Engine> },
}

impl<'a> Plan<'a> {
    /// Is the protocol's port a UDP port?
    pub(super) fn over_datagrams(&self) -> bool {
        self.definition.listeners.get(&self.offer.listener).is_some_and(|listener| listener.datagrams)
    }

    pub(super) fn new(definition: &'a Definition, options: &'a StartOptions) -> Result<Plan<'a>, SystemError> {
        let protocols = [&options.protocol].into_iter().chain(&options.second_protocol).map(String::as_str);
        let profile = definition.profile_for(&options.profile, protocols)?;
        let offer = definition.offer(&options.protocol)?;
        check_topology(definition, options)?;
        let container = wants_container(definition, options)?;
        check_listeners(definition, options, offer, container)?;
        if let Some(second) = &options.second_protocol {
            check_listeners(definition, options, definition.offer(second)?, container)?;
        }
        let login = login(definition, options, offer, container)?;
        let raised = raised_packet(definition, options)?;
        let limits = options.limits.as_ref().filter(|limits| !limits.is_empty());
        let back_end = if container { in_container(definition, options)? } else { as_program(definition, options)? };
        Ok(Plan { definition, options, profile, offer, back_end, login, raised, limits })
    }

    /// Number of brokers to start.
    pub(super) fn brokers(&self) -> usize {
        self.options.topology.brokers as usize
    }

    /// The situation in which conditions are evaluated at a broker; the first broker is 0.
    pub(super) fn situation(&self, broker: usize) -> Situation {
        let neighbours = match self.options.topology.mode {
            _ if self.brokers() == 1 => Neighbours::None,
            TopologyMode::Shard => Neighbours::None,
            TopologyMode::Bridge => Neighbours::Bridge,
            TopologyMode::Cluster => Neighbours::Cluster,
        };
        Situation {
            tls: self.options.encrypts(),
            websocket: self.options.websocket,
            password: self.options.credentials.is_some(),
            container: self.is_container(),
            neighbours,
            first: broker == 0,
            raised: self.raised.is_some(),
        }
    }

    pub(super) fn is_container(&self) -> bool {
        matches!(self.back_end, BackEnd::Container { .. })
    }
}

fn no_back_end(definition: &Definition, reason: String) -> SystemError {
    SystemError::NoBackEnd { system: definition.name.clone(), reason }
}

/// Does the system run in a container? If both back ends are possible, the program is used.
fn wants_container(definition: &Definition, options: &StartOptions) -> Result<bool, SystemError> {
    let there = &definition.back_ends;
    let refuse = |reason: String| Err(no_back_end(definition, reason));
    match options.back_end {
        Some(BackEndChoice::Process) if options.image.is_some() => {
            refuse("an image is for a container: `--back-end container`".to_owned())
        }
        None if options.image.is_some() && there.container.is_none() => {
            refuse("its definition has no container to run an image in".to_owned())
        }
        Some(BackEndChoice::Process) if there.process.is_none() && there.container.is_some() => {
            refuse("it runs in a container only: `--back-end container`".to_owned())
        }
        Some(BackEndChoice::Container) if there.container.is_none() && there.process.is_some() => {
            refuse("its definition has no container: `--back-end process`".to_owned())
        }
        _ if there.process.is_none() && there.container.is_none() => match &there.brokerless {
            Some(brokerless) => refuse(format!("it has no broker: {}", brokerless.how)),
            None => refuse("its definition has no back end; if it runs elsewhere, `--endpoint URL`".to_owned()),
        },
        // An image was named explicitly, so a container is wanted.
        None => Ok(there.process.is_none() || options.image.is_some()),
        Some(choice) => Ok(choice == BackEndChoice::Container),
    }
}

fn as_program<'a>(definition: &'a Definition, options: &StartOptions) -> Result<BackEnd<'a>, SystemError> {
    let found = definition
        .back_ends
        .process
        .as_ref()
        .ok_or_else(|| no_back_end(definition, "its definition has no back end `process`".to_owned()))?;
    let program = match &options.supervisor {
        Some(own) if found.program == SELF => own.clone(),
        _ => find_program(&found.program, found)?,
    };
    // `PATH` may contain relative folders, and the supervisor has another working directory.
    let program =
        std::path::absolute(&program).map_err(|source| SystemError::File { action: "find", path: program, source })?;
    Ok(BackEnd::Process { found, program })
}

fn in_container<'a>(definition: &'a Definition, options: &StartOptions) -> Result<BackEnd<'a>, SystemError> {
    let found = definition
        .back_ends
        .container
        .as_ref()
        .ok_or_else(|| no_back_end(definition, "its definition has no back end `container`".to_owned()))?;
    let image = options.image.clone().unwrap_or_else(|| found.image.clone());
    Ok(BackEnd::Container { found, image, engine: Box::new(Engine::find()?) })
}

fn check_listeners(
    definition: &Definition,
    options: &StartOptions,
    offer: &Offer,
    container: bool,
) -> Result<(), SystemError> {
    if options.websocket && offer.websocket_listener.is_none() {
        return Err(SystemError::NoWebSocket { system: definition.name.clone(), protocol: options.protocol.clone() });
    }
    if options.encrypts() && !definition.encrypts_protocol(offer, options.websocket, container) {
        return Err(SystemError::NoTls { system: definition.name.clone(), protocol: options.protocol.clone() });
    }
    Ok(())
}

fn login(
    definition: &Definition,
    options: &StartOptions,
    offer: &Offer,
    container: bool,
) -> Result<Option<Credentials>, SystemError> {
    if options.credentials.is_some() {
        if !definition.asks_for_login(container) {
            return Err(SystemError::NoLogin { system: definition.name.clone() });
        }
        return Ok(options.credentials.clone());
    }
    Ok(fixed_login(offer))
}

/// The log-in without which a listener admits no client.
pub(super) fn fixed_login(offer: &Offer) -> Option<Credentials> {
    offer.fixed_login.as_ref().map(|written| {
        let (user, password) = written.split_once(':').unwrap_or((written, ""));
        Credentials { user: user.to_owned(), password: password.into() }
    })
}

fn check_topology(definition: &Definition, options: &StartOptions) -> Result<(), SystemError> {
    let wanted = options.topology;
    let offered = match wanted.mode {
        TopologyMode::Shard => true,
        TopologyMode::Bridge => definition.topology.bridge.is_some(),
        TopologyMode::Cluster => definition.topology.cluster.is_some(),
    };
    if (wanted.brokers > 1 && !offered) || wanted.brokers == 0 || wanted.brokers > MOST_BROKERS {
        let several = [("bridge", &definition.topology.bridge), ("cluster", &definition.topology.cluster)];
        let known = several.iter().filter(|(_, phrase)| phrase.is_some()).map(|(name, _)| *name);
        return Err(SystemError::Topology {
            system: definition.name.clone(),
            brokers: wanted.brokers,
            mode: wanted.mode.as_str(),
            known: format!(
                "1 broker, or 2 to {MOST_BROKERS} as {}",
                known.chain(["shard"]).collect::<Vec<_>>().join(" or ")
            ),
        });
    }
    Ok(())
}

/// The packet size that the system is raised to, if its own is too small.
///
/// # Errors
/// The size cannot be raised so far.
pub fn raised_packet(definition: &Definition, options: &StartOptions) -> Result<Option<u32>, SystemError> {
    let limits = definition.limits;
    match (options.packet_bytes, limits.maximum_packet_bytes) {
        (Some(needed), Some(default)) if needed > default => {
            let most = limits.raised_to_at_most_bytes.unwrap_or(default).max(default);
            if needed > most {
                return Err(SystemError::Packet { system: definition.name.clone(), needed, most });
            }
            Ok(Some(needed.div_ceil(PACKET_STEP).saturating_mul(PACKET_STEP).min(most)))
        }
        _ => Ok(None),
    }
}
