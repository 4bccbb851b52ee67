//! Free loopback ports below the range from which the kernel takes ports for outgoing connections.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

const LOWEST: u32 = 20_000;
const HIGHEST: u32 = 32_767;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port on 127.0.0.1 that was free a moment ago. Another process may take it first: whoever uses it tries again.
pub fn free() -> SocketAddr {
    let spread = HIGHEST - LOWEST + 1;
    let start = std::process::id().wrapping_mul(2_654_435_761);
    for _ in 0..spread {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7)) % spread;
        let address = SocketAddr::from(([127, 0, 0, 1], (LOWEST + offset) as u16));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port from {LOWEST} to {HIGHEST} on 127.0.0.1");
}
