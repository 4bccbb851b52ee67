//! Options of our sockets in addition to the system's address: congestion control, and TLS session resumption.

use pubmark_protocol::capabilities::SentMeans;
use pubmark_protocol::congestion::{self, CongestionError};

use crate::error::{ErrorKind, RunError};
use crate::spec::Connection;
use crate::target::CheckedTarget;
use pubmark_protocols::ProtocolPair;

/// Refuses options that cannot be applied, before anything starts.
///
/// # Errors
/// A congestion control that this machine does not have or reserves for administrators, or that is requested for
/// sockets that are not TCP or not ours; an option for TLS sessions if no connection is encrypted.
pub fn validate(connection: &Connection, protocol_pair: ProtocolPair, wanted: &CheckedTarget) -> Result<(), RunError> {
    if connection.tls_resumption.is_some() && !wanted.is_encrypted() {
        return Err(RunError::input("no connection of this run is encrypted, so there is no TLS session to take up")
            .hint("`--tls` with a system that pubmark starts, or an endpoint with an encrypted scheme (`mqtts://`)"));
    }
    let Some(name) = &connection.congestion_control else { return Ok(()) };
    for side in [protocol_pair.publish, protocol_pair.subscribe] {
        let can = &side.capabilities;
        let why = match can.sent_means {
            SentMeans::HandedOver => "opens its sockets in a library",
            SentMeans::Wire if can.features.datagrams => "speaks over UDP",
            SentMeans::Wire => continue,
        };
        let text = format!("`--congestion-control` is for TCP sockets of pubmark's own, and {} {why}", can.title);
        return Err(
            RunError::unsupported(text).hint("leave it out, or choose another protocol (`pubmark list protocols`)")
        );
    }
    congestion::check(name).map_err(|error| unusable(&error))
}

fn unusable(error: &CongestionError) -> RunError {
    let among = |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let failure = RunError::from_error(ErrorKind::Input, error);
    match error {
        CongestionError::Unknown { .. } => failure.hint(format!("there are: {}", among(congestion::available()))),
        CongestionError::NotAllowed { .. } => {
            failure.hint(format!("as root, or one that is for everybody: {}", among(congestion::allowed())))
        }
        CongestionError::Untried { .. } => failure,
    }
}

/// Whether clients resume their last TLS session.
pub fn resume_tls(connection: &Connection) -> bool {
    connection.tls_resumption != Some(false)
}
