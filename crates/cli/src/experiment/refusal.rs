//! What a cell asks for and cannot have, found before anything is started.

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::protocols;
use pubmark_model::topology::TopologyMode;
use pubmark_model::workload::Workload;
use pubmark_record::experiment::FailureKind;
use pubmark_systems::container::Engine;
use pubmark_systems::{BackEndChoice, Definition, StartOptions, SystemError, launch};

/// Why a cell is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `Unsupported`, `NotInstalled` or `NoRoom`.
    pub kind: FailureKind,
    /// One sentence.
    pub text: String,
}

impl Refusal {
    /// The system does not offer it.
    pub fn unsupported(text: impl Into<String>) -> Refusal {
        Refusal { kind: FailureKind::Unsupported, text: text.into() }
    }

    /// Something that it needs is not here.
    pub fn not_installed(text: impl Into<String>) -> Refusal {
        Refusal { kind: FailureKind::NotInstalled, text: text.into() }
    }

    /// What a run of the cell alone would be refused with.
    pub fn of_failure(failure: Failure) -> Refusal {
        let text = failure.chain.join(": ");
        match failure.exit {
            ExitCode::Usage => Refusal::unsupported(text),
            _ => Refusal::no_room(text),
        }
    }

    /// This machine is too small for it.
    pub fn no_room(text: impl Into<String>) -> Refusal {
        Refusal { kind: FailureKind::NoRoom, text: text.into() }
    }
}

/// Does the system offer what is asked, and is it on this machine? `None` if nothing speaks against a start.
pub fn of(definition: &Definition, options: &StartOptions, workload: &Workload) -> Option<Refusal> {
    not_offered(definition, options, workload).or_else(|| not_installed(definition, options))
}

/// Does the system offer what is asked? `None` if it does.
pub fn not_offered(definition: &Definition, options: &StartOptions, workload: &Workload) -> Option<Refusal> {
    let name = &definition.name;
    let devices = workload.devices.iter().map(|group| group.qos.level()).max().unwrap_or(0);
    let subscribers = workload.subscribers.iter().map(|group| group.qos.level()).max().unwrap_or(0);
    let listens_over = options.second_protocol.as_ref().unwrap_or(&options.protocol);
    for (protocol, asked) in [(&options.protocol, devices), (listens_over, subscribers)] {
        match definition.offer(protocol) {
            Err(error) => return Some(Refusal::unsupported(error.to_string())),
            Ok(offer) if asked > offer.highest_qos => {
                let granted = offer.highest_qos;
                return Some(Refusal::unsupported(format!("`{name}` grants QoS {granted} at most over {protocol}")));
            }
            Ok(_) => {}
        }
    }
    if let Err(error) = definition.profile(&options.profile) {
        return Some(Refusal::unsupported(error.to_string()));
    }
    if let Err(error) = launch::raised_packet(definition, options) {
        return Some(Refusal::unsupported(error.to_string()));
    }
    if let Some(group) = workload.subscribers.iter().find(|group| group.shared.is_some())
        && definition.offer(listens_over).is_ok_and(|offer| !offer.shared_subscriptions)
    {
        return Some(Refusal::unsupported(format!(
            "`{name}` has no shared subscriptions over {listens_over}, which subscriber group `{}` asks for",
            group.name
        )));
    }
    for protocol in [&options.protocol, listens_over] {
        if options.websocket && definition.offer(protocol).is_ok_and(|offer| offer.websocket_listener.is_none()) {
            return Some(Refusal::unsupported(format!("`{name}` does not offer {protocol} over WebSocket")));
        }
    }
    if options.encrypts()
        && let Some(protocol) =
            [&options.protocol, listens_over].into_iter().find(|name| !encrypts(definition, options, name))
    {
        return Some(Refusal::unsupported(format!("`{name}` does not offer {protocol} over TLS to pubmark's clients")));
    }
    let topology = options.topology;
    let missing = match topology.mode {
        TopologyMode::Shard => None,
        TopologyMode::Bridge if definition.topology.bridge.is_none() => Some("bridge"),
        TopologyMode::Cluster if definition.topology.cluster.is_none() => Some("cluster"),
        TopologyMode::Bridge | TopologyMode::Cluster => None,
    };
    match missing {
        Some(mode) if topology.brokers > 1 => {
            Some(Refusal::unsupported(format!("`{name}` cannot run {} brokers as a {mode}", topology.brokers)))
        }
        _ => None,
    }
}

/// Can connections over a protocol be encrypted, by the system and by our clients?
fn encrypts(definition: &Definition, options: &StartOptions, protocol: &str) -> bool {
    let container = options.runs_in_container(definition);
    let offered =
        definition.offer(protocol).is_ok_and(|offer| definition.encrypts_protocol(offer, options.websocket, container));
    offered && protocols::find(protocol).is_some_and(|ours| !ours.capabilities.tls_schemes.is_empty())
}

/// Why a system without a broker has no TLS here.
pub fn nothing_encrypts(definition: &Definition) -> String {
    format!("`{}` has no broker to encrypt connections to", definition.name)
}

/// Is what starts it on this machine? An image that is not here yet may still be pulled, so only the engine is asked for.
fn not_installed(definition: &Definition, options: &StartOptions) -> Option<Refusal> {
    let (name, ends) = (&definition.name, &definition.back_ends);
    // An image is asked for by its name, so a container is wanted.
    let asked = options.back_end.or(options.image.as_ref().map(|_| BackEndChoice::Container));
    let wants = |choice| asked.is_none_or(|asked| asked == choice);
    let refused = |text: String| Some(Refusal::not_installed(text));
    match (&ends.process, &ends.container) {
        (Some(process), _) if wants(BackEndChoice::Process) => {
            match launch::find_program(&process.program, process) {
                Err(error @ (SystemError::Missing { .. } | SystemError::NotAProgram { .. })) => {
                    // The whole script is `pubmark install`'s to print.
                    let said = error.to_string();
                    let said = said.split(": ").next().unwrap_or(&said);
                    refused(format!("{said} (`pubmark install {name}`)"))
                }
                Err(error @ SystemError::Untrusted { .. }) => refused(error.to_string()),
                _ => None,
            }
        }
        (_, Some(_)) if wants(BackEndChoice::Container) => match Engine::find() {
            Ok(_) => None,
            Err(error) => refused(format!("`{name}` runs in a container only: {error}")),
        },
        _ => Some(Refusal::unsupported(format!("`{name}` has no back end that can be started here"))),
    }
}
