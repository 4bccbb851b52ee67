//! Where a packet's data is, and which connection it is of.

/// `IPPROTO_TCP` and `IPPROTO_UDP`.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A segment of TCP or a datagram of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Of TCP: the sequence number of its first byte, and is it the beginning of a connection?
    pub tcp: Option<(u32, bool)>,
    /// What it carries.
    pub data: &'a [u8],
}

/// The segment in an IP packet; `None` of other protocols, fragments and what is cut off.
pub fn segment(packet: &[u8]) -> Option<Segment<'_>> {
    let (protocol, rest) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
            // More fragments, or not the first of them: RFC 791 §3.1.
            let fragment = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) & 0x3fff;
            (fragment == 0).then_some(())?;
            (*packet.get(9)?, packet.get(header..length.min(packet.len()))?)
        }
        6 => {
            let length = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
            (*packet.get(6)?, packet.get(40..(40 + length).min(packet.len()))?)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?));
    let ports = [port(0)?, port(2)?];
    match protocol {
        TCP => {
            let sequence = u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?);
            let header = usize::from(rest.get(12)? >> 4) * 4;
            let begins = rest.get(13)? & 2 != 0;
            Some(Segment { ports, tcp: Some((sequence, begins)), data: rest.get(header..)? })
        }
        UDP => Some(Segment { ports, tcp: None, data: rest.get(8..)? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0u8; 20];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(20 + behind.len() as u16).to_be_bytes());
        packet[9] = protocol;
        packet.extend(behind);
        packet
    }

    #[test]
    fn data_follows_the_headers() {
        let mut tcp = vec![0, 80, 4, 1, 0, 0, 1, 2, 0, 0, 0, 0, 8 << 4, 2];
        tcp.resize(32, 0);
        tcp.extend(b"data");
        let packet = ipv4(6, &tcp);
        assert_eq!(segment(&packet), Some(Segment { ports: [80, 1_025], tcp: Some((258, true)), data: b"data" }));
        let packet = ipv4(17, &[0, 80, 4, 1, 0, 12, 0, 0, b'd', b'a']);
        assert_eq!(segment(&packet), Some(Segment { ports: [80, 1_025], tcp: None, data: b"da" }));
        let mut ipv6 = vec![0u8; 40];
        (ipv6[0], ipv6[5], ipv6[6]) = (0x60, 10, 17);
        ipv6.extend([0, 80, 4, 1, 0, 12, 0, 0, b'd', b'a', b'x']);
        assert_eq!(segment(&ipv6), Some(Segment { ports: [80, 1_025], tcp: None, data: b"da" }));
    }

    #[test]
    fn other_packets_are_no_segments() {
        let mut fragment = ipv4(17, &[0; 20]);
        fragment[7] = 1;
        for packet in [vec![], vec![0x45], ipv4(1, &[0; 8]), ipv4(6, &[0; 13]), ipv4(17, &[0; 3]), fragment] {
            assert_eq!(segment(&packet), None, "{packet:?}");
        }
    }
}
