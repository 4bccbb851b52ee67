//! The relay when the process has no descriptor left, not even the one it had put aside. The limit is one of the process, so this is a
//! test binary of its own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_links::namespace::Namespace;
use pubmark_links::relay::{Relay, pair, serve};
use pubmark_testing::assert_count_eq;

const WITHIN: Duration = Duration::from_secs(10);
/// Where clients connect: an address of its own, as the system has the same port.
const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Sets how many descriptors the process may open; returns the limit before.
fn limit(descriptors: libc::rlim_t) -> libc::rlim_t {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live rlimit.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) }, 0);
    let before = std::mem::replace(&mut limits.rlim_cur, descriptors);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) }, 0);
    before
}

/// A socket that is not connected yet: it has its descriptor before there is none left.
fn socket() -> TcpStream {
    // SAFETY: numbers only; the result is checked before it is owned.
    let descriptor = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    assert!(descriptor >= 0);
    // SAFETY: it was just made and has no other owner.
    unsafe { TcpStream::from_raw_fd(descriptor) }
}

fn connect(socket: &TcpStream, to: SocketAddr) {
    let SocketAddr::V4(to) = to else { panic!("{to} is of IPv6") };
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: a live address of that length.
    let connected = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(connected, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_relay_without_any_descriptor_waits_for_one_and_does_not_spin() {
    let [ours, theirs] = pair().unwrap();
    thread::spawn(move || serve(theirs, |host, _| Err(format!("no `{host}`"))).unwrap());
    let relay = Relay::new(ours);
    let system = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = relay.listen(&Namespace::current().unwrap(), THERE.into(), system.local_addr().unwrap()).unwrap();
    let mut client = socket();
    client.set_read_timeout(Some(WITHIN)).unwrap();
    // Only standard input's number: the spare descriptor, once closed, cannot be opened again.
    let before = limit(1);
    connect(&client, at);
    let began = Instant::now();
    while relay.counts().unwrap().exhausted == 0 {
        assert!(began.elapsed() < WITHIN, "the relay never missed the descriptor");
        thread::sleep(Duration::from_millis(1));
    }
    let cpu_ns = relay.counts().unwrap().cpu_ns;
    thread::sleep(Duration::from_millis(500));
    let counts = relay.counts().unwrap();
    let cpu_ns = counts.cpu_ns - cpu_ns;
    limit(before);
    // 50 attempts take some milliseconds at most, on a slow machine too.
    assert!(cpu_ns < 50_000_000, "{cpu_ns} ns of CPU time in 500 ms");
    assert_count_eq!((counts.connections, counts.exhausted), (0, 1), "one client waits, however often it is tried");
    // With a descriptor the client is served that had waited.
    let (mut server, _) = system.accept().unwrap();
    server.write_all(b"late").unwrap();
    let mut word = [0; 4];
    client.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"late");
    let counts = relay.counts().unwrap();
    assert_count_eq!((counts.connections, counts.exhausted), (1, 1));
}
