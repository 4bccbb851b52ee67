//! Certificates of clients: against servers that demand one (mosquitto, nats-server, redis-server), and files that cannot be used.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_adapters::nats::NatsClients;
use pubmark_adapters::redis::RedisClients;
use pubmark_conformance::certificates::Certificates;
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::processes::{Kind, ListenerSpec, Processes, find, installed};
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients;
use pubmark_protocol::endpoint::{Endpoint, Identity, Tls};
use pubmark_protocol::events::Cause;
use pubmark_protocol::tls::TlsSetup;
use pubmark_testing::assert_count_eq;

fn missing(name: &str) -> Missing {
    Missing(format!("{name} is not installed"))
}

/// The configuration file: `strict` for the encrypted listener, `plain` for the others, which these tests do not use.
fn settings(place: &ListenerSpec<'_>, plain: String, strict: String) -> PathBuf {
    place.write("settings", if place.listener == Listener::Encrypted { strict } else { plain })
}

enum StrictMosquitto {}

impl Kind for StrictMosquitto {
    const NAME: &'static str = "mosquitto";
    const SCHEMES: [&'static str; 2] = ["mqtt", "mqtts"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let files = place.certificates;
        // SAFETY: returns a number, accesses no memory.
        let user = if unsafe { libc::geteuid() } == 0 { "user root\n" } else { "" };
        let plain = format!("{user}listener {} 127.0.0.1\nallow_anonymous true\n", place.address.port());
        let strict = format!(
            "{plain}cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n",
            files.authority.display(),
            files.server.display(),
            files.key.display()
        );
        let mut command = Command::new(find("mosquitto", &[]).ok_or_else(|| missing("mosquitto"))?);
        command.arg("-c").arg(settings(place, plain, strict));
        Ok(command)
    }
}

enum StrictNats {}

impl Kind for StrictNats {
    const NAME: &'static str = "nats-server";
    const SCHEMES: [&'static str; 2] = ["nats", "tls"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let files = place.certificates;
        let plain = format!("listen: {}\n", place.address);
        let strict = format!(
            "{plain}tls {{cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true}}\n",
            files.server, files.key, files.authority
        );
        let program = find("nats-server", &[installed("nats").join("bin")]);
        let mut command = Command::new(program.ok_or_else(|| missing("nats-server"))?);
        command.arg("-c").arg(settings(place, plain, strict));
        Ok(command)
    }
}

enum StrictRedis {}

impl Kind for StrictRedis {
    const NAME: &'static str = "redis-server";
    const SCHEMES: [&'static str; 2] = ["redis", "rediss"];

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        let files = place.certificates;
        let (port, folder) = (place.address.port(), place.folder.display());
        let common = format!("bind 127.0.0.1\nsave \"\"\nappendonly no\ndir {folder}\n");
        let strict = format!(
            "{common}port 0\ntls-port {port}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\ntls-auth-clients yes\n",
            files.server.display(),
            files.key.display(),
            files.authority.display()
        );
        let mut command = Command::new(find("redis-server", &[]).ok_or_else(|| missing("redis-server"))?);
        command.arg(settings(place, format!("{common}port {port}\n"), strict));
        Ok(command)
    }
}

fn with(endpoint: &Endpoint, identity: Option<Identity>) -> Endpoint {
    let tls = endpoint.tls.clone().map(|tls| Tls { identity, ..tls });
    Endpoint { tls, ..endpoint.clone() }
}

/// With the right certificate messages flow; without one, and with one of another authority, the error has the reason.
fn a_certificate_is_demanded<C: Clients, K: Kind>() {
    let server = match Processes::<K>::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return pubmark_testing::skip(format_args!("{}: {reason}", K::NAME)),
    };
    let endpoint = server.endpoint(Listener::Encrypted).unwrap();

    let mut peer = Peer::<C>::open(with(&endpoint, Some(server.certificates().identity())));
    let receiver = peer.join(subscriber("known-in", "known", Qos::BestEffort));
    let sender = peer.join(publisher("known-out", "known", Qos::BestEffort));
    (0..100).for_each(|_| peer.send(sender, 1_000));
    peer.wait("all messages", |record| record.arrived.len() == 100);
    assert_count_eq!(peer.record.sequences(receiver), (1..=100).collect::<Vec<_>>());

    let cause = Peer::<C>::open(with(&endpoint, None)).fail_to_connect(session("unknown"));
    assert!(
        matches!(&cause, Cause::Tls(words) if words.starts_with("the server asks for a client certificate")),
        "{cause:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let other = Certificates::make(folder.path(), "other").identity();
    let cause = Peer::<C>::open(with(&endpoint, Some(other))).fail_to_connect(session("stranger"));
    assert!(
        matches!(&cause, Cause::Tls(words) if words.starts_with("the server did not take our client")),
        "{cause:?}"
    );
}

#[test]
fn mosquitto_demands_one_of_mqtt_5() {
    a_certificate_is_demanded::<Mqtt5, StrictMosquitto>();
}

#[test]
fn mosquitto_demands_one_of_mqtt_311() {
    a_certificate_is_demanded::<Mqtt311, StrictMosquitto>();
}

#[test]
fn nats_server_demands_one() {
    a_certificate_is_demanded::<NatsClients, StrictNats>();
}

#[test]
fn redis_server_demands_one() {
    a_certificate_is_demanded::<RedisClients, StrictRedis>();
}

/// The error for a certificate and a key.
fn refusal(certificate: &Path, key: &Path) -> String {
    let identity = Some(Identity { certificate: certificate.to_owned(), key: key.to_owned() });
    TlsSetup::new(&Tls { server_name: "localhost".into(), authorities: None, identity }).unwrap_err().to_string()
}

#[test]
fn unusable_files_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let own = Certificates::make(folder.path(), "own");
    let other = Certificates::make(folder.path(), "other");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let empty = file("empty.pem", "");
    let torn = file("torn.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    let noise = file("noise.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = file("locked.pem", locked);
    let nowhere = folder.path().join("nowhere.pem");
    for (certificate, key, named, why) in [
        (&own.client, &other.client_key, &other.client_key, "it belongs to another certificate"),
        (&nowhere, &own.client_key, &nowhere, "No such file"),
        (&own.client, &nowhere, &nowhere, "No such file"),
        (&empty, &own.client_key, &empty, "no certificate in it"),
        (&own.client, &empty, &empty, "no private key in it"),
        (&own.client_key, &own.client, &own.client_key, "it holds a private key and no certificate"),
        (&own.client, &own.client, &own.client, "it holds a certificate and no private key"),
        (&own.client, &locked, &locked, "it is encrypted; `openssl pkey -in"),
        (&torn, &own.client_key, &torn, "missing section end marker"),
        (&own.client, &noise, &noise, "private key"),
    ] {
        let text = refusal(certificate, key);
        assert!(text.contains(&named.display().to_string()) && text.contains(why), "{text}");
    }
}
