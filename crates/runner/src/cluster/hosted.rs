//! A system that a node starts, as the coordinator sees it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_cluster::{Cluster, ClusterError};
use pubmark_engine::endpoints::Endpoints;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocols::ProtocolPair;
use pubmark_record::record::{Deviation, SystemEnd, SystemInfo};
use pubmark_systems::private_directory::{self, PrivateDirectory};

use super::FinishedSystem;
use super::channel::Channel;
use super::observed::is_this_machine;
use super::system_host::{HostMessage, Request, StartedSystem, SystemOrder};
use super::system_order;
use crate::error::{ErrorKind, RunError};
use crate::log_in;
use crate::spec::RunSpec;
use crate::target::Target;

/// Hint for a node that fails.
const OWN_OUTPUT: &str = "the node's own output says what ended it";
/// Longest wait for a system to start; this includes fetching images.
const START_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait for the measurements at the end: a program may need time to exit.
const FINISH_LIMIT: Duration = Duration::from_secs(60);

/// A system that a node started. It is stopped when this is dropped.
#[derive(Debug)]
pub struct Hosted {
    name: String,
    channel: Channel,
    publish_at: Endpoints,
    subscribe_at: Endpoints,
    info: SystemInfo,
    deviations: Vec<Deviation>,
    /// Has the file of the authority that signed its certificate, if its connections are encrypted.
    _authority: Option<PrivateDirectory>,
}

impl Hosted {
    /// Starts the system of a run on the node of this name.
    ///
    /// # Errors
    /// No such node joined, it has no address that clients can reach, or the system does not start there.
    pub fn start(
        cluster: &Cluster,
        name: &str,
        spec: &RunSpec,
        protocol_pair: ProtocolPair,
        stop: &AtomicBool,
    ) -> Result<Hosted, RunError> {
        let hosts = cluster.system_hosts();
        let Some(host) = hosts.iter().find(|host| host.name == name) else {
            let names = hosts.iter().map(|host| format!("`{}`", host.name)).collect::<Vec<_>>().join(", ");
            return Err(RunError::input(format!("no node `{name}` starts systems: {names} joined for that")).hint(
                format!("`pubmark node --start-systems --name {name}`, or `--system-node` with the name that joined"),
            ));
        };
        let IpAddr::V4(address) = host.clients_at else {
            return Err(RunError::unsupported(format!(
                "clients would reach a system on `{name}` at {}, and systems listen at IPv4 addresses",
                host.clients_at
            ))
            .hint(format!("`pubmark node --address IP` on `{name}`, with an IPv4 address")));
        };
        // Loopback addresses are not reachable from other machines.
        if address.is_loopback()
            && let Some(far) = cluster.nodes().into_iter().find(|node| !node.address.ip().is_loopback())
        {
            return Err(RunError::input(format!(
                "a system on `{name}` at {address} is out of reach for `{}`",
                far.name
            ))
            .hint(format!("`pubmark node --address IP` on `{name}`, with an IPv4 address that other nodes reach")));
        }
        let interrupted =
            || RunError::new(ErrorKind::Interrupted, format!("interrupted while `{name}` started the system"));
        let stream = cluster.begin_without_clients(name, stop).map_err(|error| match error {
            ClusterError::Interrupted => interrupted(),
            error => RunError::from_error(ErrorKind::NodeLost, &error).hint(OWN_OUTPUT),
        })?;
        let login = log_in::of(&spec.connection)?.map(|login| (login.user, login.password.expose().to_owned()));
        let protocol_pair = system_order::names(protocol_pair);
        let trimmed = system_order::of_system(&spec.self_contained(), protocol_pair.clone(), None, address);
        let order = SystemOrder { spec: trimmed.to_yaml_with_passwords()?, protocol_pair, login, address };
        let mut channel = Channel::new(stream);
        let lost = |error: &io::Error| {
            RunError::from_error(ErrorKind::NodeLost, error)
                .during(format!("`{name}` did not start the system"))
                .hint(OWN_OUTPUT)
        };
        channel.send(&Request::Start(Box::new(order))).map_err(|error| lost(&error))?;
        let heard = channel.receive_within(START_LIMIT, stop).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => interrupted(),
            _ => lost(&error),
        });
        match heard? {
            HostMessage::Started(started) => Hosted::of(name, channel, *started, address, spec.connection.tls),
            HostMessage::Failed(refusal) => Err(RunError::from(refusal).during(format!("on `{name}`"))),
            HostMessage::Ended | HostMessage::Finished(_) => {
                Err(lost(&io::Error::other("it sent an unexpected message")))
            }
        }
    }

    fn of(
        name: &str,
        channel: Channel,
        started: StartedSystem,
        address: Ipv4Addr,
        is_encrypted: bool,
    ) -> Result<Hosted, RunError> {
        let wrong = |why: String| {
            RunError::new(ErrorKind::NodeLost, format!("`{name}` named no endpoints of its own: {why}"))
                .hint(OWN_OUTPUT)
        };
        let (directory, tls) = match (is_encrypted, &started.authority) {
            (false, _) => (None, None),
            (true, None) => return Err(wrong("they have no certificate".to_owned())),
            (true, Some(authority)) => {
                let (directory, tls) = trusted(authority, address)?;
                (Some(directory), Some(tls))
            }
        };
        let endpoints = |bytes: &[u8]| {
            let found = Endpoints::from_bytes(bytes).map_err(wrong)?;
            // Clients send data to the address in the reply: it must be that node alone. Its paths are those of another machine.
            found.replaced(|endpoint: &Endpoint| {
                let is_its_own = endpoint.address.ip() == IpAddr::V4(address) && endpoint.tls.is_some() == is_encrypted;
                match is_its_own {
                    true => Ok(Endpoint { tls: tls.clone(), ..endpoint.clone() }),
                    false => Err(wrong("they are elsewhere, or not encrypted as requested".to_owned())),
                }
            })
        };
        let [publish_at, subscribe_at] = &started.endpoints;
        let mut info = started.info;
        info.node = Some(name.to_owned());
        Ok(Hosted {
            name: name.to_owned(),
            publish_at: endpoints(publish_at)?,
            subscribe_at: endpoints(subscribe_at)?,
            channel,
            info,
            deviations: started.deviations,
            _authority: directory,
        })
    }

    /// Endpoints and description of the system, for clients and the record.
    pub fn target(&self) -> Target {
        let (info, deviations) = (self.info.clone(), self.deviations.clone());
        let (publish_at, subscribe_at) = (self.publish_at.clone(), self.subscribe_at.clone());
        Target { publish_at, subscribe_at, info, deviations, running: None }
    }

    /// Devices follow their schedule from now on; the measured window starts at this time of the run's clock, ns.
    pub fn begin(&self, start_ns: u64) {
        // If the process has ended, its figures are missing at the end.
        let _ = self.channel.send(&Request::Begin { start_ns });
    }

    /// Has the system ended by itself, or is its node lost? A node sends nothing else before the end of a run.
    pub fn has_ended(&self) -> bool {
        self.channel.is_readable()
    }

    /// Returns the measurements of the system. They are empty if the node is lost.
    pub fn finish(&mut self, window_ns: (u64, u64), drain_ns: u64) -> FinishedSystem {
        // This waits also in a run that was stopped.
        let stop = AtomicBool::new(false);
        let asked = self.channel.send(&Request::Finish { window_ns, drain_ns });
        let mut receive = || self.channel.receive_within(FINISH_LIMIT, &stop);
        let heard = asked.and_then(|()| match receive()? {
            HostMessage::Ended => receive(),
            other => Ok(other),
        });
        match heard {
            Ok(HostMessage::Finished(mut finished)) => {
                let is_this_machine = Some(is_this_machine(&finished.machine));
                finished.cost.host.iter_mut().for_each(|host| host.is_this_machine = is_this_machine);
                *finished
            }
            Ok(HostMessage::Started(_) | HostMessage::Failed(_) | HostMessage::Ended) => {
                self.lost("it sent an unexpected message")
            }
            Err(error) => self.lost(&error.to_string()),
        }
    }

    fn lost(&self, why: &str) -> FinishedSystem {
        let how = format!("its node `{}` was lost: {why}", self.name);
        FinishedSystem {
            end: Some((SystemEnd { how, ..SystemEnd::default() }, String::new())),
            ..FinishedSystem::default()
        }
    }
}

/// Trust in the authority of a system on a node, whose certificate names its address. Clients on other nodes get the
/// content of the file.
fn trusted(authority: &str, address: Ipv4Addr) -> Result<(PrivateDirectory, Tls), RunError> {
    let local = |error: &(dyn std::error::Error + 'static)| {
        RunError::from_error(ErrorKind::Input, error).during("failed to store the authority of a system on a node")
    };
    let folder = private_directory::folder().map_err(|error| local(&error))?;
    let directory = PrivateDirectory::within(&folder).map_err(|error| local(&error))?;
    let path = directory.path().join("authority.pem");
    fs::write(&path, authority).map_err(|error| local(&error))?;
    let tls = Tls { server_name: address.to_string(), authorities: Some(path), identity: None };
    Ok((directory, tls))
}
