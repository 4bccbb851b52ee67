//! Links without root: this process becomes the user nobody, then root of a user namespace of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::time::{Duration, Instant};

use common::{core_socket, delayed, group_socket, settings, stop};
use pubmark_links::error::LinkError;
use pubmark_links::namespace::Namespace;
use pubmark_links::network::Network;
use pubmark_links::privilege::{self, Privilege};
use pubmark_testing::assert_count_eq;

/// The user that owns nothing.
const NOBODY: libc::uid_t = 65_534;

/// Names the part of this test that a process runs.
const PART: &str = "PUBMARK_LINKS_PART";

/// What a part prints first that cannot run here; the reason follows.
const CANNOT: &str = "cannot run: ";

fn become_nobody() -> std::io::Result<()> {
    // SAFETY: numbers only; the results are checked. Changing the user makes a process undumpable, and then its files
    // in /proc belong to root: the last call takes that back.
    let done = unsafe {
        libc::geteuid() != 0
            || (libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
                && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0
                && libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) == 0)
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A user namespace without a network of its own: a process that leaves the machine's network cannot enter it again.
fn a_thread_that_cannot_come_back() {
    become_nobody().unwrap();
    // SAFETY: no pointers are passed; the result is checked.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } < 0 {
        return println!("{CANNOT}no user namespace: {}", std::io::Error::last_os_error());
    }
    let cage = Namespace::create("cage").unwrap();
    for _ in 0..2 {
        let error = cage.enter(|| ()).unwrap_err();
        assert!(matches!(error, LinkError::Stranded { .. }), "{error}");
    }
    assert!(matches!(Namespace::current(), Err(LinkError::Stranded { .. })));
    println!("test a_thread_that_cannot_come_back_says_so ... ok");
}

fn main() {
    // `cargo test -- --list` calls every test with `--list` for its names.
    if std::env::args().any(|argument| argument == "--list") {
        return println!("links_work_without_root: test");
    }
    match std::env::var(PART).as_deref() {
        Ok("caged") => return a_thread_that_cannot_come_back(),
        Ok(_) => return links_work_without_root(),
        Err(_) => {}
    }
    // The user nobody may not write to the file of skips, so this process does not change its user.
    for part in ["caged", "links"] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let done = command.env(PART, part).stderr(std::process::Stdio::inherit()).output().unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        match printed.strip_prefix(CANNOT) {
            Some(reason) => pubmark_testing::skip(reason),
            None => print!("{printed}"),
        }
        assert!(done.status.success(), "{part}: {}", done.status);
    }
}

fn links_work_without_root() {
    become_nobody().unwrap();
    let found = privilege::probe();
    if let Some(missing) = found.missing() {
        return println!("{CANNOT}{missing}");
    }
    assert_eq!(found.privilege, Privilege::UserNamespace, "{found:?}");
    assert_eq!(privilege::claim().unwrap(), Privilege::Administrator);
    assert_eq!(privilege::probe().missing(), None);
    let network = Network::start(settings(&[delayed(Duration::from_millis(5)), delayed(Duration::ZERO)])).unwrap();
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    let start = Instant::now();
    own.send_to(b"ping", peer.local_addr().unwrap()).unwrap();
    let (_, from) = peer.recv_from(&mut [0; 10]).unwrap();
    peer.send_to(b"pong", from).unwrap();
    own.recv(&mut [0; 10]).unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(10) && took < Duration::from_secs(1), "{took:?}");
    let last = stop(network);
    assert_count_eq!(last.snapshot.links[0].up.delivered.packets, 1);
    println!("test links_work_without_root ... ok ({took:?}, SCHED_FIFO {})", last.snapshot.realtime);
}
