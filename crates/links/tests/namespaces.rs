//! Where sockets, threads and processes end up.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use common::{core, delayed, network, network_of, settings, skip, stop};
use pubmark_links::namespace::Namespace;
use pubmark_links::{addresses, sockets};
use pubmark_model::link::Conditions;

fn own_inode() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
}

#[test]
fn a_thread_comes_back_also_when_its_work_panics_or_is_nested() {
    if skip() {
        return;
    }
    let home = own_inode();
    let (first, second) = (Namespace::create("first").unwrap(), Namespace::create("second").unwrap());
    assert_ne!(first.inode(), second.inode());
    let seen = first.enter(|| {
        let inside = own_inode();
        let deeper = second.enter(own_inode).unwrap();
        (inside, deeper, own_inode())
    });
    assert_eq!(seen.unwrap(), (first.inode(), second.inode(), first.inode()));
    assert_eq!(own_inode(), home);
    let panicked = std::panic::catch_unwind(|| first.enter(|| panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(own_inode(), home);
    assert_eq!(Namespace::current().unwrap().inode(), home);
}

#[test]
fn threads_and_processes_stay_where_they_were_started() {
    if skip() {
        return;
    }
    let home = own_inode();
    let namespace = Namespace::create("place").unwrap();
    let threads = namespace
        .spawn("inside", || (own_inode(), std::thread::spawn(own_inode).join().unwrap()))
        .unwrap()
        .join()
        .unwrap()
        .unwrap();
    assert_eq!(threads, (namespace.inode(), namespace.inode()));
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net");
    namespace.contain(&mut command);
    for _ in 0..2 {
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(text.trim(), format!("net:[{}]", namespace.inode()));
    }
    assert_eq!(std::fs::read_link(namespace.path()).unwrap().to_str().unwrap(), format!("net:[{}]", namespace.inode()));
    assert_eq!(own_inode(), home);
}

#[test]
fn a_thousand_connections_of_ten_groups_come_from_their_groups() {
    let mut settings = settings(&[delayed(Duration::from_millis(2)); 10]);
    settings.addresses = 3;
    let Some(network) = network_of(settings) else { return };
    let listener = network.core().enter(|| TcpListener::bind(core(false, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(sockets::namespace_of(listener.as_fd()).unwrap(), network.core().inode());
    let accepting = std::thread::spawn(move || {
        (0..1_000)
            .map(|_| {
                let (mut stream, peer) = listener.accept().unwrap();
                let mut group = [0];
                stream.read_exact(&mut group).unwrap();
                (usize::from(group[0]), peer.ip(), stream)
            })
            .collect::<Vec<_>>()
    });
    let connecting: Vec<_> = (0..10)
        .map(|group| {
            let namespace = network.group(group).unwrap().clone();
            std::thread::spawn(move || {
                (0..100)
                    .map(|_| {
                        let mut stream = namespace.enter(|| TcpStream::connect(address)).unwrap().unwrap();
                        assert_eq!(sockets::namespace_of(stream.as_fd()).unwrap(), namespace.inode());
                        stream.write_all(&[group as u8]).unwrap();
                        stream
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let streams: Vec<Vec<TcpStream>> = connecting.into_iter().map(|thread| thread.join().unwrap()).collect();
    let accepted = accepting.join().unwrap();
    assert_eq!(accepted.len(), 1_000);
    for (group, peer, _) in &accepted {
        assert_eq!(*peer, addresses::group_v4(*group, 0));
    }
    // Other addresses of the group work as well.
    let last = network.sources(9)[2];
    let bound = network.group(9).unwrap().enter(|| std::net::UdpSocket::bind((last, 0))).unwrap().unwrap();
    assert_eq!(bound.local_addr().unwrap().ip(), addresses::group_v4(9, 2));
    drop((streams, accepted));
    stop(network);
}

#[test]
fn the_congestion_control_is_known_and_can_be_chosen() {
    let Some(network) = network(&[Conditions::default()]) else { return };
    let default = sockets::default_congestion_control(network.group(0).unwrap()).unwrap();
    assert_eq!(default, sockets::default_congestion_control(network.core()).unwrap());
    println!("congestion control: {default}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    sockets::set_congestion_control(listener.as_fd(), "reno").unwrap();
    assert_eq!(sockets::congestion_control(listener.as_fd()).unwrap(), "reno");
    assert!(sockets::set_congestion_control(listener.as_fd(), "no such thing").is_err());
}

#[test]
fn too_many_groups_are_refused() {
    let links = settings(&vec![Conditions::default(); addresses::MOST_GROUPS + 1]);
    let error = pubmark_links::network::Network::start(links).unwrap_err();
    assert!(error.to_string().contains("0 to 511 can be"), "{error}");
}
