//! How a node joins a coordinator.

use std::error::Error;
use std::io;

use rustls::CertificateError;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status, Streaming};

use super::{CoordinatorAddress, NodeKind, NodeSettings};
use crate::SOURCES;
use crate::announcement;
use crate::coordinator::words;
use crate::credentials::{COORDINATOR, Credentials};
use crate::error::{ClusterError, Objection, causes};
use crate::lanes::{Lanes, lanes};
use crate::limits;
use crate::machine;
use crate::messages::{CoordinatorMessage, FromNode, Join, LARGEST_BYTES, NodeMessage, SCHEMA, ToNode, Welcome};
use crate::stubs::control_client::ControlClient;

/// The connection of a node that joined.
pub(super) struct Membership {
    /// Address of the coordinator.
    pub address: String,
    pub inbound: Streaming<ToNode>,
    pub lanes: Lanes<FromNode>,
    pub welcome: Welcome,
}

/// Why a node could not join.
pub(super) enum Failure {
    /// A later attempt may succeed: the coordinator is not reachable, or needs no further node now.
    NotYet(String),
    /// No later attempt will succeed.
    Refused(ClusterError),
}

/// Joins a coordinator, with one attempt.
pub(super) async fn join(settings: &NodeSettings) -> Result<Membership, Failure> {
    let addresses = match &settings.join {
        CoordinatorAddress::At(address) => vec![address.clone()],
        CoordinatorAddress::Announced => announced(settings).await?,
    };
    let mut not_yet = String::new();
    for address in addresses {
        match join_at(address, settings).await {
            Err(Failure::NotYet(why)) => not_yet = why,
            joined_or_refused => return joined_or_refused,
        }
    }
    Err(Failure::NotYet(not_yet))
}

/// Addresses of a coordinator that is announced on the network.
async fn announced(settings: &NodeSettings) -> Result<Vec<String>, Failure> {
    let credentials = settings.credentials.clone();
    let searched = tokio::task::spawn_blocking(move || announcement::find(&credentials, limits::SEARCH)).await;
    let unable = |why: String| {
        Failure::Refused(ClusterError::Unreachable {
            address: settings.join.to_string(),
            why: format!("no search: {why}"),
        })
    };
    let found = searched.map_err(|error| unable(error.to_string()))?.map_err(|error| unable(error.to_string()))?;
    if found.is_empty() {
        return Err(Failure::NotYet("none is announced on this machine's networks".to_owned()));
    }
    Ok(found.iter().map(ToString::to_string).collect())
}

async fn join_at(address: String, settings: &NodeSettings) -> Result<Membership, Failure> {
    let unreachable = |why: String| Failure::Refused(ClusterError::Unreachable { address: address.clone(), why });
    let endpoint = endpoint(&address, &settings.credentials).map_err(|error| unreachable(causes(&error)))?;
    let channel = endpoint.connect().await.map_err(|error| {
        let why = causes(&error);
        // Further attempts are useless: the coordinator's authority does not change, and a certificate that is not valid
        // now must first be replaced.
        match tls_error(&error) {
            Some(rustls::Error::AlertReceived(_)) => Failure::Refused(not_taken(&address, &why)),
            Some(rustls::Error::InvalidCertificate(reason)) if is_out_of_date(reason) => {
                unreachable(format!("by the clock of this machine its certificate is out of date ({why})"))
            }
            Some(rustls::Error::InvalidCertificate(_)) => {
                unreachable(format!("it is of another cluster than these credentials ({why})"))
            }
            _ => Failure::NotYet(format!("no answer from {address} ({why})")),
        }
    })?;
    let (lanes, outbound) = lanes();
    lanes.say(FromNode { message: Some(NodeMessage::Join(introduction(settings))) });
    let mut client = ControlClient::new(channel).max_decoding_message_size(LARGEST_BYTES);
    let attended = tokio::time::timeout(limits::INTRODUCTION, client.attend(outbound)).await;
    let late = || Failure::NotYet(format!("{address} does not answer"));
    let mut inbound = attended.map_err(|_| late())?.map_err(|status| refused(&address, &status))?.into_inner();
    let first = tokio::time::timeout(limits::INTRODUCTION, inbound.message()).await.map_err(|_| late())?;
    match first.map_err(|status| refused(&address, &status))?.and_then(|message| message.message) {
        Some(CoordinatorMessage::Welcome(welcome)) => Ok(Membership { address, inbound, lanes, welcome }),
        _ => Err(unreachable("it does not speak as a coordinator of pubmark does".to_owned())),
    }
}

/// The error of TLS among the causes of an error.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = error.downcast_ref().or_else(|| within?.downcast_ref());
        if found.is_some() {
            return found;
        }
        next = error.source();
    }
    None
}

fn is_out_of_date(reason: &CertificateError) -> bool {
    matches!(
        reason,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

fn endpoint(address: &str, credentials: &Credentials) -> Result<Endpoint, tonic::transport::Error> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(&credentials.authority))
        .identity(Identity::from_pem(&credentials.certificate, &credentials.key))
        // The name is independent of the coordinator's machine; only a coordinator's certificate has it.
        .domain_name(COORDINATOR);
    Endpoint::from_shared(format!("https://{address}"))?
        .connect_timeout(limits::CONNECT)
        .tcp_nodelay(true)
        .tls_config(tls)
}

fn introduction(settings: &NodeSettings) -> Join {
    Join {
        schema: SCHEMA,
        version: settings.version.clone(),
        sources: SOURCES.to_owned(),
        token: settings.credentials.token.clone(),
        name: settings.name.clone(),
        host: settings.host.clone(),
        kernel: settings.kernel.clone(),
        cores: settings.cores,
        memory_bytes: settings.memory_bytes,
        boot: if settings.clock_error.is_some() { String::new() } else { machine::boot() },
        discipline: machine::discipline(),
        observes: settings.kind == NodeKind::Observer,
        starts_systems: settings.kind == NodeKind::SystemHost,
        awake: settings.awake,
        address: settings.address.map(|address| address.to_string()).unwrap_or_default(),
        labels: settings.labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        no_links: limits::short(settings.no_links.clone().unwrap_or_default()),
        no_kernel_netem: limits::short(settings.no_kernel_netem.clone().unwrap_or_default()),
    }
}

/// Converts a coordinator's refusal of a node into an error.
fn refused(address: &str, status: &Status) -> Failure {
    let why = match status.message() {
        "" => words(status),
        message => message.to_owned(),
    };
    let address = address.to_owned();
    let objection = match status.code() {
        Code::FailedPrecondition => Some(Objection::Version),
        Code::PermissionDenied => Some(Objection::Token),
        Code::AlreadyExists => Some(Objection::Name),
        Code::InvalidArgument => Some(Objection::Introduction),
        _ => None,
    };
    match objection {
        Some(objection) => Failure::Refused(ClusterError::Refused { address, objection, why }),
        None => {
            let words = words(status);
            // In TLS 1.3 the handshake is finished on this side before the other end checks our certificate (RFC 8446
            // §4.4.2).
            match words.contains("alert") {
                true => Failure::Refused(not_taken(&address, &words)),
                false => Failure::NotYet(why),
            }
        }
    }
}

/// The coordinator's TLS alert contains what is wrong with this node's certificate (RFC 8446 §6.2).
fn not_taken(address: &str, words: &str) -> ClusterError {
    ClusterError::Refused {
        address: address.to_owned(),
        objection: Objection::Certificate,
        why: format!("it does not take this node's certificate ({words})"),
    }
}
