//! libcoap's example server: a resource for each path that is PUT, and observing it. It is no broker, so what is subscribed
//! to must be there before.

use std::net::SocketAddr;
use std::process::Command;

use pubmark_adapters::coap::CoapClients;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::processes::{Kind, Place, Processes, find};
use pubmark_conformance::recorder::Event;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;

use crate::suite::answers;

enum LibcoapServer {}

impl Kind for LibcoapServer {
    const NAME: &'static str = "coap-server";
    const SCHEMES: [&'static str; 2] = ["coap", "coap"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain];
    const MAY_LOSE: bool = true;

    fn listens(address: SocketAddr) -> bool {
        answers(address)
    }

    fn command(place: &Place<'_>) -> Result<Command, Missing> {
        let names = ["coap-server-notls", "coap-server", "coap-server-openssl", "coap-server-gnutls"];
        let program = names.iter().find_map(|name| find(name, &[]));
        let program = program.ok_or_else(|| Missing("coap-server is not installed (libcoap3-bin)".to_owned()))?;
        let mut command = Command::new(program);
        let (host, port) = (place.address.ip().to_string(), place.address.port().to_string());
        command.args(["-A", &host, "-p", &port, "-d", "100"]);
        Ok(command)
    }
}

#[test]
fn what_is_put_is_observed_at_libcoap() {
    let server = match Processes::<LibcoapServer>::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return eprintln!("skipped: {reason}"),
    };
    let mut peer = Peer::<CoapClients>::open(server.endpoint(Listener::Plain).unwrap());
    for (topic, qos) in [("libcoap/a", Qos::BestEffort), ("libcoap/b", Qos::AtLeastOnce)] {
        let absent = peer.join(subscriber("early", &format!("{topic}/absent"), qos));
        let refusals = peer.record.all(|event| match event {
            Event::Subscribed(id, _, Err(said)) if *id == absent => Some(said.to_string()),
            _ => None,
        });
        assert!(refusals.iter().all(|said| said.starts_with("4.04")) && refusals.len() == 1, "{refusals:?}");
        let says = peer.join(publisher("says", topic, qos));
        peer.send(says, 100);
        // There is the resource: at best effort nobody says so.
        peer.linger(200);
        let hears = peer.join(subscriber("hears", topic, qos));
        let mut sent = vec![];
        for size in [16, 100, 1_000, 1_024, 5_000] {
            let before = peer.record.sequences(hears).len();
            peer.send(says, size);
            peer.wait("the notification", |record| record.sequences(hears).len() > before);
            sent.push(size as usize);
        }
        let arrived = peer.record.arrived.iter().filter(|one| one.session == hears);
        assert_eq!(arrived.clone().map(|one| one.payload_bytes).collect::<Vec<_>>(), sent);
        assert!(arrived.clone().all(|one| one.intact && !one.retained));
        if qos == Qos::AtLeastOnce {
            peer.wait("acknowledged", |record| record.acknowledged() == 6);
        }
    }
}
