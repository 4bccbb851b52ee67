//! libcoap's example server, which has a resource for each path that is PUT and supports observing it. It is not a
//! broker, so a resource must exist before a subscription. And its client, which sends requests to our responder.

use std::net::SocketAddr;
use std::process::Command;

use pubmark_adapters::coap::CoapClients;
use pubmark_conformance::peer::{Peer, RUN, publisher, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes, find};
use pubmark_conformance::recorder::Event;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SendOutcome};
use pubmark_protocol::{clock, header};
use pubmark_testing::{assert_count, assert_count_eq};

use crate::requests::{answer, endpoint, requester, responder};
use crate::suite::replies;

enum LibcoapServer {}

impl Kind for LibcoapServer {
    const NAME: &'static str = "coap-server";
    const SCHEMES: [&'static str; 2] = ["coap", "coap"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain];
    const MAY_LOSE: bool = true;

    fn listens(address: SocketAddr) -> bool {
        replies(address)
    }

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
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
fn a_put_is_observed_at_libcoap() {
    let server = match Processes::<LibcoapServer>::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return pubmark_testing::skip(reason),
    };
    let mut peer = Peer::<CoapClients>::open(server.endpoint(Listener::Plain).unwrap());
    for (topic, qos) in [("libcoap/a", Qos::BestEffort), ("libcoap/b", Qos::AtLeastOnce)] {
        let absent = peer.join(subscriber("early", &format!("{topic}/absent"), qos));
        let refusals = peer.record.all(|event| match event {
            Event::Subscribed(id, _, Err(said)) if *id == absent => Some(said.to_string()),
            _ => None,
        });
        assert!(refusals.iter().all(|said| said.starts_with("4.04")) && refusals.len() == 1, "{refusals:?}");
        let sender = peer.join(publisher("says", topic, qos));
        peer.send(sender, 100);
        // The resource exists: at best effort there is no response.
        peer.linger(200);
        let receiver = peer.join(subscriber("hears", topic, qos));
        let mut sent = vec![];
        for size in [16, 100, 1_000, 1_024, 5_000] {
            let before = peer.record.sequences(receiver).len();
            peer.send(sender, size);
            peer.wait("the notification", |record| record.sequences(receiver).len() > before);
            sent.push(size as usize);
        }
        let arrived = peer.record.arrived.iter().filter(|one| one.session == receiver);
        assert_count_eq!(arrived.clone().map(|one| one.payload_bytes).collect::<Vec<_>>(), sent);
        assert_count!(arrived.clone().all(|one| one.intact && !one.retained));
        if qos == Qos::AtLeastOnce {
            peer.wait("acknowledged", |record| record.acknowledged() == 6);
        }
    }
}

/// libcoap's client, if it is installed.
fn client() -> Option<std::path::PathBuf> {
    let names = ["coap-client-notls", "coap-client", "coap-client-openssl", "coap-client-gnutls"];
    let found = names.iter().find_map(|name| find(name, &[]));
    if found.is_none() {
        pubmark_testing::skip("coap-client is not installed (libcoap3-bin)");
    }
    found
}

/// Sends a request to our responder with libcoap's client, with these sizes of request and reply; returns the content
/// of its file.
fn ask_with(client: &std::path::Path, options: &[&str], sizes: [u32; 2], wait_ms: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (question, received) = (folder.path().join("question"), folder.path().join("heard"));
    let mut body = Vec::new();
    header::write(&mut body, sizes[0] as usize, RUN, 7, 3, 1);
    body.extend((0..sizes[0] as usize - body.len()).map(|index| (index % 251) as u8));
    std::fs::write(&question, body).unwrap();
    let address = ports::free();
    let mut peer = Peer::<CoapClients>::open(endpoint(address));
    let id = peer.join(responder("room/+", Qos::AtLeastOnce));
    let mut process = Command::new(client)
        .args(["-m", "fetch", "-t", "42", "-B", "30", "-f"])
        .arg(&question)
        .arg("-o")
        .arg(&received)
        .args(options)
        .arg(format!("coap://{address}/room/1"))
        .spawn()
        .unwrap();
    peer.wait("the request", |record| record.received_requests.len() == 1);
    peer.linger(wait_ms);
    let asked = peer.record.received_requests[0].clone();
    assert_count_eq!((asked.payload_bytes, asked.header.sequence), (sizes[0] as usize, 3));
    assert_eq!(peer.clients.reply(id, &answer(&asked, 1, sizes[1])), SendOutcome::Accepted);
    peer.flush(id);
    let deadline = clock::monotonic_ns() + 40_000_000_000;
    while process.try_wait().unwrap().is_none() {
        assert!(clock::monotonic_ns() < deadline, "coap-client does not end");
        peer.linger(10);
    }
    assert_count_eq!((peer.record.received_requests.len(), peer.record.written()), (1, 1), "{options:?} {sizes:?}");
    std::fs::read(&received).unwrap_or_default()
}

#[test]
fn libcoaps_client_gets_replies() {
    let Some(client) = client() else { return };
    for (options, sizes, wait_ms) in [
        (&[][..], [24, 24], 0),
        (&["-N"][..], [100, 300], 0),
        // After its acknowledgement.
        (&[][..], [100, 300], 700),
        (&[][..], [3_000, 300], 0),
        (&[][..], [24, 5_000], 0),
        (&[][..], [3_000, 5_000], 700),
        // It drops its own datagrams: the first request, the second, the acknowledgement of the reply.
        (&["-l", "1"][..], [100, 300], 700),
        (&["-l", "1,2"][..], [100, 300], 0),
        (&["-l", "2"][..], [100, 300], 700),
    ] {
        let received = ask_with(&client, options, sizes, wait_ms);
        assert_count_eq!(received.len(), sizes[1] as usize, "{options:?} {sizes:?}");
        let header = header::read_reply(&received, RUN, 0).unwrap();
        assert_count_eq!((header.publisher, header.sequence, header.due_ns), (7, 3, 1));
    }
}

#[test]
fn libcoaps_server_gets_requests() {
    let server = match Processes::<LibcoapServer>::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return pubmark_testing::skip(reason),
    };
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let mut peer = Peer::<CoapClients>::open(server.endpoint(Listener::Plain).unwrap());
        let absent = peer.join(requester("not/there", qos, 20_000));
        peer.send(absent, 24);
        let refused = |event: &Event| matches!(event, Event::Acknowledged(id, _, Err(_)) if *id == absent);
        peer.wait("refused", |record| record.count(refused) == 1);
        // Its clock resource accepts FETCH and responds with text: a reply without our header.
        let asks = peer.join(requester("time", qos, 20_000));
        peer.send(asks, 24);
        peer.wait("the time", |record| record.foreign == 1);
        assert_count_eq!(peer.record.acknowledged(), usize::from(qos != Qos::BestEffort));
        assert_eq!((peer.record.causes(asks), peer.record.causes(absent)), (vec![], vec![]));
    }
}
