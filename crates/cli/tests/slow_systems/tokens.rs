//! Tokens that clients sign themselves, verified by RabbitMQ's OAuth 2.0 plug-in.

use std::path::Path;
use std::process::Command;

use pubmark_systems::{Definition, RunningSystem};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::system::{installed, options, pubmark, start, stop};

/// Messages of a run: 3 devices, 10 a second each, 1 s.
const MESSAGES: u64 = 30;

/// A RabbitMQ that accepts tokens signed with the key in `folder`, which it knows as `k1`.
fn rabbitmq_with_tokens(folder: &Path) -> Option<RunningSystem> {
    installed("rabbitmq")?;
    let made = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem 2>/dev/null && \
                openssl pkey -in key.pem -pubout -out public.pem && \
                openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out other.pem 2>/dev/null && chmod 644 public.pem";
    if !Command::new("sh").args(["-c", made]).current_dir(folder).status().is_ok_and(|status| status.success()) {
        pubmark_testing::skip("openssl is not installed (`apt-get install openssl`)");
        return None;
    }
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/rabbitmq.yaml");
    let text = std::fs::read_to_string(shipped).unwrap();
    // The readiness check logs in as guest, so the accounts of its own stay.
    let settings = format!(
        "loopback_users = none\n          auth_backends.1 = rabbit_auth_backend_oauth2\n          auth_backends.2 = internal\n          \
         auth_oauth2.resource_server_id = broker\n          auth_oauth2.default_key = k1\n          \
         auth_oauth2.signing_keys.k1 = {}\n",
        folder.join("public.pem").display()
    );
    let text = text.replacen("loopback_users = none\n", &settings, 1);
    let text = text.replacen("[rabbitmq_mqtt,", "[rabbitmq_auth_backend_oauth2,rabbitmq_mqtt,", 1);
    assert!(text.contains("[rabbitmq_auth_backend_oauth2,") && text.contains("auth_oauth2.default_key"));
    let file = folder.join("rabbitmq-tokens.yaml");
    std::fs::write(&file, text).unwrap();
    let definition = Definition::load(&file.display().to_string()).unwrap();
    Some(start(&definition, &options("mqtt311")))
}

/// A workload whose clients sign with a key; `lifetime` as in a file.
fn write_workload(folder: &Path, key: &str, lifetime: &str) {
    let token = format!(
        "{{user: \"ignored\", client_id: \"{{}}\", token: {{algorithm: RS256, file: {key}, key_id: k1, lifetime: {lifetime}, claims: \
         {{aud: broker, sub: \"{{client_id}}\", scope: [\"broker.configure:*/*/*\", \"broker.write:*/*/*\", \"broker.read:*/*/*\"]}}}}}}"
    );
    let (devices, reader) = (token.replacen("{}", "pump-{device}", 1), token.replacen("{}", "reader", 1));
    let text = format!(
        "name: signed\ndevices:\n  - {{name: pump, count: 3, every: 100ms, payload: 60B, qos: 1, topic: \"signed/{{device}}\", credentials: {devices}}}\n\
         subscribers:\n  - {{name: everything, filters: [\"signed/#\"], qos: 1, credentials: {reader}}}\n"
    );
    std::fs::write(folder.join("signed.yaml"), text).unwrap();
}

fn record(folder: &Path, endpoint: &str, more: &[&str]) -> Value {
    // Debian's RabbitMQ does not support MQTT 5.
    let run =
        ["run", "signed.yaml", "--endpoint", endpoint, "--protocol", "mqtt311", "--warmup", "0s", "--json", "--quiet"];
    let call = [&run[..], more].concat();
    let output = pubmark(folder, &call).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_takes_tokens_and_refuses_those_of_another_key_and_a_reconnect_has_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(system) = rabbitmq_with_tokens(folder) else { return };
    let endpoint = system.endpoint().to_string();
    write_workload(folder, "key.pem", "60s");
    let taken = record(folder, &endpoint, &["--duration", "1s"]);
    let delivery = &taken["delivery"];
    assert_count_eq!(
        (&delivery["delivered"], &delivery["lost"]),
        (&MESSAGES.into(), &0.into()),
        "{delivery} {}",
        taken["connections"]
    );
    assert_count_eq!(&taken["connections"]["auth_failed"], &Value::from(0));
    write_workload(folder, "other.pem", "60s");
    let refused = record(folder, &endpoint, &["--duration", "1s"]);
    assert!(refused["connections"]["auth_failed"].as_u64().unwrap() > 0, "{}", refused["connections"]);
    write_workload(folder, "key.pem", "2s");
    // It does not close connections whose token expires. Clients whose connections are reset later need new tokens.
    let expired = record(folder, &endpoint, &["--duration", "5s", "--fault", "reset:at=3s"]);
    let connections = &expired["connections"];
    assert_count_eq!(&connections["auth_failed"], &Value::from(0), "{connections}");
    assert_count_eq!(&connections["established"], &Value::from(8), "{connections}");
    assert!(expired["delivery"]["delivered"].as_u64() > Some(4 * MESSAGES), "{}", expired["delivery"]);
    stop(system);
}
