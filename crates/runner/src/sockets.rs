//! Options of our sockets in addition to the system's address: congestion control, TLS session resumption, and source
//! addresses.

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
/// sockets that are not TCP or not ours; an option for TLS sessions if no connection is encrypted, or a library encrypts;
/// source addresses for clients that choose their addresses themselves.
pub fn validate(connection: &Connection, protocol_pair: ProtocolPair, wanted: &CheckedTarget) -> Result<(), RunError> {
    if connection.tls_resumption.is_some() && !wanted.is_encrypted() {
        return Err(RunError::input("no connection of this run is encrypted, so there is no TLS session to take up")
            .hint("`--tls` with a system that pubmark starts, or an endpoint with an encrypted scheme (`mqtts://`)"));
    }
    refuse_of_libraries(connection, protocol_pair)?;
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

/// Refuses options that a client library or a client program does not apply to its sockets.
fn refuse_of_libraries(connection: &Connection, protocol_pair: ProtocolPair) -> Result<(), RunError> {
    for side in [protocol_pair.publish, protocol_pair.subscribe] {
        let can = &side.capabilities;
        let (option, why) = if connection.source_addresses.is_some() && can.features.chooses_addresses {
            ("--source-addresses", "chooses the addresses of its sockets itself")
        } else if connection.tls_resumption.is_some() && can.sent_means == SentMeans::HandedOver {
            ("--tls-resumption", "does its TLS itself")
        } else {
            continue;
        };
        let who = if side.program.is_some() { "the client program" } else { "the client library" };
        let text = format!("`{option}` is for sockets of pubmark's own, and {who} of {} {why}", can.title);
        let hint = match side.program {
            Some(_) => "leave it out, or use pubmark's own client (without `--client`)",
            None => "leave it out, or choose another protocol (`pubmark list protocols`)",
        };
        return Err(RunError::unsupported(text).hint(hint));
    }
    Ok(())
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_protocol::client_program::Hello;
    use pubmark_protocols as protocols;

    use super::*;
    use crate::spec::SourceAddresses;

    #[test]
    fn options_that_a_client_program_would_not_apply_are_refused() {
        let hello =
            br#"{"versions": [1], "name": "paho", "version": "2.1", "protocols": [{"name": "mqtt5", "qos": [0]}]}"#;
        let mqtt = protocols::find("mqtt5").unwrap();
        let program = protocols::of_program(mqtt, &Hello::read(hello).unwrap()).unwrap();
        let sources = SourceAddresses::parse("127.0.0.1-127.0.0.2").unwrap();
        let sources = Connection { source_addresses: Some(sources), ..Connection::default() };
        let resumption = Connection { tls_resumption: Some(false), ..Connection::default() };
        for (connection, option) in [(&sources, "`--source-addresses`"), (&resumption, "`--tls-resumption`")] {
            let of = |side| refuse_of_libraries(connection, ProtocolPair { publish: side, subscribe: side });
            assert!(of(mqtt).is_ok(), "{option}");
            let refused = of(program).unwrap_err();
            assert!(refused.to_string().contains(option), "{refused}");
            assert!(refused.hint.unwrap().contains("without `--client`"));
        }
        assert!(
            refuse_of_libraries(&Connection::default(), ProtocolPair { publish: program, subscribe: program }).is_ok()
        );
    }
}
