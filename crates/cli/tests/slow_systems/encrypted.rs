//! TLS and a log-in together.

use crate::system::{LOGIN, installed, record_of, run, secured, start, stop};

/// Runs against it with the right log-in, then sees that a wrong one is refused.
fn encrypts_and_asks_who_is_there(name: &str, protocol: &str) {
    let Some(definition) = installed(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = secured(protocol, folder.path());
    let authority = options.tls.as_ref().unwrap().authority.display().to_string();
    let system = start(&definition, &options);
    let endpoint = system.endpoint().to_string();
    assert!(["mqtts://", "amqps://"].iter().any(|scheme| endpoint.starts_with(scheme)), "{endpoint}");
    let call = |password| {
        let login = ["--user", LOGIN.0, "--password", password];
        [&["--endpoint", &endpoint, "--protocol", protocol, "--tls-ca", &authority, "--qos", "1"], &login[..]].concat()
    };
    record_of(folder.path(), &call(LOGIN.1));
    let refused = run(folder.path(), &call("not-it"));
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
    stop(system);
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_encrypts_and_asks_who_is_there() {
    encrypts_and_asks_who_is_there("rabbitmq", "mqtt311");
    encrypts_and_asks_who_is_there("rabbitmq", "amqp091");
    encrypts_and_asks_who_is_there("rabbitmq", "amqp10");
}

#[test]
#[ignore = "slow: make test-all"]
fn artemis_encrypts_and_asks_who_is_there() {
    encrypts_and_asks_who_is_there("artemis", "mqtt5");
    encrypts_and_asks_who_is_there("artemis", "amqp10");
}

#[test]
#[ignore = "slow: make test-all"]
fn hivemq_encrypts_and_asks_who_is_there() {
    encrypts_and_asks_who_is_there("hivemq", "mqtt5");
}

#[test]
#[ignore = "slow: make test-all"]
fn a_zenoh_router_encrypts_and_asks_who_is_there() {
    let Some(definition) = installed("zenoh") else { return };
    let folder = tempfile::tempdir().unwrap();
    // The probe uses the authority and the log-in.
    let system = start(&definition, &secured("zenoh", folder.path()));
    let mut stranger = system.endpoint().clone();
    let client = format!("{}/client.json5", stranger.values.get("directory").unwrap());
    let text = std::fs::read_to_string(&client).unwrap();
    std::fs::write(&client, text.replace(LOGIN.1, "not-it")).unwrap();
    stranger.credentials = None;
    let answer = pubmark_systems::probe::run(&definition, "zenoh", &stranger, crate::system::PATIENCE);
    assert!(answer.is_err(), "a wrong password is let in");
    stop(system);
}
