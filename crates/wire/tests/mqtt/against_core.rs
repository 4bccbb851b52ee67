//! `mqtt-protocol-core` as the oracle: it reads what we write and writes the same bytes again, which we read.
//! Where we accept damaged bytes, it must accept them too.

use std::sync::Arc;

use mqtt_protocol_core::mqtt::packet::{v3_1_1, v5_0};
use proptest::collection::vec;
use proptest::prelude::*;
use pubmark_wire::mqtt::*;

use crate::packets::{bytes_of, packet_in, versioned};

/// The oracle reads a packet's body to its end and writes the packet.
macro_rules! through {
    ($packet:ty, $body:expr) => {{
        let (packet, used) = <$packet>::parse($body).map_err(|error| format!("{error:?}"))?;
        if used != $body.len() {
            return Err(format!("{used} of {} B read", $body.len()));
        }
        Ok(packet.to_continuous_buffer())
    }};
}

fn oracle(version: Version, frame: &Frame<'_>) -> Result<Vec<u8>, String> {
    let body = frame.body;
    let shared: Arc<[u8]> = Arc::from(body);
    let packet = frame.packet_type().ok_or("reserved type")?;
    match (version, packet) {
        (Version::V311, PacketType::Publish) => match v3_1_1::Publish::parse(frame.flags(), shared) {
            Ok((packet, _)) => Ok(packet.to_continuous_buffer()),
            Err(error) => Err(format!("{error:?}")),
        },
        (Version::V5, PacketType::Publish) => match v5_0::Publish::parse(frame.flags(), shared) {
            Ok((packet, _)) => Ok(packet.to_continuous_buffer()),
            Err(error) => Err(format!("{error:?}")),
        },
        (Version::V311, PacketType::Connect) => through!(v3_1_1::Connect, body),
        (Version::V311, PacketType::Connack) => through!(v3_1_1::Connack, body),
        (Version::V311, PacketType::Puback) => through!(v3_1_1::Puback, body),
        (Version::V311, PacketType::Pubrec) => through!(v3_1_1::Pubrec, body),
        (Version::V311, PacketType::Pubrel) => through!(v3_1_1::Pubrel, body),
        (Version::V311, PacketType::Pubcomp) => through!(v3_1_1::Pubcomp, body),
        (Version::V311, PacketType::Subscribe) => through!(v3_1_1::Subscribe, body),
        (Version::V311, PacketType::Suback) => through!(v3_1_1::Suback, body),
        (Version::V311, PacketType::Unsubscribe) => through!(v3_1_1::Unsubscribe, body),
        (Version::V311, PacketType::Unsuback) => through!(v3_1_1::Unsuback, body),
        (Version::V311, PacketType::Pingreq) => through!(v3_1_1::Pingreq, body),
        (Version::V311, PacketType::Pingresp) => through!(v3_1_1::Pingresp, body),
        (Version::V311, PacketType::Disconnect) => through!(v3_1_1::Disconnect, body),
        (Version::V311, PacketType::Auth) => Err("no AUTH in 3.1.1".to_string()),
        (Version::V5, PacketType::Connect) => through!(v5_0::Connect, body),
        (Version::V5, PacketType::Connack) => through!(v5_0::Connack, body),
        (Version::V5, PacketType::Puback) => through!(v5_0::Puback, body),
        (Version::V5, PacketType::Pubrec) => through!(v5_0::Pubrec, body),
        (Version::V5, PacketType::Pubrel) => through!(v5_0::Pubrel, body),
        (Version::V5, PacketType::Pubcomp) => through!(v5_0::Pubcomp, body),
        (Version::V5, PacketType::Subscribe) => through!(v5_0::Subscribe, body),
        (Version::V5, PacketType::Suback) => through!(v5_0::Suback, body),
        (Version::V5, PacketType::Unsubscribe) => through!(v5_0::Unsubscribe, body),
        (Version::V5, PacketType::Unsuback) => through!(v5_0::Unsuback, body),
        (Version::V5, PacketType::Pingreq) => through!(v5_0::Pingreq, body),
        (Version::V5, PacketType::Pingresp) => through!(v5_0::Pingresp, body),
        (Version::V5, PacketType::Disconnect) => through!(v5_0::Disconnect, body),
        (Version::V5, PacketType::Auth) => through!(v5_0::Auth, body),
    }
}

/// What we take and the oracle does not. MQTT 5.0 §2.4 names 0x8C for DISCONNECT, the table of §3.14.2.1 does not; and a password
/// may come without a user name (§3.1.2.9), as it may not in 3.1.1.
fn is_disputed(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::Disconnect(disconnect) => disconnect.reason == pubmark_wire::mqtt::reason::BAD_AUTHENTICATION_METHOD,
        Packet::Connect(connect) => {
            connect.version == Version::V5 && connect.user.is_none() && connect.password.is_some()
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn the_oracle_writes_the_same_bytes((version, packet) in versioned()) {
        let bytes = bytes_of(version, &packet);
        let theirs = oracle(version, &frame(&bytes, usize::MAX).unwrap().unwrap());
        let theirs = theirs.map_err(TestCaseError::fail)?;
        prop_assert_eq!(&theirs, &bytes);
        prop_assert_eq!(packet_in(version, &theirs), Ok(packet));
    }

    #[test]
    fn we_accept_nothing_that_the_oracle_refuses(
        (version, packet) in versioned(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let whole = bytes_of(version, &packet);
        let frame = frame(&whole, usize::MAX).unwrap().unwrap();
        let mut body = frame.body.to_vec();
        for (place, value) in damage {
            if !body.is_empty() {
                let place = place.index(body.len());
                body[place] = value;
            }
        }
        let damaged = Frame { body: &body, ..frame };
        if let Ok(packet) = decode(version, &damaged) {
            // A CONNECT brings its version, so damage can change it.
            let version_spoken = if let Packet::Connect(connect) = &packet { connect.version } else { version };
            let theirs = oracle(version_spoken, &damaged);
            prop_assert!(theirs.is_ok() || is_disputed(&packet), "{:?} for {:?}", theirs, packet);
        }
    }
}
