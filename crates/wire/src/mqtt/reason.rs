//! Reason codes of MQTT 5.0 (§2.4) with the packets that may carry them, and the return codes of MQTT 3.1.1.
//! Constants name the codes that pubmark sends or looks for.

use super::packet_type::PacketType;
use PacketType::{Auth, Connack, Disconnect, Puback, Pubcomp, Pubrec, Pubrel, Suback, Unsuback};

/// It worked; also QoS 0 granted, normal disconnection.
pub const SUCCESS: u8 = 0x00;
/// Disconnection that shall publish the will.
pub const DISCONNECT_WITH_WILL: u8 = 0x04;
/// Accepted, but there is no subscriber.
pub const NO_MATCHING_SUBSCRIBERS: u8 = 0x10;
/// Unsubscribed from what was not subscribed.
pub const NO_SUBSCRIPTION_EXISTED: u8 = 0x11;
/// The authentication takes one more step (AUTH).
pub const CONTINUE_AUTHENTICATION: u8 = 0x18;
/// The client proves anew who it is (AUTH).
pub const RE_AUTHENTICATE: u8 = 0x19;
/// Failure without further words.
pub const UNSPECIFIED_ERROR: u8 = 0x80;
/// The bytes are no packet.
pub const MALFORMED_PACKET: u8 = 0x81;
/// The packet is against the rules.
pub const PROTOCOL_ERROR: u8 = 0x82;
/// An unsupported version.
pub const UNSUPPORTED_PROTOCOL_VERSION: u8 = 0x84;
/// Client identifier refused.
pub const CLIENT_IDENTIFIER_NOT_VALID: u8 = 0x85;
/// User name or password wrong.
pub const BAD_USER_NAME_OR_PASSWORD: u8 = 0x86;
/// Not allowed.
pub const NOT_AUTHORIZED: u8 = 0x87;
/// The server cannot at present.
pub const SERVER_UNAVAILABLE: u8 = 0x88;
/// The server is shutting down.
pub const SERVER_SHUTTING_DOWN: u8 = 0x8b;
/// The authentication method is not supported.
pub const BAD_AUTHENTICATION_METHOD: u8 = 0x8c;
/// Nothing was received for one and a half keep-alive intervals.
pub const KEEP_ALIVE_TIMEOUT: u8 = 0x8d;
/// Another connection uses the same client identifier.
pub const SESSION_TAKEN_OVER: u8 = 0x8e;
/// The topic filter is not accepted.
pub const TOPIC_FILTER_INVALID: u8 = 0x8f;
/// The topic name is not accepted.
pub const TOPIC_NAME_INVALID: u8 = 0x90;
/// No message has this identifier.
pub const PACKET_IDENTIFIER_NOT_FOUND: u8 = 0x92;
/// More messages in flight than allowed.
pub const RECEIVE_MAXIMUM_EXCEEDED: u8 = 0x93;
/// The topic alias is 0 or above the maximum.
pub const TOPIC_ALIAS_INVALID: u8 = 0x94;
/// The packet exceeds the maximum packet size.
pub const PACKET_TOO_LARGE: u8 = 0x95;
/// A limit of the administrator is reached.
pub const QUOTA_EXCEEDED: u8 = 0x97;
/// Shared subscriptions are not supported.
pub const SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: u8 = 0x9e;

const fn carried_by(packets: &[PacketType]) -> u16 {
    let mut mask = 0;
    let mut index = 0;
    while index < packets.len() {
        mask |= 1 << packets[index] as u16;
        index += 1;
    }
    mask
}

/// (code, name, packets that may carry it): MQTT 5.0 table 2-6.
const REASONS: &[(u8, &str, u16)] = &[
    (0x00, "success", carried_by(&[Connack, Puback, Pubrec, Pubrel, Pubcomp, Suback, Unsuback, Auth, Disconnect])),
    (0x01, "granted QoS 1", carried_by(&[Suback])),
    (0x02, "granted QoS 2", carried_by(&[Suback])),
    (0x04, "disconnect with will message", carried_by(&[Disconnect])),
    (0x10, "no matching subscribers", carried_by(&[Puback, Pubrec])),
    (0x11, "no subscription existed", carried_by(&[Unsuback])),
    (0x18, "continue authentication", carried_by(&[Auth])),
    (0x19, "re-authenticate", carried_by(&[Auth])),
    (0x80, "unspecified error", carried_by(&[Connack, Puback, Pubrec, Suback, Unsuback, Disconnect])),
    (0x81, "malformed packet", carried_by(&[Connack, Disconnect])),
    (0x82, "protocol error", carried_by(&[Connack, Disconnect])),
    (0x83, "implementation specific error", carried_by(&[Connack, Puback, Pubrec, Suback, Unsuback, Disconnect])),
    (0x84, "unsupported protocol version", carried_by(&[Connack])),
    (0x85, "client identifier not valid", carried_by(&[Connack])),
    (0x86, "bad user name or password", carried_by(&[Connack])),
    (0x87, "not authorized", carried_by(&[Connack, Puback, Pubrec, Suback, Unsuback, Disconnect])),
    (0x88, "server unavailable", carried_by(&[Connack])),
    (0x89, "server busy", carried_by(&[Connack, Disconnect])),
    (0x8a, "banned", carried_by(&[Connack])),
    (0x8b, "server shutting down", carried_by(&[Disconnect])),
    (0x8c, "bad authentication method", carried_by(&[Connack, Disconnect])),
    (0x8d, "keep alive timeout", carried_by(&[Disconnect])),
    (0x8e, "session taken over", carried_by(&[Disconnect])),
    (0x8f, "topic filter invalid", carried_by(&[Suback, Unsuback, Disconnect])),
    (0x90, "topic name invalid", carried_by(&[Connack, Puback, Pubrec, Disconnect])),
    (0x91, "packet identifier in use", carried_by(&[Puback, Pubrec, Suback, Unsuback])),
    (0x92, "packet identifier not found", carried_by(&[Pubrel, Pubcomp])),
    (0x93, "receive maximum exceeded", carried_by(&[Disconnect])),
    (0x94, "topic alias invalid", carried_by(&[Disconnect])),
    (0x95, "packet too large", carried_by(&[Connack, Disconnect])),
    (0x96, "message rate too high", carried_by(&[Disconnect])),
    (0x97, "quota exceeded", carried_by(&[Connack, Puback, Pubrec, Suback, Disconnect])),
    (0x98, "administrative action", carried_by(&[Disconnect])),
    (0x99, "payload format invalid", carried_by(&[Connack, Puback, Pubrec, Disconnect])),
    (0x9a, "retain not supported", carried_by(&[Connack, Disconnect])),
    (0x9b, "QoS not supported", carried_by(&[Connack, Disconnect])),
    (0x9c, "use another server", carried_by(&[Connack, Disconnect])),
    (0x9d, "server moved", carried_by(&[Connack, Disconnect])),
    (0x9e, "shared subscriptions not supported", carried_by(&[Suback, Disconnect])),
    (0x9f, "connection rate exceeded", carried_by(&[Connack, Disconnect])),
    (0xa0, "maximum connect time", carried_by(&[Disconnect])),
    (0xa1, "subscription identifiers not supported", carried_by(&[Suback, Disconnect])),
    (0xa2, "wildcard subscriptions not supported", carried_by(&[Suback, Disconnect])),
];

/// May a 5.0 packet of this type carry this code?
pub(crate) fn is_carried_by(code: u8, packet: PacketType) -> bool {
    // Nearly every acknowledgement has this code.
    if code == SUCCESS {
        return true;
    }
    REASONS.binary_search_by_key(&code, |row| row.0).is_ok_and(|index| REASONS[index].2 & (1 << packet as u16) != 0)
}

/// The name of an MQTT 5.0 reason code, `unknown reason` for a code that the standard does not define.
pub fn reason_name(code: u8) -> &'static str {
    match REASONS.binary_search_by_key(&code, |row| row.0) {
        Ok(index) => REASONS[index].1,
        Err(_) => "unknown reason",
    }
}

/// The name of an MQTT 3.1.1 CONNACK return code (§3.2.2.3), `unknown return code` for others.
pub fn connack_return_name(code: u8) -> &'static str {
    const NAMES: [&str; 6] = [
        "connection accepted",
        "unacceptable protocol version",
        "identifier rejected",
        "server unavailable",
        "bad user name or password",
        "not authorized",
    ];
    NAMES.get(usize::from(code)).copied().unwrap_or("unknown return code")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(REASONS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(REASONS.len(), 43);
    }

    #[test]
    fn codes_have_the_names_of_the_standard() {
        assert_eq!(reason_name(0x97), "quota exceeded");
        assert_eq!(reason_name(0xa2), "wildcard subscriptions not supported");
        assert_eq!(reason_name(0x03), "unknown reason");
        assert_eq!(connack_return_name(4), "bad user name or password");
        assert_eq!(connack_return_name(6), "unknown return code");
        assert!(is_carried_by(0x92, PacketType::Pubrel) && !is_carried_by(0x92, PacketType::Puback));
    }
}
