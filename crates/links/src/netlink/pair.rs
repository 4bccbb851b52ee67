//! Pairs of virtual Ethernet interfaces (veth): what goes in at one end comes out of the other, in whichever namespaces they are.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::Netlink;
use super::interface::interface_part;
use super::message::Message;
use crate::error::LinkError;

/// The other end, in the attributes of a veth interface (linux/veth.h: VETH_INFO_PEER).
const PEER: u16 = 1;

/// Hardware address of every end, a local one. With the same address on all of them and without ARP (IFF_NOARP), a packet that
/// is sent to the interface's own address is the peer's, so no address resolution is needed.
const HARDWARE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

impl Netlink {
    /// Makes the interface `name` in the socket's namespace and its other end `peer` in another one.
    pub fn add_pair(&mut self, name: &str, peer: &str, peer_namespace: BorrowedFd<'_>) -> Result<(), LinkError> {
        let named = |message: Message, name: &str| {
            message
                .attribute(libc::IFLA_IFNAME, &[name.as_bytes(), b"\0"].concat())
                .attribute(libc::IFLA_ADDRESS, &HARDWARE_ADDRESS)
        };
        let other = |message: Message| {
            let descriptor = peer_namespace.as_raw_fd() as u32;
            named(message, peer).number(libc::IFLA_NET_NS_FD, descriptor)
        };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = named(Message::new(libc::RTM_NEWLINK, flags, &interface_part(0, 0, 0)), name);
        let message = message.nested(libc::IFLA_LINKINFO, false, &[], |inside| {
            inside.attribute(libc::IFLA_INFO_KIND, b"veth\0").nested(libc::IFLA_INFO_DATA, false, &[], |inside| {
                inside.nested(PEER, false, &interface_part(0, 0, 0), other)
            })
        });
        self.request(|| format!("make the interfaces `{name}` and `{peer}` (veth)"), message)
    }

    /// Makes an end of a pair behave like a wire between two machines: no ARP, no multicast (no packets besides those of
    /// applications), and each packet by itself rather than up to 64 KB of them as one.
    pub fn as_wire(&mut self, index: u32) -> Result<(), LinkError> {
        let (no_arp, multicast) = (libc::IFF_NOARP as u32, libc::IFF_MULTICAST as u32);
        let part = interface_part(index, no_arp, no_arp | multicast);
        let message = Message::new(libc::RTM_NEWLINK, 0, &part).number(libc::IFLA_GSO_MAX_SEGS, 1);
        self.request(|| format!("make interface {index} a plain wire"), message)
    }
}
