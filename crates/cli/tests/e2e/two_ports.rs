//! A protocol whose systems have a port for devices and another for subscribers: one endpoint alone is refused.

use crate::support::place::Place;

#[test]
fn one_of_two_ports_is_refused_with_the_option_for_the_other() {
    let place = Place::new();
    let run = ["run", "hello", "--qos", "0", "--endpoint", "zmq://127.0.0.1:9"];
    for options in [&[][..], &["--protocol", "zeromq"], &["--dry-run"]] {
        let called = place.call(&[&run[..], options].concat());
        assert_eq!(called.code(), 2, "{options:?}: {called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "`zmq://127.0.0.1:9` is one port of a system that has two over zeromq",
            "`--endpoint` says where devices connect, `--subscribe-endpoint zmq://…` where subscribers do",
        ] {
            assert!(words.contains(expected), "{options:?}: `{expected}` is not in {words}");
        }
        assert!(place.runs().is_empty());
    }
    let called = place.call(&[&run[..], &["--subscribe-endpoint", "zmq://127.0.0.1:10", "--dry-run"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
}
