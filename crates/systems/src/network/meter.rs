//! Attribution of TCP bytes to the system and to the generator.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::diagnostics::{Carried, Diagnostics, Socket};

/// Bytes of all TCP sockets of one side since its meter started. The counts never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received, bytes.
    pub received_bytes: u64,
    /// Sent and acknowledged, bytes.
    pub sent_bytes: u64,
}

/// Adds up the bytes of the sockets of a system and of the generator.
///
/// The system's sockets are those at its listening ports, and those that its processes opened to one of these ports
/// (the links between its brokers). The generator's sockets are those that its processes opened to these ports or to
/// other ports that clients use. Bytes between the last reading of a socket and its end are missed. With one reading
/// per second and one at each edge of the window, nothing of lasting connections is missed.
///
/// Only the current network namespace is visible.
#[derive(Debug)]
pub struct SocketMeter {
    diagnostics: Diagnostics,
    /// Ports that the system listens on, and that clients connect to. If there are none, all sockets of the generator
    /// are counted.
    ports: HashSet<u16>,
    /// Does the system have processes on this machine whose listening ports can be found?
    sees_system: bool,
    known: HashMap<u64, KnownSocket>,
    round: u32,
    system: Traffic,
    own: Traffic,
}

#[derive(Clone, Copy, Debug)]
struct KnownSocket {
    owner: Owner,
    carried: Carried,
    round: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    System,
    Ourselves,
    Other,
}

impl SocketMeter {
    /// Creates a meter for a system with these processes (none if it is not on this machine), and for the generator,
    /// whose clients connect to `client_ports`. The system's ports are those that it listens on now. Earlier traffic is
    /// not counted.
    pub fn new(pids: &[u32], client_ports: &[u16]) -> io::Result<SocketMeter> {
        let mut diagnostics = Diagnostics::open()?;
        let listening = if pids.is_empty() { HashSet::new() } else { listening_ports(&mut diagnostics, pids)? };
        let sees_system = !listening.is_empty();
        let ports = listening.into_iter().chain(client_ports.iter().copied()).collect();
        SocketMeter::at(ports, sees_system, pids, diagnostics)
    }

    fn at(ports: HashSet<u16>, sees_system: bool, pids: &[u32], diagnostics: Diagnostics) -> io::Result<SocketMeter> {
        let (system, own) = (Traffic::default(), Traffic::default());
        let mut meter = SocketMeter { diagnostics, ports, sees_system, known: HashMap::new(), round: 0, system, own };
        meter.look(pids, &[std::process::id()])?;
        (meter.system, meter.own) = (Traffic::default(), Traffic::default());
        Ok(meter)
    }

    /// Reads all sockets and returns both sums: the system's (`None` if it has no listening port that can be found),
    /// and the generator's. `pids` are the system's processes now, `own_pids` the generator's.
    pub fn read(&mut self, pids: &[u32], own_pids: &[u32]) -> io::Result<(Option<Traffic>, Traffic)> {
        self.look(pids, own_pids)?;
        Ok((self.sees_system.then_some(self.system), self.own))
    }

    fn look(&mut self, pids: &[u32], own_pids: &[u32]) -> io::Result<()> {
        let sockets = self.diagnostics.connected()?;
        self.round = self.round.wrapping_add(1);
        let mut holders = Holders { pids, own_pids, own: None, system: None };
        for socket in &sockets {
            let Some(carried) = socket.carried else { continue };
            let before = self.known.get(&socket.cookie).copied();
            let owner = match before {
                Some(known) => known.owner,
                None => match owner(socket, &self.ports, self.sees_system, &mut holders) {
                    Some(owner) => owner,
                    None => continue,
                },
            };
            let since = before.map(|known| known.carried).unwrap_or_default();
            let side = match owner {
                Owner::System => Some(&mut self.system),
                Owner::Ourselves => Some(&mut self.own),
                Owner::Other => None,
            };
            if let Some(side) = side {
                side.received_bytes += carried.received_bytes.saturating_sub(since.received_bytes);
                side.sent_bytes += carried.acknowledged_bytes.saturating_sub(since.acknowledged_bytes);
            }
            self.known.insert(socket.cookie, KnownSocket { owner, carried, round: self.round });
        }
        self.known.retain(|_, known| known.round == self.round);
        Ok(())
    }
}

fn listening_ports(diagnostics: &mut Diagnostics, pids: &[u32]) -> io::Result<HashSet<u16>> {
    let inodes = socket_inodes(pids);
    let listening = diagnostics.listening()?;
    let held = listening.iter().filter(|socket| inodes.contains(&u64::from(socket.inode)));
    Ok(held.map(|socket| socket.local_port).collect())
}

/// The side that a socket belongs to; `None` if that cannot be determined (any more).
fn owner(socket: &Socket, ports: &HashSet<u16>, sees_system: bool, holders: &mut Holders) -> Option<Owner> {
    if sees_system && ports.contains(&socket.local_port) {
        return Some(Owner::System);
    }
    if !ports.is_empty() && !ports.contains(&socket.remote_port) {
        return Some(Owner::Other);
    }
    if socket.inode == 0 {
        return None;
    }
    if holders.ourselves(socket.inode) {
        return Some(Owner::Ourselves);
    }
    Some(if sees_system && holders.system(socket.inode) { Owner::System } else { Owner::Other })
}

/// Owners of sockets, looked up once per reading and only if needed: it costs a system call for each descriptor.
struct Holders<'a> {
    pids: &'a [u32],
    own_pids: &'a [u32],
    own: Option<HashSet<u64>>,
    system: Option<HashSet<u64>>,
}

impl Holders<'_> {
    fn ourselves(&mut self, inode: u32) -> bool {
        self.own.get_or_insert_with(|| socket_inodes(self.own_pids)).contains(&u64::from(inode))
    }

    fn system(&mut self, inode: u32) -> bool {
        self.system.get_or_insert_with(|| socket_inodes(self.pids)).contains(&u64::from(inode))
    }
}

/// Inodes of the sockets that processes have open. Processes that end meanwhile or that we may not read have none.
fn socket_inodes(pids: &[u32]) -> HashSet<u64> {
    let descriptors = pids.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok()).flatten().flatten();
    descriptors
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .filter(|found| found.mode() & libc::S_IFMT == libc::S_IFSOCK)
        .map(|found| found.ino())
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A connection to a listener of this process.
    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// A meter of the traffic of this listener; other tests of this process have connections, too.
    fn metering(listener: &TcpListener) -> SocketMeter {
        let port = listener.local_addr().unwrap().port();
        let mut diagnostics = Diagnostics::open().unwrap();
        assert!(listening_ports(&mut diagnostics, &[std::process::id()]).unwrap().contains(&port));
        SocketMeter::at(HashSet::from([port]), true, &[std::process::id()], diagnostics).unwrap()
    }

    #[test]
    fn bytes_are_added_up_over_short_lived_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut early, mut early_peer) = pair(&listener);
        early.write_all(&[0; 777]).unwrap();
        early_peer.read_exact(&mut [0; 777]).unwrap();

        // Here this process is also the system, so the port identifies the system's side and the descriptor the
        // generator's.
        let pids = [std::process::id()];
        let mut meter = metering(&listener);
        assert_eq!(meter.read(&pids, &pids).unwrap(), (Some(Traffic::default()), Traffic::default()));
        let mut last = Traffic::default();
        for round in 1..=3u64 {
            let (mut client, mut server) = pair(&listener);
            client.write_all(&[0; 1_000]).unwrap();
            server.read_exact(&mut [0; 1_000]).unwrap();
            early_peer.write_all(&[0; 10]).unwrap();
            early.read_exact(&mut [0; 10]).unwrap();
            let (system, own) = meter.read(&pids, &pids).unwrap();
            let system = system.unwrap();
            assert_eq!((system.received_bytes, own.received_bytes), (round * 1_000, round * 10));
            assert!(system.sent_bytes >= last.sent_bytes && system.sent_bytes <= own.received_bytes + round);
            last = system;
        }
    }

    #[test]
    fn sockets_of_others_are_not_counted() {
        let (listener, strange) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let mut meter = metering(&listener);
        let (mut client, mut server) = pair(&strange);
        client.write_all(&[0; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
        let (system, own) = meter.read(&[], &[std::process::id()]).unwrap();
        assert_eq!((system.unwrap(), own), (Traffic::default(), Traffic::default()));
    }

    #[test]
    fn a_system_that_is_not_here_has_no_traffic_and_ours_goes_to_its_port() {
        let (listener, strange) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        let mut meter = SocketMeter::new(&[], &[port]).unwrap();
        for (listener, bytes) in [(&listener, 30), (&strange, 5_000)] {
            let (mut client, mut server) = pair(listener);
            server.write_all(&vec![0; bytes]).unwrap();
            client.read_exact(&mut vec![0; bytes]).unwrap();
            let (system, own) = meter.read(&[], &[std::process::id()]).unwrap();
            assert_eq!((system, own.received_bytes), (None, 30));
        }
        // Later sockets belong to the process that opened them, which is not among the given processes.
        let (mut client, mut server) = pair(&listener);
        server.write_all(&[0; 40]).unwrap();
        client.read_exact(&mut [0; 40]).unwrap();
        assert_eq!(meter.read(&[], &[]).unwrap().1.received_bytes, 30);
        // Without a listening process of a system, its traffic is unknown, not 0.
        assert_eq!(SocketMeter::new(&[u32::MAX >> 1], &[port]).unwrap().read(&[], &[]).unwrap().0, None);
    }
}
