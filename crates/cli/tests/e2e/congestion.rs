//! Congestion control of our sockets: the kernel uses the requested algorithm, as `ss` shows, and unavailable ones are
//! refused.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::books::assert_closed;
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::processes::wait_for;

const SMALL: &[&str] =
    &["run", "fan-in", "--set", "publishers=5", "--set", "rate=10/s", "--duration", "3s", "--warmup", "0s"];
/// Publishers and a subscriber.
const CONNECTIONS: usize = 6;
/// Longest wait for the connections of a run.
const LIMIT: Duration = Duration::from_secs(20);

/// Algorithms that this machine allows every user.
fn allowed() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Congestion control of each connection to a port, as `ss` reports it.
fn seen(port: u16) -> Vec<String> {
    let output = Command::new("ss").args(["-tinH", "state", "established", "dport", "=", &format!(":{port}")]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    // A line with addresses, then an indented one that begins with the negotiated options and the algorithm.
    let details = text.lines().filter(|line| line.starts_with(char::is_whitespace));
    let known = ["reno", "cubic", "bbr", "bic", "vegas", "westwood", "htcp", "dctcp"];
    details.filter_map(|line| line.split_whitespace().find(|word| known.contains(word))).map(str::to_owned).collect()
}

#[test]
fn the_kernel_uses_the_requested_algorithm() {
    if !Command::new("ss").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return pubmark_testing::skip("`ss` is not here to look from outside");
    }
    let allowed = allowed();
    if allowed.is_empty() {
        return pubmark_testing::skip("this machine shows no congestion control that every user may have");
    }
    let Some(broker) = Mosquitto::start("") else { return };
    for name in allowed {
        let place = Place::new();
        let options = ["--endpoint", &broker.endpoint(), "--congestion-control", &name, "--json", "--quiet"];
        let call = place.start(&[SMALL, &options].concat());
        let mut last = vec![];
        wait_for(&format!("{CONNECTIONS} connections with {name}"), LIMIT, || {
            last = seen(broker.port);
            last.len() == CONNECTIONS
        });
        assert!(last.iter().all(|found| *found == name), "{name}: {last:?}");
        let called = call.wait();
        assert!(matches!(called.code(), 0 | 5), "{called:?}");
        let record = called.json();
        assert_closed(&record);
        assert_eq!(record["settings"]["congestion_control"], name.as_str());
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_what_there_is() {
    let place = Place::new();
    for (options, expected) in [
        (&["--congestion-control", "none-such"][..], "this kernel has no congestion control `none-such`"),
        (&["--system", "coap", "--congestion-control", "reno"], "speaks over UDP"),
        (&["--system", "zenoh", "--congestion-control", "reno"], "opens its sockets in a library"),
    ] {
        let called = place.call(&[SMALL, options].concat());
        assert_eq!(called.code(), 2, "{options:?}: {called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{options:?}: {words}");
        assert!(place.runs().is_empty());
    }
    let called = place.call(&[SMALL, &["--congestion-control", "none-such"]].concat());
    assert!(called.errors.contains("`reno`"), "{}", called.errors);
}
