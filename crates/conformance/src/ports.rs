//! Free loopback ports below the range from which the kernel takes ports for outgoing connections.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

const LOWEST: u32 = 20_000;
const HIGHEST: u32 = 32_767;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port on 127.0.0.1 that was free a moment ago. Another process may bind it first: the caller must then try another one.
pub fn free() -> SocketAddr {
    first(|address| (TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()).then_some(address))
}

/// A listener on such a port: no other process can bind it.
pub fn listen() -> TcpListener {
    first(|address| TcpListener::bind(address).ok())
}

/// The first result of `choose` over the ports; each call starts at another port.
fn first<T>(choose: impl Fn(SocketAddr) -> Option<T>) -> T {
    let spread = HIGHEST - LOWEST + 1;
    let start = std::process::id().wrapping_mul(2_654_435_761);
    let address = |_| {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7)) % spread;
        SocketAddr::from(([127, 0, 0, 1], (LOWEST + offset) as u16))
    };
    (0..spread).map(address).find_map(choose).expect("a port from LOWEST to HIGHEST is free on 127.0.0.1")
}
